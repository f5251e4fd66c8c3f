"""What bears on a promise beside its questions: shown to whom the API shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.people import SCHEMA, frame

from sulq import Database, Promise, col, count
from sulq.kernel.schema.promise import Population
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.console.budget import budget_view
from sulq.server.console.framework import balance_of, rendered
from sulq.server.console.ledger import entries_view
from sulq.server.console.related_releases import joint_view
from sulq.server.console.risk import risk_view
from sulq.server.console.table import table_view
from sulq.server.limits import Settings
from sulq.server.service.catalog import Tables
from sulq.server.service.session import Service

OWNER = Caller("office", Role.OWNER, None, "t")
AUDITOR = Caller("board", Role.AUDITOR, None, "t")
ANALYST = Caller("ann", Role.ANALYST, None, "t")
PROMISE = Promise(1, "1e-6", 20)
TOWN = Population("town", Promise(2, "1e-6"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`joint` shares its people with `other`; `grown` has three versions; `own` has balances."""
    place: Path = tmp_path_factory.mktemp("standing")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("SULQ_STATE", str(place / "state"))

        def opened(name: str, book: str, **more: Any) -> Database:
            promise = more.pop("promise", PROMISE)
            rows = frame(400, seed=len(name) + ord(name[0]))  # each table has rows of its own
            found = Database.open(
                rows, SCHEMA, promise, place / book, name=name, **more, publish=True
            )
            return stack.enter_context(found)

        joint = opened("joint", "town", population=TOWN)
        opened("other", "town", population=TOWN).ask(count(where=col("age") > 40))
        joint.charge_outside(4, reason="yearbook")
        broken = opened("broken", "broken")
        broken.charge_outside(30, reason="census")
        grown = opened("grown", "grown")
        grown.ask(count(where=col("age") > 30), credits=5)
        grown = stack.enter_context(grown.grow(frame(450), reason="spring wave"))
        grown = stack.enter_context(grown.grow(frame(500), reason="autumn wave", budget=6))
        grown.ask(count(where=col("age") > 30), credits=2)
        own = opened(
            "own", "own", individual=True, promise=Promise(1, "1e-6", 5, neighbours="add-remove")
        )
        own.ask(count(where=col("age") >= 50))
        tables = {"joint": joint, "broken": broken, "grown": grown, "own": own}
        for database in tables.values():
            if not database.statement().exceeded:
                database.grant("ann", 1)
        access = Access.open(place / "access.sqlite")
        stack.callback(access.close)
        app = create_app(Tables(tables), access, settings=Settings(pacing=False))
        yield app.state.service
        app.state.service.close()


def budget(service: Service, caller: Caller, table: str) -> str:
    return " ".join(rendered("budget.html", budget_view(service.session(caller, table))).split())


def test_a_release_made_elsewhere_is_booked_for_all_to_see(service: Service) -> None:
    for caller in (OWNER, AUDITOR, ANALYST):
        page = budget(service, caller, "joint")
        assert "Released elsewhere" in page and "yearbook" in page
        assert "4 credits for a release made elsewhere" in page
    lines = entries_view(service.session(ANALYST, "joint"), kind="change").lines
    assert any(
        "4 credits for a release made elsewhere: “yearbook”" in one.question for one in lines
    )


def test_the_account_of_a_population_is_for_owner_and_auditor(service: Service) -> None:
    view = table_view(service.session(ANALYST, "joint")).standing.joint
    assert view is not None and "40 % becomes at most 84 %" in view.promise
    for caller in (OWNER, AUDITOR):
        assert "joint credits left for joint and other" in budget(service, caller, "joint")
    page = budget(service, ANALYST, "joint")
    assert "of all of them together" in page
    assert "joint credits" not in page and "other</" not in page and " and other" not in page
    assert "Together with other tables" not in budget(service, OWNER, "grown")


def test_joint_balances_of_people_are_secret(service: Service) -> None:
    found = service.session(OWNER, "joint").database.statement().statement
    assert found.population is not None
    secret = replace(found, population=replace(found.population, persons=True))
    view = joint_view(secret, full=True)
    assert view is not None and view.gauge is None
    assert (
        view.said == "Each person has one balance of 100 credits for joint and other; it is secret"
    )


def test_an_exceeded_promise_is_no_longer_said(service: Service) -> None:
    for caller in (OWNER, ANALYST):
        said = table_view(service.session(caller, "broken"))
        assert said.promised == "No longer as promised"
        assert (
            "Promised was epsilon 1; with everything this table has answered" in said.promised_more
        )
        page = budget(service, caller, "broken")
        assert "Releases made elsewhere went beyond the promise." in page
        assert "More than was promised" in page
        risk = rendered("risk.html", risk_view(service.session(caller, "broken")))
        assert "Below is what was promised." in risk
    kept = budget(service, OWNER, "joint") + rendered(
        "risk.html", risk_view(service.session(OWNER, "joint"))
    )
    assert "went beyond" not in kept and "More than was promised" not in kept


def test_versions_say_what_each_has_spent(service: Service) -> None:
    assert "version 3 of the data, since" in table_view(service.session(ANALYST, "grown")).lead
    lines = budget_view(service.session(ANALYST, "grown")).standing.versions
    told = [(one.number, one.why, one.budget, one.spent, one.newcomers) for one in lines]
    assert told == [
        ("3", "autumn wave", "6", "2", "2"),
        ("2", "spring wave", "what is left", "0", "2"),
        ("1", "as published", "what is left", "5", "7"),
    ]
    assert "Versions of the data" not in budget(service, OWNER, "joint")


def test_balances_are_the_owners_alone(service: Service) -> None:
    """An exact function of the rows: it may be on no other page."""
    people = budget_view(service.session(OWNER, "own")).standing.people
    assert sum(int(many) for _, many, _ in people) == 400 and len(people) == 10
    assert "for your eyes alone" in budget(service, OWNER, "own")
    for caller in (AUDITOR, ANALYST):
        assert budget_view(service.session(caller, "own")).standing.people == ()
        assert "for your eyes alone" not in budget(service, caller, "own")
        page = rendered("table.html", table_view(service.session(caller, "own")))
        assert "a balance of their own" in page
    assert balance_of(service.session(OWNER, "own")).left == 5  # what people have spent is secret
