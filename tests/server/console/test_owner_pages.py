"""Access, drafts and Publish: what an owner gives, takes and promises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import CANARY, Served, serving
from tests.waiting import LONGEST

from sulq import Database
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.engines.duckdb import quarantine
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.engine import open_engine
from sulq.policy import read_policy
from sulq.policy.files import with_table
from sulq.server import drafts
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.console.access import GrantForm, access_view, granted_sum, grants_view, state_of
from sulq.server.console.publish import (
    column_notes,
    publish_view,
    redraws,
    side_view,
    size_kind,
    taken,
)
from sulq.server.drafts import (
    Draft,
    DraftColumn,
    Drafts,
    State,
    advised,
    draft_text,
    facts_of,
    faults,
    new_draft,
    policy_of,
    rehearsed,
    source_in,
    sources,
)
from sulq.server.drafts import state_of as column_state
from sulq.server.errors import HttpProblem
from sulq.server.limits import Settings
from sulq.server.routes.drafts import file_of, home_of
from sulq.server.service.catalog import Tables

OWNER = Caller("owner", Role.OWNER, None, "t")
TICKS = {
    "bounds_not_from_data": True,
    "public_columns_are_public": True,
    "promise_is_for_good": True,
}


def write_wards(path: Path, rows: int = 3_000) -> Path:
    duckdb.sql(
        "SELECT i % 90 AS age, ['N', 'S'][i % 2 + 1] AS region, i % 3 = 0 AS smoker,"
        f" i AS patient_id, '{CANARY}-' || i AS notes,"
        " DATE '2020-01-01' + CAST(i % 9 AS INT) AS admitted"
        f" FROM range({rows}) AS t(i)"
    ).write_parquet(str(path))
    return path


def ready(name: str = "wards") -> Draft:
    return Draft(
        name=name,
        source="wards.parquet",
        columns=[
            DraftColumn(name="age", type="bigint", kind="number", low="0", high="110"),
            DraftColumn(
                name="region",
                type="varchar",
                kind="category",
                values="N, S",
                public=True,
                confirmed=True,
            ),
            DraftColumn(name="smoker", type="boolean", kind="flag"),
            DraftColumn(name="notes", type="varchar"),
        ],
        queries=100,
    )


@dataclass
class House:
    """A server that publishes from a directory."""

    url: str
    home: Path
    tables: Tables
    service: Any
    owner: httpx.Client
    analyst: httpx.Client


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    home = tmp_path / "home"
    home.mkdir()
    write_wards(home / "wards.parquet")
    write_wards(tmp_path / "outside.parquet")
    (home / "linked.parquet").symlink_to(tmp_path / "outside.parquet")
    access = Access.open()
    with ExitStack() as stack:

        def publish(policy: Any) -> Database:
            made = Database.open(
                policy.rows,
                policy.schema(),
                policy.promise,
                policy.ledger_path,
                name=policy.name,
                publish=True,
            )
            return stack.enter_context(made)

        tables = Tables({}, publish, home / "sulq.toml")
        app = create_app(tables, access, settings=Settings(pacing=False))
        with serving(app) as url:
            clients = [
                stack.enter_context(
                    httpx.Client(
                        base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=LONGEST
                    )
                )
                for token in (
                    access.lend("owner", Role.OWNER),
                    access.lend("ann", Role.ANALYST),
                )
            ]
            yield House(url, home, tables, app.state.service, *clients)
        access.close()


# --- drafts ---


def test_a_draft_comes_from_types_alone(house: House) -> None:
    draft = new_draft(house.home, "wards.parquet")
    kinds = {column.name: column.kind for column in draft.columns}
    assert kinds == {
        "age": "number",
        "region": "category",
        "smoker": "flag",
        "patient_id": "hidden",
        "notes": "hidden",
        "admitted": "number",
    }
    said = draft.model_dump_json()
    assert CANARY not in said and "3000" not in said and all(not c.low for c in draft.columns)


def test_a_file_that_ends_its_reader_does_not_end_the_server(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may have made it: a child process reads it first, at every step."""
    number = house.owner.post("/v1/drafts", json={"source": "wards.parquet"}).json()["id"]
    house.owner.put(f"/v1/drafts/{number}", json=ready().model_dump())
    for module in (drafts, quarantine):
        monkeypatch.setattr(module, "CHILD", "import os; os.abort()")
    replies = [
        house.owner.post("/v1/drafts", json={"source": "wards.parquet"}),
        house.owner.get(f"/v1/drafts/{number}/advice"),
    ]
    assert {reply.status_code for reply in replies} == {422}
    assert all("wards.parquet cannot be read: the process" in reply.text for reply in replies)


