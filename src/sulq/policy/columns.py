"""One declared column of a policy: ready to publish, or what it still lacks."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.schema.columns import (
    Category,
    Column,
    Flag,
    Number,
    Scalar,
    labels_of,
    meaning_of,
)

OPEN = "?"
"""Stands where the owner must write a bound or a value."""
KINDS = ("number", "category", "flag", "text", "whole")
SAID = ("proposed", "identifier_ok", "partial")
"""What the owner says of a column to `sulq check`: in the policy file, never in the schema."""
OPTIONS = {
    "number": ("step", "public", "complete", "about", "measured_in", *SAID),
    "category": ("public", "complete", "about", "labels", *SAID),
    "flag": ("public", "complete", "about", *SAID),
    "text": ("about", *SAID),
    "whole": ("about", *SAID),
}
_RATIO = re.compile(r"-?\d{1,40}/[1-9]\d{0,40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ColumnPolicy:
    """A column's name and its facts as the file has them."""

    name: str
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.facts, Mapping):
            raise InvalidQuery(
                f"columns.{self.name} must be a table such as {{number = [0, 120]}},"
                f" got {type(self.facts).__name__}"
            )
        kind = [name for name in KINDS if name in self.facts]
        if len(kind) != 1:
            raise InvalidQuery(
                f"columns.{self.name} must have one of {list(KINDS)}, got {sorted(self.facts)}"
            )
        unknown = sorted(set(self.facts) - {kind[0], *OPTIONS[kind[0]]})
        if unknown:
            raise InvalidQuery(
                f"columns.{self.name}: unknown {unknown}; a {kind[0]} knows"
                f" {list(OPTIONS[kind[0]])}"
            )
        for name in ("flag", "text", "whole", "public", "complete", *SAID):
            if not isinstance(self.facts.get(name, False), bool):
                raise InvalidQuery(f"columns.{self.name}: {name} must be true or false")

    @classmethod
    def of(cls, column: Column) -> ColumnPolicy:
        """The facts of a declared column."""
        facts: dict[str, Any]
        match column:
            case Number():
                facts = {"number": [column.low, column.high]}
                facts |= {} if column.step is None else {"step": column.step}
            case Category(values=None):
                facts = {"whole" if column.whole else "text": True}
            case Category():
                facts = {"category": list(column.values or ())}
            case Flag():
                facts = {"flag": True}
        said = {name: True for name in ("public", "complete") if getattr(column, name)}
        return cls(column.name, facts | said | meaning_of(column))

    @property
    def kind(self) -> str:
        return next(name for name in KINDS if name in self.facts)

    @property
    def lacks(self) -> str:
        """Why the column cannot be asked about yet; empty if it can."""
        if self.facts.get("proposed"):
            return (
                "was proposed from the data: if everybody may know it, remove proposed = true,"
                " else write what is public knowledge"
            )
        given = self.facts[self.kind]
        if isinstance(given, list) and (OPEN in given or not given):
            if self.kind == "number":
                return "has no bounds yet: write the smallest and largest value that make sense"
            return "has no values yet: list those that everybody may know, or use {text = true}"
        if given is False:
            return f"has {self.kind} = false: write true, or remove the line to hide the column"
        return ""

    def column(self) -> Column:
        """The declared column; `InvalidQuery` while something is lacking or wrong."""
        if self.lacks:
            raise InvalidQuery(f"column {self.name!r} {self.lacks}")
        public, complete = (bool(self.facts.get(name, False)) for name in ("public", "complete"))
        about = self.facts.get("about", "")
        given = self.facts[self.kind]
        if self.kind == "number":
            if not isinstance(given, list) or len(given) != 2:
                raise InvalidQuery(f"columns.{self.name}: number must be [low, high]")
            low, high = (_scalar(bound, self.name) for bound in given)
            step = self.facts.get("step")
            words = {"about": about, "measured_in": self.facts.get("measured_in", "")}
            return Number(self.name, low, high, _step(step, self.name), public, complete, **words)
        if self.kind == "category":
            if not isinstance(given, list):
                raise InvalidQuery(f"columns.{self.name}: category must be a list of values")
            labels = labels_of(given, self.facts.get("labels", {}))
            return Category(self.name, given, public, complete=complete, about=about, labels=labels)
        if self.kind in ("text", "whole"):
            return Category(self.name, whole=self.kind == "whole", about=about)
        return Flag(self.name, public, complete, about=about)


def _scalar(value: object, name: str) -> Scalar:
    """A bound as TOML has it: numbers exactly as they are spelled."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InvalidQuery(f"columns.{name}: a bound must be finite, got {value}")
        return Fraction(value)
    if isinstance(value, str) and _RATIO.fullmatch(value):
        return Fraction(value)
    if isinstance(value, int | float | Fraction | datetime.date) and not isinstance(value, bool):
        return value
    raise InvalidQuery(f"columns.{name}: a bound must be a number or a date, got {value!r:.40}")


def _step(value: object, name: str) -> int | float | Fraction | None:
    if value is None:
        return None
    read = _scalar(value, name)
    if isinstance(read, datetime.date):
        raise InvalidQuery(f"columns.{name}: step must be a number, got a date")
    return read
