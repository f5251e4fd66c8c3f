"""Covariance and correlation: exact without noise, and bars that hold as often as they say.

Each coverage draws the noise 2,000 times at known rows. By the binomial law a true interval holds
less often than it says by `slack` with probability 1e-6: that is the false-alarm rate.
"""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pandas
import pytest
from scipy.stats import binom

from sulq import Database, Number, Promise, Schema, col, correlation, covariance
from sulq.answers.statistics import read
from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law, NoNoise
from sulq.kernel.noise.sampler import add_fresh_noise
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.wire.convert import question_json, question_of

SCHEMA = Schema(Number("x", 0, 100, step=1), Number("y", -20, 20, step=1))
DRAWS = 2_000


def people(rows: int, slope: float, seed: int = 5) -> pandas.DataFrame:
    """Two columns that move together, on whole numbers; some values are missing."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 101, rows)
    y = np.clip(np.round(slope * (x - 50) / 5 + random.normal(0, 4, rows)), -20, 20)
    frame = pandas.DataFrame({"x": x.astype(float), "y": y})
    frame.loc[:: rows // 10, "x"] = np.nan
    frame.loc[1 :: rows // 10, "y"] = np.nan
    return frame


def whole_sums(bound: BoundQuery, frame: pandas.DataFrame) -> list[int]:
    """The noisy integers that rows give without noise."""
    known = frame.dropna()
    x, y = known["x"] - 50, known["y"]
    columns = [np.ones(len(known)), x, y, x * y, x * x, y * y][: len(bound.terms)]
    exact = [Fraction(float(column.sum())) for column in columns]
    terms = bound.terms
    shifted = [
        total - (term.middle * len(known) if place > 2 else 0)
        for place, (total, term) in enumerate(zip(exact, terms, strict=True))
    ]
    return [int(total / term.fine_step) for total, term in zip(shifted, terms, strict=True)]


def laws_of(bound: BoundQuery, noise: str, sd: int) -> tuple[Law, ...]:
    """Noise of so many units on every sum."""
    if noise == "gaussian":
        return tuple(DiscreteGaussian(Fraction(sd**2 * t.fine_unit**2)) for t in bound.terms)
    return tuple(DiscreteLaplace(Fraction(sd * t.fine_unit)) for t in bound.terms)


@pytest.mark.parametrize("question", [covariance("x", "y"), correlation("x", "y")])
@pytest.mark.parametrize("slope", [-1.0, 0.0, 1.0])
def test_values_without_noise_are_those_of_duckdb(question: Statistic, slope: float) -> None:
    frame = people(500, slope)
    bound = bind(question, SCHEMA)
    none = tuple(NoNoise() for _ in bound.terms)
    reading = read(bound, whole_sums(bound, frame), none, None)
    word = "covar_pop" if question.kind == "covariance" else "corr"
    known = frame.dropna()
    with duckdb.connect() as engine:
        engine.register("known", known)
        ((true,),) = engine.execute(f"SELECT {word}(y, x) FROM known").fetchall()
    assert reading.value == pytest.approx(true, rel=1e-9)
    assert reading.standard_error == 0
    assert reading.interval(0.95) == pytest.approx((true, true), rel=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("question", "noise", "slope", "rows", "sd"),
    [
        (covariance("x", "y"), "gaussian", 1.0, 5_000, 20),
        (covariance("x", "y"), "gaussian", 0.0, 100, 20),
        (correlation("x", "y"), "gaussian", 1.0, 5_000, 20),
        pytest.param(correlation("x", "y"), "gaussian", -2.0, 1_000, 20, marks=pytest.mark.slow),
        (correlation("x", "y"), "gaussian", 0.2, 100, 10),
    ],
)
def test_intervals_hold_as_often_as_they_say(
    question: Statistic, noise: str, slope: float, rows: int, sd: int
) -> None:
    share, width = hits(question, noise, slope, rows, sd, DRAWS)
    assert share >= 0.95 - slack(DRAWS)
    assert rows < 5_000 or share <= 0.99  # and they are not much wider than they need be
    assert width > 0


@pytest.mark.parametrize("question", [covariance("x", "y"), correlation("x", "y")])
@pytest.mark.slow
def test_intervals_hold_under_laplace_noise(question: Statistic) -> None:
    share, _ = hits(question, "laplace", 1.0, 3_000, 20, DRAWS)
    assert share >= 0.95 - slack(DRAWS)


def hits(
    question: Statistic, noise: str, slope: float, rows: int, sd: int, draws: int
) -> tuple[float, float]:
    """How often the interval holds the truth, and how wide it is on average."""
    bound, frame = bind(question, SCHEMA), people(rows, slope)
    laws, sums = laws_of(bound, noise, sd), whole_sums(bound, frame)
    truth = read(bound, sums, tuple(NoNoise() for _ in laws), None).value
    drawn = add_fresh_noise(sums * draws, list(laws) * draws)
    held, widths = 0, []
    for place in range(draws):
        values = drawn[place * len(laws) : (place + 1) * len(laws)]
        low, high = read(bound, values, laws, None).interval(0.95)
        held += bool(low - 1e-9 <= truth <= high + 1e-9)
        widths.append(float(high - low))
    return held / draws, float(np.mean(widths))


def slack(draws: int) -> float:
    """How far below 95 % the share of a true interval falls with a chance of 1e-6."""
    return float(0.95 - (binom.ppf(1e-6, draws, 0.95) - 1) / draws)


def test_noise_that_hides_a_variance_leaves_the_correlation_unknown() -> None:
    bound = bind(correlation("x", "y"), SCHEMA)
    laws = laws_of(bound, "gaussian", 500)
    reading = read(bound, whole_sums(bound, people(100, 1.0)), laws, None)
    assert reading.interval(0.95) == (-1.0, 1.0)
    assert -1 <= float(reading.value) <= 1


def test_a_database_answers_both_and_says_what_is_not_known() -> None:
    frame, promise = people(400, 1.0), Promise(8, "1e-6", 100)
    with Database.open(frame, SCHEMA, promise, ledger=":memory:") as db:
        quote = db.quote(correlation("x", "y"))
        assert quote.interval() == (None, None) and "vary" in quote.note
        with pytest.raises(InvalidQuery):
            db.ask(correlation("x", "y"), within=0.1)
        answer = db.ask(correlation("x", "y", where=col("x") > 200), credits=1)
        assert "not known" in answer.note and answer.interval() == (-1.0, 1.0)
        covered = db.ask(covariance("x", "y"), credits=20)
        assert covered.kind == "covariance"
        low, high = covered.interval()
        assert low <= float(covered) <= high
        assert db.ask(covariance("x", "y"), credits=20).credits == 0  # a repeat


@pytest.mark.parametrize("question", [covariance("x", "y"), correlation("x", "y")])
def test_they_are_sent_as_they_are(question: Statistic) -> None:
    form = question_json(question)
    back = question_of(form)
    assert back.kind == question.kind
    assert bind(back, SCHEMA).digest == bind(question, SCHEMA).digest
    with pytest.raises(InvalidQuery, match="not those of a"):
        question_of({**form, "kind": "variance"})


@pytest.mark.usefixtures("quiet")
def test_sql_gives_the_values_of_duckdb_where_nothing_is_drawn() -> None:
    """Every draw is 0, so that only the correction for noise (S0.8) is between the two."""
    frame, promise = people(4_000, 1.0), Promise(8, "1e-6", 100)
    words = ("corr", "covar_pop", "covar_samp")
    asked = ", ".join(f"{word}(x, y) AS {word}" for word in words)
    with duckdb.connect() as engine:
        engine.register("known", frame.dropna())
        (true,) = engine.execute(f"SELECT {asked} FROM known").fetchall()
    with Database.open(frame, SCHEMA, promise, ledger=":memory:") as db:
        result = db.sql(f"SELECT {asked} FROM t", credits=50)
    (row,) = result.to_pandas().to_dict("records")
    assert [row[word] for word in words] == pytest.approx(list(true), rel=1e-4)
