"""A fictional health register: rows that never belonged to anybody, and its policy.

The generator is seeded, so the register is the same everywhere; the noise of answers never is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.policy import TablePolicy, read_policy, write_policy

REGIONS = ("North", "South", "East", "West", "Islands", "Capital")
SEXES = ("female", "male")
DIAGNOSES = ("none", "asthma", "diabetes", "heart disease", "cancer", "depression")

SCHEMA = Schema(
    Number("age", 0, 110, step=1),
    Category("sex", SEXES, public=True),
    Category("region", REGIONS, public=True),
    Number("income", 0, 200_000),
    Flag("smoker"),
    Number("bmi", 10, 60),
    Number("blood_pressure", 70, 230, step=1),
    Category("diagnosis", DIAGNOSES),
    Number("visits", 0, 60, step=1),
)
PROMISE = Promise(1, "1e-6", 20)
TOWN_PROMISE = Promise(1, "1e-6", 200)
MARK = ".made-by-sulq-demo"
FEWEST, MOST = 1_000, 5_000_000


@dataclass(frozen=True, slots=True)
class Register:
    """The columns of a fictional register; categories as numbers into their lists."""

    columns: Mapping[str, NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_]]

    def write(self, path: Path) -> None:
        """As Parquet. `person_id` is in the file, undeclared, and so hidden."""
        with duckdb.connect(":memory:") as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.register("made", dict(self.columns))
            connection.execute(  # names of ours and a quoted path
                "COPY (SELECT row_number() OVER () AS person_id, CAST(age AS SMALLINT) AS age,"  # noqa: S608
                f" {_named(SEXES)}[sex + 1] AS sex, {_named(REGIONS)}[region + 1] AS region,"
                " CASE WHEN isnan(income) THEN NULL ELSE round(income, 2) END AS income, smoker,"
                " CASE WHEN isnan(bmi) THEN NULL ELSE round(bmi, 1) END AS bmi,"
                " CAST(blood_pressure AS SMALLINT) AS blood_pressure,"
                f" {_named(DIAGNOSES)}[diagnosis + 1] AS diagnosis,"
                " CAST(visits AS SMALLINT) AS visits FROM made)"
                f" TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)"
            )


def _named(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def fictional_people(people: int, seed: int = 1) -> Register:
    """Correlated columns: older people are iller, smokers' blood pressure is higher, and so on."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.gamma(4.2, 10.5, people) - 3, 0, 104).astype(np.int64)
    adult = np.clip((age - 17) / 10, 0, 1)
    sex = draw.integers(0, 2, people)
    region = draw.choice(len(REGIONS), people, p=[0.16, 0.2, 0.17, 0.16, 0.06, 0.25])
    capital = region == REGIONS.index("Capital")
    wealth = draw.normal(0, 0.45, people) + 0.2 * capital + 0.1 * sex
    retired = age >= 67
    income = adult * 32_000 * np.exp(wealth) * np.where(retired, 0.65, 1)
    smoker = draw.random(people) < adult * (0.24 - 0.12 * wealth) * np.where(age > 60, 0.6, 1)
    bmi = np.clip(
        17 + 7.5 * np.clip(age / 40, 0, 1) - 0.8 * wealth + draw.normal(0, 3.6, people), 11, 58
    )
    pressure = 98 + 0.42 * age + 0.7 * (bmi - 24) + 4.5 * smoker + draw.normal(0, 10, people)
    illness = np.stack(
        [
            np.full(people, 3.0),
            np.where(age < 20, 0.6, 0.1) + 0.5 * smoker,
            0.015 * age + 0.12 * (bmi - 24) - 0.6,
            0.045 * age + 0.02 * (pressure - 120) + 0.7 * smoker - 2.2,
            0.04 * age + 0.6 * smoker - 2.3,
            0.4 * (sex == 0) + 0.3 * adult - 0.4 * wealth - 0.2,
        ]
    )
    # the largest of utility plus Gumbel noise: a draw from the softmax of the utilities
    diagnosis = np.argmax(illness + draw.gumbel(size=illness.shape), axis=0)
    visits = np.clip(draw.poisson(1.2 + 0.02 * age + 4.5 * (diagnosis > 0)), 0, 60)
    unknown = draw.random((2, people)) < 0.02
    return Register(
        {
            "age": age,
            "sex": sex,
            "region": region,
            "income": np.where(unknown[0], np.nan, np.clip(income, 0, 400_000)),
            "smoker": smoker,
            "bmi": np.where(unknown[1], np.nan, bmi),
            "blood_pressure": np.clip(np.rint(pressure), 75, 225).astype(np.int64),
            "diagnosis": diagnosis,
            "visits": visits,
        }
    )


@dataclass(frozen=True, slots=True)
class Demo:
    """A throw-away directory with two fictional tables: one for the tour, one to play with."""

    directory: Path
    register: Register
    people: TablePolicy
    town: TablePolicy

    @property
    def policy(self) -> Path:
        return self.directory / "sulq.toml"


def make_demo(directory: Path, people: int) -> Demo:
    """Make both tables and their policy anew; what an earlier demo left there is removed."""
    if not FEWEST <= people <= MOST:
        raise InvalidQuery(f"the demo has {FEWEST:,} to {MOST:,} people, got {people:,}")
    _clear(directory)
    register = fictional_people(people)
    register.write(directory / "people.parquet")
    fictional_people(max(FEWEST, people // 4), seed=2).write(directory / "town.parquet")
    policy = directory / "sulq.toml"
    drafts = [  # other people in each of them
        replace(TablePolicy.of(name, f"{name}.parquet", f"{name}.ledger", SCHEMA, said), apart=True)
        for name, said in (("people", PROMISE), ("town", TOWN_PROMISE))
    ]
    write_policy(policy, drafts)
    tables = read_policy(policy)
    return Demo(directory, register, tables["people"], tables["town"])


def _clear(directory: Path) -> None:
    """An empty directory with our mark; somebody else's files are never touched."""
    if directory.exists():
        if not (directory / MARK).is_file():
            if not directory.is_dir() or any(directory.iterdir()):
                raise InvalidQuery(
                    f"{directory} holds files that are not the demo's; name another directory"
                )
        else:
            shutil.rmtree(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MARK).write_text("sulq demo may delete this directory\n", "utf-8")


@contextmanager
def own_state(directory: Path) -> Iterator[None]:
    """A state directory of the demo's own: it never meets the real ledgers."""
    before = os.environ.get("SULQ_STATE")
    os.environ["SULQ_STATE"] = str((directory / "state").absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ["SULQ_STATE"]
        else:
            os.environ["SULQ_STATE"] = before
