"""What a learner knows before it asks: columns, label, rows, and how loud the noise is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.answers.statistics import count, total
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.query.expressions import Expression, col, lit
from sulq.kernel.query.sum_query import SumQuery, outer
from sulq.kernel.query.vectors import Vector, cells, one_hot
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.learn.budget import FitBudget, quoted_error
from sulq.learn.features import Features

COUNT_SHARE = 0.02
"""Of the credits, for the number of rows where it is private."""

LabelKind = Literal["classes", "number", "none"]


@dataclass(frozen=True)
class Label:
    """What is predicted: the declared values of a column, a condition, or a Number."""

    source: str | Expression
    classes: tuple[Any, ...] = ()
    number: Number | None = None

    @classmethod
    def of(cls, schema: Schema, label: object, kind: LabelKind) -> Label | None:
        """Check what was given; costs nothing."""
        if kind == "none":
            if label is not None:
                raise InvalidQuery("this learner takes no label; leave it out")
            return None
        if label is None:
            raise InvalidQuery("this learner needs label=, the column to predict")
        if isinstance(label, Expression):
            if kind == "number":
                raise InvalidQuery("the label must be the name of a Number column")
            return cls(label, (False, True))
        column = schema[str(label)]
        if kind == "number":
            if not isinstance(column, Number):
                raise InvalidQuery(
                    f"{column.name} is a {type(column).__name__}; this learner predicts a Number"
                )
            return cls(column.name, number=column)
        if isinstance(column, Flag):
            return cls(column.name, (False, True))
        if isinstance(column, Category) and column.values is not None:
            if len(column.values) < 2:
                raise InvalidQuery(f"{column.name} has one declared value: nothing to predict")
            return cls(column.name, tuple(column.values))
        raise InvalidQuery(
            f"{column.name} has no declared classes; predict a Category or Flag, or a condition"
            f" such as col({column.name!r}) >= 10"
        )

    @property
    def binary(self) -> bool:
        return len(self.classes) == 2

    @property
    def flag(self) -> bool:
        """Whether the classes are no and yes; the integers 0 and 1 are equal to them and are not"""
        return all(isinstance(value, bool) for value in self.classes)

    def one_hot(self) -> Vector:
        """One coordinate a class; all 0 where the label is missing."""
        if isinstance(self.source, Expression):
            return cells(~self.source, self.source)
        return one_hot(self.source)

    def truth(self, place: int = 1) -> Expression:
        """Whether the label is the class at `place`."""
        if isinstance(self.source, Expression):
            return self.source if place else ~self.source
        if self.flag:
            return col(self.source) if place else ~col(self.source)
        same: Expression = col(self.source) == self.classes[place]
        return same

    def known(self) -> Expression:
        """Whether a row has one of the classes."""
        if isinstance(self.source, Expression):
            return self.source | ~self.source
        if self.flag:
            return col(self.source).is_not_null()
        return col(self.source).isin(list(self.classes))


@dataclass(frozen=True)
class FitData:
    """The public side of a fit. `rows` is exact where public, else the noisy count paid for."""

    oracle: Oracle
    features: Features
    label: Label | None
    where: Expression | None
    cap: Fraction
    rows: float = math.nan
    rows_error: float = 0.0

    @classmethod
    def of(
        cls,
        oracle: Oracle,
        features: Sequence[str] | Vector,
        label: object,
        kind: LabelKind,
        where: Expression | None,
        cap: Fraction,
    ) -> FitData:
        noise = oracle.promise.noise
        if noise not in ("gaussian", "laplace"):
            raise Refused(
                f"this table's {noise} noise sells whole credits of counts only; learners need a"
                " promise with noise='gaussian' or 'laplace'"
            )
        found = Features.of(oracle.schema, features)
        target = Label.of(oracle.schema, label, kind)
        if target is not None and isinstance(target.source, str) and target.source in found.names:
            raise InvalidQuery(f"the label {target.source!r} is also a feature; leave it out there")
        return cls(oracle, found, target, where, cap)

    @property
    def width(self) -> int:
        return self.features.width

    @property
    def gaussian(self) -> bool:
        """delta > 0: charged by L2 norms. Else Laplace noise, by L1 norms."""
        return self.oracle.promise.noise == "gaussian"

    @property
    def replace(self) -> bool:
        return self.oracle.promise.neighbours == "replace"

    @property
    def joint_rows(self) -> bool:
        """Whether somebody sees whole rows: not where columns live with several owners."""
        return bool(getattr(self.oracle, "joint_rows", True))

    @property
    def public_rows(self) -> bool:
        """Whether everybody knows how many rows there are."""
        schema = self.oracle.schema
        return self.oracle.size is not None and schema.unit == "row" and self.where is None

    @cached_property
    def unit(self) -> float:
        """The standard error of one count for the whole cap: 1/mu, or sqrt(2)/epsilon.

        Twice that of a sum of halves: a count of whole rows may have less noise than this (S2.6),
        which other sums do not have.
        """
        halves = total(lit(Fraction(1, 2)), where=_condition(self))
        return 2 * quoted_error(self.oracle, halves, self.cap)

    @property
    def signal(self) -> float:
        """Rows over the noise of one count: what is there to learn from. Infinite without noise."""
        return self.rows / self.unit if self.unit else math.inf

    @property
    def labelled(self) -> Expression:
        """Which rows of this fit have one of the classes."""
        assert self.label is not None  # noqa: S101
        known = self.label.known()
        return known if self.where is None else self.where & known

    def outer(self, left: Vector, right: Vector) -> SumQuery:
        """A sum over this fit's rows."""
        return outer(left, right, rows=self.where)

    def counted(self, budget: FitBudget) -> FitData:
        """The table with its number of rows: public, or paid for."""
        if self.public_rows:
            return replace(self, rows=float(self.oracle.size or 0))
        answer = budget.ask("rows", count(where=self.where), COUNT_SHARE)
        error = float(np.max(answer.standard_error))
        if error == 0 and float(answer) == 0:  # a public fact
            raise InvalidQuery("no row can match where=; nothing was charged")
        return replace(self, rows=max(float(answer), 1.0, error / 2), rows_error=error)

    def supposing(self, rows: int | None) -> FitData:
        """The table with a stated number of rows, for a quote."""
        if self.public_rows:
            return replace(self, rows=float(self.oracle.size or 0))
        return replace(self, rows=float(rows or 10_000), rows_error=0.0)

    @property
    def share(self) -> float:
        """What the plan may share out: 1, or 1 less what the count costs."""
        return 1.0 if self.public_rows else 1.0 - COUNT_SHARE


def _condition(table: FitData) -> Expression:
    """A condition that one private row decides: its count has sensitivity 1."""
    schema = table.oracle.schema
    hidden = [c for c in schema.columns if not c.public or not table.replace]
    for column in hidden:
        if isinstance(column, Flag):
            return col(column.name)
        if isinstance(column, Category):
            if column.values:
                return col(column.name) == column.values[0]
            continue
        return _upper_half(column)
    raise InvalidQuery("every column of this table is public: learn from the public data itself")


def _upper_half(column: Number) -> Expression:
    if column.kind != "number":
        return col(column.name) > column.low
    low, high = column.range
    return col(column.name) >= float((low + high) / 2)
