"""Answers say in plain words who is protected, what the bar means and what was clipped."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

from sulq.answers.oracle import Answer
from sulq.answers.statistics import count, histogram, mean, total
from sulq.database import Database
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Flag, Number, Schema
from sulq.kernel.schema.promise import Promise

SCHEMA = Schema(Number("age", 0, 99, step=1), Number("pay", -10, 5_000), Flag("ill"))
PERSONS = Schema(Number("age", 0, 99, step=1), Flag("ill"), unit="who", max_rows=3)


def answer(question: Statistic, sums: list[int], sd: int = 20, schema: Schema = SCHEMA) -> Answer:
    """What a table with these sums and no noise drawn would be told."""
    bound = bind(question, schema)
    laws = [DiscreteGaussian(Fraction(sd * term.fine_unit) ** 2) for term in bound.terms]
    return Answer.of(
        bound,
        bound.lifted(sums),
        laws,
        most=None,
        credits=Fraction(1),
        receipt=None,
        promise=Promise(1, "1e-6"),
    )


def told(found: Answer) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in found.explain().splitlines())


def test_an_answer_says_who_what_and_how_far() -> None:
    said = told(answer(total("pay", where=col("age") > 30), [400_000]))
    assert said["the bar"].startswith("the true value for this table lies inside in 95 % of such")
    assert "not how the rows were chosen" in said["the bar"]
    assert said["clipped"].startswith("age to 0 .. 99, pay to -10 .. 5000; a value beyond counts")
    assert said["protected"].startswith("every row, what it says, against anyone who reads this")
    assert "negative" not in said
    persons = told(answer(count(where=col("ill")), [7], schema=PERSONS))
    assert persons["protected"].startswith("every person (who, of whom at most 3 rows count), what")
    assert "clipped" not in persons


def test_digits_follow_the_noise() -> None:
    found = answer(mean("age", where=col("ill")), [1_000, -15_123])
    value, ends = told(found)["answer"].split("; the true one is in ")
    assert value == "33.9"
    low, high = (float(end) for end in ends.split("]")[0][1:].split(", "))
    exact = found.interval()
    assert low <= exact[0]
    assert exact[1] <= high  # rounded outwards
    assert high - low <= exact[1] - exact[0] + 0.2
    assert repr(found).startswith("<Answer 33.9, 95% in [")


def test_a_negative_count_is_explained_not_hidden() -> None:
    few = answer(count(where=col("ill")), [-12])
    assert few.value == -12
    assert "no true count is negative" in told(few)["negative"]
    assert "nonnegative()" in told(few)["negative"]
    assert few.nonnegative().value == 0
    assert few.interval()[0] == 0
    cells = answer(histogram("ill"), [40, -3])
    assert "negative" in told(cells)
    assert "negative" not in told(answer(total("pay"), [-500]))  # totals may be


def test_comparisons() -> None:
    ill, old = answer(count(where=col("ill")), [130]), answer(count(where=col("age") > 90), [100])
    apart = ill.compare(old)
    assert str(apart).startswith("not distinguishable at 95 %: the difference is 30 [-26, 86]")
    many = answer(count(where=col("age") > 20), [900])
    assert many.compare(ill).larger == "the first"
    assert ill.compare(many).larger == "the second"
    assert ill.compare(many).sure == 0.999999
    assert "same number" in str(ill.compare(ill))
    # other kinds: each interval at half the misses, so wider, whatever they share
    means = [answer(mean("age", where=col("ill")), [2_000, 2_000 * shift]) for shift in (0, 6)]
    assert means[1].compare(means[0]).larger == "the first"
    tight = answer(count(where=col("pay") > 7), [100])
    shared = Answer.of(
        bind(count(where=col("ill")), SCHEMA),
        [130 << 30],
        tight.laws,
        most=None,
        credits=Fraction(0),
        receipt=None,
        sources=(1, 2),
    )
    wide = shared.compare(old).interval
    assert wide[1] - wide[0] > 1.5 * (apart.interval[1] - apart.interval[0])
    with pytest.raises(TypeError, match="many values"):
        ill.compare(answer(histogram("ill"), [40, 3]))


def test_tables_for_terminal_and_notebook() -> None:
    cells = answer(histogram("ill"), [400, 3])
    assert str(cells).splitlines()[2].split() == ["False", "400", "[360,", "440]"]
    assert "holds the true value at 95 %; 1 credit" in str(cells)
    page = cells._repr_html_()
    assert page.startswith("<table>")
    assert "400 [360, 440]" in page
    assert "<td" in answer(count(where=col("ill")), [7])._repr_html_()


def test_a_real_database_explains_its_answers() -> None:
    frame = pd.DataFrame({"who": range(50), "age": [40] * 50, "ill": [True, False] * 25})
    with Database.open(frame, PERSONS, Promise(1, "1e-6"), ledger=":memory:") as db:
        found = db.ask(count(where=(col("age") > 30) & col("ill")))
        said = told(found)
        assert said["protected"].startswith("every person (who")
        assert said["clipped"].startswith("age to 0 .. 99")
        assert "same number" in str(
            found.compare(db.ask(count(where=(col("age") > 30) & col("ill"))))
        )
