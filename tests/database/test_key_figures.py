"""Keys with figures, through the database: what is counted, what is shown, what it costs. P.4"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2, norm

import sulq.kernel.engines.sql.compile
import sulq.kernel.release.release
from sulq import (
    BudgetSpent,
    Category,
    Database,
    EngineFailed,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.answers.statistics import count_persons, per_person, variance
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.mechanisms import figures_price
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.release.release import UndeclaredKeys
from sulq.kernel.schema.bind import NoiseGrid
from sulq.kernel.schema.keys import KeyCounts, bind_keys

COLUMNS = (
    Number("cost", 0, 100_000),
    Number("change", -50, 50, step=1),
    Flag("ill"),
    Category("note"),
    Category("code", whole=True),
    Category("city", ["Oslo", "Paris"], public=True),
)
PROMISE = Promise(epsilon=1, delta="1e-6", queries=1000)
LONG = "\N{GREEK SMALL LETTER OMEGA}" * 300
NOTES = ["flu", "Flu", "cold", "", LONG, "caf\N{LATIN SMALL LETTER E WITH ACUTE}"]
CLIPPED = total(col("cost").clip(0, 10_000))


def frame(persons: int = 2000, extra: Sequence[dict[str, Any]] = ()) -> pd.DataFrame:
    """Persons of three rows: of common notes, spellings near each other, and notes of their own."""
    rng = random.Random(7)
    rows = []
    for who in range(persons):
        for at in range(3):
            note = rng.choice(NOTES)
            if who % 5 == 0 and at == 0:
                note = f"own {who}"
            rows.append(
                {
                    "who": who,
                    "note": None if rng.random() < 0.05 else note,
                    "code": rng.choice([0, 1, -(2**63), 2**63 - 1]),
                    "cost": None if rng.random() < 0.1 else rng.gammavariate(2, 2000),
                    "change": None if rng.random() < 0.1 else rng.randint(-50, 50),
                    "ill": rng.random() < 0.3,
                    "city": rng.choice(["Oslo", "Paris"]),
                }
            )
    return pd.DataFrame([*rows, *extra]).astype({"code": "int64"})


DATA = frame()


def publish(data: Any = None, promise: Promise = PROMISE, **schema: Any) -> Database:
    table = DATA if data is None else data
    return Database.open(table, Schema(*COLUMNS, **schema), promise, ":memory:", publish=True)


@pytest.fixture
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sulq.kernel.release.release, "add_fresh_noise", lambda sums, laws: list(sums)
    )


def by_key(data: pd.DataFrame, names: list[str]) -> Any:
    cut = data.assign(note=data.note.str[:200], clipped=data.cost.clip(0, 10_000))
    return cut.dropna(subset=names).groupby(names if len(names) > 1 else names[0])


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows": 3}])
def test_the_figures_are_those_of_the_rows(unit: dict[str, Any], noiseless: None) -> None:
    figures = (CLIPPED, mean("change"), count(where=col("ill")), variance("change"), count("cost"))
    with publish(**unit) as db:
        found = db.keys("note", *figures, credits=500)
        groups = by_key(DATA, ["note"])
        truth = groups.who.nunique() if unit else groups.size()
        shown = (
            truth[truth >= found.threshold].sort_index().sort_values(ascending=False, kind="stable")
        )
        assert found.counted == ("persons" if unit else "rows")
        assert len(found) == 6 and "" in found.keys and LONG[:200] in found.keys
        assert dict(iter(found)) == dict(shown)
        assert found.total == truth.sum() and found.held_back == truth.sum() - shown.sum()
        names = ["total", "mean", "count", "variance", "count_2"]
        assert [each.name for each in found.figures] == names
        keys = list(found.keys)
        summed, average, ill, spread, there = (each.values for each in found.figures)
        assert summed == pytest.approx(list(groups.clipped.sum()[keys]), rel=1e-6)
        assert average == pytest.approx(list(groups.change.mean()[keys]))
        assert ill == tuple(groups.ill.sum()[keys])
        known = list(groups.change.var(ddof=0)[keys])  # less what noise would have added
        assert spread == pytest.approx(known, rel=0.1)
        assert there == tuple(groups.cost.count()[keys])
        record = found.rows()[0]
        assert record["total_low"] < record["total"] < record["total_high"]
        assert list(found.to_pandas())[:6] == ["note", "value", "low", "high", "total", "total_low"]


def test_a_pair_is_one_key_and_whole_numbers_are_keys(noiseless: None) -> None:
    with publish(unit="who", max_rows=3) as db:
        found = db.keys(("note", "code"), total("change"), count_persons(), credits=500)
        groups = by_key(DATA, ["note", "code"])
        truth = groups.who.nunique()
        assert dict(iter(found)) == dict(truth[truth >= found.threshold])
        assert {code for _, code in found.keys} == {0, 1, -(2**63), 2**63 - 1}
        sums, persons = (each.values for each in found.figures)
        assert list(sums) == [groups.change.sum()[key] for key in found.keys]
        assert persons == found.counts
        assert found.rows()[0].keys() >= {"note", "code"} and found.columns == ("note", "code")
        alone = db.keys("code", where=col("code").isin([0, 2**63 - 1, 5]), credits=500)
        assert set(alone.keys) == {0, 2**63 - 1}
        assert alone.counts == tuple(by_key(DATA, ["code"]).who.nunique()[list(alone.keys)])
        priced = db.quote(count(where=col("code") == 0)).credits
        assert priced == 9  # as for any value


def test_whole_numbers_that_do_not_fit_are_missing(noiseless: None, tmp_path: Any) -> None:
    """Beyond 64 bits, or no whole number: in a file of text and in a column of wider numbers."""
    (tmp_path / "n.csv").write_text(
        "code\n" + "7\n" * 900 + "+7\n007\n 7 \n" + "99999999999999999999\n7.5\n\nx\n" * 300
    )
    wide = pd.DataFrame({"code": np.array([7] * 903 + [2**64 - 1] * 300, dtype="uint64")})
    for source in (tmp_path / "n.csv", wide):
        schema = Schema(Category("code", whole=True))
        with Database.open(source, schema, PROMISE, ":memory:", publish=True) as db:
            found = db.keys("code", credits=500)
            assert (found.keys, found.counts, found.total) == ((7,), (903.0,), 903.0)


def test_the_price_is_said_before_charged_once_and_a_repeat_is_free() -> None:
    with publish(unit="who", max_rows=3) as db:
        quoted = db.quote_keys("note", CLIPPED, mean("change"))
        assert db.remaining == 1000 and len(quoted.figures) == 2
        found = db.keys("note", CLIPPED, mean("change"))
        assert found.credits == quoted.credits == 1000 - db.remaining
        assert quoted.figures[0] == pytest.approx(
            found.figures[0].readings[0].standard_error if len(found) else quoted.figures[0]
        )
        again = db.keys("note", mean("change"), CLIPPED, CLIPPED)  # the same sums
        assert again.credits == 0 and again.counts == found.counts and again.receipt.seq
        assert db.quote_keys("note", CLIPPED, mean("change")).repeat
        assert db.keys("note").credits == 18  # M.1 counts rows: another question
        assert db.keys("note", count_persons()).credits == 6  # 2 m: each once for a key


def test_on_a_table_of_rows_the_count_is_the_one_of_keys() -> None:
    """What M.1 answers, P.4 does not ask again."""
    with publish() as db:
        found = db.keys("note", credits=20)
        assert db.keys("note", count(), credits=20).credits == 0
        counted = db.keys("note", count(), credits=20).figures[0]
        assert counted.values == tuple(round(value) for value in found.counts)
        with pytest.raises(InvalidQuery, match="knows no persons"):
            db.keys("note", count_persons())


def test_public_strata_pay_what_they_can_move() -> None:
    with publish() as db:
        db.keys("note", CLIPPED, where=col("city") == "Oslo", credits=20)
        spent = {a.name: a.spent.credits_fraction for a in db.ledger.statement().accounts}
        assert spent["city=Oslo"] == 20 and spent["city=Paris"] == spent["city=*"] == 0


def test_sums_are_drawn_for_shown_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact sums of keys that are held back meet no noise and no store."""
    drawn: list[int] = []
    add = sulq.kernel.release.release.add_fresh_noise

    def seen(sums: Sequence[int], laws: Sequence[Any]) -> list[int]:
        drawn.append(len(sums))
        return add(sums, laws)

    monkeypatch.setattr(sulq.kernel.release.release, "add_fresh_noise", seen)
    with publish(unit="who", max_rows=3) as db:
        found = db.keys("note", CLIPPED, mean("change"), credits=500, most=4)
        occur = by_key(DATA, ["note"]).ngroups
        assert drawn == [occur, 1 + 4 * 3] and len(found) == 4
        (entry,) = db.ledger.entries()
        assert len(entry.values or ()) == 1 + 4 * 5


