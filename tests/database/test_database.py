"""The contract: publish, quote, ask, repeat, share, run out, and never say more than promised."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.people import frame, publish

import sulq.database
import sulq.kernel.release.release
from sulq import (
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
)
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.ledger.file import LedgerFile
from sulq.kernel.query.sum_query import group


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


def test_keys_are_idempotent_and_belong_to_one_question() -> None:
    db = publish()
    first = db.ask(count(where=col("smoker")), key="k1")
    again = db.ask(count(where=col("smoker")), key="k1")
    assert (first.value, again.credits) == (again.value, 0)
    with pytest.raises(Refused, match="key"):
        db.ask(count(where=~col("smoker")), key="k1")


def test_a_question_reads_the_ledger_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot before the charge, one after it, and what was stored since the last question."""
    db, reads, usual = publish(frame(50)), [], LedgerFile.read
    monkeypatch.setattr(
        LedgerFile, "read", lambda file, work: reads.append(work) or usual(file, work)
    )
    db.ask(count(where=col("age") >= 65))
    assert len(reads) <= 3


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


@pytest.mark.usefixtures("quiet")
def test_csv_is_read_like_parquet(tmp_path: Path) -> None:
    data = frame()
    data.to_csv(tmp_path / "people.csv", index=False)
    db = publish(tmp_path / "people.csv", ledger=tmp_path / "l")
    assert db.ask(count(where=col("city") == "Oslo")).value == (data.city == "Oslo").sum()
    assert db.ask(mean("age")).value == pytest.approx(data.age.mean(), abs=1e-6)
    db.close()


@pytest.mark.sample(3)
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "binomial", "huber"])
def test_every_noise_law_answers_counts(noise: str) -> None:
    delta = 0 if noise == "laplace" else "1e-6"
    db = publish(promise=Promise(1, delta, queries=20, noise=noise))
    truth = frame().smoker.sum()
    answer = db.ask(count(where=col("smoker")))
    # exponential tails: P(|N| > 14 deviations) = exp(-14 sqrt 2) = 3e-9; 8 would be 1e-5
    assert abs(answer.value - truth) <= 14 * answer.standard_error
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
    spy(sulq.kernel.release.release, "draw_noise", "draw")
    monkeypatch.setattr(
        type(db.ledger), "charge", _labelled(type(db.ledger).charge, steps, "charge")
    )
    monkeypatch.setattr(
        type(db.ledger), "settle_all", _labelled(type(db.ledger).settle_all, steps, "settle")
    )
    db.ask(count(where=col("smoker")))
    assert steps == ["charge", "draw", "read", "settle"]
    db.ask(count(where=col("smoker")))
    assert steps == ["charge", "draw", "read", "settle"]  # a repeat is told again, nothing else


def _labelled(method: object, steps: list[str], label: str) -> object:
    def wrapped(*args: object, **kwargs: object) -> object:
        steps.append(label)
        return method(*args, **kwargs)  # type: ignore[operator]

    return wrapped


def test_the_statement_says_what_is_spent_and_what_the_promise_means() -> None:
    db = publish()
    db.ask(count(where=col("smoker") & (col("city") == "Oslo")), credits=3)
    account = db.statement()
    assert (account.spent, account.left) == (3, 97)
    said = str(account)
    for part in ("3 of 100 credits", "city=Oslo", "epsilon 1", "tail", "1 questions charged"):
        assert part in said


def test_a_retry_under_a_key_finds_its_own_answer_though_a_finer_one_came_between() -> None:
    db = publish()
    question = count(where=col("smoker"))
    first = db.ask(question, key="k", credits=2)
    db.ask(question, credits=8)
    again = db.ask(question, key="k", credits=2)
    assert (again.value, again.credits) == (first.value, 0)


@pytest.mark.usefixtures("settled")
def test_intervals_of_persons_are_bounded_by_their_rows_not_their_number() -> None:
    visits = pd.DataFrame({"person": np.repeat(np.arange(300), 5), "cost": 10.0})
    schema = Schema(Number("cost", 0, 100), unit="person", max_rows=4)
    db = publish(visits, schema, Promise(20, "1e-6", queries=100))
    low, high = db.ask(count(), credits=50).interval()
    assert 300 < low <= 1200 <= high or low <= 1200 <= high + 1  # 1,200 rows count
    assert high <= 1200
    assert "persons" in repr(db)


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
    assert db.ask(mean("income"), within=5_000, rows=5_000).note == ""  # width 0.97 +- 0.005 of it


def test_quantiles_are_listed_by_share() -> None:
    rows = publish().ask(quantiles("age", [0.25, 0.5])).rows()
    assert [row["share"] for row in rows] == [0.25, 0.5]


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


def test_a_database_like_this_one_shares_what_is_not_given() -> None:
    db = publish()
    promise = Promise(2, "1e-6", 100)
    other = db.with_(promise=promise, calibration=calibrate(promise))
    assert (other.engine, other.ledger, other.schema) == (db.engine, db.ledger, db.schema)
    assert (other.promise, other.calibration.promise) == (promise, promise)
    assert db.promise != promise and other.size == db.size


def test_copies_of_a_database_are_made_in_one_place() -> None:
    """By hand they forget a part: `with_` makes them all."""
    source = Path(sulq.database.__file__).parent
    made = re.compile(r"type\((?:self|database|table)\)\(|(?<!class )\b(?:Database|Table)\(")
    found = {path.name: len(made.findall(path.read_text("utf-8"))) for path in source.glob("*.py")}
    assert {name: times for name, times in found.items() if times} == {"table.py": 1}
