"""The founding invariants that no other file guards on its own. Numbers as in ARCHITECTURE.md."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import sys
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.people import SCHEMA, frame, publish

import sulq.database
from sulq import (
    BudgetSpent,
    Category,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    SulqError,
    col,
    count,
    histogram,
    mean,
    quantiles,
    total,
    when,
)
from sulq.kernel.ledger.ledger import Ledger

QUESTIONS = [
    count(),
    count(where=col("smoker")),
    count(where=(col("city") == "Oslo") & (col("age") > 40)),
    total("income", where=col("age") < 30),
    mean("income", where=col("blood") == "A"),
    histogram("blood", "smoker"),
    quantiles("income", [0.5]),
    total(when(col("age") >= 65).then(col("income")).otherwise(0)),
]


def awkward_neighbour(data: pd.DataFrame) -> pd.DataFrame:
    """The same table with one row's private values changed to the worst there is."""
    other = data.copy()
    other["age"] = other["age"].astype("Float64")
    other["smoker"] = other["smoker"].astype("object")
    other.loc[0, ["age", "income", "smoker", "blood"]] = [pd.NA, np.inf, None, "?"]
    other["age"] = other["age"].astype("float64")
    return other


def test_2_price_quote_and_refusal_are_the_same_on_neighbouring_tables() -> None:
    data = frame()
    data["age"] = data["age"].astype("float64")
    data["smoker"] = data["smoker"].astype("object")
    promise = Promise(1, "1e-6", queries=8)
    seen = []
    for table in (data, awkward_neighbour(data)):
        db = publish(table, promise=promise)
        transcript: list[object] = []
        for question in QUESTIONS * 2:
            quote = db.quote(question)
            transcript.append((quote.credits, quote.left_after, quote.repeat))
            if quote.sizes is None:  # else the note may name noisy counts that were told
                transcript.append(quote.note)
            try:
                transcript.append(("answer", db.ask(question).credits))
            except SulqError as error:
                transcript.append((type(error).__name__, str(error)))
            transcript.append(db.remaining)
        for wrong in (count(where=col("nope") > 1), total("blood"), histogram("age")):
            with pytest.raises(InvalidQuery) as caught:
                db.ask(wrong)
            transcript.append(str(caught.value))
        seen.append(transcript)
    assert seen[0] == seen[1]
    assert any(isinstance(step, tuple) and step[0] == "BudgetSpent" for step in seen[0])


def test_2_quotes_and_refusals_never_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    db = publish(promise=Promise(1, "1e-6", queries=1))
    db.ask(count(where=col("smoker")))

    def touched() -> list[int]:
        raise AssertionError("rows were read")

    monkeypatch.setattr(db.engine, "prepare", lambda program: touched)
    for question in QUESTIONS:
        db.quote(question)
    with pytest.raises(BudgetSpent):
        db.ask(count(where=col("age") > 3))
    with pytest.raises(InvalidQuery):
        db.ask(total("blood"))
    assert db.ask(count(where=col("smoker"))).credits == 0


def test_5_there_is_no_way_back() -> None:
    """No verb resets, refunds, refreshes or lowers what is spent."""
    words = ("reset", "refund", "refresh", "void", "unspend", "lower", "forget", "delete", "undo")
    for owner in (Ledger, sulq.database.Database, sulq.database.Analyst):
        verbs = [name for name in dir(owner) if not name.startswith("_")]
        assert not [verb for verb in verbs for word in words if word in verb.lower()]
    db, left = publish(), []
    for least in (20, 40, 20):
        db.ask(count(where=col("age") >= least))
        left.append(db.remaining)
    assert left[0] > left[1] == left[2]  # a repeat gives nothing back


def test_6_undeclared_columns_are_hidden() -> None:
    db = publish()
    for question in (count(where=col("secret") > 5), total("secret"), histogram("secret")):
        with pytest.raises(InvalidQuery, match="no column 'secret'"):
            db.ask(question)
    with pytest.raises(InvalidQuery) as caught:
        db.ask(total("nope"))
    assert "secret" not in str(caught.value)