def test_parts_and_batches_hold_every_key_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with publish(unit="who", max_rows=3) as db:
        asked = [CLIPPED, mean("change")]
        bound = bind_keys(("note", "code"), None, 9, db.schema, "replace", NoiseGrid(), asked)
        whole = sorted(row for batch in db.engine.prepare_keys(bound.program)() for row in batch)
        monkeypatch.setattr(sulq.kernel.engines.sql.compile, "ROWS_EACH", 500)
        monkeypatch.setattr("sulq.kernel.engines.duckdb.engine.FETCHED", 7)
        parts = list(db.engine.prepare_keys(bound.program)())
        assert max(map(len, parts)) <= 7
        assert sorted(row for batch in parts for row in batch) == whole
        truth = by_key(DATA, ["note", "code"]).who.nunique()
        assert {key: persons for key, persons, _ in whole} == dict(truth)


TYPES = {"change": "Int64", "ill": "boolean", "city": "string", "note": "string"}
FIGURES = [
    *(total("cost"), total("change"), mean("change"), count(where=col("ill")), count()),
    *(total(-col("cost").clip(0, 50)), total("change", where=col("ill"))),
]


def test_neighbours_move_no_further_than_is_charged() -> None:
    """Random persons and random questions, read by the engine: the exact numbers of both tables."""
    rng = random.Random(3)

    def person(who: int) -> list[dict[str, Any]]:
        return [
            {
                "who": who,
                "note": rng.choice(["a", "b", "c", None]),
                "code": rng.choice([1, 2]),
                "cost": rng.choice([None, 0.0, 100_000.0, 1e9, 12.5]),
                "change": rng.choice([None, -50, 0, 50, 99]),
                "ill": rng.choice([True, False, None]),
                "city": rng.choice(["Oslo", None]),
            }
            for _ in range(rng.randint(0, 4))
        ]

    tables: dict[Any, Any] = {}
    for trial in range(24):
        rows = rng.choice([1, 2, 3])
        unit: dict[str, Any] = {} if trial % 3 == 0 else {"unit": "who", "max_rows": rows}
        neighbours = rng.choice(["replace", "add-remove"])
        figures = rng.sample(FIGURES, rng.randint(0, 4))
        where = rng.choice([None, col("cost") > 5, col("city") == "Oslo", col("ill")])
        columns = rng.choice(["note", ("note", "code"), "code"])
        schema = Schema(*COLUMNS, **unit)
        grid = NoiseGrid()
        bound = bind_keys(columns, where, 9, schema, neighbours, grid, figures)
        if not bound.with_figures:
            continue
        base = [row for who in range(1, 4) for row in person(who)] + [
            {"who": 9, "note": "a", "code": 1, "cost": 1.0, "change": 1, "ill": True, "city": None}
        ]
        if unit:
            pair = [base + person(0), base + (person(0) if neighbours == "replace" else [])]
        else:
            one, two = (next(filter(None, (person(0) for _ in range(99))))[0] for _ in range(2))
            two["city"] = one["city"]  # public
            pair = [[*base, one], [*base, two] if neighbours == "replace" else base]
        read = []
        for table in pair:
            data = pd.DataFrame(table).astype(TYPES)
            with publish(data, PROMISE, **unit) as db:
                batches = db.engine.prepare_keys(bound.program)()
                read.append({key: (n, s) for batch in batches for key, n, s in batch})
        moved = squared(*read, [term.unit for term in bound.terms], schema.max_rows)
        assert moved <= max((reach for reach, _ in bound.reach), default=0)
        tables[trial] = moved
    assert max(tables.values()) > 4