def test_a_draft_of_a_csv_file_reads_it_as_it_is(house: House) -> None:
    """The census file as it comes: a comma and a blank between fields, `?` for missing."""
    rows = "".join(
        f"{i}, {900 + i % 150}, {'?' if i % 9 else 'x y'}, {i % 2}\n" for i in range(400)
    )
    (house.home / "census.data").write_text("row_number, patient_nbr, work, over\n" + rows)
    made = house.owner.post("/v1/drafts", json={"source": "census.data"}).json()["draft"]
    assert made["csv"] == {"delimiter": ", ", "missing": ["?"]}
    assert (made["unit"], made["max_rows"]) == ("patient_nbr", 4)
    assert {column["name"]: column["kind"] for column in made["columns"]} == {
        "row_number": "hidden",
        "patient_nbr": "hidden",
        "work": "category",
        "over": "flag",
    }
    draft = Draft.model_validate(made)
    draft.columns[2].values = "x y"
    file = house.home / "trial.toml"
    file.write_text(draft_text(draft, house.home))
    table = read_policy(file)["census"]
    assert table.rows == CsvFile(str(house.home / "census.data"), delimiter=", ", missing=("?",))
    engine = open_engine(table.rows, table.schema())
    assert engine.size() == 150
    engine.close()


def test_a_line_that_cannot_be_read_is_told_to_the_owner(house: House) -> None:
    (house.home / "ragged.csv").write_text("a,b\n1,x\nsecret-4711\n")
    reply = house.owner.post("/v1/drafts", json={"source": "ragged.csv"})
    assert reply.status_code == 422
    assert "ragged.csv: line 3 has 1 field between ',', line 1 has 2 fields" in reply.text
    assert "secret-4711" not in reply.text


def test_rules_that_mean_nothing_are_a_fault(house: House) -> None:
    draft = ready().model_copy(update={"source": "wards.csv", "csv": {"sep": ";"}})
    assert "unknown ['sep']" in faults(draft, house.home, [])[0]
    assert draft_text(draft, house.home).startswith("# ")


@pytest.mark.parametrize(
    "source",
    ["../outside.parquet", "/etc/passwd", "linked.parquet", "missing.csv", "", "sulq.toml"],
)
def test_no_way_out_of_the_directory(house: House, source: str) -> None:
    with pytest.raises(InvalidQuery):
        source_in(house.home, source)
    assert house.owner.post("/v1/drafts", json={"source": source}).status_code == 422


def test_only_files_of_the_directory_are_offered(house: House) -> None:
    assert "wards.parquet" in sources(house.home)
    assert sources(None) == []
    assert house.owner.get("/v1/drafts").json()["sources"] == sources(house.home)


@pytest.mark.parametrize(
    ("column", "word"),
    [
        (DraftColumn(name="a", kind="number", low="0", high="9"), "ready"),
        (DraftColumn(name="a", kind="number", low="60", high="10"), "fix"),
        (DraftColumn(name="a", kind="number", low="x", high="10"), "fix"),
        (DraftColumn(name="a", kind="number", low="", high="10"), "todo"),
        (DraftColumn(name="a", kind="category", values=""), "todo"),
        (DraftColumn(name="a", kind="category", values="F, F"), "fix"),
        (DraftColumn(name="a", kind="category", values="F, M", public=True), "confirm"),
        (DraftColumn(name="a", kind="flag", public=True, confirmed=True), "ready"),
        (
            DraftColumn(name="a", type="date", kind="number", low="2020-01-01", high="2021-01-01"),
            "ready",
        ),
        (DraftColumn(name="a"), "hidden"),
    ],
)
def test_how_a_column_stands(column: DraftColumn, word: str) -> None:
    assert column_state(column).word == word


