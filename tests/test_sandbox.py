"""The sandbox: real promise, fictional rows, nothing left behind."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sulq import BudgetSpent, InvalidQuery, Promise, col, count
from sulq.attacks.target import ROW, SECRET
from sulq.kernel.query.expressions import hashed
from sulq.sandbox import MOST, analysts, sandbox

PROMISE = Promise(1, "1e-6", 6)
SECRETS = np.array([True, False, True, True])


def test_a_table_keeps_the_owners_promise_to_the_last_credit():
    with sandbox(PROMISE, 4) as target:
        assert (target.promise, target.rows) == (PROMISE, 4)
        oracle = target.publish(SECRETS)
        assert (oracle.promise, oracle.size, oracle.remaining) == (PROMISE, 4, 6)
        for row in range(3):
            oracle.ask(count(where=col(SECRET) & (col(ROW) <= row)), credits=2)
        with pytest.raises(BudgetSpent):
            oracle.ask(count(where=col(SECRET)))


def test_what_is_published_is_what_was_given():
    """At epsilon 1000 one answer is as good as exact: off by 0.5 once in e^500."""
    with sandbox(Promise(1000, 0, 1), 4) as target:
        oracle = target.publish(SECRETS)
        assert float(oracle.ask(count(where=col(SECRET) & (col(ROW) >= 1)))) == pytest.approx(
            2, abs=0.5
        )


def test_rows_can_be_picked_by_a_hash():
    with sandbox(PROMISE, 4) as target:
        quote = target.publish(SECRETS).quote(count(where=col(SECRET) & hashed(ROW, 7)))
        assert quote.credits == 1


def test_equal_secrets_are_two_tables_with_two_budgets():
    with sandbox(PROMISE, 4) as target:
        first, second = target.publish(SECRETS), target.publish(SECRETS)
        first.ask(count(where=col(SECRET)), credits=6)
        assert (first.remaining, second.remaining) == (0, 6)


def test_analysts_share_all_of_one_table():
    with sandbox(PROMISE, 4) as target:
        oracle = target.publish(SECRETS)
        three = target.analysts(oracle, 3)
        assert [one.remaining for one in three] == [2, 2, 2]
        three[0].ask(count(where=col(SECRET)), credits=2)
        with pytest.raises(BudgetSpent):
            three[0].ask(count(where=~col(SECRET)), credits=Fraction(1, 100))
        assert three[1].remaining == 2
        assert oracle.remaining <= 4
        with pytest.raises(InvalidQuery, match="only a table"):
            analysts(three[0], 2)


def test_the_real_state_is_not_touched_and_nothing_is_left(state_directory, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with sandbox(PROMISE, 4) as target:
        oracle = target.publish(SECRETS)
        oracle.ask(count(where=col(SECRET)))
        assert list(tmp_path.glob("sulq-sandbox-*/state/*"))
    assert os.environ["SULQ_STATE"] == str(state_directory)
    assert list(state_directory.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_it_is_cleared_when_an_attack_fails(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyError), sandbox(PROMISE, 4) as target:
        target.publish(SECRETS)
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", [1, 0, -5, MOST + 1, 2.5, True])
def test_sizes_that_cannot_be_are_refused(rows):
    with pytest.raises(InvalidQuery, match="a sandbox has"), sandbox(PROMISE, rows):
        pass


@pytest.mark.parametrize(
    "promise",
    [
        Promise(1, 0, 4),
        Promise(1, "1e-6", 4, noise="binomial"),
        Promise(1, "1e-6", 4, noise="huber"),
        Promise(1, "1e-6", neighbours="add-remove"),
    ],
    ids=lambda promise: promise.noise + " " + promise.neighbours,
)
def test_every_promise_can_be_published(promise):
    with sandbox(promise, 4) as target:
        oracle = target.publish(SECRETS)
        assert oracle.ask(count(where=col(SECRET))).credits == 1
        assert len(target.analysts(oracle, 2)) == 2


def test_directory_is_private():
    with sandbox(PROMISE, 4) as target:
        target.publish(SECRETS)
        made = Path(os.environ["SULQ_STATE"]).parent
        assert made.stat().st_mode & 0o077 == 0
