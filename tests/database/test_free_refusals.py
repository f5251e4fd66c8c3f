"""What is wrong costs nothing: terms, questions, limits, openings, names."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.people import SCHEMA, frame, publish

from sulq import (
    Category,
    Database,
    EngineFailed,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    cdf,
    col,
    count,
    distribution,
    histogram,
    lit,
    mean,
    quantiles,
    total,
    variance,
    when,
)
from sulq.answers.statistics import STATISTICS
from sulq.kernel.query.expressions import Expression, Literal
from sulq.kernel.query.sum_query import Group, Statistic, SumQuery, group


@pytest.mark.parametrize(
    "terms",
    [
        {"within": 0},
        {"within": -5},
        {"within": float("nan")},
        {"within": "5"},
        {"credits": 0},
        {"credits": -1},
        {"credits": float("inf")},
        {"credits": True},
        {"within": 5, "credits": 5},
        {"confidence": 1.5},
        {"confidence": 0},
        {"rows": 0},
        {"rows": 2.5},
    ],
)
def test_bad_terms_cost_nothing(terms: dict[str, object]) -> None:
    db = publish()
    for verb in (db.ask, db.quote):
        with pytest.raises(InvalidQuery):
            verb(count(where=col("smoker")), **terms)  # type: ignore[operator]
    assert db.remaining == 100


@pytest.mark.parametrize(
    "question",
    [
        count(where=col("secret") > 5),
        total("secret"),
        count(where=col("nowhere") > 5),
        total("city"),
        quantiles("blood", [0.5]),
        "count",
        None,
    ],
)
def test_bad_questions_cost_nothing(question: object) -> None:
    db = publish()
    with pytest.raises(InvalidQuery):
        db.ask(question)
    assert db.remaining == 100
    assert db.statement().statement.entries == 0


def test_an_engine_failure_keeps_the_charge_and_says_one_thing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = publish()

    def fail() -> list[int]:
        raise EngineFailed

    with monkeypatch.context() as patch:
        patch.setattr(db.engine, "prepare", lambda program: fail)
        with pytest.raises(EngineFailed, match="charge stands"):
            db.ask(count(where=col("smoker")))
    assert db.remaining == 99
    assert db.ask(count(where=col("smoker"))).credits == 0  # nobody saw an answer: same charge
    assert db.remaining == 99


def test_opening_nonsense_is_refused() -> None:
    promise = Promise(1, "1e-6", 10)
    for arguments in [
        (frame(), "schema", promise, ":memory:"),
        (frame(), SCHEMA, "promise", ":memory:"),
        (frame().iloc[:0], SCHEMA, promise, ":memory:"),
        (frame().drop(columns="age"), SCHEMA, promise, ":memory:"),
        ("/nowhere/people.parquet", SCHEMA, promise, ":memory:"),
        (3, SCHEMA, promise, ":memory:"),
        (pd.DataFrame({"age": ["old"]}), Schema(Number("age", 0, 120)), promise, ":memory:"),
    ]:
        with pytest.raises((InvalidQuery, Refused)):
            Database.open(*arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Database.open(frame(), SCHEMA, promise)  # type: ignore[call-arg]


def test_undeclared_values_are_not_an_error() -> None:
    db = publish()
    assert db.ask(count(where=col("city") == "Atlantis")).value == 0
    schema = Schema(Category("city", ["Oslo"]), Flag("smoker"))
    other = publish(frame(seed=3), schema, name="other")
    with_rest = other.ask(histogram("city", other=True))
    assert with_rest.keys == ("Oslo", None)


@pytest.mark.parametrize("noise", ["binomial", "huber"])
def test_coarse_laws_refuse_persons_with_several_rows(noise: str) -> None:
    """A person who moves one count by 2 is not two people who move it by 1."""
    visits = pd.DataFrame({"person": np.repeat(np.arange(50), 3), "ill": True})
    schema = Schema(Flag("ill"), unit="person", max_rows=2)
    db = publish(visits, schema, Promise(1, "1e-6", queries=20, noise=noise))
    with pytest.raises(InvalidQuery, match="persons"):
        db.ask(count(where=col("ill")))
    assert db.remaining == 20


def test_what_the_engine_refuses_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that can be refused is refused before the charge."""
    db = publish()

    def refuse(program: object) -> object:
        raise InvalidQuery("too wide")

    monkeypatch.setattr(db.engine, "prepare", refuse)
    with pytest.raises(InvalidQuery):
        db.ask(count(where=col("smoker")))
    assert db.remaining == 100


@pytest.mark.parametrize(
    "wide",
    [
        lambda: total(sum((col("age") for _ in range(300)), col("age"))),
        lambda: total(_product(40)),
        lambda: total(_smallest(40)),
        lambda: count(where=_any(900)),
    ],
)
def test_questions_at_the_limit_run_or_are_refused_free(wide: object) -> None:
    db = publish()
    try:
        db.ask(wide())  # type: ignore[operator]
    except InvalidQuery:
        assert db.remaining == 100


@pytest.mark.slow
def test_the_widest_questions_that_bind_run() -> None:
    db = publish()
    db.ask(total(sum((col("age") + i for i in range(250)), col("age"))))
    db.ask(total(_product(25)))
    db.ask(total(_smallest(32)))
    db.ask(count(where=_any(700)))
    db.ask(count(where=col("age").isin(range(2_000))))


