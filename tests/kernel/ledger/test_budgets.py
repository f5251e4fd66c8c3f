"""The rules of spending against a slow model that keeps every account apart."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.accounts import NOTHING, group_charges, in_credits
from sulq.kernel.ledger.budget import Budgets

ACCOUNTS = ("a", "b", "c")
NUMBERS = {name: number for number, name in enumerate(ACCOUNTS)}
CAP = Loss(20, 6)

losses = st.builds(Loss, st.integers(0, 8), st.integers(0, 3))
prices = st.builds(Loss, st.integers(0, 2), st.integers(0, 1)) | losses
charges = st.dictionaries(st.sampled_from(ACCOUNTS), prices)
everybody = prices.map(lambda loss: dict.fromkeys(ACCOUNTS, loss))
analysts = st.sampled_from(["owner", "ann", "bob"])
which = st.none() | st.integers(0, 2)
acts = st.one_of(
    st.tuples(st.just("grant"), st.sampled_from(["ann", "bob"]), losses),
    st.tuples(st.just("spend"), analysts, charges | everybody, prices, which),
    st.tuples(st.just("reserve"), analysts, losses),
    st.tuples(st.just("return"), analysts, st.integers(0, 2)),
)
GRANTED = ("grant", "ann", Loss(9, 3))  # else few analysts come to reserve anything
histories = st.lists(acts, max_size=30) | st.lists(acts, min_size=12, max_size=30).map(
    lambda history: [GRANTED, *history]
)


class Model:
    """Each account, analyst and reservation by name, in plain dictionaries."""

    def __init__(self):
        self.spent = {name: [0, 0] for name in ACCOUNTS}
        self.left = {}  # of grants, what is held included
        self.open = {}  # number -> [analyst, [credits, delta]]
        self.made = 0

    def kept(self, part):
        """For analysts, and in the owner's reservations."""
        own = sum(left[part] for who, left in self.open.values() if who == "owner")
        return own + sum(left[part] for left in self.left.values())

    def unheld(self, analyst, part):
        """The most that this analyst may set aside."""
        if analyst == "owner":
            worst = max(spent[part] for spent in self.spent.values())
            return (CAP.credits, CAP.delta)[part] - worst - self.kept(part)
        held = sum(left[part] for who, left in self.open.values() if who == analyst)
        return self.left[analyst][part] - held

    def known(self, analyst):
        return analyst == "owner" or analyst in self.left

    def grant(self, analyst, amount):
        pair = (amount.credits, amount.delta)
        if any(pair[part] > self.unheld("owner", part) for part in (0, 1)):
            return False
        own = self.left.setdefault(analyst, [0, 0])
        own[0] += pair[0]
        own[1] += pair[1]
        return True

    def reserve(self, analyst, amount):
        if not self.known(analyst) or amount.credits > self.unheld(analyst, 0):
            return False
        delta = min(amount.delta, self.unheld(analyst, 1))
        self.open[self.made] = [analyst, [amount.credits, delta]]
        self.made += 1
        return True

    def spend(self, analyst, charges, share, number):
        if not self.known(analyst):
            return False
        if number is not None and (number not in self.open or self.open[number][0] != analyst):
            return False
        pair = (share.credits, share.delta)
        pays = analyst != "owner" or number is not None
        for part, cap in enumerate((CAP.credits, CAP.delta)):
            limit = None if analyst == "owner" else self.unheld(analyst, part)
            if number is not None:
                limit = self.open[number][1][part]
            if limit is not None and pair[part] > limit:
                return False
            for name, loss in charges.items():
                price = (loss.credits, loss.delta)[part]
                paid = pair[part] if pays else 0
                if price and self.spent[name][part] + price + self.kept(part) - paid > cap:
                    return False
        for name, loss in charges.items():
            self.spent[name][0] += loss.credits
            self.spent[name][1] += loss.delta
        for part in (0, 1):
            if analyst != "owner":
                self.left[analyst][part] -= pair[part]
            if number is not None:
                self.open[number][1][part] -= pair[part]
        return True

    def act(self, kind, analyst, *rest):
        if kind == "return":
            return self.open.pop(rest[0], None) is not None
        return getattr(self, kind)(analyst, *rest)


