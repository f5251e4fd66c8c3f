"""`sulq.toml`: the same facts in and out, nothing unknown, nothing half-declared published."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.workbooks import XlsxFile
from sulq.kernel.engines.engine import open_engine
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.policy import ColumnPolicy, TablePolicy, read_policy, write_policy
from sulq.policy.files import policy_text
from sulq.policy.survey import Survey

SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Number("weight", Fraction(1, 3), 200.5),
    Number("born", datetime.date(1900, 1, 1), datetime.date(2030, 1, 1)),
    Number("seen", datetime.datetime(2020, 1, 1), datetime.datetime(2030, 1, 1, 12)),
    Category("city", ["Oslo", 'quo"ted', "back\\slash\n"], public=True),
    Category("code", [1, 2]),
    Category("note"),
    Flag("smoker", public=True),
)
PEOPLE = """
[people]
source = "people.parquet"
ledger = "people.ledger"
promise = {epsilon = 1, delta = 1e-6, queries = 1000}
columns.age = {number = [0, 120], step = 1}
columns.city = {category = ["Oslo"], public = true}
"""


def written(tmp_path, text):
    path = tmp_path / "sulq.toml"
    path.write_text(text, "utf-8")
    return path


def test_example_of_the_design_reads_as_declared(tmp_path):
    people = read_policy(written(tmp_path, PEOPLE))["people"]
    assert people.schema() == Schema(
        Number("age", 0, 120, step=1), Category("city", ["Oslo"], public=True)
    )
    assert people.promise == Promise(1, Fraction(1, 10**6), 1000)
    assert people.source_path == str(tmp_path / "people.parquet")
    assert people.ledger_path == tmp_path / "people.ledger"


def test_schema_survives_the_file(tmp_path):
    promise = Promise("1/3", "1e-9", 7, "binomial", "add-remove")
    table = TablePolicy.of("my people", "a.csv", "b.ledger", SCHEMA, promise)
    write_policy(tmp_path / "p.toml", [table])
    again = read_policy(tmp_path / "p.toml")["my people"]
    assert again.schema().to_json() == SCHEMA.to_json()
    assert again.promise == promise


def test_unit_strata_and_grants_survive_the_file(tmp_path):
    extra = 'unit = {column = "person_id", max_rows = 4}\nat_most = 9\nstrata = ["city"]\n'
    path = written(tmp_path, PEOPLE + extra + "grants.ann = 12.5\n")
    people = read_policy(path)["people"]
    assert (people.unit, people.max_rows, people.at_most) == ("person_id", 4, 9)
    assert people.grants == {"ann": Fraction(25, 2)}
    (tmp_path / "again.toml").write_text(policy_text(people, {}))
    assert read_policy(tmp_path / "again.toml")["people"] == people


def test_a_receipts_journal_survives_the_file(tmp_path):
    policy = PEOPLE.replace("[people]\n", '[people]\nreceipts = "/second/r"\n', 1)
    (tmp_path / "a.toml").write_text(policy)
    table = read_policy(tmp_path / "a.toml")["people"]
    assert table.receipts_path == Path("/second/r")
    write_policy(tmp_path / "b.toml", [table])
    assert read_policy(tmp_path / "b.toml")["people"].receipts == "/second/r"


def test_numbers_are_read_as_they_are_spelled(tmp_path):
    text = PEOPLE.replace("[0, 120], step = 1", "[0.1, 0.30000000000000001]")
    column = read_policy(written(tmp_path, text))["people"].columns[0].column()
    assert isinstance(column, Number)
    assert column.range == (Fraction(1, 10), Fraction("0.30000000000000001"))


BAD = [
    ("", "declares no table"),
    ("[people", "not valid TOML"),
    ("people = 3", "must be a table"),
    ("[people]", "missing"),
    (PEOPLE + "colour = 1", "unknown ['colour']; a table knows ['source'"),
    (PEOPLE.replace("step", "stepp"), "unknown ['stepp']; a number knows ['step'"),
    (PEOPLE.replace("queries", "question"), "wanted epsilon and"),
    (PEOPLE.replace("epsilon = 1,", "epsilon = -1,"), "0 < epsilon"),
    (PEOPLE.replace("epsilon = 1,", "epsilon = inf,"), "finite"),
    (PEOPLE.replace("number = ", "numbers = "), "must have one of"),
    (PEOPLE.replace("step = 1", "flag = true"), "must have one of"),
    (PEOPLE.replace("public = true", "public = 1"), "true or false"),
    (PEOPLE.replace('"people.parquet"', "3"), "source must be a path"),
    (PEOPLE + 'unit = "person"', "unit must be"),
    (PEOPLE + 'unit = {column = "id"}', "unit must be"),
    (PEOPLE + 'strata = "city"', "strata must be a list"),
    (PEOPLE + "grants.ann = -1", "above 0"),
    (PEOPLE + "grants.ann = nan", "above 0"),
    (PEOPLE + "grants = 3", "grants must be a table"),
    (PEOPLE.replace("promise = {", "promise = 1 # {"), "promise must be"),
    (PEOPLE[: PEOPLE.index("columns")] + "columns = {}", "no columns"),
    (PEOPLE.replace("{number = [0, 120], step = 1}", "3"), "must be a table such as"),
]


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_bad_policy_is_refused_with_its_reason(tmp_path, text, reason):
    with pytest.raises(InvalidQuery) as caught:
        read_policy(written(tmp_path, text))
    assert reason in str(caught.value)


BAD_COLUMNS = [
    ("{number = [0]}", "[low, high]"),
    ("{number = 3}", "[low, high]"),
    ("{number = [0, inf]}", "finite"),
    ("{number = [0, nan]}", "finite"),
    ("{number = [0, 12:30:00]}", "a number or a date"),
    ("{number = [true, 3]}", "a number or a date"),
    ("{number = [9, 3]}", "low must be below high"),
    ("{number = [0, 2020-01-01]}", "one kind"),
    ("{number = [0, 1], step = 2020-01-01}", "step must be a number"),
    ("{number = [0, 1], step = 0}", "step must be above 0"),
    ('{category = "a"}', "a list of values"),
    ('{category = ["a", 1]}', "all texts or all integers"),
    ("{flag = false}", "write true"),
]


@pytest.mark.parametrize(("facts", "reason"), BAD_COLUMNS)
def test_bad_column_is_refused_with_its_reason(tmp_path, facts, reason):
    people = read_policy(written(tmp_path, PEOPLE + f"columns.x = {facts}"))["people"]
    with pytest.raises(InvalidQuery) as caught:
        people.columns[-1].column()
    assert reason in str(caught.value)


def test_missing_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(InvalidQuery, match="no policy file"):
        read_policy(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidQuery, match="not UTF-8"):
        read_policy(tmp_path / "x.toml")
    with pytest.raises(InvalidQuery, match="is a directory"):
        read_policy(tmp_path)


def test_an_old_policy_is_never_overwritten(tmp_path):
    table = TablePolicy.of("people", "a.csv", "b.ledger", SCHEMA, Promise(1))
    path = written(tmp_path, PEOPLE)
    with pytest.raises(InvalidQuery, match="not overwritten"):
        write_policy(path, [table])
    assert path.read_text("utf-8") == PEOPLE


@pytest.fixture
def patients(tmp_path):
    path = tmp_path / "patients.parquet"
    duckdb.sql(
        "SELECT i AS patient_id, 17 + i % 37 AS age, 61.5 + i / 7 AS weight, i % 2 AS ill,"
        " i % 3 = 0 AS smoker, 'Town' || i % 4 AS town, 'Note' || i AS note,"
        " DATE '1950-03-04' + CAST(i AS INTEGER) AS born, [i] AS list"
        " FROM range(300) AS t(i)"
    ).write_parquet(str(path))
    return path


def test_types_alone_give_placeholders_and_no_data_value(patients, tmp_path):
    table, notes = Survey(patients).policy("patients", "p.parquet", "p.ledger", from_data=False)
    write_policy(tmp_path / "sulq.toml", [table], notes)
    text = (tmp_path / "sulq.toml").read_text("utf-8")
    for value in ("17", "53", "61.5", "104", "Town", "Note", "1950", "1951"):
        assert value not in text
    again = read_policy(tmp_path / "sulq.toml")["patients"]
    assert set(again.unready) == {"age", "weight", "town", "born"}
    assert "columns.smoker = {flag = true}" in text
    assert "columns.ill = {flag = true}" in text  # 0 and 1
    assert "patient_id looks like an identifier" in text
    assert "note stays hidden: nearly every row has a value of its own" in text
    assert again.unit == "row"  # one row per patient_id
    assert "list has type" in text
    with pytest.raises(InvalidQuery, match=r"\['age', 'weight', 'town', 'born'\]"):
        again.schema()


def test_proposals_from_data_stay_closed_until_confirmed(patients, tmp_path):
    table, notes = Survey(patients).policy("patients", "p.parquet", "p.ledger", from_data=True)
    assert set(table.unready) == {"age", "weight", "town", "born"}
    assert all("proposed" in why for why in table.unready.values())
    text = policy_text(table, notes).replace(", proposed = true", "")
    (tmp_path / "sulq.toml").write_text(text)
    schema = read_policy(tmp_path / "sulq.toml")["patients"].schema()
    assert schema["age"] == Number("age", 17, 53, step=1)
    assert schema["town"] == Category("town", ["Town0", "Town1", "Town2", "Town3"])
    assert schema["ill"] == Flag("ill")
    assert schema["born"] == Number("born", datetime.date(1950, 1, 1), datetime.date(1951, 1, 1))


def test_proposed_bounds_hold_every_value(patients):
    table, _ = Survey(patients).policy("patients", "p.parquet", "p.ledger", from_data=True)
    low, high = next(c for c in table.columns if c.name == "weight").facts["number"]
    assert low <= 61.5
    assert high >= 61.5 + 299 / 7


def test_survey_errors_quote_no_row(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"secret rows")
    with pytest.raises(InvalidQuery) as caught:
        Survey(broken)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(InvalidQuery, match="no file"):
        Survey(tmp_path / "none.csv")
    for rows in ("a,b\n1,2\n3\n4,5,6\n", "a,b\n1,2\n3,4,5\n", "a,b\n3\n", ""):
        (tmp_path / "ragged.csv").write_text(rows)
        with pytest.raises(InvalidQuery, match=r"ragged.csv: line [23] has|empty"):
            Survey(tmp_path / "ragged.csv")
    (tmp_path / "even.csv").write_text("a;b\n1;x\n2;y\n")
    assert Survey(tmp_path / "even.csv").types == {"a": "BIGINT", "b": "VARCHAR"}
    (tmp_path / "x.doc").write_text("")
    with pytest.raises(InvalidQuery, match="should end in"):
        Survey(tmp_path / "x.doc")


names = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=20
)


@given(
    names,
    st.lists(names, min_size=1, unique=True),
    st.fractions(-(10**9), 10**9),
    st.integers(1, 99),
)
def test_any_names_and_numbers_survive(tmp_path_factory, name, values, low, width):
    schema = Schema(Category(name + "1", values), Number(name + "2", low, low + width))
    table = TablePolicy.of(name, "a.csv", "b.ledger", schema, Promise(1))
    path = tmp_path_factory.mktemp("policy") / "p.toml"
    write_policy(path, [table])
    assert read_policy(path)[name].schema().to_json() == schema.to_json()


def test_column_of_keeps_what_makes_it_askable():
    for column in SCHEMA.columns:
        assert ColumnPolicy.of(column).lacks == ""
        assert ColumnPolicy.of(column).column() == column


EXACT = """exact.epsilon = 1
exact.delta = 1e-6
exact.known_rows = 100
exact.least = {age = 0.001}
exact.menu = [["count where age > 40", "total age"], ["count"]]
"""


def test_exact_release_is_off_and_survives_the_file(tmp_path):
    assert read_policy(written(tmp_path, PEOPLE))["people"].exact is None
    people = read_policy(written(tmp_path, PEOPLE + EXACT))["people"]
    assert people.exact is not None
    assert people.exact.least == {"age": Fraction(1, 1000)}
    assert people.exact.delta == Fraction(1, 10**6)
    assert people.exact.menu == (("count where age > 40", "total age"), ("count",))
    write_policy(tmp_path / "again.toml", [people])
    assert read_policy(tmp_path / "again.toml")["people"].exact == people.exact


def test_one_list_of_questions_is_one_batch(tmp_path):
    text = PEOPLE + EXACT.replace('[["count where age > 40", "total age"], ["count"]]', '["count"]')
    people = read_policy(written(tmp_path, text))["people"]
    assert people.exact is not None
    assert people.exact.menu == (("count",),)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("exact.epsilon = 1\n", "", "epsilon"),
        ("exact.epsilon = 1\n", "exact.epsilon = 0\n", "epsilon must be a number above 0"),
        ("exact.delta = 1e-6", 'exact.delta = "x"', "delta must be a number above 0"),
        ("known_rows = 100", "known_rows = -1", "known_rows must be a whole number"),
        ("known_rows = 100", "known_rows = true", "known_rows must be a whole number"),
        ("{age = 0.001}", "{}", "least says which columns"),
        ("{age = 0.001}", "{age = nan}", "least.age must be a number"),
        ('["count"]]', "[]]", "menu is a list of questions"),
        ('["count"]]', "[1]]", "menu is a list of questions"),
        ("exact.known_rows", "exact.kappa = 1\nexact.known_rows", "unknown \\['kappa'\\]"),
    ],
)
def test_exact_release_says_what_is_wrong(tmp_path, old, new, said):
    assert old in EXACT
    with pytest.raises(InvalidQuery, match=said):
        read_policy(written(tmp_path, PEOPLE + EXACT.replace(old, new)))


def test_how_a_file_is_read_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "sulq.toml"
    head = '[t]\nledger = "t.ledger"\npromise = {epsilon = 1}\ncolumns.x = {number = [0, 10]}\n'
    path.write_text(
        head + 'source = "t.txt"\ncsv = {delimiter = ";", decimal = ",", missing = ["?"]}\n'
    )
    (tmp_path / "t.txt").write_text("x;y\n1,5;a\n?;b\n")
    table = read_policy(path)["t"]
    assert table.rows == CsvFile(
        str(tmp_path / "t.txt"), delimiter=";", decimal=",", missing=("?",)
    )
    engine = open_engine(table.rows, table.schema())
    assert engine.size() == 2
    engine.close()
    again = tmp_path / "again.toml"
    write_policy(again, [table])
    assert read_policy(again)["t"] == table
    path.write_text(head + 'source = "t.xlsx"\nxlsx = {sheet = "2024"}\n')
    assert read_policy(path)["t"].rows == XlsxFile(str(tmp_path / "t.xlsx"), "2024")


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ('source = "t.csv"\ncsv = {sep = ";"}', r"unknown \['sep'\]"),
        ('source = "t.csv"\ncsv = ";"', "say csv = "),
        ('source = "t.csv"\ncsv = {decimal = 1}', "decimal must be"),
        ('source = "t.csv"\ncsv = {delimiter = 1}', "delimiter must be"),
        ('source = "t.csv"\ncsv = {encoding = ["latin-1"]}', "encoding must be"),
        ('source = "t.csv"\ncsv = {}\nxlsx = {sheet = "1"}', "one of them"),
        ('source = "t.parquet"\ncsv = {}', "the source is none"),
        ('source = "t.xlsx"\nxlsx = {}', "name one sheet"),
    ],
)
def test_rules_of_reading_that_mean_nothing_are_refused(
    tmp_path: Path, declared: str, said: str
) -> None:
    path = tmp_path / "sulq.toml"
    head = '[t]\nledger = "t.ledger"\npromise = {epsilon = 1}\ncolumns.x = {number = [0, 10]}\n'
    path.write_text(head + declared)
    with pytest.raises(InvalidQuery, match=said):
        read_policy(path)
