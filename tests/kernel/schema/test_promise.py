"""The promise is read exactly as it is spelled, refuses nonsense, and survives JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.schema.promise import Promise


@pytest.mark.parametrize("spelled", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), "1/10"])
def test_a_tenth_is_exactly_a_tenth_however_it_is_written(spelled: object) -> None:
    assert Promise(spelled).epsilon == Fraction(1, 10)  # type: ignore[arg-type]


def test_delta_is_its_decimal_not_its_binary_tail() -> None:
    assert Promise(1, 1e-6).delta == Fraction(1, 1_000_000)
    assert Promise(1, np.float64(1e-6)) == Promise(1, "1e-6")


def test_the_noise_follows_delta_unless_named() -> None:
    assert Promise(1).noise == "laplace"
    assert Promise(1, 1e-6).noise == "gaussian"
    assert Promise(1, 1e-6, 10, "huber").noise == "huber"


def test_credits_are_those_asked_for_or_a_hundred() -> None:
    assert Promise(1, 1e-6, 250).credits == 250
    assert Promise(1, 1e-6).credits == 100


def test_queries_are_an_older_name_of_credits() -> None:
    """What is stored keeps that name, so that ledgers of old open: bit for bit the same JSON."""
    new, old = Promise(1, 1e-6, credits=1000), Promise(1, 1e-6, queries=1000)
    assert new == old == Promise(1, 1e-6, 1000) == Promise(1, 1e-6, credits=1000, queries=1000)
    assert json.dumps(new.to_json()) == (
        '{"epsilon": "1", "delta": "1/1000000", "queries": 1000, "noise": "gaussian",'
        ' "neighbours": "replace"}'
    )
    assert Promise.from_json({"epsilon": 1, "delta": 1e-6, "credits": 1000}) == new
    assert Promise.from_json({"epsilon": 1, "delta": 1e-6, "credits": 7, "queries": 7}).credits == 7
    for both in (
        lambda: Promise(1, credits=10, queries=11),
        lambda: Promise.from_json({"epsilon": 1, "credits": 10, "queries": 11}),
    ):
        with pytest.raises(InvalidQuery, match=r"got credits=10 and queries=11, wanted one"):
            both()


def test_a_repr_can_be_read_back_and_speaks_of_credits() -> None:
    shown = "Promise(epsilon=1, delta=1e-06, credits=1000, noise='gaussian', neighbours='replace')"
    assert repr(Promise(1, 1e-6, 1000)) == shown
    for promise in (
        Promise(1, 1e-6, 1000),
        Promise("1/3"),
        Promise(2, "1/7", 9, "huber"),
        Promise(1, lattice="fine"),
    ):
        assert eval(repr(promise), {"Promise": Promise}) == promise


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": 1001},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "nan"},
        {"epsilon": "1e999999999"},
        {"epsilon": "1/0"},
        {"epsilon": "one"},
        {"epsilon": True},
        {"epsilon": None},
        {"epsilon": [1]},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1e-6},
        {"epsilon": 1, "delta": float("nan")},
        {"epsilon": 1, "delta": False},
        {"epsilon": 1, "delta": "1e-999999999"},
        {"epsilon": 1, "credits": 0},
        {"epsilon": 1, "queries": 0},
        {"epsilon": 1, "queries": -5},
        {"epsilon": 1, "queries": 1.5},
        {"epsilon": 1, "queries": True},
        {"epsilon": 1, "queries": "10"},
        {"epsilon": 1, "queries": 10**10},
        {"epsilon": 1, "noise": "gaussian"},
        {"epsilon": 1, "delta": 1e-6, "noise": "laplace"},
        {"epsilon": 1, "delta": 1e-6, "noise": "uniform"},
        {"epsilon": 1, "delta": 1e-6, "noise": "binomial"},
        {"epsilon": 1, "delta": 1e-6, "noise": "huber"},
        {"epsilon": 1, "noise": "huber", "queries": 10},
        {"epsilon": 1, "noise": "binomial", "queries": 10},
        {"epsilon": 1, "neighbours": "both"},
    ],
)
def test_refused_with_what_was_got_and_what_is_wanted(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidQuery, match=r"got .*wanted|got .*leave delta out"):
        Promise(**arguments)  # type: ignore[arg-type]


@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=1000),
    st.fractions(min_value=0, max_value=Fraction(999, 1000)),
    st.one_of(st.none(), st.integers(1, 10**9)),
    st.sampled_from(["replace", "add-remove"]),
)
def test_json_gives_back_the_same_promise(
    epsilon: Fraction, delta: Fraction, queries: int | None, neighbours: str
) -> None:
    promise = Promise(epsilon, delta, queries, neighbours=neighbours)
    assert Promise.from_json(json.loads(json.dumps(promise.to_json()))) == promise


def test_json_with_unknown_or_missing_names_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="refresh"):
        Promise.from_json({"epsilon": "1", "refresh": "daily"})
    with pytest.raises(InvalidQuery, match="epsilon"):
        Promise.from_json({"delta": "1/1000000"})


def test_a_policy_table_reads_as_it_stands() -> None:
    assert Promise.from_json({"epsilon": 1, "delta": 1e-6, "queries": 1000}) == Promise(
        1, 1e-6, 1000
    )


def test_a_promise_is_a_value() -> None:
    promise = Promise(1, 1e-6, 10)
    assert hash(promise) == hash(Promise("1", "0.000001", 10))
    assert pickle.loads(pickle.dumps(promise)) == copy.deepcopy(promise) == promise
    with pytest.raises(dataclasses.FrozenInstanceError):
        promise.epsilon = Fraction(2)  # type: ignore[misc]


def test_plain_words() -> None:
    assert str(Promise(1, 1e-6, 1000)) == (
        "epsilon 1, delta 1e-06 for 1000 credits, gaussian noise; "
        "neighbours: the values of one row change"
    )
    assert "1/3" in str(Promise(Fraction(1, 3)))


def test_in_the_words_of_a_table_of_persons() -> None:
    promise = Promise(1, 1e-6, 1000)
    told = promise.about("patient")
    assert str(told).endswith("all rows of one person change")
    assert (told, hash(told), told.to_json()) == (promise, hash(promise), promise.to_json())
    there = Promise(1, neighbours="add-remove")
    assert str(there.about("patient")).endswith("one person is there or not")
    assert str(there.about("row")) == str(there)