def _product(factors: int) -> Expression:
    product = col("age") / 100
    for _ in range(factors - 1):
        product = product * (col("age") / 100)
    return product


def _smallest(values: int) -> Expression:
    smallest: Expression = col("age")
    for number in range(values - 1):
        smallest = smallest.min(col("income") + number)
    return smallest


def _any(parts: int) -> Expression:
    either = col("age") < 0
    for number in range(parts - 1):
        either = either | (col("income") > number)
    return either


@pytest.mark.parametrize("name", ["owner", "", 3, None])
def test_nobody_else_is_the_owner(name: object) -> None:
    with pytest.raises(InvalidQuery, match="name"):
        publish().as_analyst(name)  # type: ignore[arg-type]


def test_a_quote_refuses_what_ask_would_refuse_and_edges_may_lie_anywhere() -> None:
    empty = [200, 300]  # nobody can be there: public
    for edges in ([0, 10, 1_000, 2_000], [0, 0.1, 0.2, 10], [-50, -20, 500], empty):
        db = publish()
        question = histogram("age", edges=edges)
        assert db.quote(question).credits == (0 if edges == empty else 2)
        assert db.ask(question).value.shape == (len(edges) - 1,)
    for constant in (cdf(lit(5)), quantiles(col("age").clip(7, 7), [0.5])):
        db.quote(constant)
        db.ask(constant)
    inverse = 1 / when(col("smoker")).then(col("age").clip(5, 10)).otherwise(None)
    assert db.quote(total(inverse)).credits == 1
    assert abs(db.ask(total(inverse), credits=20).value) < 2_000


@pytest.mark.parametrize("number", [np.float64(2), np.int64(2), 2.0, Fraction(2)])
def test_numbers_of_every_kind_are_read(number: object) -> None:
    db = publish()
    assert db.quote(count(where=col("smoker")), credits=number).credits == 2  # type: ignore[arg-type]
    assert Number("q", np.float64(0), np.float64(1)).range == (0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", ["x", None, float("nan")])
def test_confidence_must_be_a_number(confidence: object) -> None:
    with pytest.raises(InvalidQuery):
        publish().quote(count(where=col("smoker")), confidence=confidence)  # type: ignore[arg-type]


def test_a_tree_of_counts_asked_as_a_sum_query_is_read_as_a_distribution() -> None:
    """It was charged, and then its reading failed."""
    db = publish()
    tree = SumQuery((lit(1),), lit(True), (group("age", bins=16, tree=True),))
    answer = db.ask(tree)
    assert answer.kind == "distribution" and answer.distribution is not None
    assert db.ask(distribution("age", resolution=16)).credits == 0  # the same question


@pytest.mark.sample(60)
@pytest.mark.parametrize("kind", [*STATISTICS, "median", ""])
@pytest.mark.parametrize(
    "query",
    [
        count().query,
        mean("age").query,
        variance("age").query,
        histogram("blood").query,
        distribution("age").query,
        distribution("age", by="blood").query,
        cdf("age", edges=[0, 50, 99]).query,
        SumQuery((lit(1), col("age")), groups=(Group(col("blood"), None, None, True),)),
        SumQuery((lit(1),), groups=(Group(col("age"), (Literal(1),)),)),
        SumQuery((lit(1),), groups=(Group(col("age"), None, 8, True, True),)),
        SumQuery((lit(1),), groups=(group("age", bins=4, tree=True), group("blood"))),
    ],
)
def test_what_cannot_be_read_is_not_charged(kind: str, query: SumQuery) -> None:
    """Sums of one kind called another: read at once if at all, or refused for nothing."""
    db = publish(frame(20))
    for shares in ((), (0.5,)):
        asked = Statistic(kind, query, shares)
        try:
            db.quote(asked)
        except InvalidQuery:
            with pytest.raises(InvalidQuery):
                db.ask(asked)
            assert db.remaining == 100
        else:
            answer = db.ask(asked)
            assert answer.rows() and str(answer) and answer.explain()
            db = publish(frame(20))


@pytest.mark.parametrize(
    ("noise", "terms"),
    [
        ("gaussian", {"credits": 1e-30}),
        ("gaussian", {"credits": 1e60}),
        ("gaussian", {"within": 1e-300}),
        ("laplace", {"credits": 1e-30}),
        ("laplace", {"credits": 1e60}),
    ],
)
def test_a_precision_that_cannot_be_drawn_is_said_in_credits(
    noise: str, terms: dict[str, float]
) -> None:
    """And both ends of what is offered can be asked for."""
    db = publish(promise=Promise(2, "1e-6" if noise == "gaussian" else 0, 10**6, noise=noise))
    question = total("income", where=col("smoker"))
    with pytest.raises(InvalidQuery, match="credits; ask for those") as refused:
        db.quote(question, **terms)  # type: ignore[arg-type]
    assert "Fraction" not in str(refused.value) and "sigma" not in str(refused.value)
    words = str(refused.value).split()
    ends = [float(words[place]) for place in (words.index("to") - 1, words.index("to") + 1)]
    for end in ends:
        assert db.quote(question, credits=end).credits > 0
