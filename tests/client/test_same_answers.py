"""What a client reads is what the table said: field by field, for every kind and every noise."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.client.conftest import far
from tests.client.same import assert_same, equal
from tests.people import SCHEMA, frame

from sulq import (
    Answer,
    Category,
    Database,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Schema,
    SumQuery,
    cdf,
    col,
    count,
    distribution,
    histogram,
    lit,
    mean,
    outer,
    quantiles,
    total,
    variance,
    when,
)
from sulq.answers.statistics import count_persons, per_person
from sulq.kernel.query.sum_query import group
from sulq.kernel.query.vectors import columns, concat, ones
from sulq.wire import (
    AnswerReply,
    QuoteReply,
    answer_of,
    answer_reply,
    bind_public,
    question_json,
    question_of,
    quote_of,
    quote_reply,
)

PROMISES = {
    "gaussian": Promise(1, "1e-6", queries=2_000),
    "credits": Promise(1, "1e-6"),
    "add-remove": Promise(1, "1e-6", queries=2_000, neighbours="add-remove"),
    "laplace": Promise(50, queries=2_000, noise="laplace"),
    "binomial": Promise(1, "1e-6", queries=500, noise="binomial"),
    "huber": Promise(1, "1e-6", queries=500, noise="huber"),
}
VISITS = Schema(
    Number("cost", 0, 900, step=1),
    Flag("urgent"),
    Category("ward", ["a", "b", "c"]),
    unit="patient",
    max_rows=4,
)

where = st.sampled_from(
    [
        None,
        col("smoker"),
        ~col("smoker"),
        col("age") >= 40,
        (col("age") < 70) & col("smoker"),
        col("city") == "Oslo",
        col("blood") == "A",
    ]
)
column = st.sampled_from(["age", "income"])
axis = st.sampled_from(["smoker", "blood", "city"])
shares = st.lists(st.floats(0, 1), min_size=1, max_size=4)
edges = st.sampled_from([[0, 18, 65, 120], [0, 50, 120]])
product = outer(
    concat(ones(), columns(["age", "income"])), concat(ones(), columns(["age", "income"]))
)

plain = st.one_of(
    st.builds(lambda w: count(where=w), where),
    st.builds(lambda x, w: total(x, where=w), column, where),
    st.builds(lambda x, w: mean(x, where=w), column, where),
    st.builds(lambda x, w: variance(x, where=w), column, where),
    st.builds(lambda a, o: histogram(a, other=o), axis, st.booleans()),
    st.builds(lambda w: histogram("smoker", "blood", where=w), where),
    st.builds(lambda e, w: histogram("age", edges=e, where=w), edges, where),
    st.builds(lambda e, w: cdf("age", e, where=w), edges, where),
    st.builds(
        lambda w: SumQuery((lit(1), col("age"), col("income")), w),
        where.filter(lambda w: w is not None),
    ),
    st.builds(lambda a: SumQuery((lit(1), col("age")), groups=(group(a),)), axis),
)
wide = st.one_of(
    st.just(cdf("age")),
    st.builds(lambda s: quantiles("age", s), shares),
    st.builds(lambda r: distribution("income", resolution=r), st.sampled_from([8, 64])),
    st.just(distribution("age", by="smoker", resolution=16)),
    st.just(product),
)
persons = st.one_of(
    st.builds(lambda c: per_person(count(where=col("urgent")), (0, c)), st.integers(1, 4)),
    st.builds(lambda c: per_person(total("cost"), (0, c)), st.sampled_from([300, 900])),
    st.just(count_persons(by="ward")),
    st.just(count(where=col("urgent"))),
    st.just(mean("cost")),
    st.just(histogram("ward")),
)


def over_the_wire(database: Database, asked: Any, answer: Answer, figures: bool) -> Answer:
    """The answer as a client reads it, which knows the public facts and the bytes alone."""
    schema = Schema.from_json(json.loads(json.dumps(database.schema.to_json())))
    promise = Promise.from_json(json.loads(json.dumps(database.promise.to_json())))
    promise = promise.about(schema.unit)  # as a client does
    reply = AnswerReply.model_validate_json(answer_reply(answer, figures=figures).model_dump_json())
    bound = bind_public(asked, schema, promise, whole=reply.whole)
    return answer_of(reply, bound, promise, database.size)


def checked(
    database: Database, questions: list[Any], seen: Counter[str], credits: str | None = None
) -> None:
    """Asked through JSON on the way in as well."""
    spent = database.remaining / 40 if credits is None else Fraction(credits)
    for place, asked in enumerate(questions):
        plainly = credits is None and database.promise.queries
        terms = {} if plainly else {"credits": spent}
        sent = question_of(json.loads(json.dumps(question_json(asked))))
        try:
            quote = database.quote(asked, rows=700, **terms)
        except InvalidQuery:  # this noise answers counts alone
            assert database.promise.noise in ("binomial", "huber")
            continue
        text = quote_reply(quote).model_dump_json()
        told = QuoteReply.model_validate_json(text)
        bound = bind_public(asked, database.schema, database.promise)
        again = quote_of(told, bound, database.size, 700)
        assert (again.credits, again.left_after, again.note) == (
            quote.credits,
            quote.left_after,
            quote.note,
        )
        assert equal(np.asarray(again.interval(0.9)[1]), np.asarray(quote.interval(0.9)[1]))
        answer = database.ask(sent, **terms)
        seen["mixed" if answer.reading.mixture is not None else answer.kind] += 1
        seen["derived"] += bool(answer.sources)
        assert_same(answer, over_the_wire(database, asked, answer, figures=place % 2 == 0))


def examples(number: int) -> Any:
    return settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROMISES)
def test_every_kind_under_every_promise(name: str) -> None:
    promise = PROMISES[name]
    schema = SCHEMA
    if promise.neighbours == "add-remove":
        schema = Schema(*SCHEMA.columns, at_most=10_000)
    seen: Counter[str] = Counter()
    with Database.open(frame(300), schema, promise, ":memory:") as database:

        @examples(3 if promise.noise in ("binomial", "huber") else 6)
        @given(st.lists(plain, min_size=2, max_size=4))
        def check(questions: list[Any]) -> None:
            checked(database, questions, seen)

        check()
        for asked in (
            cdf("age"),
            quantiles("age", [0.25, 0.5]),
            product,
            distribution("age", by="smoker", resolution=16),
        ):
            checked(database, [asked], seen)
    assert seen["count"] and seen["quantiles"] and seen["distribution"]
    assert seen["outer"] or promise.noise in ("binomial", "huber")


def test_wide_questions() -> None:
    seen: Counter[str] = Counter()
    with Database.open(frame(300), SCHEMA, PROMISES["gaussian"], ":memory:") as database:

        @examples(8)
        @given(wide)
        def check(asked: Any) -> None:
            checked(database, [asked], seen)

        check()
    assert seen["cdf"] and seen["outer"]


def test_questions_per_person() -> None:
    random = np.random.default_rng(3)
    data = pd.DataFrame(
        {
            "patient": np.repeat(np.arange(200), 3),
            "cost": random.integers(0, 900, 600),
            "urgent": random.random(600) < 0.4,
            "ward": random.choice(["a", "b", "c"], 600),
        }
    )
    with Database.open(data, VISITS, PROMISES["gaussian"], ":memory:") as database:
        seen: Counter[str] = Counter()

        @examples(15)
        @given(st.lists(persons, min_size=1, max_size=3))
        def check(questions: list[Any]) -> None:
            checked(database, questions, seen)

        check()
        assert seen["count"] and seen["total"] and seen["histogram"]


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_derived_answers_that_share_their_noise(name: str) -> None:
    """Of each reading of derived sums one that is no fresh answer's: weights travel along."""
    seen: Counter[str] = Counter()
    with Database.open(frame(900), SCHEMA, PROMISES[name], ":memory:") as database:
        database.ask(histogram("smoker", "blood", other=True))
        ages = {"age": [0, 30, 60, 121]}
        database.ask(histogram("age", "smoker", edges=ages, other=True))
        database.ask(SumQuery((lit(1), col("age"), col("age") * col("age"))), credits=4)
        for asked in (
            histogram("blood", other=True),
            count(where=col("smoker")),
            cdf("age", ages["age"]),
            SumQuery((lit(1),), groups=(group("smoker", other=True),)),
            SumQuery((lit(1), when(col("smoker")).then(1).otherwise(0))),
            mean("age"),
            total("age"),
            variance("age"),
        ):
            checked(database, [asked], seen, credits="1/10")
    assert seen["derived"] >= 3
    assert seen["mixed"] >= 1


