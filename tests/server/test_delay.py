"""The random delay served: every question that reads rows pays for the time of its reply. S4.5"""

from __future__ import annotations

import asyncio
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm
from tests.people import SCHEMA, frame, publish
from tests.server.dial import Dial

from sulq import Category, Flag, Number, Promise, Schema, col, count, total
from sulq.database.delay import delayed, draw_delay
from sulq.errors import BudgetSpent, EngineFailed, InvalidQuery, Refused
from sulq.exact import Assumptions
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.mechanisms import delay_for
from sulq.server import pacing
from sulq.server.errors import out_of_order, problem_of
from sulq.server.limits import Settings
from sulq.server.pacing import Clock, Delayed, Unpaced, charging_for_time, pace_of

PLAIN = Schema(Number("age", 0, 120, step=1), Number("income", 0, 500_000), Flag("smoker"))
SMOKERS = count(where=col("smoker"))


def table(**more):
    return publish(frame(500), PLAIN, **more)


def test_a_question_costs_one_credit_more_and_a_repeat_nothing():
    with table() as plain:
        delay = delay_for(plain.calibration, Fraction(1, 1000))
        served = delayed(plain, delay)
        assert plain.quote(SMOKERS).credits == 1
        assert served.quote(SMOKERS).credits == 2
        assert served.ask(SMOKERS).credits == 2
        assert served.remaining == plain.remaining == 98
        (account,) = served.statement().statement.accounts
        assert account.spent.delta_fraction >= delay.loss.delta_fraction
        assert served.ask(SMOKERS).credits == 0 and served.remaining == 98
        assert served.ask(SMOKERS, credits=5).credits == 5  # a top-up of 4, and its reply
        assert served.remaining == 93


def test_plans_and_sql_pay_for_each_reading():
    with table() as plain:
        served = delayed(plain, delay_for(plain.calibration, Fraction(1, 1000)))
        plan = served.plan([SMOKERS, total("age")])
        assert plan.credits == 4
        plan.ask()
        assert served.remaining == 96
        found = served.sql("SELECT COUNT(*) AS n FROM people WHERE age > 30", table="people")
        assert found.credits == 2 and served.remaining == 94


def test_choices_pay_for_their_reading_once():
    with table() as plain:
        delay = delay_for(plain.calibration, Fraction(1, 1000))
        served = delayed(plain, delay)
        served.grant("ann", 10)
        found = served.top("smoker", k=2, credits=4)
        assert (found.credits, served.remaining) == (5, 85)
        (account,) = served.statement().statement.accounts
        assert account.spent == Loss.of(4) + delay.loss
        assert served.top("smoker", k=2, credits=4).credits == 0  # stored: no row is read
        ann = served.as_analyst("ann")
        assert (ann.top("smoker", k=2, credits=4).credits, ann.remaining) == (5, 5)
        assert account.spent == served.statement().statement.accounts[0].spent
        with pytest.raises(BudgetSpent):
            ann.top("smoker", credits=5)  # 5 for the choice, and nothing is left for its time
        assert ann.top("smoker").credits == 2


def test_keys_pay_for_their_reading_once():
    """The server refuses them under a delay; who asks in Python pays as for any other reading."""
    schema = Schema(Category("note"))
    notes = pd.DataFrame({"note": ["flu"] * 400 + ["cold"] * 100})
    with publish(notes, schema) as plain:
        delay = delay_for(plain.calibration, Fraction(1, 1000))
        served = delayed(plain, delay)
        bare, paid = (table.quote_keys("note") for table in (plain, served))
        assert (bare.credits, paid.credits) == (2, 3)
        assert (paid.threshold, paid.standard_error) == (bare.threshold, bare.standard_error)
        assert (served.keys("note").credits, served.remaining) == (3, 97)
        (account,) = served.statement().statement.accounts
        assert account.spent.delta_fraction >= bare.delta + delay.loss.delta_fraction
        assert (served.keys("note").credits, served.remaining) == (0, 97)  # stored: no row is read


