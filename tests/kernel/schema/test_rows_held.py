"""Rows of persons before any is cut: what one person can move them by. P.1"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import pandas as pd
import pytest

from sulq import Database, Flag, InvalidQuery, Number, Promise, Schema, SumQuery, col
from sulq.answers.statistics import count, per_person, rows_held
from sulq.kernel.query.expressions import lit
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.query.sum_query import clip_of, group, text_of
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.sensitivity import MOST_HELD, PersonSums
from sulq.wire.convert import question_json, question_of

COLUMNS = (Number("x", 0, 1, step=1), Flag("ill"))
SCHEMA = Schema(*COLUMNS, unit="who", max_rows=2)
MOST = 9
CLIPS = [(a, b) for a, b in itertools.product(range(MOST), range(MOST + 2)) if a <= b]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_no_person_moves_the_count_further_than_charged(neighbours: str, max_rows: int) -> None:
    """Every number of rows of one person, 1 to 12, before and after; every clip; it is tight."""
    schema = Schema(*COLUMNS, unit="who", max_rows=max_rows)
    for low, high in CLIPS:
        bound = bind(rows_held((low, high)), schema, neighbours, grid=NoiseGrid(0))
        assert isinstance(bound.sums, PersonSums) and bound.sums.uncut
        held = [min(max(rows, low), high) for rows in range(1, MOST + 4)]
        moves = (
            [abs(a - b) for a, b in itertools.product(held, held)]
            if neighbours == "replace"
            else held
        )
        [(charged, accounts)] = bound.reach
        unit = bound.terms[0].unit
        assert accounts == (0,)
        assert (charged.l1 * unit, charged.l2_squared * unit**2) == (max(moves), max(moves) ** 2)


def frame(rows: list[int]) -> pd.DataFrame:
    """So many rows of each person."""
    owners = [who for who, many in enumerate(rows) for _ in range(many)]
    return pd.DataFrame({"who": owners, "x": [1] * len(owners), "ill": [True] * len(owners)})


@pytest.mark.sample(2)
@pytest.mark.parametrize("clip", [(1, 2), (2, 4), (0, 5), (4, 5)])
def test_neighbouring_tables_differ_by_no_more(clip: tuple[int, int]) -> None:
    """The engine's own integers, of tables in which one person has any other number of rows."""
    seen = {}
    for many in (1, 2, 3, 6, 50):
        with Database.open(frame([3, 1, many]), SCHEMA, Promise(1, 1e-6), ":memory:") as db:
            bound = db.bind(rows_held(clip))
            [seen[many]] = db.engine.exact_sums(bound.sums)
    assert (
        max(seen.values()) - min(seen.values()) <= bound.terms[0].unit == clip[1] - max(1, clip[0])
    )


def test_the_price_is_the_clip_and_max_rows_plays_no_part() -> None:
    for max_rows in (1, 4, 100):
        schema = Schema(*COLUMNS, unit="who", max_rows=max_rows)
        with Database.open(
            frame([3, 1, 9]), schema, Promise(1, 1e-6, queries=50), ":memory:"
        ) as db:
            assert db.quote(rows_held((2, 64))).credits == 1
            assert db.quote(rows_held((0, 1))).credits == 0  # everybody has a row: public
            answer = db.ask(rows_held((2, 3)), credits=40)
            assert answer.credits == 40 and "at most" not in answer.note
            again = db.ask(rows_held((2, 3)), credits=40)
            assert again.credits == 0 and again.value == answer.value


def test_only_numbers_of_rows_are_told() -> None:
    one, clip = lit(1), clip_of((0, 3))
    for query in (
        SumQuery((one,), col("ill"), clip=clip, uncut=True),
        SumQuery((col("x"),), clip=clip, uncut=True),
    ):
        with pytest.raises(InvalidQuery, match="only their number is told"):
            bind(query, SCHEMA)
    with pytest.raises(InvalidQuery, match="and no groups"):
        SumQuery((one,), groups=(group("ill"),), clip=clip, uncut=True)
    with pytest.raises(InvalidQuery, match="per person: clip"):
        SumQuery((one,), uncut=True)
    with pytest.raises(InvalidQuery, match="knows no persons"):
        bind(rows_held((0, 3)), Schema(*COLUMNS))
    bound = bind(rows_held((0, 2**40)), SCHEMA)
    assert bound.terms[0].high == Fraction(MOST_HELD)  # however large the clip


def test_it_has_a_name_of_its_own_and_changes_no_other() -> None:
    asked, usual = rows_held((0, 3)), per_person(count(), (0, 3))
    assert (
        text_of(asked.query.canonical()) == text_of(usual.query.canonical())[:-1] + ',"uncut":true}'
    )
    assert "uncut" not in text_of(usual.query.canonical())
    assert bind(asked, SCHEMA).digest != bind(usual, SCHEMA).digest
    form = json.loads(json.dumps(question_json(asked)))
    assert question_json(question_of(form)) == question_json(asked)
    for wrong in (False, 1, "yes"):
        with pytest.raises(InvalidQuery):
            SumQuery.from_json({**form["query"], "uncut": wrong})
    said = question_text(text_of(asked.query.canonical()))
    assert said == "SUM(CLAMP(ALL COUNT(*) PER PERSON, 0, 3))"


def test_a_bar_of_rows_per_person_may_pass_the_number_of_persons() -> None:
    """Cut to the number of persons it missed: 6 rows of 2 persons are no more than 2."""
    with Database.open(
        frame([3, 3]), Schema(*COLUMNS, unit="who", max_rows=3), Promise(1, 1e-6), ":memory:"
    ) as db:
        found = db.ask(per_person(count(), (0, 3)))
        assert found.interval(0.999999)[1] == 6
