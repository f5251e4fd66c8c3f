"""A table that protects persons: rows are called rows, persons are counted first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from sulq import Category, Database, Flag, Number, Promise, Schema
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.console.ask.page import quoted_view
from sulq.server.console.ask.refusal import alternatives_of
from sulq.server.console.ask.request import AskRequest
from sulq.server.console.examples import count_prices, priced_starters
from sulq.server.console.table import table_view
from sulq.server.limits import Settings
from sulq.server.service.books import statement
from sulq.server.service.catalog import Tables
from sulq.server.service.session import Service

OWNER = Caller("office", Role.OWNER, None, "t")
PEOPLE = 3_000
SCHEMA = Schema(
    Category("Station", ["Kardiologie", "Chirurgie"]),
    Number("age", 0, 100, step=1),
    Flag("ill"),
    unit="patient",
    max_rows=4,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place: Path = tmp_path_factory.mktemp("persons")
    rows = pd.DataFrame(
        {
            "patient": [row % PEOPLE for row in range(2 * PEOPLE)],
            "Station": ["Kardiologie", "Chirurgie", "Kardiologie"] * (2 * PEOPLE // 3),
            "age": [row % 90 for row in range(2 * PEOPLE)],
            "ill": [row % 7 == 0 for row in range(2 * PEOPLE)],
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(place / "state"))
        access = Access.open(place / "access.sqlite")
        with Database.open(
            rows,
            SCHEMA,
            Promise(1, "1e-6", queries=1000),
            place / "ledger",
            name="visits",
            publish=True,
        ) as database:
            app = create_app(Tables({"visits": database}), access, settings=Settings(pacing=False))
            yield app.state.service
            app.state.service.close()
        access.close()


def test_a_count_of_rows_is_called_so_and_persons_are_counted_for_one_credit(
    service: Service,
) -> None:
    rows = quoted_view(
        service.session(OWNER, "visits"), AskRequest("SELECT COUNT(*) FROM visits WHERE ill")
    )[0]
    assert (rows.price.amount, rows.error.unit) == ("16", "rows")
    counted = AskRequest("SELECT COUNT(DISTINCT patient) FROM visits WHERE ill")
    persons = quoted_view(service.session(OWNER, "visits"), counted)[0]
    assert (persons.price.amount, persons.error.unit) == ("1", "persons")
    assert (
        persons.error.bar == rows.error.bar
    )  # the same noise, which costs a sixteenth where one moves by 1
    assert [stop.price for stop in persons.error.stops] == ["0.25 credit", "1 credit", "4 credits"]
    assert all(stop.bar != "±" for stop in persons.error.stops)


def test_the_first_starter_counts_persons_and_what_is_refused_too(service: Service) -> None:
    oracle = service.session(OWNER, "visits").oracle()
    first = priced_starters(oracle, "visits")[0]
    assert first.sql.startswith("SELECT COUNT(DISTINCT patient) AS persons")
    assert first.price == "1 credit" and first.bar.endswith("persons")
    near = alternatives_of(oracle, "visits", "SELECT * FROM visits WHERE ill", ())
    assert near[0].sql == "SELECT COUNT(DISTINCT patient)\nFROM visits\nWHERE ill"
    assert near[0].price == "1 credit"


def test_the_price_sentence_is_that_of_a_quote(service: Service) -> None:
    database = service.session(OWNER, "visits").database
    asked = database.quote_sql("SELECT COUNT(*) FROM visits WHERE age >= 50", table="visits")
    assert count_prices(database, "visits") == (1, asked.credits)
    said = table_view(service.session(OWNER, "visits")).left_more.replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith("One count of persons costs 1 credit and comes back ± ")
    assert "; one of rows costs 16 credits." in said
    assert said.split("± ")[1].split(";")[0] == f"{asked.half_widths[0][1]:.0f}"


def test_who_changes_is_a_person(service: Service) -> None:
    database = service.session(OWNER, "visits").database
    said = "all rows of one person change"
    assert said in str(database.promise) and said in repr(database)
    assert said in statement(service.session(OWNER, "visits")).guarantee


def test_an_undeclared_value_is_told_with_the_price(service: Service) -> None:
    wish = AskRequest("SELECT AVG(age) FROM visits WHERE Station = 'Kardio'")
    view, _ = quoted_view(service.session(OWNER, "visits"), wish)
    assert "'Kardio' is not a declared value of Station: no row can match" in view.advice.notes