@pytest.mark.slow
@given(st.text(max_size=20), st.text(max_size=20), st.sampled_from(["bigint", "date", "double"]))
def test_whatever_is_typed_has_a_state(low: str, high: str, kind: str) -> None:
    column = DraftColumn(name="a", type=kind, kind="number", low=low, high=high)
    assert column_state(column).word in ("ready", "fix", "todo")


def test_bounds_are_exact(house: House) -> None:
    column = DraftColumn(name="a", type="double", kind="number", low="-0.1", high="80,000")
    low, high = facts_of(column)["number"]
    assert Fraction(low) == Fraction(-1, 10) and high == 80_000
    assert facts_of(DraftColumn(name="a", type="bigint", kind="number"))["step"] == 1


def test_what_is_shown_is_what_is_published(house: House) -> None:
    draft = ready()
    text = draft_text(draft, house.home)
    file = house.home / "trial.toml"
    file.write_text(text)
    assert read_policy(file)["wards"].schema() == policy_of(draft, house.home).schema()
    assert "notes" not in text


def test_what_is_missing_is_named(house: House) -> None:
    assert faults(ready(), house.home, []) == []
    assert "name" in faults(ready("wards"), house.home, ["wards"])[0]
    assert "name" in faults(ready("../x"), house.home, [])[0]
    weak = ready().model_copy(update={"epsilon": "4"})
    assert "reason" in faults(weak, house.home, [])[0]
    because = weak.model_copy(update={"reason": "a short study"})
    assert faults(because, house.home, []) == []
    assert draft_text(because, house.home).startswith("# why so weak a promise: a short study")
    assert faults(Draft(name="a", source="wards.parquet"), house.home, []) != []
    lost = ready().model_copy(update={"unit": "nobody"})
    assert "who is protected" in faults(lost, house.home, [])[0]


def test_a_policy_that_would_not_read_is_not_written(house: House) -> None:
    file = house.home / "sulq.toml"
    file.write_text("[old]\nbroken")
    with pytest.raises(InvalidQuery):
        with_table(file, draft_text(ready(), house.home), "wards")
    assert file.read_text() == "[old]\nbroken" and len(list(house.home.glob(".*"))) == 0