def squared(one: Any, two: Any, units: list[int], rows: int) -> Fraction:
    none: tuple[int, list[int]] = (0, [0] * len(units))
    moved = total = Fraction(0)
    for key in one.keys() | two.keys():
        (n, sums), (m, others) = one.get(key, none), two.get(key, none)
        moved += (n - m) ** 2
        total += n - m
        moved += sum(
            Fraction(x - y, unit or 1) ** 2 / rows
            for x, y, unit in zip(sums, others, units, strict=True)
        )
    return moved + total**2 / rows


# --- the law of what is told ----------------------------------------------------------------------


class Made:
    """An engine whose keys are made up."""

    def __init__(self, batches: Sequence[list[Any]]) -> None:
        self.batches = batches

    def prepare_keys(self, program: KeyCounts) -> Any:
        return lambda: iter(self.batches)


def released(batches: Sequence[list[Any]], most: int, credits: int, delta: float) -> Any:
    """What the mechanism tells of made up keys, on a table of persons of three rows."""
    promise, schema = Promise(1, "0.9", 1), Schema(*COLUMNS, unit="who", max_rows=3)
    grid = NoiseGrid()
    bound = bind_keys("note", None, most, schema, promise.neighbours, grid, [total("change")])
    units = [term.fine_unit for term in bound.terms]
    terms = (calibrate(promise), 3, bound.fine_unit, units, bound.reach)
    cost = figures_price(*terms, Fraction(credits), Fraction(delta))
    priced = PricedRequest(bound.text, bound.digest, cost.noise, {}, cost.loss)
    made: Any = Made(batches)
    return bound, cost, UndeclaredKeys(bound, cost, priced).prepare(made)()