def test_shares_pay_too_and_the_budget_holds():
    with table() as plain:
        served = delayed(plain, delay_for(plain.calibration, Fraction(1, 1000)))
        served.grant("ann", 4)
        ann = served.as_analyst("ann")
        for number in (1, 2):
            assert ann.ask(count(where=col("age") > number)).credits == 2
        with pytest.raises(BudgetSpent):
            ann.ask(count(where=col("age") > 3))
        asked = 0
        with pytest.raises(BudgetSpent):
            for number in range(10, 100):
                served.ask(count(where=col("age") > number))
                asked += 1
        assert asked == 48  # T questions became T / 2: the slack of all replies fits as well


def test_where_time_is_not_one_accounts_it_is_refused():
    with publish(frame(500), SCHEMA) as strata, pytest.raises(Refused, match="strata"):
        delayed(strata, delay_for(strata.calibration, 1))
    trust = Assumptions(1, "1e-3", 0, least={"smoker": 0.05})
    with table(exactly=trust) as exact, pytest.raises(Refused, match="exact"):
        delayed(exact, delay_for(exact.calibration, 1))


def test_the_operator_chooses():
    settings = Settings(delay="0.001")
    with table() as plain:
        assert isinstance(pace_of(plain, Settings(pacing=False)), Unpaced)
        assert isinstance(pace_of(plain, Settings()), Clock)
        assert charging_for_time(plain, Settings()) is plain
        with pytest.raises(Refused, match="does not charge"):
            pace_of(plain, settings)
        served = charging_for_time(plain, settings)
        assert isinstance(pace_of(served, settings), Delayed)
        for text in ("soon", "1/0", "-1", "1e9"):
            with pytest.raises(InvalidQuery):
                charging_for_time(plain, Settings(delay=text))
    with publish(frame(500), PLAIN, Promise(1)) as laplace, pytest.raises(InvalidQuery):
        charging_for_time(laplace, settings)


def test_draws_have_the_law_that_was_paid_for():
    """Mean and variance of 4,000 draws. False alarm 1e-6 in all, by their laws."""
    with table() as plain:
        delay = delay_for(plain.calibration, Fraction(1, 1000))
    drawn = np.array([draw_delay(delay) for _ in range(4_000)])
    spread = delay.standard_deviation
    assert drawn.min() >= 0
    assert abs(drawn.mean() - delay.mean) < norm.isf(2.5e-7) * spread / math.sqrt(len(drawn))
    low, high = chi2.ppf(2.5e-7, len(drawn) - 1), chi2.isf(2.5e-7, len(drawn) - 1)
    assert low < len(drawn) * drawn.var() / spread**2 < high


def test_what_failed_after_its_charge_is_not_read_again():
    """Its reply has shown one time, for which was paid once."""
    with table() as plain:
        pace = Delayed(delay_for(plain.calibration, Fraction(1, 10_000)))
    for digest, failure, again in (
        ("engine", problem_of(EngineFailed()), False),
        ("books", out_of_order(), False),
        ("unforeseen", ZeroDivisionError(), False),
        ("dear", problem_of(BudgetSpent("too dear")), True),
    ):
        asked = frozenset([digest])
        with pytest.raises(type(failure)), pace.execution(asked):
            raise failure
        if again:
            with pace.execution(asked):
                continue
        with pytest.raises(Refused, match="served on a clock"), pace.execution(asked):
            pytest.fail("read again")
    with pace.execution(frozenset(["another"])):
        pass


def test_a_reply_leaves_after_its_delay(monkeypatch):
    """The work rounded up to the grid, and what was drawn: by a dial, whatever the machine does."""
    drawn = [0.25, 0.5, 0.0]
    monkeypatch.setattr(pacing, "draw_delay", lambda delay: drawn[0])
    dial = Dial()
    with table() as plain:
        pace = Delayed(delay_for(plain.calibration, Fraction(1, 10_000)), dial)
    step = float(pace.delay.step)

    def left(work: float, stored: bool) -> float:
        arrived = dial.now()
        dial.take(work)
        if stored:
            pace.hold(arrived, 1)
            assert dial.now() - arrived == pytest.approx(2 * step + drawn[0])
            dial.take(0.001)  # a reply whose answer was stored is not delayed again
        asyncio.run(pace.leave(arrived, 1))
        return dial.now() - arrived

    while drawn:
        assert left(1.5 * step, stored=False) == pytest.approx(2 * step + drawn[0])
        assert left(1.5 * step, stored=True) == pytest.approx(2 * step + drawn[0] + 0.001)
        drawn.pop(0)
    assert pace.ticks(None) == 1 and pace.overruns == 0
