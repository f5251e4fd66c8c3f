"""New rows: one account for every version, no answer crosses over, and never a silent reset."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.ledger.catalogues import contents
from tests.kernel.ledger.publishing import LARGER, ONE, PROMISE, ask, credits, pay, publish, spent
from tests.kernel.ledger.test_changes import raised, replayed
from tests.kernel.ledger.test_outside import release
from tests.kernel.ledger.test_population import member

from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.events import VersionEvent
from sulq.kernel.ledger.inspect import inspect, statement
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.signing import verify_receipt

FACTS = {"schema": "{}", "promise": PROMISE}
FINER = {"schema": '{"bits":25}', "promise": PROMISE}


def grown(journal, fingerprint="new", facts=FACTS, reason="", amendment=None):
    return journal.grow(facts, fingerprint, reason, None, amendment)


def test_what_was_spent_stays_and_the_version_is_new(place):
    journal = publish(place, fingerprint="old")
    journal.grant("ann", credits(3))
    ask(journal, "a", price=credits(4))
    first = journal.header.version
    larger = grown(journal, facts=FINER, reason="spring")
    found = larger.statement()
    assert (found.spent, found.cap) == (credits(4), credits(10))
    assert larger.remaining("owner") == larger.remaining("ann") == credits(3)
    assert found.version == larger.header.version != first
    [before] = found.grown
    assert (before.version, before.reason, before.facts) == (first, "spring", FACTS)
    assert found.facts == FINER
    journal.close()
    larger.close()
    with closing(publish(place, fingerprint="new", facts=FINER)) as journal:
        assert journal.statement() == found
    with pytest.raises(Refused):  # the rows from before do not open it
        publish(place, fingerprint="old", facts=FINER)


def test_who_moved_to_another_stratum_brings_the_past_along(path):
    with closing(publish(path, accounts=("N", "S"), cap=credits(10, 9))) as journal:
        pay(journal, "a", charges={"N": credits(4)}, share=ONE)
        pay(journal, "b", charges={"S": credits(1, 3)}, share=ONE)
        larger = grown(journal)
        lines = {line.name: line.spent for line in larger.statement().accounts}
        assert lines == {"N": credits(4, 3), "S": credits(4, 3)}
        assert pay(larger, "c", charges={"S": credits(6)}, share=ONE).charged
        with pytest.raises(BudgetSpent):  # 4 in N and then 7 in S would be 11
            pay(larger, "d", charges={"S": ONE}, share=ONE)
        larger.close()


def test_answers_belong_to_the_version_they_were_given_on(journal):
    first = ask(journal, "a", key="k")
    open_entry = pay(journal, "open")
    parts = dict.fromkeys(journal.header.accounts, ONE)
    batch = [('{"ask":"a"}', "a", "n", parts, ONE, ())]
    journal.charge_all(batch, analyst="owner", key="plan")
    larger = grown(journal)
    assert larger.snapshot(digest="a").stored == ()
    assert not larger.record_at(first.seq).found
    for use in (
        lambda: pay(larger, "a", key="k"),
        lambda: larger.charge_all(batch, analyst="owner", key="plan"),
    ):
        with pytest.raises(Refused, match="before the table was amended or had grown"):
            use()
    with pytest.raises(Refused, match="is not open in this ledger"):
        larger.settle(open_entry, [1])  # new rows never answer an old charge
    new = ask(larger, "a", values=(8,))
    assert (new.values, new.charged, spent(larger)) == ((8,), {"": ONE}, credits(3))
    versions = [entry.receipt.body["version"] for entry in larger.entries() if entry.receipt]
    assert versions == [first.receipt.body["version"], larger.header.version]
    assert larger.receipt(first.seq) == first.receipt  # the same bytes, for ever
    verify_receipt(larger.receipt(first.seq).to_json(), larger.public_key)


def test_whoever_opened_the_table_before_is_refused(journal):
    entry = pay(journal, "a")
    aside = journal.reserve("owner", ONE)
    larger = grown(journal)
    for use in (
        lambda: pay(journal, "b"),
        lambda: journal.remaining("owner"),
        lambda: journal.check_asker("owner"),
        lambda: pay(aside, "b"),
        lambda: grown(journal, "newer"),
    ):
        with pytest.raises(Refused, match="has grown since it was opened here"):
            use()
    with pytest.raises(Refused, match="what was charged stands") as late:
        journal.settle(entry, [1])
    assert late.value.charged_unknown
    aside.close()
    assert larger.remaining("owner") == credits(9)
    with pytest.raises(Refused, match="amended since it was opened here"):
        larger.amend(raised()) and pay(larger, "c")


def test_changed_data_is_refused_unless_it_is_said_to_have_grown(place):
    publish(place, fingerprint="old").close()
    with pytest.raises(Refused, match="is not what was published"):
        publish(place, fingerprint="new")
    with closing(Ledger.attach(place, "people", wait=0)) as journal:
        assert journal.reads("old")
        assert not journal.reads("new")
        larger = grown(journal)
        assert larger.reads("new")
        assert not larger.reads("old")
        larger.close()
    for wrong in ("old", "newer"):
        with pytest.raises(Refused, match="is not what was published"):
            publish(place, fingerprint=wrong)
    publish(place, fingerprint="new").close()


def test_data_of_another_table_is_no_growth(path):
    publish(path, name="other", fingerprint="theirs").close()
    with (
        closing(publish(path, fingerprint="old")) as journal,
        pytest.raises(Refused, match="registered with another ledger, or as another table"),
    ):
        grown(journal, "theirs")


def test_what_cannot_grow_is_refused(path):
    with pytest.raises(Refused, match="in memory"):
        Ledger.attach(":memory:", "people")
    with pytest.raises(Refused, match="no ledger"):
        Ledger.attach(path, "people", wait=0)
    with closing(publish(path)) as journal:
        with pytest.raises(Refused, match="has no table 'others'"):
            Ledger.attach(path, "others")
        with pytest.raises(InvalidQuery, match="reason"):
            grown(journal, reason=3)
        journal.declare([["q"]], 2, "terms")
        with pytest.raises(Refused, match="cannot grow any more"):
            grown(journal)
    with closing(publish(path, name="other")) as journal:
        journal.close_for_good()
        with pytest.raises(Refused, match="closed for good"):
            grown(journal)


def test_growth_is_no_way_round_a_promise_or_a_population(path):
    with closing(publish(path, member=member(cap=6))) as journal:
        ask(journal, "a", price=credits(4))
        larger = grown(journal, facts=FACTS)
        assert larger.statement().population.spent == credits(4)
        with pytest.raises(BudgetSpent, match="town"):
            pay(larger, "a", price=credits(3))
        larger.close()


@pytest.mark.parametrize("step", ["version noted", "admitted", "committed", "anchored"])
def test_a_crash_leaves_the_old_version_or_the_new_one(place, monkeypatch, step):
    journal = publish(place, fingerprint="old")
    ask(journal, "a")

    def dies(here):
        if here == step:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        with pytest.raises((OSError, Refused)):
            grown(journal)
    journal.close()
    done = step in ("committed", "anchored")
    with pytest.raises(Refused, match="is not what was published"):
        publish(place, fingerprint="old" if done else "new")
    with closing(Ledger.attach(place, "people", wait=0)) as journal:  # the same command again
        assert journal.reads("new") == done
        if not done:
            grown(journal).close()
    with closing(publish(place, fingerprint="new")) as journal:
        assert spent(journal) == ONE
        assert len(journal.statement().grown) == 1


@pytest.mark.parametrize("step", ["version noted", "admitted", "committed", "anchored"])
def test_a_crash_leaves_rows_and_columns_both_or_none(place, monkeypatch, step):
    journal = publish(place, fingerprint="old")
    ask(journal, "a")

    def dies(here):
        if here == step:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        with pytest.raises((OSError, Refused)):
            grown(journal, facts=LARGER, amendment=raised(keeps=False))
    journal.close()
    found = inspect(place).statements["people"]
    done = step in ("committed", "anchored")
    assert (len(found.amended), len(found.grown)) == ((1, 1) if done else (0, 0))
    assert found.spent == credits(2 if done else 1)


def test_an_amendment_that_is_refused_leaves_the_rows_too(place):
    with closing(publish(place, fingerprint="old")) as journal:
        journal.grant("ann", credits(9))
        with pytest.raises(Refused, match="promise more"):
            grown(journal, facts=LARGER, amendment=raised(10, keeps=False))
        assert journal.statement().grown == journal.statement().amended == ()
        ask(journal, "a", analyst="ann")  # and the journal goes on


def test_a_lost_version_counts_as_everything(path, tmp_path):
    with closing(publish(path, fingerprint="old")) as journal:
        receipt = ask(journal, "a").receipt.to_json()
    shutil.copy(path, tmp_path / "backup")
    journal = publish(path, fingerprint="old")
    larger = grown(journal)
    later = ask(larger, "a").receipt.to_json()
    journal.close()
    larger.close()
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(Refused, match="rolled back"):
        publish(path, fingerprint="old")
    assert recover(path, [receipt, later]).burnt
    with pytest.raises(Refused, match="is not what was published"):
        publish(path, fingerprint="new")
    with closing(Ledger.attach(path, "people", wait=0)) as journal:
        larger = grown(journal)  # said anew: still everything is spent
        assert spent(larger) == credits(10)
        with pytest.raises(BudgetSpent):
            pay(larger, "b")
        larger.close()


def test_receipts_prove_charges_of_a_later_version(path, tmp_path):
    journal = publish(path, fingerprint="old")
    grown(journal).close()
    journal.close()
    shutil.copy(path, tmp_path / "backup")
    with closing(publish(path, fingerprint="new")) as journal:
        receipt = ask(journal, "a", price=credits(2)).receipt.to_json()
    shutil.copy(tmp_path / "backup", path)
    assert not recover(path, [receipt]).burnt
    with closing(publish(path, fingerprint="new")) as journal:
        assert spent(journal) == credits(2)


ID = "0" * 32


@pytest.mark.parametrize(
    "forged",
    [
        [VersionEvent("people", "../../key", FACTS, "").to_body()],
        [VersionEvent("people", ID, FACTS, "").to_body()] * 2,
        [VersionEvent("people", ID, {"schema": "{}", "promise": "{}"}, "").to_body()],
        [VersionEvent("people", ID, {"schema": "{}"}, "").to_body()],
        [VersionEvent("people", ID, FACTS, "").to_body() | {"facts": 3}],
        [{"kind": "close", "reason": ""}, VersionEvent("people", ID, FACTS, "").to_body()],
    ],
)
def test_a_chain_that_breaks_the_rules_is_refused(journal, forged):
    replayed(journal, VersionEvent("people", ID, FINER, "").to_body())
    with pytest.raises(Refused, match="does not verify"):
        replayed(journal, *forged)


amounts = st.integers(0, 4 * CREDIT)
acts = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from("abc"), amounts),
    st.tuples(st.just("ask"), st.sampled_from("abc"), amounts),
    st.tuples(st.just("grow")),
    st.tuples(st.just("outside"), amounts),
    st.tuples(st.just("amend"), st.fractions(Fraction(1, 2), 2, max_denominator=4).filter(bool)),
    st.tuples(st.just("grant"), amounts),
)


@given(st.lists(acts, max_size=14))
def test_in_every_order_the_losses_of_all_versions_add_up(history):
    """Against a model that keeps each version's losses apart and adds them for who is in all."""
    journal, worth, facts = publish(":memory:"), Fraction(1), FACTS
    lost, owned = [Fraction(0)], {}  # by version, in today's first credits; answers by version
    for number, (kind, *rest) in enumerate(history):
        before = journal.statement()
        with suppress(Refused):
            match kind:
                case "ask":
                    name, price = rest
                    entry = pay(journal, name, price=Loss(price, 0))
                    fresh = (len(lost), name) not in owned
                    assert bool(entry.charged) == fresh  # never repeated for another version
                    if fresh:
                        lost[-1] += price * worth
                        owned[len(lost), name] = number
                        assert not price or journal.statement().exceeded == Loss(0, 0)
                    if not entry.answered:
                        entry = journal.settle(entry, [owned[len(lost), name]])
                    assert entry.values == (owned[len(lost), name],)
                    assert entry.receipt.body["version"] == journal.header.version
                case "grow":
                    journal = journal.grow(journal.header.facts, None)
                    lost.append(Fraction(0))
                case "outside":
                    journal.outside(release(Loss(rest[0], 0)))
                    lost[-1] += rest[0] * worth
                case "amend":
                    cap = Loss(30 * CREDIT, 0)
                    journal = journal.amend(raised(cap=cap, scale=rest[0], facts=facts))
                    worth /= rest[0]
                case "grant":
                    journal.grant("ann", Loss(rest[0], 0))
        found = journal.statement()
        assert found.spent.credits * worth >= sum(lost)
        assert len(found.grown) + 1 == len(lost)
        if kind != "amend":
            assert found.spent.credits >= before.spent.credits
    again = replayed(journal)
    assert statement(again, "people") == journal.statement()
    one, other = again.tables["people"], journal._table
    assert contents(one.catalogue) == contents(other.catalogue)
    for fact in ("grown", "amended", "header", "stamp"):
        assert getattr(one, fact) == getattr(other, fact)