def test_sums_and_counts_follow_the_law_and_hang_on_nothing_else() -> None:
    """9,000 common keys: variances by chi-square, no correlation; false alarms 1e-6 in all."""
    many = 9_000
    batches = [
        [((f"key {n}",), 10**6, [7]) for n in range(at, at + 1000)] for at in range(0, many, 1000)
    ]
    bound, cost, (rest, shown) = released(batches, many, 5, 1e-4)
    assert len(shown) == many
    noise = np.array(
        [
            (one.noisy - 10**6 * bound.fine_unit, one.sums[0] - 7 * bound.terms[0].lift)
            for one in shown
        ],
        dtype=np.float64,
    )
    scaled = noise / [law.standard_deviation() for law in (cost.law, cost.sums[0])]
    low, high = chi2.ppf([1e-7, 1 - 1e-7], many)
    assert all(low < value < high for value in (scaled**2).sum(axis=0))
    assert abs(float((scaled[:, 0] * scaled[:, 1]).sum())) < norm.isf(1e-7) * many**0.5
    assert abs(rest - many * 10**6 * bound.fine_unit) < 6 * cost.total.standard_deviation()
    assert cost.sums[0].variance() / cost.law.variance() == pytest.approx(
        3 * (bound.terms[0].fine_unit / bound.fine_unit) ** 2
    )


def test_an_attack_on_the_threshold_finds_a_key_of_ones_own_no_more_often_than_paid() -> None:
    """Somebody who knows all other keys looks for one: 60,000 persons with three keys of their own.

    delta_t of each key is the extra delta over 3 and 2. False alarm 1e-6; and the threshold is not
    far above what delta allows: the chance of so few is below 1e-6, too.
    """
    own, delta = 180_000, Fraction(6, 10**4)
    batches = [[((f"{n}",), 1, [50]) for n in range(at, at + 6000)] for at in range(0, own, 6000)]
    _, cost, (_, shown) = released(batches, 10_000, 1, float(delta))
    each = float(delta) / 6
    assert cost.law.tail(cost.threshold - 2**30 - 1) / 2 <= each
    assert len(shown) <= binom.isf(1e-6, own, each)
    assert len(shown) >= binom.ppf(1e-6, own, 0.8 * each) > 0


# --- charges, failures, refusals ------------------------------------------------------------------


def test_it_is_charged_before_rows_are_read_and_a_retry_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with publish() as db:
        prepare = db.engine.prepare_keys

        def broken(program: Any) -> Any:
            def read() -> Iterator[Any]:
                assert db.remaining == 980
                yield prepare(program)().__next__()
                raise EngineFailed

            return read

        monkeypatch.setattr(db.engine, "prepare_keys", broken)
        with pytest.raises(EngineFailed):
            db.keys("note", CLIPPED, credits=20)
        monkeypatch.setattr(db.engine, "prepare_keys", prepare)
        found = db.keys("note", CLIPPED, credits=20)  # a fresh draw: nothing of the first was seen
        assert db.remaining == 980 and len(found) == 6
        assert db.keys("note", CLIPPED, credits=20).counts == found.counts


def test_refusals_are_free_and_say_why() -> None:
    with publish() as db:
        wrong: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
            ("note", (histogram("ill"),), {}, "figures of a key"),
            ("note", (total("note"),), {}, "no arithmetic"),
            ("note", (total("code"),), {}, "no arithmetic"),
            ("note", ("cost",), {}, "got"),
            ("note", (per_person(total("cost"), (0, 5)),), {}, "figures of a key"),
            (("note", "note"), (), {}, "once"),
            (("note", "code", "note"), (), {}, "1 to 2 open columns"),
            ((), (), {}, "1 to 2 open columns"),
            (("note", "city"), (), {}, "declared"),
            ("note", tuple(total(col("cost") * n) for n in range(1, 22)), {}, "at most 20 sums"),
            ("note", (CLIPPED,), {"credits": 1e-60}, "cannot be drawn"),
            ("note", (CLIPPED,), {"delta": 1}, "far below 1"),
        ]
        for column, figures, terms, said in wrong:
            for ask in (db.quote_keys, db.keys):
                with pytest.raises(InvalidQuery, match=said):
                    ask(column, *figures, **terms)
        with pytest.raises(BudgetSpent):
            db.keys("note", CLIPPED, credits=1001)
        assert db.remaining == 1000
    with publish(promise=Promise(1)) as pure, pytest.raises(Refused, match="declare the values"):
        pure.keys("note", CLIPPED)


def test_credits_beyond_every_number_of_a_machine_are_refused_in_words() -> None:
    with publish() as db:
        for credits in (10**400, Fraction(1, 10**400), Fraction(10**400, 3)):
            for figures in ((), (CLIPPED,)):
                with pytest.raises(InvalidQuery, match=r"noise for [\d.]+e[+-]\d+ credits"):
                    db.quote_keys("note", *figures, credits=credits)
