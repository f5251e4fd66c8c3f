from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.accounts import charges_by_account, from_json, group_charges, to_json

NAMES = tuple(f"city={number}" for number in range(40))
NUMBERS = {name: number for number, name in enumerate(NAMES)}
losses = st.builds(Loss, st.integers(0, 2**90), st.integers(0, 2**140))


@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from([Loss(0, 0), Loss(1, 2)]) | losses))
def test_charges_survive_being_written(charges):
    parts = group_charges(charges, NUMBERS)
    assert charges_by_account(from_json(json.loads(json.dumps(to_json(parts)))), NAMES) == charges


def test_equal_losses_on_everybody_are_one_range():
    names = [f"cell {number}" for number in range(4096)]
    parts = group_charges(dict.fromkeys(names, Loss(2**64, 5)), {n: i for i, n in enumerate(names)})
    assert to_json(parts) == [(str(2**64), "5", "0-4095")]


def test_the_order_in_which_accounts_are_given_does_not_matter():
    charges = {name: Loss(NUMBERS[name] % 3, 0) for name in NAMES}
    assert group_charges(charges, NUMBERS) == group_charges(
        dict(reversed(charges.items())), NUMBERS
    )


def test_an_unknown_account_is_named():
    with pytest.raises(InvalidQuery, match="city=Rome"):
        group_charges({"city=Rome": Loss(1, 0)}, NUMBERS)
