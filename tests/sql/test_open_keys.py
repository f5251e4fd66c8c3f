"""GROUP BY an open text column: keys that nobody declared, above a threshold, with a noisy rest."""

from __future__ import annotations

import pandas
import pytest

from sulq import Category, Database, InvalidQuery, Number, Promise, Refused, Schema
from sulq.answers.selections import Keys
from sulq.errors import BudgetSpent
from sulq.sql.api import columns_of

SCHEMA = Schema(Number("age", 0, 120, step=1), Category("note"), Category("place", whole=True))
PROMISE = Promise(epsilon=1, delta=1e-6, queries=1000)
COUNTS = {"flu": 6_000, "cold": 3_000, "only one has it": 1}
TEXT = "SELECT note, COUNT(*) AS n FROM people GROUP BY note"


def rows():
    notes = [note for note, times in COUNTS.items() for _ in range(times)] + [None] * 99
    many = range(len(notes))
    return pandas.DataFrame(
        {
            "note": notes,
            "age": [at % 80 for at in many],
            "place": [at % 3 for at in many],
            "who": [at // 2 for at in many],
        }
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(tmp_path_factory.mktemp("keys")))
        with Database.open(rows(), SCHEMA, PROMISE, ":memory:", name="people") as found:
            yield found


def test_it_is_priced_first_and_says_threshold_and_rest(database):
    before = database.remaining
    quote = database.quote_sql(TEXT, credits=100)
    assert (quote.credits, database.remaining, quote.repeat) == (100, before, False)
    assert dict(quote.half_widths)["n"] == pytest.approx(37, abs=1)
    assert "extra delta of 1e-11" in quote.note
    asked = database.sql(TEXT, credits=100)
    assert before - database.remaining == asked.credits == 100
    assert set(asked.column("note")) == {"flu", "cold"}  # misses each time with chance 1e-11
    shown = dict(zip(asked.column("note"), asked.column("n"), strict=True))
    for note, cell in shown.items():
        low, high = cell.interval(1 - 1e-7)
        assert low <= COUNTS[note] <= high
    assert any("from a noisy count of 129" in note for note in asked.notes)
    rest = next(note for note in asked.notes if note.startswith("held back: "))
    assert "+-64 rows" in rest
    again = database.sql(TEXT, credits=100)
    assert (again.credits, again.records()) == (0, asked.records())
    assert database.quote_sql(TEXT, credits=100).repeat


def test_it_is_the_very_answer_of_keys(database):
    asked = database.sql(TEXT, credits=100)
    found = database.keys("note", credits=100)
    assert isinstance(found, Keys)
    assert found.credits == 0
    assert [cell.unrounded.value for cell in asked.column("n")] == list(found.counts)
    assert asked.receipts[0].seq == found.receipt.seq


def test_what_follows_from_a_count_follows(database):
    text = (
        "SELECT note AS k, 100 * COUNT(note) / 9001 AS part FROM people WHERE age < 200"
        " GROUP BY note HAVING COUNT(*) > 500 AND note <> 'flu' ORDER BY part DESC LIMIT 5"
    )
    ((found),) = database.sql(text, credits=100).records()
    assert found["k"] == "cold"
    assert found["part"] == pytest.approx(100 / 3, abs=1.5)
    assert found["part_low"] < found["part"] < found["part_high"]
    only = database.sql("SELECT note FROM people GROUP BY note ORDER BY 1", credits=100)
    assert only.column("note") == ("cold", "flu")


def test_the_noise_of_two_statements_does_not_cancel(database):
    one = database.sql(TEXT, credits=100).cell("n")
    other = database.sql(TEXT.replace("GROUP", "WHERE age >= 0 GROUP"), credits=100).cell("n")
    low, high = (one - other).interval()
    assert high - low > 50


def test_explain_is_free(database):
    before = database.remaining
    lines = database.sql(f"EXPLAIN {TEXT}").column("plan")
    assert lines[0] == "question 1: keys of note (2 credits)"
    assert database.remaining == before


def test_an_analyst_pays_from_the_own_share(database):
    database.grant("ann", credits=60)
    ann = database.as_analyst("ann")
    assert ann.quote_sql(TEXT, credits=30).credits == 30
    assert ann.sql(TEXT, credits=30, key="once").credits == 30
    assert ann.remaining == 30
    with pytest.raises(BudgetSpent):
        ann.sql(TEXT, credits=31)
    assert not ann.quote_sql(TEXT, credits=31).affordable


def test_figures_of_a_pair_are_read_as_of_declared_groups(database, quiet):
    """Sums, means and tests of them: the numbers of the rows, where nothing is added."""
    text = (
        "SELECT note, place, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a, SUM(age) / COUNT(*) AS r,"
        " COUNT(*) FILTER (WHERE age >= 40) AS old FROM people GROUP BY note, place"
        " HAVING AVG(age) > 1 ORDER BY n DESC, place"
    )
    quote = database.quote_sql(text, credits=60)
    assert quote.credits == 60 and quote.steps()[0].startswith(
        "question 1: keys of note, place with"
    )
    asked = database.sql(text, credits=60)
    truth = rows().groupby(["note", "place"]).age
    keys = [(row[0], row[1]) for row in asked.rows]
    assert keys == [("flu", 0), ("flu", 1), ("flu", 2), ("cold", 0), ("cold", 1), ("cold", 2)]
    for row in asked.rows:
        own = truth.get_group(row[:2])
        told = [cell.unrounded.value for cell in row[2:]]
        known = [len(own), own.sum(), own.mean(), own.mean(), (own >= 40).sum()]
        assert told == pytest.approx(known, rel=1e-6)
    assert [column.type for column in asked.columns[:3]] == ["text", "integer", "integer"]
    assert database.sql(text, credits=60).credits == 0
    inside = f"SELECT place, MAX(a) AS m FROM ({text}) AS t GROUP BY place"
    assert database.sql(inside, credits=60).credits == 0


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows": 2}])
def test_persons_are_counted_once_for_a_key(unit, quiet):
    with Database.open(
        rows(), Schema(*SCHEMA.columns, **unit), PROMISE, ":memory:", name="people"
    ) as db:
        text = "SELECT note, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY note"
        if unit:
            text = text.replace("AVG", "COUNT(DISTINCT who) AS p, AVG")
            assert db.quote_sql(TEXT).credits == 8  # M.1: rows
            assert db.quote_sql(text).credits > 4
        found = db.sql(text, credits=100)
        assert found.column("note") == ("flu", "cold")
        assert [cell.value for cell in found.column("n")] == [6_000, 3_000]
        if unit:
            assert [cell.value for cell in found.column("p")] == [3_000, 1_500]
            assert any("persons at 95 %, each counted once" in note for note in found.notes)


def test_without_a_delta_to_spare_it_is_refused_with_the_remedy(state_directory):
    with Database.open(rows(), SCHEMA, Promise(epsilon=1), ":memory:", name="people") as pure:
        for verb in (pure.sql, pure.quote_sql):
            with pytest.raises(Refused, match="declare the values"):
                verb(TEXT)
        assert pure.remaining == 100


def test_an_oracle_without_keys_says_so(database):
    from sulq.sql.api import quote_sql

    class Plain:
        schema, promise, size, remaining = SCHEMA, PROMISE, 9_100, 10

    with pytest.raises(InvalidQuery, match="cannot look for keys"):
        quote_sql(Plain(), TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT note + 1, COUNT(*) FROM people GROUP BY note",
        "SELECT -note, COUNT(*) FROM people GROUP BY note",
        "SELECT CAST(note AS INTEGER) + 1, COUNT(*) FROM people GROUP BY note",
        "SELECT COALESCE(note, 1) + 1, COUNT(*) FROM people GROUP BY note",
        "SELECT note, COUNT(*) FROM people GROUP BY note ORDER BY ABS(note)",
        "SELECT note, COUNT(*) FROM people GROUP BY note HAVING note > 5",
        "SELECT note, place, COUNT(*) FROM people GROUP BY note, place ORDER BY place + note",
        "SELECT place, COUNT(*) FROM people GROUP BY place HAVING place > 'a'",
        "SELECT SUM(note) FROM (SELECT note, COUNT(*) AS n FROM people GROUP BY note) AS t",
    ],
)
def test_what_a_text_cannot_do_is_refused_before_it_is_paid(text, database):
    """Whatever the rows hold: a key such as '12' would else let it pass, and another fail it."""
    before = database.remaining
    said = r"one kind|arithmetic on a text|compared with|SUM of"
    for verb in (database.quote_sql, database.sql):
        with pytest.raises(InvalidQuery, match=said):
            verb(text)
    assert database.remaining == before


