"""The contract: publish, quote, ask, repeat, share, run out, and never say more than promised."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.people import SCHEMA, frame, publish

import sulq.database.database
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
    SumQuery,
    cdf,
    col,
    count,
    histogram,
    lit,
    mean,
    quantiles,
    total,
    variance,
    when,
)
from sulq.accounting.pricing import stored_price
from sulq.oracle import decimal_text
from sulq.query.expressions import Expression
from sulq.query.sum_query import group


def test_answers_are_near_the_truth() -> None:
    """Every statistic within six standard errors of the plain one."""
    data = frame(20_000)
    db = publish(data, promise=Promise(epsilon=8, delta="1e-6", queries=100))
    smokers = data[data.smoker]
    near = [
        (count(where=col("age") >= 65), (data.age >= 65).sum()),
        (
            count(where=(col("blood") == "A") & ~col("smoker")),
            len(data.query("blood == 'A' and not smoker")),
        ),
        (total(col("income").clip(0, 200_000)), data.income.clip(0, 200_000).sum()),
        (mean("income", where=col("smoker")), smokers.income.mean()),
        (variance("age"), data.age.var(ddof=0)),
    ]
    for question, truth in near:
        answer = db.ask(question)
        assert abs(float(answer) - truth) <= 6 * answer.standard_error + 1e-3 * abs(truth)
        assert answer.standard_error > 0
        assert answer.credits > 0
        assert answer.receipt is not None
    blood = db.ask(histogram("blood"))
    wanted = [(data.blood == key).sum() for key in ("A", "B", "0")]
    assert blood.keys == ("A", "B", "0")
    assert np.all(np.abs(blood.value - wanted) <= 6 * blood.standard_error)
    below = db.ask(cdf("age", edges=[0, 18, 65, 120]))
    assert list(below.keys) == [0, 18, 65, 120]
    assert np.all(np.diff(below.value) >= 0)
    assert abs(below.value[1] - (data.age < 18).sum()) <= 6 * below.standard_error[1]
    middle = db.ask(quantiles("age", [0.25, 0.5, 0.75]))
    assert np.all(np.abs(middle.value - data.age.quantile([0.25, 0.5, 0.75])) < 4)
    low, high = middle.interval(0.99)
    assert np.all(low <= middle.value) and np.all(middle.value <= high)
    db.close()


def test_public_sizes_are_exact_and_free() -> None:
    data = frame()
    db = publish(data)
    assert db.size == len(data)
    for question, truth in [
        (count(), len(data)),
        (count(where=col("city") == "Oslo"), (data.city == "Oslo").sum()),
    ]:
        answer = db.ask(question)
        assert (answer.value, answer.credits, answer.standard_error) == (truth, 0, 0)
        assert answer.interval() == (truth, truth)
    assert db.remaining == 100


def test_under_add_remove_sizes_are_private_and_priced() -> None:
    db = publish(promise=Promise(1, "1e-6", 100, neighbours="add-remove"))
    assert db.size is None
    answer = db.ask(count())
    assert answer.credits == 1
    assert answer.standard_error > 10
    with pytest.raises(InvalidQuery, match="rows"):
        db.ask(mean("income"), within=500)
    assert db.quote(mean("income")).standard_error is None
    assert db.quote(mean("income"), rows=2_000).standard_error > 0


def test_a_unit_question_costs_one_credit_and_questions_left_is_exact() -> None:
    db = publish(promise=Promise(1, "1e-6", queries=3))
    for left in (2, 1, 0):
        assert db.quote(count(where=col("age") > left)).credits == 1
        assert db.ask(count(where=col("age") > left)).credits == 1
        assert db.remaining == left
    with pytest.raises(BudgetSpent, match="left"):
        db.ask(count(where=col("age") > 50))
    assert db.ask(count(where=col("age") > 1)).credits == 0  # repeats stay free
    quote = db.quote(count(where=col("age") > 50))
    assert not quote.affordable
    assert quote.left_after == -1


def test_prices_are_joint() -> None:
    """V.3: a histogram costs 2 under replace and 1 under add-remove, however many cells."""
    db = publish()
    assert db.quote(histogram("blood")).credits == 2
    assert db.quote(histogram("blood", "smoker")).credits == 2
    assert db.quote(mean("income")).credits == Fraction(5, 4)
    other = publish(frame(seed=8), promise=Promise(1, "1e-6", 100, neighbours="add-remove"))
    assert other.quote(histogram("blood")).credits == 1


def test_repeats_and_respellings_are_free_and_identical() -> None:
    db = publish()
    first = db.ask(count(where=(col("age") >= 65) & col("smoker")))
    again = db.ask(count(where=col("smoker") & ~(col("age") < 65)))
    assert (again.value, again.credits) == (first.value, 0)
    assert db.quote(count(where=(col("age") >= 65) & col("smoker"))).credits == 0


def test_an_earlier_finer_answer_serves_a_coarser_question() -> None:
    db = publish()
    fine = db.ask(count(where=col("smoker")), credits=4)
    assert fine.credits == 4
    assert db.ask(count(where=col("smoker"))).credits == 0
    assert db.ask(count(where=col("smoker"))).value == fine.value


def test_within_buys_the_wished_error_and_says_the_price_first() -> None:
    db = publish(frame(20_000))
    for question in (
        count(where=col("age") > 30),
        total("income", where=col("smoker")),
        histogram("blood"),
    ):
        plain = float(np.max(db.quote(question).interval(0.9)[1]))
        quote = db.quote(question, within=plain / 2, confidence=0.9)
        assert float(np.max(quote.interval(0.9)[1])) <= plain / 2
        assert 4 * db.quote(question).credits <= quote.credits < 4.01 * db.quote(question).credits
    answer = db.ask(count(where=col("age") > 30), within=50, confidence=0.95)
    low, high = answer.interval(0.95)
    assert high - low <= 101
    mean_quote = db.quote(mean("income"), within=5_000, rows=20_000)
    assert mean_quote.interval()[1] <= 5_000


def test_credits_buys_precision() -> None:
    db = publish()
    one, four = (db.quote(count(where=col("age") > 3), credits=c) for c in (1, 4))
    assert one.standard_error == pytest.approx(2 * four.standard_error)


def test_shares_live_inside_the_cap() -> None:
    db = publish(promise=Promise(1, "1e-6", queries=10))
    db.grant("ann", 4)
    ann = db.as_analyst("ann")
    assert ann.remaining == 4
    assert ann.ask(count(where=col("age") > 1)).credits == 1
    assert ann.remaining == 3
    assert db.ask(count(where=col("age") > 1)).credits == 0
    bob = db.as_analyst("bob")
    with pytest.raises(Refused, match="grant"):
        bob.ask(count(where=col("age") > 2))
    db.grant("bob", 1)
    assert bob.ask(count(where=col("age") > 1)).credits == 1  # bob's share pays for what he learns
    assert bob.ask(count(where=col("age") > 1)).credits == 0
    with pytest.raises(BudgetSpent):
        bob.ask(count(where=col("age") > 5))
    with pytest.raises(Refused):
        db.grant("eve", 9)
    assert not hasattr(ann, "grant")


def test_strata_are_charged_apart() -> None:
    db = publish(promise=Promise(1, "1e-6", queries=2))
    for city in ("Oslo", "Paris"):
        for age in (20, 40):
            db.ask(count(where=(col("city") == city) & (col("age") > age)))
    assert db.remaining == 0
    with pytest.raises(BudgetSpent):
        db.ask(count(where=(col("city") == "Oslo") & (col("age") > 60)))
    assert db.ask(count(where=col("city") == "Oslo")).credits == 0


def test_keys_are_idempotent_and_belong_to_one_question() -> None:
    db = publish()
    first = db.ask(count(where=col("smoker")), key="k1")
    again = db.ask(count(where=col("smoker")), key="k1")
    assert (first.value, again.credits) == (again.value, 0)
    with pytest.raises(Refused, match="key"):
        db.ask(count(where=~col("smoker")), key="k1")


def test_reopening_keeps_what_was_spent_and_said(tmp_path: Path) -> None:
    path, ledger = tmp_path / "people.parquet", tmp_path / "people.ledger"
    frame().to_parquet(path)
    with publish(path, ledger=ledger) as db:
        first = db.ask(count(where=col("smoker")))
    with publish(path, ledger=ledger) as db:
        assert db.remaining == 99
        assert db.ask(count(where=col("smoker"))).value == first.value
        assert db.remaining == 99
    other = Schema(Number("age", 0, 100), Flag("smoker"))
    with pytest.raises(Refused, match="schema"):
        publish(path, schema=other, ledger=ledger)
    with pytest.raises(Refused, match="promise"):
        publish(path, promise=Promise(2, "1e-6", 100), ledger=ledger)
    with pytest.raises(Refused):
        publish(path, ledger=tmp_path / "second.ledger")
    with pytest.raises(Refused):
        publish(path, ledger=":memory:")


def test_a_changed_file_closes_the_table(tmp_path: Path) -> None:
    path, ledger = tmp_path / "people.parquet", tmp_path / "people.ledger"
    frame().to_parquet(path)
    with publish(path, ledger=ledger) as db:
        frame(seed=9).to_parquet(path)
        before = db.remaining
        with pytest.raises(Refused, match="changed"):
            db.ask(count(where=col("smoker")))
        assert db.remaining == before
    with pytest.raises(Refused):
        publish(path, ledger=ledger)


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, lambda f: f])
def test_any_kind_of_frame_can_be_published(make: object) -> None:
    data = frame()
    db = publish(make(data))  # type: ignore[operator]
    assert db.ask(count(where=col("city") == "Oslo")).value == (data.city == "Oslo").sum()


def test_csv_is_read_like_parquet(tmp_path: Path) -> None:
    data = frame()
    data.to_csv(tmp_path / "people.csv", index=False)
    db = publish(tmp_path / "people.csv", ledger=tmp_path / "l")
    assert db.ask(count(where=col("city") == "Oslo")).value == (data.city == "Oslo").sum()
    assert abs(db.ask(mean("age")).value - data.age.mean()) < 10
    db.close()


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "binomial", "huber"])
def test_every_noise_law_answers_counts(noise: str) -> None:
    delta = 0 if noise == "laplace" else "1e-6"
    db = publish(promise=Promise(1, delta, queries=20, noise=noise))
    truth = frame().smoker.sum()
    answer = db.ask(count(where=col("smoker")))
    assert abs(answer.value - truth) <= 8 * answer.standard_error
    assert answer.credits == 1
    assert db.ask(histogram("blood")).credits == 2
    if noise in ("binomial", "huber"):
        for question in (total("income"), mean("age")):
            with pytest.raises(InvalidQuery, match="counts"):
                db.ask(question)
        with pytest.raises(InvalidQuery, match="one size"):
            db.ask(count(where=~col("smoker")), credits=2)
    else:
        assert db.ask(mean("age")).credits > 1


def test_noise_is_what_the_promise_says() -> None:
    """200 counts at total (1, 1e-6): standard deviation at most 59.8 each, both relations."""
    for neighbours in ("replace", "add-remove"):
        db = publish(
            frame(seed=10 + len(neighbours)),
            promise=Promise(1, "1e-6", queries=200, neighbours=neighbours),
        )
        error = db.quote(count(where=col("smoker"))).standard_error
        assert 59.7 < error <= 59.8


def test_receipts_name_the_question_and_never_the_truth() -> None:
    db = publish()
    answer = db.ask(count(where=col("smoker")))
    body = answer.receipt.body
    assert "smoker" in body["question"]
    assert body["neighbours"] == "replace"
    truth, noisy = int(frame().smoker.sum()), answer.value
    leaves = [str(leaf) for value in body.values() for leaf in _leaves(value)]
    assert str(truth) not in leaves
    assert str(noisy) not in leaves


def _leaves(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def test_many_terms_and_raw_sums() -> None:
    db = publish()
    answer = db.ask(SumQuery((col("age"), col("income")), col("smoker")))
    assert answer.value.shape == (2,)
    assert answer.standard_error.shape == (2,)


def test_answers_print_and_convert() -> None:
    db = publish()
    answer = db.ask(histogram("city", "blood"))
    table = answer.to_pandas()
    assert list(table.columns) == ["city", "blood", "value", "low", "high"]
    assert len(table) == 6
    with pytest.raises(TypeError):
        float(answer)
    scalar = db.ask(count(where=col("smoker")))
    assert "1 credit>" in repr(scalar)
    assert "95%" in repr(db.quote(count(where=col("age") > 5)))
    assert db.ask(count(where=col("age") > 119)).nonnegative().value >= 0


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


def test_persons_are_protected_with_all_their_rows() -> None:
    visits = pd.DataFrame({"person": np.repeat(np.arange(300), 5), "cost": 10.0})
    schema = Schema(Number("cost", 0, 100), unit="person", max_rows=2)
    db = publish(visits, schema, Promise(20, "1e-6", queries=100))
    assert db.size == 300
    assert db.quote(count()).credits == 4  # M.5: 2 rows each, Gaussian
    answer = db.ask(count(), credits=100)
    assert abs(answer.value - 600) <= 6 * answer.standard_error  # two rows of each count
    pure = publish(visits, schema, Promise(1, queries=100), name="pure")
    assert pure.quote(count()).credits == 2


def test_the_flow_is_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charge, then compute, then store, then release (invariant 3). Noise waits for no row."""
    db = publish()
    steps: list[str] = []

    def spy(target: object, name: str, label: str) -> None:
        real = getattr(target, name)

        def wrapped(*args: object, **kwargs: object) -> object:
            steps.append(label)
            return real(*args, **kwargs)

        monkeypatch.setattr(target, name, wrapped)

    real = db.engine.prepare
    monkeypatch.setattr(
        db.engine, "prepare", lambda program: _labelled(real(program), steps, "read")
    )
    spy(sulq.database.database, "drawn", "draw")
    monkeypatch.setattr(
        type(db.ledger), "charge", _labelled(type(db.ledger).charge, steps, "charge")
    )
    monkeypatch.setattr(
        type(db.ledger), "settle", _labelled(type(db.ledger).settle, steps, "settle")
    )
    db.ask(count(where=col("smoker")))
    assert steps == ["charge", "draw", "read", "settle"]
    db.ask(count(where=col("smoker")))
    assert steps == ["charge", "draw", "read", "settle", "charge"]