def aimed(budgets, done):
    """Spending mostly names a reservation of one's own: others are refused and teach little."""
    kind, analyst, *rest = done
    mine = [number for number, found in budgets.reservations.items() if found.analyst == analyst]
    if kind == "spend" and mine and rest[2] not in (None, 2):
        rest[2] = mine[rest[2] % len(mine)]
    return (kind, analyst, *rest)


def act(budgets, made, kind, analyst, *rest):
    """One act by the rules; False if it was refused. Reservations are numbered from 0."""
    try:
        match kind:
            case "grant":
                budgets.admit_grant(analyst, rest[0])
                budgets.grant(analyst, rest[0])
            case "reserve":
                amount = budgets.admit_reservation(analyst, rest[0])
                budgets.reserve(len(made), analyst, amount, 0)
                made.append(analyst)
            case "return":
                if rest[0] not in budgets.reservations:
                    return False
                budgets.give_back(rest[0])
            case "spend":
                parts = group_charges(rest[0], NUMBERS)
                budgets.spend(budgets.admit(analyst, parts, rest[1], rest[2]))
    except Refused:
        return False
    return True


@given(histories)
def test_every_order_of_acts_agrees_with_the_slow_model_and_keeps_the_cap(history):
    budgets, model, made = Budgets(ACCOUNTS, CAP), Model(), []
    for drawn in history:
        twin, done = budgets.copy(), aimed(budgets, drawn)
        assert act(budgets, made, *done) == model.act(*done)
        for number, name in enumerate(ACCOUNTS):
            now = budgets.spent(number)
            assert [now.credits, now.delta] == model.spent[name]
            assert now.credits + budgets.reserved.credits <= CAP.credits
            assert now.delta + budgets.reserved.delta <= CAP.delta
        assert budgets.credits.most == max(spent[0] for spent in model.spent.values())
        assert (budgets.reserved.credits, budgets.reserved.delta) == (model.kept(0), model.kept(1))
        for number, found in budgets.reservations.items():
            assert [found.left.credits, found.left.delta] == model.open[number][1]
        for name in model.left:
            free = budgets.shares[name].free
            assert (free.credits, free.delta) == (model.unheld(name, 0), model.unheld(name, 1))
        act(twin, list(made), *done)  # a copy: what is tried on it changes nothing here
        assert all(twin.spent(number) == budgets.spent(number) for number in range(3))
    budgets.void()
    granted = sum(left[0] for left in model.left.values())
    assert budgets.reserved.credits == granted  # all that was set aside is free again


@given(
    histories,
    analysts,
    st.sets(st.sampled_from(ACCOUNTS), min_size=1),
    st.booleans(),
)
def test_what_remains_can_be_spent_and_one_step_more_cannot(history, analyst, names, aside):
    budgets, made = Budgets(ACCOUNTS, CAP), []
    for done in history:
        act(budgets, made, *aimed(budgets, done))
    mine = [number for number, found in budgets.reservations.items() if found.analyst == analyst]
    number = mine[0] if aside and mine else None
    left = budgets.remaining(analyst, [NUMBERS[name] for name in names], number)
    more = Loss(left.credits + 1, left.delta)
    with pytest.raises(Refused):
        budgets.admit(analyst, group_charges(dict.fromkeys(names, more), NUMBERS), more, number)
    if analyst in budgets.shares:
        budgets.admit(analyst, group_charges(dict.fromkeys(names, left), NUMBERS), left, number)


@given(histories)
def test_what_is_reserved_can_be_spent_whatever_others_do(history):
    """And the worst account is enough: no stratum stands in the way."""
    budgets, made = Budgets(ACCOUNTS, CAP), []
    for done in history:
        act(budgets, made, *aimed(budgets, done))
    for number, found in budgets.reservations.items():
        everything = group_charges(dict.fromkeys(ACCOUNTS, found.left), NUMBERS)
        budgets.admit(found.analyst, everything, found.left, number)