def test_functions_of_keys_have_a_value_for_every_key(quiet):
    """A function that has none for some text or number gives NULL there, and fails for no key."""
    places = [0, -1, 2**63 - 1, -(2**63), 1000, 3]
    notes = ["", "a\x00b", "\N{GREEK SMALL LETTER OMEGA}" * 300, "%_", "'; DROP", "12"]
    data = pandas.DataFrame({"note": notes * 500, "place": places * 500})
    schema, promise = Schema(*SCHEMA.columns[1:]), Promise(8, 1e-6, queries=50)
    with Database.open(data, schema, promise, ":memory:", name="people") as db:
        wide = "REPLACE(note, '\N{GREEK SMALL LETTER OMEGA}', '" + "x" * 900 + "')"
        text = (
            "SELECT note, UPPER(note) AS up, LENGTH(note) AS long, note || '!' AS more,"
            f" {wide} AS wide, COUNT(*) AS n FROM people GROUP BY note"
        )
        quote = db.quote_sql(text, credits=20)
        found = {row[0]: row[1:5] for row in db.sql(text, credits=20).rows}
        cut = notes[2][:200]
        assert quote.credits == 20 and found.keys() == {*notes[:2], cut, *notes[3:]}
        assert found.pop(cut) == (cut.upper(), 200, cut + "!", None)
        assert all(
            told == (note.upper(), len(note), note + "!", note) for note, told in found.items()
        )
        text = (
            "SELECT place, POWER(EXP(place), 4) AS p, 1 / place AS part, LN(place) AS ln,"
            " COUNT(*) AS n FROM people GROUP BY place"
        )
        asked = db.sql(text, credits=20)
        told = {row[0]: row[1:4] for row in asked.rows}
        assert told.keys() == set(places) and asked.columns[0].type == "integer"
        assert (told[1000][0], told[0][1], told[-1][2]) == (None, None, None)
        assert told[2**63 - 1][1] == pytest.approx(2.0**-63)


def test_the_type_of_a_key_is_known_before_it_is_asked(database):
    text = "SELECT note, place, COUNT(*) AS n FROM people GROUP BY note, place"
    columns = columns_of(database.quote_sql(text))
    assert [column.type for column in columns[:2]] == ["text", "integer"]