def _labelled(method: object, steps: list[str], label: str) -> object:
    def wrapped(*args: object, **kwargs: object) -> object:
        steps.append(label)
        return method(*args, **kwargs)  # type: ignore[operator]

    return wrapped


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


def test_a_stored_answer_carries_its_own_price_and_the_asker_pays_what_was_agreed() -> None:
    db = publish()
    db.ask(count(where=col("smoker")), credits=4)
    db.grant("ann", 10)
    bound = db.bind(count(where=col("smoker")))
    wanted = db.price(bound, None, 0.95, None, None)
    cost = stored_price(bound, db.calibration, wanted, *db.ledger.stored(bound.digest))
    assert cost is not None
    assert cost.worst.credits_fraction == 4  # due if the earlier charge were gone
    assert cost.share.credits_fraction == 1
    assert db.as_analyst("ann").ask(count(where=col("smoker"))).credits == 1
    assert db.remaining == 87


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


def test_the_statement_says_what_is_spent_and_what_the_promise_means() -> None:
    db = publish()
    db.ask(count(where=col("smoker") & (col("city") == "Oslo")), credits=3)
    account = db.statement()
    assert (account.spent, account.left) == (3, 97)
    said = str(account)
    for part in ("3 of 100 credits", "city=Oslo", "epsilon 1", "tail", "1 questions charged"):
        assert part in said


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


