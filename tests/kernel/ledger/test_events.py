"""Every kind of event comes back from its stored body, and a malformed one is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import pytest
from tests.kernel.ledger.publishing import ONE, publish
from tests.kernel.ledger.test_changes import raised, replayed
from tests.kernel.ledger.test_outside import release

from sulq.errors import Refused
from sulq.kernel.accounting.outside import NONE
from sulq.kernel.ledger import events
from sulq.kernel.ledger.accounts import AccountCharge
from sulq.kernel.ledger.header import PopulationMembership, TableHeader
from sulq.kernel.ledger.signing import canonical

PARTS = (AccountCharge(ONE, ((0, 2), (4, 4))),)
TOWN = PopulationMembership("town", "{}", ONE, Fraction(1, 3), Fraction(2))
HEADER = TableHeader("people", "0" * 32, {"schema": "{}"}, ("a", "b"), ONE, TOWN, 5)
CHARGE = events.ChargeEvent("people", "ann", "k", "q", "d", "n", PARTS, ONE, 7)
EVERY = (
    events.LedgerEvent("0" * 32, "11"),
    events.PublishEvent(HEADER, "stamp"),
    events.RepairEvent(HEADER, "why"),
    events.WithdrawEvent("people", "why"),
    CHARGE,
    events.ReleaseEvent("people", "owner", None, "q", "d", "n", (), ONE),
    events.DeclareEvent("people", (("q", "r"), ("s",)), 2, "terms"),
    events.AnswerEvent("people", 3, "hash"),
    events.RepeatEvent("people", 3, "ann", None, ONE, 7),
    events.RetryEvent("people", 3, "ann", "k"),
    events.PlanEvent("people", "ann", "k", (("d", "n", (1, 2)), ("e", "m", ()))),
    events.ReserveEvent("people", "ann", ONE, 2),
    events.ReturnEvent("people", 3, void=True),
    events.GrantEvent("people", "ann", ONE),
    events.RevokeEvent("people", "ann", "why"),
    events.AmendEvent("people", raised()),
    events.VersionEvent("people", "0" * 32, {"schema": "{}"}, "why", 9, "stamp"),
    events.OutsideEvent("people", release(20)(NONE), release(10)(NONE)),
    events.CloseEvent("people", "why"),
    events.RecoverEvent("11", False, True, (events.LostCharge("t", "ann", PARTS, ONE),), {3: "x"}),
)
LEFT_OUT = {"stamp", "reservation", "replica", "budget", "population", "joint"}
"""Fields that a body may do without."""


def test_every_kind_comes_back_from_its_body():
    kinds = {*get_args(events.Event), events.ReleaseEvent} - {events.UnknownEvent}
    assert {type(event) for event in EVERY} == kinds
    for event in EVERY:
        text = canonical(event.to_body())
        assert events.read_event(text) == event
        assert events.read_event(text).kind == json.loads(text)["kind"]


def test_a_field_without_a_value_is_left_out():
    """As older versions wrote it: the hash of an event depends on every byte of its body."""
    bare = (
        events.PublishEvent(replace(HEADER, member=None, budget=None)),
        replace(CHARGE, reservation=None),
        events.RepeatEvent("people", 3, "ann", "k", ONE),
        events.ReserveEvent("people", "ann", ONE),
        events.VersionEvent("people", "0" * 32, {"schema": "{}"}, "why"),
        events.OutsideEvent("people", release(20)(NONE)),
    )
    for event in bare:
        body = event.to_body()
        assert not LEFT_OUT & body.keys()
        assert events.read_event(canonical(body)) == event


def test_a_body_that_lacks_a_field_is_malformed():
    for event in EVERY:
        body = json.loads(canonical(event.to_body()))
        for field in body.keys() - LEFT_OUT:
            with pytest.raises(events.MALFORMED):
                events.event_from({name: body[name] for name in body if name != field})


def test_the_time_of_writing_is_read_and_not_written():
    event = events.CloseEvent("people", "why")
    assert events.event_from(event.to_body() | {"at": 12}) == replace(event, at=12)
    assert "at" not in replace(event, at=12).to_body()


def test_an_unknown_kind_wants_a_newer_version(place):
    journal = publish(place)
    with pytest.raises(Refused, match="use a newer sulq"):
        replayed(journal, {"kind": "merge"})
    with pytest.raises(Refused, match="does not verify"):
        replayed(journal, CHARGE.to_body() | {"charges": 3})
    journal.close()
