"""A made-up census of 50,000 adults: skewed numbers, uneven categories, a label that needs both.

Everything follows from age, sex, schooling and chance; nobody is real. The bounds are what a
statistical office would declare without looking: wider than the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sulq import Category, Number

ROWS = 50_000
SEED = 1890
RICH_SHARE = 0.24
CHANCE = 0.5
"""Deviation of what the columns do not say about income; sets the ceiling near 0.86."""

NUMBERS = (
    Number("age", 0, 120, step=1),
    Number("school_years", 0, 25, step=1),
    Number("hours", 0, 120, step=1),
    Number("gain", 0, 100_000, step=1),
    Number("loss", 0, 5_000, step=1),
)
OCCUPATIONS = {
    # name: (schooling it asks for, share of men, what it adds to the logarithm of pay)
    "executive": (13.5, 0.70, 0.45),
    "professional": (15.0, 0.58, 0.40),
    "technical": (13.0, 0.60, 0.25),
    "sales": (11.5, 0.62, 0.15),
    "office": (11.0, 0.30, 0.00),
    "craft": (9.8, 0.94, 0.08),
    "machine": (9.0, 0.70, -0.05),
    "transport": (9.3, 0.93, 0.02),
    "labourer": (8.8, 0.85, -0.12),
    "farming": (8.5, 0.92, -0.30),
    "service": (9.2, 0.42, -0.25),
    "household": (8.0, 0.06, -0.40),
    "protection": (11.5, 0.86, 0.18),
    "none": (9.5, 0.45, -0.45),
}
WORK = {
    # name: (share, what it adds to the logarithm of pay)
    "private": (0.72, 0.0),
    "self-employed": (0.08, -0.12),
    "own company": (0.035, 0.30),
    "local office": (0.065, 0.02),
    "state office": (0.04, 0.0),
    "national office": (0.03, 0.18),
    "unpaid": (0.03, -0.60),
}
MARITAL = ("never", "married", "divorced", "separated", "widowed", "apart")
RELATION = ("spouse", "child", "alone", "single parent", "other relative")
REGIONS = {
    "north": (0.19, 0.05),
    "south": (0.36, -0.06),
    "west": (0.22, 0.04),
    "east": (0.15, 0.06),
    "islands": (0.05, -0.04),
    "abroad": (0.03, -0.10),
}
ORIGINS = {
    "here": (0.88, 0.0),
    "neighbour": (0.06, -0.12),
    "overseas": (0.035, 0.03),
    "elsewhere": (0.015, -0.05),
    "unknown": (0.01, -0.02),
}
CATEGORIES = (
    Category("sex", ("man", "woman")),
    Category("marital", MARITAL),
    Category("relation", RELATION),
    Category("work", tuple(WORK)),
    Category("occupation", tuple(OCCUPATIONS)),
    Category("region", tuple(REGIONS)),
    Category("origin", tuple(ORIGINS)),
)
COLUMNS = (*NUMBERS, *CATEGORIES)
LABEL = Category("income", ("low", "high"))


def drawn(random: np.random.Generator, weights: Any) -> Any:
    """One index per row of weights."""
    steps = np.cumsum(weights, axis=1)
    return (random.random((len(steps), 1)) * steps[:, -1:] > steps).sum(axis=1)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def schooling(random: np.random.Generator, age: Any) -> Any:
    """Years at school: peaks at the usual degrees, fewer among the old and the very young."""
    talent = random.normal(0, 1, len(age))
    wish = 10.6 + 2.3 * talent - 0.045 * np.maximum(age - 50, 0)
    degrees = np.array([2, 5, 8, 9, 10, 12, 13, 15, 16, 18, 20])
    pull = np.array([0.3, 0.6, 0.7, 2.6, 2.0, 0.7, 2.3, 0.8, 0.5, 0.25, 0.15])
    chosen = degrees[drawn(random, pull * np.exp(-((wish[:, None] - degrees) ** 2) / 5))]
    return np.minimum(chosen, np.maximum(age - 6, 2))


def family(random: np.random.Generator, age: Any, man: Any) -> tuple[Any, Any]:
    """Marital state and place in the household, as indices."""
    weights = np.stack(
        [
            3.2 * np.exp(-(age - 17) / 9.5),
            1.9 * logistic((age - 27) / 4.5) * (1 - 0.35 * logistic((age - 72) / 5)),
            0.48 * logistic((age - 35) / 6) * np.where(man, 0.75, 1.3),
            np.full(len(age), 0.06),
            0.75 * logistic((age - 72) / 6) * np.where(man, 0.4, 1.6),
            np.full(len(age), 0.03),
        ],
        axis=1,
    )
    marital = drawn(random, weights)
    places = np.stack(
        [
            np.where(marital == 1, 30.0, 0.0),
            np.where(marital == 0, 4.0, 0.3) * np.exp(-(age - 17) / 6),
            np.where(marital == 1, 0.1, 1.6),
            np.where(marital == 1, 0.05, np.where(man, 0.35, 1.3) * (marital != 0) + 0.12),
            np.full(len(age), 0.22),
        ],
        axis=1,
    )
    return marital, drawn(random, places)


def occupations(random: np.random.Generator, school: Any, man: Any) -> Any:
    asked, men, _ = np.array(list(OCCUPATIONS.values())).T
    near = np.exp(-((school[:, None] - asked) ** 2) / 4)
    return drawn(random, near * np.where(man[:, None], men, 1 - men))


def employers(random: np.random.Generator, job: Any, age: Any) -> Any:
    """Farmers work for themselves, who has no occupation is unpaid, offices like degrees."""
    weights = np.tile([share for share, _ in WORK.values()], (len(job), 1))
    weights[:, 1] *= 1 + 9 * (job == 9) + 2 * np.isin(job, (3, 5)) + 0.02 * (age - 17)
    weights[:, 2] *= 1 + 5 * (job == 0) + 2 * (job == 3)
    weights[:, 3:6] *= (1 + 2 * np.isin(job, (1, 4)) + 12 * (job == 12))[:, None]
    weights[:, 6] *= 0.1 + 40 * (job == 13)
    return drawn(random, weights)


def places(random: np.random.Generator, job: Any) -> tuple[Any, Any]:
    """Region and origin: who came from elsewhere lives in the west or on the islands."""
    weights = np.tile([share for share, _ in ORIGINS.values()], (len(job), 1))
    weights[:, 1] *= 1 + 4 * np.isin(job, (8, 9, 11))
    origin = drawn(random, weights)
    weights = np.tile([share for share, _ in REGIONS.values()], (len(job), 1))
    weights[:, 2] *= 1 + 3 * (origin == 1) + 2 * (origin == 2)
    weights[:, 4] *= 1 + 8 * (origin == 2)
    weights[:, 1] *= 1 + 1.5 * (job == 9)
    return drawn(random, weights), origin


def weekly_hours(random: np.random.Generator, age: Any, man: Any, work: Any, job: Any) -> Any:
    """Half of them work 40; the young, the old and the unpaid less, owners more."""
    usual = 40 + 3.5 * man + 6 * (work == 2) + 3 * (work == 1) + 3 * (job == 0) + 5 * (job == 9)
    usual = usual - 13 * (age < 21) - 11 * logistic((age - 66) / 3) - 12 * (work == 6)
    free = np.round(random.normal(usual, 11))
    return np.clip(np.where(random.random(len(age)) < 0.42, 40, free), 1, 99)


def generate(rows: int = ROWS, seed: int = SEED) -> pd.DataFrame:
    """The table: five numbers, seven categories and the label `income`."""
    random = np.random.default_rng(seed)
    age = np.clip(np.floor(17 + random.gamma(2.6, 8.6, rows)), 17, 90)
    man = random.random(rows) < 0.58
    school = schooling(random, age)
    marital, relation = family(random, age, man)
    job = occupations(random, school, man)
    work = employers(random, job, age)
    region, origin = places(random, job)
    hours = weekly_hours(random, age, man, work, job)

    def added(table: dict[str, Any], index: Any) -> Any:
        return np.array([row[-1] for row in table.values()])[index]

    years = np.clip(age - 17, 0, 38)  # experience pays, more so after a long schooling
    pay = (0.035 + 0.0022 * years) * (school - 10) + 0.030 * years - 0.00038 * years**2
    pay = pay + added(OCCUPATIONS, job) + added(WORK, work) + added(REGIONS, region)
    pay = pay + added(ORIGINS, origin) + 0.016 * (np.minimum(hours, 60) - 40)
    pay = pay + 0.14 * man
    two = 0.30 + 0.04 * np.clip(school - 6, 0, 12) - 0.25 * (age < 27)
    pay = pay + np.where(relation == 0, two, 0.0)  # two incomes under one roof
    pay = pay + 0.03 * np.maximum(school - 12, 0) * (job <= 1)  # a degree pays where it is asked
    lucky = random.random(rows) < logistic(-3.0 + 1.5 * (pay - pay.mean()))
    gain = np.where(lucky, np.minimum(np.exp(random.normal(8.4, 1.1, rows)), 99_999), 0).round()
    unlucky = ~lucky & (random.random(rows) < 0.048)
    loss = np.where(unlucky, np.clip(random.normal(1_880, 360, rows), 150, 4_400), 0).round()
    pay = pay + 1.6 * (gain > 6_800) + 0.25 * (loss > 1_800) + random.normal(0, CHANCE, rows)
    rich = pay > np.quantile(pay, 1 - RICH_SHARE)
    codes = (1 - man.astype(int), marital, relation, work, job, region, origin)
    numbers = dict(zip((c.name for c in NUMBERS), (age, school, hours, gain, loss), strict=True))
    texts = {c.name: np.array(c.values)[i] for c, i in zip(CATEGORIES, codes, strict=True)}
    return pd.DataFrame(numbers | texts | {"income": np.array(LABEL.values)[rich.astype(int)]})