def test_drafts_are_found_again_and_nothing_else(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    number = drafts.add(ready())
    assert drafts.load(number) == ready()
    assert [found for found, _ in drafts.listed()] == [number]
    for name in ("../x", "0" * 16, "x"):
        with pytest.raises(HttpProblem):
            drafts.load(name)
    drafts.remove(number)
    assert drafts.listed() == []


def test_from_a_file_to_a_table(house: House) -> None:
    owner = house.owner
    begun = owner.post("/v1/drafts", json={"source": "wards.parquet"})
    assert begun.status_code == 201 and CANARY not in begun.text
    number = begun.json()["id"]
    assert owner.post(f"/v1/drafts/{number}/publish", json=TICKS).status_code == 422  # not ready
    draft = ready().model_dump()
    assert owner.put(f"/v1/drafts/{number}", json=draft).status_code == 200
    moved = {**draft, "source": "linked.parquet"}
    assert owner.put(f"/v1/drafts/{number}", json=moved).status_code == 422
    assert owner.get(f"/v1/drafts/{number}/check").json()["faults"] == []
    grid = owner.get(f"/v1/drafts/{number}/sizing").json()["grid"]
    assert round(grid[1]["bars"][2]["bar"]) == 262  # epsilon 1, 1,000 questions
    lines = owner.post(f"/v1/drafts/{number}/rehearse").json()["questions"]
    assert lines[0]["said"] == "5,000" and len(lines) == 4
    for wrong in ({}, {**TICKS, "promise_is_for_good": False}):
        assert owner.post(f"/v1/drafts/{number}/publish", json=wrong).status_code == 422
    part = Caller("part", Role.OWNER, frozenset({"other"}), "t")
    with pytest.raises(HttpProblem, match="owner of some"):
        home_of(house.tables, part)
    for who, seen in ((part, False), (Caller("all", Role.OWNER, None, "t"), True)):
        page = publish_view(house.service.session(who, ""))
        assert (bool(page.drafts), bool(page.sources), page.can) == (seen, seen, seen)
    assert house.analyst.post(f"/v1/drafts/{number}/publish", json=TICKS).status_code == 403
    assert house.tables.names() == []
    done = owner.post(f"/v1/drafts/{number}/publish", json=TICKS).json()
    assert done["table"] == "wards" and done["policy_written"]
    assert house.tables.names() == ["wards"]
    assert read_policy(house.home / "sulq.toml")["wards"].promise.queries == 100
    assert owner.get(f"/v1/drafts/{number}").status_code == 404
    grant = owner.post("/v1/tables/wards/grants", json={"name": "ann", "credits": 5})
    assert grant.status_code == 201
    again = owner.post("/v1/drafts", json={"source": "wards.parquet"}).json()["id"]
    owner.put(f"/v1/drafts/{again}", json=draft)
    assert "already" in owner.post(f"/v1/drafts/{again}/publish", json=TICKS).json()["detail"]


def test_the_adviser_is_for_the_owner_of_all_and_for_files_not_published(house: House) -> None:
    owner = house.owner
    number = owner.post("/v1/drafts", json={"source": "wards.parquet"}).json()["id"]
    id_column = DraftColumn(name="patient_id", type="bigint", kind="number", low="0", high="9000")
    draft = ready().model_copy(update={"columns": [*ready().columns, id_column]})
    owner.put(f"/v1/drafts/{number}", json=draft.model_dump())
    told = owner.get(f"/v1/drafts/{number}/advice").json()
    assert (told["ready"], told["rows"]) == (False, 3_000)
    assert told["faults"][0].startswith("patient_id looks like an identifier, by its name")
    assert CANARY not in json.dumps(told)
    assert house.analyst.get(f"/v1/drafts/{number}/advice").status_code == 403
    part = Caller("part", Role.OWNER, frozenset({"other"}), "t")
    with pytest.raises(HttpProblem, match="owner of some"):
        file_of(house.tables, part)
    refused = owner.post(f"/v1/drafts/{number}/publish", json=TICKS)
    assert (refused.status_code, house.tables.names()) == (422, [])
    assert not list(house.home.glob("*.ledger*"))
    after = taken(draft, {"advised": "yes", "identifier_ok-4": "on"})
    assert after.columns[4].identifier_ok and not after.apart
    owner.put(f"/v1/drafts/{number}", json=after.model_dump())
    assert owner.post(f"/v1/drafts/{number}/publish", json=TICKS).status_code == 200
    with pytest.raises(Refused, match="published already"):  # nobody learns more of it here
        advised(after, house.home / "sulq.toml")
    assert "wards.parquet" not in publish_view(house.service.session(OWNER, "")).sources


def test_what_was_said_of_other_bounds_is_said_no_more() -> None:
    columns = [ready().columns[0].model_copy(update={"known": True, "partial": True})]
    draft = ready().model_copy(update={"columns": columns})
    assert taken(draft, {"low-0": "0"}).columns[0].known
    changed = taken(draft, {"low-0": "1"}).columns[0]
    assert not changed.known and not changed.partial
    assert not taken(draft, {"advised": "yes"}).columns[0].known


def test_a_server_without_a_policy_publishes_nothing(server: Served) -> None:
    client = server.client("owner")
    assert client.post("/v1/drafts", json={"source": "people.parquet"}).status_code == 403
    assert "publishes no tables" in client.get("/console/people/publish").text


@pytest.mark.parametrize("step", ["source", "who", "columns", "promise", "rehearse", "publish"])
def test_every_step_is_a_page_of_its_own(house: House, step: str) -> None:
    number = house.owner.post("/v1/drafts", json={"source": "wards.parquet"}).json()["id"]
    house.owner.put(f"/v1/drafts/{number}", json=ready().model_dump())
    text = house.owner.get(f"/console/new/publish?draft={number}&step={step}").text
    assert 'aria-current="step"' in text and len(text.encode()) < 40_000
    assert CANARY not in text and "style=" not in text and "<script" not in text
    assert house.analyst.get(f"/console/new/publish?draft={number}").status_code == 403
    saved = f"/console/new/drafts/{number}/save?step={step}"
    side = house.owner.post(saved, json={})
    assert side.status_code == 200 and "wards.parquet" in side.text and 'id="side"' in side.text
    assert house.analyst.post(saved, json={}).status_code == 403


def test_columns_are_counted_when_they_are_ready(house: House) -> None:
    number = house.owner.post("/v1/drafts", json={"source": "wards.parquet"}).json()["id"]
    view = publish_view(house.service.session(OWNER, "new"), number, "columns")
    states = [row.state for row in view.columns]
    assert sorted(states) == ["hidden", "hidden", "ready", "todo", "todo", "todo"]
    assert view.askable == "1 of 4 ready to ask about"
    assert {row.fixed for row in view.columns if row.kind == "flag"} == {"yes, no, or missing"}


def test_a_step_writes_its_fields_and_no_others() -> None:
    draft = ready()
    same = taken(draft, {})
    assert same == draft and not redraws(draft, same)
    typed = taken(draft, {"low-0": "5", "values-1": "N, S, W", "name": "beds"})
    assert (typed.columns[0].low, typed.columns[1].values, typed.name) == ("5", "N, S, W", "beds")
    assert not redraws(draft, typed) and typed.columns[1].confirmed
    chosen = taken(draft, {"public-0": "yes", "confirmed-0": "on", "public-1": "yes"})
    assert chosen.columns[0].public and not chosen.columns[0].confirmed  # asked again, each time
    assert not chosen.columns[1].confirmed and redraws(draft, chosen)
    assert taken(draft, {"public-1": "yes", "confirmed-1": "on"}) == draft
    with pytest.raises(RequestValidationError):
        taken(draft, {"kind-0": "secret"})


def test_a_cell_of_the_grid_goes_before_the_fields_beside_it() -> None:
    draft, fields = ready(), {"epsilon": "1", "queries": "100", "delta": "1e-6"}
    picked = taken(draft, {**fields, "cell": "2|300"})
    assert (picked.epsilon, picked.queries) == ("2", 300) and redraws(draft, picked)
    own = taken(draft, {**fields, "cell": "1|100", "queries": "250"})
    assert (own.epsilon, own.queries) == ("1", 250)
    assert taken(draft, {"smallest": "", "max_rows": "x", "queries": "-3"}).queries == 1


def test_whom_a_draft_protects() -> None:
    draft = ready()
    keyed = draft.model_copy(
        update={"columns": [*draft.columns, DraftColumn(name="patient_id", type="bigint")]}
    )
    assert taken(keyed, {"unit": "key"}).unit == "patient_id"
    assert taken(draft, {"unit": "key"}).unit == "age"
    assert taken(keyed, {"unit": "key", "unit_column": "region"}).unit == "region"
    assert taken(keyed, {"unit": "row", "unit_column": "region"}).unit == "row"


def test_the_grid_is_coloured_by_the_smallest_group() -> None:
    assert [size_kind(bar, 12_000) for bar in (262, 500, 1580)] == ["", "warn", "bad"]


def test_the_promise_is_written_out(house: House) -> None:
    number = house.owner.post("/v1/drafts", json={"source": "wards.parquet"}).json()["id"]
    view = publish_view(house.service.session(OWNER, "new"), number, "promise")
    assert view.promise == ("1,000 credits", "± 262", "40 %", "65 %")
    chosen = [cell for row in view.sizes for cell in row.cells if cell.chosen]
    assert [(cell.queries, cell.bar) for cell in chosen] == [(1_000, "± 262")]
    assert view.sizes[0].belief == "40 % → 53 %" and not view.weak


def test_warnings_before_a_promise(house: House) -> None:
    small = ready().model_copy(update={"smallest": 500, "epsilon": "4", "queries": 10_000})
    firsts = [first for _, first, _ in side_view(small, house.home, "promise").notes]
    assert "Small groups will not be answerable." in firsts
    assert "Weak: 40 % can become 98 %." in firsts and "A small table." in firsts
    hidden = small.model_copy(update={"neighbours": "add-remove"})
    firsts = [first for _, first, _ in side_view(hidden, house.home, "promise").notes]
    assert "A small table." not in firsts  # how many there are is then nobody's business
    said = column_notes([("bmi", State("fix")), ("region", State("confirm"))])
    assert [note[0] for note in said] == ["warn", "bad", "info"]


def test_a_rehearsal_reads_no_file(house: House) -> None:
    policy = policy_of(ready(), house.home / "nowhere")
    assert [line["title"] for line in rehearsed(policy)] == [
        "How many rows",
        "Average age",
        "Count by region",
        "Average smoker",
    ]


# --- access ---


def test_grants_and_their_states(server: Served) -> None:
    service = server.app.state.service
    view = grants_view(service.session(OWNER, "people"))
    assert {line.name: line.state for line in view.lines} == {
        "analyst": "no token",
        "rival": "no token",
    }
    assert (view.left, view.granted, view.free) == (100, 50, 50)
    client = server.client("owner")
    made = client.post("/v1/tables/people/grants", json={"name": "zoe", "credits": 1}).json()
    client.delete("/v1/tables/people/grants/zoe", params={"reason": "left"})
    view = grants_view(service.session(OWNER, "people"))
    assert {line.name: line.state for line in view.lines}["zoe"] == "revoked"
    assert view.said == "2 open, 1 ended" and view.lines[-1].name == "zoe"
    page = client.get("/console/people/access").text
    assert made["token"] not in page and json.dumps(made["token"]) not in page
    assert access_view(service.session(OWNER, "people")).whole == "100"


def test_the_sum_of_a_grant_is_kept_in_view(server: Served) -> None:
    shown = grants_view(server.app.state.service.session(OWNER, "people"))
    most = granted_sum(shown, GrantForm(credits=float(shown.free)))
    assert most.ready and most.bold == "0 credits stay ungranted."
    over = granted_sum(shown, GrantForm(credits=float(shown.free) + 1))
    assert not over.ready and over.bold == "1 credit too many." and over.help
    assert not granted_sum(shown, GrantForm()).ready
    auditor = granted_sum(shown, GrantForm(role="auditor", credits=10**6))
    assert auditor.ready and auditor.button == "Make an auditor’s token"
    assert "here" not in auditor.more


def test_granting_by_the_form(server: Served) -> None:
    owner, path = server.client("owner"), "/console/people/grants"
    filled = {"name": " mia ", "role": "analyst", "credits": "2.5", "rate": "", "until": ""}
    before = server.database.remaining
    made = owner.post(path, json=filled)
    token = re.search(r"sulq_[\w-]+", made.text)
    assert token and server.access.caller(token[0]).name == "mia"
    assert server.database.remaining == before - Fraction(5, 2)
    assert 'data-name="mia"' in made.text
    more = {"credits": "1", "until": "2099-01-31", "rate": "9/min"}
    text = owner.post(f"{path}/mia/change", json=more).text
    assert "of 3.5" in text and "31 Jan 2099" in text and "9/min" in text
    for wrong in (
        {**filled, "name": ""},
        {**filled, "until": "1960-01-01"},
        {**filled, "credits": "1e400"},
        {**filled, "role": "owner"},
    ):
        assert owner.post(path, json=wrong).status_code == 422, wrong
    assert "3.5 credits are free again" in owner.post(f"{path}/mia/revoke", json={}).text
    assert server.access.caller(token[0]) is None
    assert server.database.remaining == before
    for act in ("/sum", "/mia/change", "/mia/revoke", ""):
        for who in ("analyst", "auditor"):
            assert server.client(who).post(f"{path}{act}", json=filled).status_code == 403


def test_the_state_of_a_grant() -> None:
    one, none = Fraction(1), Fraction(0)
    assert state_of(True, True, True, one, one, True)[0] == "revoked"
    assert state_of(False, False, True, one, one, True)[0] == "ended"
    assert state_of(False, True, True, none, one, True)[0] == "used up"
    assert state_of(False, True, True, Fraction(1, 10), one, True)[0] == "nearly used"
    assert state_of(False, False, False, one, one, True)[0] == "no token"
    assert state_of(False, True, True, none, none, False)[0] == "open"


@pytest.mark.parametrize("page", ["access", "publish", "grants/analyst/revoke"])
def test_the_owners_pages_are_the_owners(server: Served, page: str) -> None:
    for who in ("analyst", "auditor"):
        assert server.client(who).get(f"/console/people/{page}").status_code == 403
    text = server.client("owner").get(f"/console/people/{page}").text
    assert CANARY not in text and "style=" not in text