def test_9_a_forked_child_cannot_spend_or_answer(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    frame().to_parquet(path)
    db = publish(path, ledger=tmp_path / "ledger")
    child = os.fork()
    if child == 0:
        code = 1
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)  # a child that goes on waits for threads that it does not have
        try:
            db.ask(count(where=col("smoker")))
        except Refused:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert db.remaining == 100
    db.close()


CANARY = "canary-7f3a9"


def canaries() -> pd.DataFrame:
    """Values that occur nowhere else, in every kind of column."""
    rows = 997
    return pd.DataFrame(
        {
            "age": np.full(rows, 67.0),
            "income": np.full(rows, 48_611.015625),
            "smoker": [True] * 613 + [False] * 384,
            "city": ["Oslo"] * rows,
            "blood": [f"{CANARY}-{i}" for i in range(rows)],
            "note": [f"{CANARY}-note-{i}" for i in range(rows)],
        }
    )


def test_9_no_true_value_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Plant canaries, do everything (failures too), then look everywhere for them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    data = tmp_path / "data"
    data.mkdir()
    canaries().to_parquet(data / "people.parquet")
    canaries().to_csv(data / "people.csv", index=False)
    schema = Schema(
        Number("age", 0, 120, step=1),
        Number("income", 0, 500_000),
        Flag("smoker"),
        Category("city", ["Oslo"]),
        Category("blood", ["A", "B"]),
        Category("note"),
    )
    said: list[str] = []
    for name in ("people.parquet", "people.csv"):
        db = publish(data / name, schema, ledger=tmp_path / f"{name}.ledger")
        for question in (
            count(where=col("smoker")),
            total("income"),
            mean("income"),
            histogram("blood", other=True),
            histogram("city", "smoker"),
            count(where=col("note").like("%z%")),
            quantiles("age", [0.5]),
        ):
            answer = db.ask(question)
            said.append(repr(answer) + repr(answer.receipt))
        with monkeypatch.context() as patch:

            def fail() -> list[int]:
                raise sulq.EngineFailed

            patch.setattr(db.engine, "prepare", lambda program: fail)
            try:
                db.ask(count(where=col("age") > 5))
            except SulqError:
                said.append(traceback.format_exc())
        for wrong in (
            lambda db=db: db.ask(total("note")),
            lambda db=db: db.ask(count(where=col("smoker")), credits=10**9),
        ):
            try:
                wrong()
            except SulqError as error:
                said.append("".join(traceback.format_exception(error)))
        said.append(repr(db.statement()))
        db.close()
    wrong_types = Schema(Number("note", 0, 5), Flag("blood"))
    try:
        publish(data / "people.parquet", wrong_types, ledger=tmp_path / "wrong.ledger")
    except SulqError as error:
        said.append("".join(traceback.format_exception(error)))
    logging.getLogger().removeHandler(handler)
    captured = capfd.readouterr()
    said += [log.getvalue(), captured.out, captured.err]
    secrets = [CANARY, "48611.0", "48466181", "48,466,181", str(997 * 67)]
    for text in said:
        assert not [secret for secret in secrets if secret in text], text[:300]
    places = [tmp_path, Path(os.environ["SULQ_STATE"])]
    files = [
        p for place in places for p in place.rglob("*") if p.is_file() and data not in p.parents
    ]
    assert len(files) >= 4
    for file in files:
        raw = file.read_bytes()
        # on their own: a digest may hold five digits by chance
        alone = [rb"(?<!\w)" + re.escape(secret.encode()) + rb"(?!\w)" for secret in secrets]
        assert not [secret for secret in alone if re.search(secret, raw)], file.name
    assert sys.exc_info() == (None, None, None)


def test_1_row_order_and_storage_do_not_change_the_sum(tmp_path: Path) -> None:
    data = frame()
    shuffled = data.sample(frac=1, random_state=1)
    data.to_parquet(tmp_path / "a.parquet")
    shuffled.to_parquet(tmp_path / "b.parquet", row_group_size=97)
    sums = []
    for source in (data, shuffled, tmp_path / "a.parquet", tmp_path / "b.parquet"):
        db = publish(source, SCHEMA)
        sums.append([db.engine.exact_sums(db.bind(question).sums) for question in QUESTIONS])
        assert all(type(value) is int for answer in sums[-1] for value in answer)
        db.close()
    assert sums[0] == sums[1] == sums[2] == sums[3]
