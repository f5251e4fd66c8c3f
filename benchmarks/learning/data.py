"""The tables: columns with public bounds, the label, and splits that everybody shares."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

from benchmarks.learning import census
from sulq import Category, Number, Schema

BUNDLED = ("breast_cancer", "digits", "wine", "diabetes")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A frame with what is publicly known of its columns."""

    name: str
    frame: pd.DataFrame
    columns: tuple[Number | Category, ...]
    label: Number | Category
    held_out: float = 0.3

    @property
    def schema(self) -> Schema:
        return Schema(*self.columns, self.label)

    def column(self, name: str) -> Number | Category:
        return next(c for c in (*self.columns, self.label) if c.name == name)

    @property
    def fingerprint(self) -> str:
        """Results of another table of the same name must not be taken for this one's."""
        rows = pd.util.hash_pandas_object(self.frame, index=False).to_numpy()
        return hashlib.sha256(rows.tobytes() + repr(self.schema.columns).encode()).hexdigest()[:12]


def scaled(column: Number, values: Any) -> Any:
    """The public bounds become 0 and 1."""
    low, high = (float(end) for end in column.range)
    return (np.asarray(values, float) - low) / (high - low)


def encoded(table: Table, names: Sequence[str], frame: pd.DataFrame) -> Any:
    """Numbers scaled, categories one-hot by their declared values: what the product does."""
    parts = []
    for name in names:
        column, values = table.column(name), frame[name].to_numpy()
        if isinstance(column, Number):
            parts.append(scaled(column, values)[:, None])
        else:
            parts.append((values[:, None] == np.array(column.values)).astype(float))
    return np.concatenate(parts, axis=1)


def split(strata: Any, share: float, repeat: int) -> tuple[Any, Any]:
    """Row numbers to learn from and to judge on, in no order; each stratum gives its share.

    In no order since a forest may cut the rows as they lie into parts, one for each tree.
    """
    random = np.random.default_rng([2006, repeat])
    judged = []
    for value in np.unique(strata):
        rows = random.permutation(np.flatnonzero(strata == value))
        judged.append(rows[: round(share * len(rows))])
    test = np.concatenate(judged)
    return random.permutation(np.setdiff1d(np.arange(len(strata)), test)), test


def bundled(name: str) -> Table:
    """A data set of scikit-learn; bounds: 0..16 for digits, else least and greatest of all rows."""
    loaded = getattr(datasets, f"load_{name}")()
    rows = np.asarray(loaded.data, float)
    names = [f"c{k}" for k in range(rows.shape[1])]
    low, high = rows.min(axis=0), rows.max(axis=0)
    if name == "digits":
        low, high = np.zeros_like(low), np.full_like(high, 16.0)
    columns = tuple(Number(n, *ends) for n, *ends in zip(names, low, high, strict=True))
    frame = pd.DataFrame(rows, columns=names)
    if name == "diabetes":
        target = np.asarray(loaded.target, float)
        return Table(
            name, frame.assign(label=target), columns, Number("label", target.min(), target.max())
        )
    values = tuple(str(k) for k in range(len(loaded.target_names)))
    label = np.array(values)[loaded.target]
    return Table(name, frame.assign(label=label), columns, Category("label", values))


def adult(folder: Path) -> Table:
    """The real census of 1994, if a developer has it: adult.data.gz and adult.test.gz."""
    parts = [
        pd.read_csv(folder / f"adult.{part}.gz", skipinitialspace=True) for part in ("data", "test")
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame["classification"] = frame["classification"].str.rstrip(".")
    frame["abroad"] = np.where(frame["native-country"] == "United-States", "no", "yes")
    texts = ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "abroad")
    numbers = (
        Number("age", 0, 120, step=1),
        Number("education-num", 0, 20, step=1),
        Number("hours-per-week", 0, 100, step=1),
        Number("capital-gain", 0, 100_000, step=1),
        Number("capital-loss", 0, 5_000, step=1),
    )
    categories = (Category(name, tuple(sorted(frame[name].unique()))) for name in texts)
    columns: tuple[Number | Category, ...] = (*numbers, *categories)
    label = Category("classification", ("<=50K", ">50K"))
    wanted = [column.name for column in (*columns, label)]
    return Table("adult", frame[wanted], columns, label, held_out=1 / 3)


@cache
def table(name: str, folder: Path | None = None) -> Table:
    if name == "census":
        return Table(name, census.generate(), census.COLUMNS, census.LABEL, held_out=1 / 3)
    if name == "adult":
        assert folder is not None, "adult needs --adult PATH"
        return adult(folder)
    return bundled(name)