def test_colleagues_do_not_see_each_others_questions_in_quotes() -> None:
    db = publish()
    for name in ("ann", "bob"):
        db.grant(name, 20)
    question = count(where=col("smoker"))
    before = db.as_analyst("bob").quote(question)
    db.as_analyst("ann").ask(question, credits=4)
    after = db.as_analyst("bob").quote(question)
    assert (before.credits, before.repeat) == (after.credits, after.repeat) == (1, False)
    assert before.standard_error == after.standard_error
    assert db.as_analyst("ann").quote(question).repeat


def test_a_retry_under_a_key_finds_its_own_answer_though_a_finer_one_came_between() -> None:
    db = publish()
    question = count(where=col("smoker"))
    first = db.ask(question, key="k", credits=2)
    db.ask(question, credits=8)
    again = db.ask(question, key="k", credits=2)
    assert (again.value, again.credits) == (first.value, 0)


@pytest.mark.parametrize("number", [np.float64(2), np.int64(2), 2.0, Fraction(2)])
def test_numbers_of_every_kind_are_read(number: object) -> None:
    db = publish()
    assert db.quote(count(where=col("smoker")), credits=number).credits == 2  # type: ignore[arg-type]
    assert Number("q", np.float64(0), np.float64(1)).range == (0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", ["x", None, float("nan")])
def test_confidence_must_be_a_number(confidence: object) -> None:
    with pytest.raises(InvalidQuery):
        publish().quote(count(where=col("smoker")), confidence=confidence)  # type: ignore[arg-type]


def test_intervals_of_persons_are_bounded_by_their_rows_not_their_number() -> None:
    visits = pd.DataFrame({"person": np.repeat(np.arange(300), 5), "cost": 10.0})
    schema = Schema(Number("cost", 0, 100), unit="person", max_rows=4)
    db = publish(visits, schema, Promise(20, "1e-6", queries=100))
    low, high = db.ask(count(), credits=50).interval()
    assert 300 < low <= 1200 <= high or low <= 1200 <= high + 1  # 1,200 rows count
    assert high <= 1200
    assert "persons" in repr(db)


def test_free_questions_leave_what_is_left() -> None:
    db = publish()
    db.ask(count(where=col("smoker")), credits=30)
    assert db.quote(count()).left_after == 70
    assert db.quote(count(where=col("smoker"))).left_after == 70


def test_slips_are_noted() -> None:
    """What binds but can match nobody is told, before and after asking."""
    db = publish()
    for question, hint in [
        (count(where=col("city") == "oslo"), "'oslo' is not a declared value of city"),
        (count(where=col("age") > 120), "age is cut to 0 to 120"),
        (count(where=col("age") < 0), "age is cut to 0 to 120"),
    ]:
        assert hint in db.quote(question).note
        assert hint in db.ask(question).note
    assert db.quote(count(where=col("age") > 30)).note == ""
    with pytest.raises(InvalidQuery, match="did you mean 'age'"):
        db.quote(count(where=col("agee") > 1))
    with pytest.raises(InvalidQuery, match="did you mean 'income'"):
        db.quote(total("INCOME"))


def test_a_target_that_was_missed_is_told() -> None:
    db = publish(frame(5_000))
    rare = mean("income", where=(col("age") > 97) & (col("blood") == "A"))
    answer = db.ask(rare, within=20_000)
    assert "too few rows" in answer.note or "asked for" in answer.note
    assert db.ask(mean("income"), within=20_000, rows=5_000).note == ""


def test_quantiles_are_listed_by_share() -> None:
    rows = publish().ask(quantiles("age", [0.25, 0.5])).rows()
    assert [row["share"] for row in rows] == [0.25, 0.5]


def test_credits_read_as_they_add() -> None:
    assert decimal_text(Fraction(691, 4)) == "172.75"
    assert decimal_text(Fraction(5)) == "5"
    assert decimal_text(Fraction(1, 10**6)) == "1e-06"


def test_sums_of_several_terms_are_records() -> None:
    db = publish(frame(2_000))
    found = db.ask(SumQuery((lit(1), col("age")), col("smoker")))
    assert [record["term"] for record in found.rows()] == [0, 1]
    assert found.to_pandas().value.tolist() == found.value.tolist()
    by_city = db.ask(SumQuery((lit(1), col("age")), lit(True), (group("blood"),)))
    assert [(r["blood"], r["term"]) for r in by_city.rows()][:2] == [("A", 0), ("A", 1)]
    assert all(
        record["value"] == by_city.value.reshape(-1)[place]
        for place, record in enumerate(by_city.rows())
    )