def test_over_http(state_directory: Path) -> None:
    """The whole way once for every kind: ask there, then read what the ledger has here."""
    database = Database.open(frame(300), SCHEMA, PROMISES["gaussian"], ":memory:", name="people")
    questions = [
        count(where=col("smoker")),
        total("income"),
        mean("age"),
        variance("age"),
        histogram("smoker", "blood"),
        histogram("blood"),
        cdf("age", [0, 18, 65, 120]),
        cdf("age"),
        quantiles("age", [0.1, 0.5]),
        distribution("age", by="smoker", resolution=16),
        product,
        SumQuery((lit(1), col("age")), groups=(group("city"),)),
    ]
    with far(state_directory, people=database) as found:
        remote = found.remote()
        for number, asked in enumerate(questions):
            key = f"question-{number}"
            there = remote.ask(asked, key=key)
            here = database.ask(asked, key=key)
            assert there.values == here.values
            if there.credits == here.credits:  # derived for nothing: nothing differs
                assert_same(here, there)
            for level in (0.5, 0.95):
                for one, other in zip(here.interval(level), there.interval(level), strict=True):
                    assert equal(one, other)


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("mean", count()),
        ("variance", mean("age")),
        ("count", mean("age")),
        ("count", histogram("blood")),
        ("histogram", count()),
        ("cdf", histogram("blood")),
        ("quantiles", quantiles("age", [0.5])),  # its shares are left out below
        ("distribution", histogram("blood")),
        ("sums", distribution("age")),
        ("outer", count()),
        ("mean", product),
        ("count", total("age")),
        ("telepathy", count()),
    ],
)
def test_sums_must_be_those_of_their_kind(kind: str, asked: Any) -> None:
    """Else a reading would fail after the charge, or say something else than it is called."""
    form = {"kind": kind, "query": question_json(asked)["query"]}
    with pytest.raises(InvalidQuery):
        question_of(form)