def test_an_adaptive_filter_stops_at_the_cap_exactly():
    """G.1: R = 100, 50, 25 chosen on the fly; 20 + 20 + 10 questions spend one half."""
    unit = Fraction(1, 1000)
    budgets = Budgets(("",), Loss(int(Fraction(1, 2) / unit), 0))
    for count, price in (
        (20, Fraction(5, 1000)),
        (20, Fraction(10, 1000)),
        (10, Fraction(20, 1000)),
    ):
        parts = group_charges({"": Loss(int(price / unit), 0)}, {"": 0})
        for _ in range(count):
            budgets.spend(budgets.admit("owner", parts, NOTHING))
    assert budgets.spent(0).credits * unit == Fraction(1, 2)
    with pytest.raises(BudgetSpent):
        budgets.admit("owner", group_charges({"": Loss(1, 0)}, {"": 0}), NOTHING)


def test_strata_pay_for_what_touches_them():
    """G.2: 3 questions on N at .005, 2 on S at .01, 1 on both at .02: N .035, S .04, table .04."""
    budgets, numbers = Budgets(("N", "S"), Loss(500, 0)), {"N": 0, "S": 1}
    asked = [{"N": Loss(5, 0)}] * 3 + [{"S": Loss(10, 0)}] * 2
    asked.append({"N": Loss(20, 0), "S": Loss(20, 0)})
    for charged in asked:
        budgets.spend(budgets.plan("owner", group_charges(charged, numbers), NOTHING))
    assert (budgets.spent(0).credits, budgets.spent(1).credits) == (35, 40)
    assert budgets.credits.most == 40


def test_a_refusal_says_wanted_left_and_remedy():
    budgets = Budgets(("",), Loss(3 << 63, 0))
    with pytest.raises(BudgetSpent, match=r"costs 2 credits, 1\.5 are left.*cheaper"):
        budgets.admit("owner", group_charges({"": Loss(2 << 64, 0)}, {"": 0}), NOTHING)


def test_a_refusal_names_the_account_that_is_short():
    budgets = Budgets(ACCOUNTS, CAP)
    budgets.spend(budgets.plan("owner", group_charges({"b": Loss(20, 0)}, NUMBERS), NOTHING))
    with pytest.raises(BudgetSpent, match="for the rows with b"):
        budgets.admit("owner", group_charges(dict.fromkeys(ACCOUNTS, Loss(1, 0)), NUMBERS), NOTHING)


def test_delta_has_a_cap_of_its_own():
    budgets = Budgets(("",), Loss(100, 2))
    with pytest.raises(BudgetSpent, match="extra delta"):
        budgets.admit("owner", group_charges({"": Loss(1, 3)}, {"": 0}), NOTHING)


@given(st.integers(0, 2**80))
def test_price_text_never_flatters(units):
    low, high = Fraction(in_credits(units)), Fraction(in_credits(units, up=True))
    assert low <= Fraction(units, 2**64) <= high
    assert high - low <= Fraction(1, 10**6)


@pytest.mark.parametrize("account", [1, 2])
def test_burning_leaves_nothing_and_lowers_nothing(account):
    budgets = Budgets(ACCOUNTS, CAP)
    budgets.grant("ann", Loss(5, 1))
    budgets.reserve(1, "ann", Loss(2, 0), 0)
    budgets.reserve(2, "owner", Loss(2, 0), 0)
    budgets.spend(
        budgets.plan("owner", group_charges({ACCOUNTS[account]: Loss(3, 0)}, NUMBERS), NOTHING)
    )
    budgets.burn()
    assert [budgets.spent(number) for number in range(3)] == [CAP] * 3
    for analyst in ("owner", "ann"):
        assert budgets.remaining(analyst) == NOTHING
        with pytest.raises(BudgetSpent):
            budgets.admit(analyst, group_charges({"a": Loss(1, 0)}, NUMBERS), Loss(1, 0))
        budgets.admit(analyst, (), NOTHING)
