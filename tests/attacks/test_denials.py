"""Nothing but the noisy values may depend on the rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from tests.attacks.broken import Auditor, Textbook, broken
from tests.attacks.sandbox import honest

from sulq.answers.oracle import Answer
from sulq.answers.statistics import count, histogram, mean, quantiles, total
from sulq.attacks.denials import Question, battery, denials, observed, refused_bits, told_apart
from sulq.database import Database
from sulq.errors import EngineFailed
from sulq.kernel.query.expressions import Expression, col, when
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.promise import Promise

PROMISE = Promise(1, queries=100)


@pytest.mark.parametrize(
    "promise",
    [
        pytest.param(PROMISE, marks=pytest.mark.slow),
        pytest.param(Promise(1, "1e-6", queries=5, noise="huber"), marks=pytest.mark.slow),
        Promise(1, "1e-6", queries=2),
    ],
    ids=str,
)
def test_the_database_shows_the_same_on_neighbours(promise: Promise) -> None:
    apart, bits = denials(honest(promise), bits=100)
    assert apart.reached == 0
    assert apart.trials >= 3 * 2 * len(battery())
    assert not bits.broken


@pytest.mark.slow
def test_the_battery_has_answers_refusals_and_errors() -> None:
    seen = observed(honest(PROMISE).publish(honest(PROMISE).secrets(1, 64)), battery())
    assert len(battery()) >= 60
    for word, least in (("InvalidQuery", 30), ("BudgetSpent", 1), ("total", 10), ("histogram", 3)):
        assert sum(text.startswith(word) for text in seen) >= least, word


@pytest.mark.slow
def test_a_classic_auditor_gives_every_bit_away() -> None:
    finding = refused_bits(broken(Auditor, PROMISE), rows=200)
    assert finding.reached == 1
    assert finding.broken
    target = broken(Auditor, PROMISE)
    secrets = target.secrets(1, 64)
    secrets[0] = True
    first = target.publish(secrets.copy())
    secrets[0] = False
    assert told_apart([first, target.publish(secrets)]).broken


class Quoting(Textbook):
    """An error that quotes a row, as engines' own messages do."""

    def answer(self, bound: BoundQuery, due: Fraction) -> Answer:
        sums = self.database.engine.prepare(bound.sums)()
        if len(sums) == 1 and sums[0] == 0:
            raise EngineFailed
        return super().answer(bound, due)


@pytest.mark.slow
def test_an_error_that_depends_on_rows_is_caught() -> None:
    assert any(finding.broken for finding in denials(broken(Quoting, PROMISE), bits=100))


ODD = ["", " ", "%", "_", "\\", "'", '"; DROP TABLE t --', "NaN", "1e999", "é", "\U0001f600", None]


def odd_questions() -> list[tuple[Question, dict[str, Any]]]:
    """Casts, patterns, quotients and products on texts and numbers that break engines."""
    x, word = col("x"), col("word")
    numbers: list[Expression] = [
        1 / x,
        x / (x - x),
        (x * x).clip(0, 1),
        when(word == "NaN").then(1).otherwise(0),
        when(word.like("%\\")).then(1).otherwise(0),
        when(word.is_null()).then(1).otherwise(x.clip(0, 1)),
        (1 / (x - 3)).clip(-1, 1),
    ]
    asked: list[Question] = [(lambda value=value: total(value)) for value in numbers]
    asked += [(lambda value=value: mean(value)) for value in numbers]
    asked += [
        (lambda text=text: count(where=word.like(text))) for text in ODD if isinstance(text, str)
    ]
    asked += [(lambda text=text: count(where=word == text)) for text in ODD]
    asked += [
        lambda: count(where=word.like(5)),  # type: ignore[arg-type]
        lambda: count(where=word > 5),
        lambda: total("word"),
        lambda: histogram("word"),
        lambda: histogram("x", edges=[-1e300, 0, 1]),
        lambda: quantiles("x", [0.5], where=word.like("_")),
    ]
    return [(build, {"credits": Fraction(1, 10)}) for build in asked]


def odd_table(x: float | None, word: str | None, flag: bool | None) -> Database:
    schema = Schema(Number("x", -5, 5), Category("word"), Flag("flag"))
    table = pa.table(
        {
            "x": pa.array([1.0, 0.0, -5.0, x], pa.float64()),
            "word": pa.array(["a", "%", "b_", word], pa.string()),
            "flag": pa.array([True, False, True, flag], pa.bool_()),
        }
    )
    return Database.open(table, schema, PROMISE, ":memory:")


@pytest.mark.slow
def test_odd_values_in_one_row_change_nothing_that_shows() -> None:
    rows = [(1.0, "a", True)]
    rows += [(float(x), "x", False) for x in ("nan", "inf", "-inf", "1e308", "5e-324")]
    rows += [(3.0, word, None) for word in ODD]  # type: ignore[misc]
    rows += [(None, None, None)]  # type: ignore[list-item]
    finding = told_apart([odd_table(*row) for row in rows], odd_questions())
    assert finding.reached == 0
    assert finding.trials > 1_000
