"""How many rows each public class has: a public constant under replace. G.2.1"""

from __future__ import annotations

from collections.abc import Mapping

from sulq.errors import UnsafeExactly
from sulq.exact.domain import UNDECLARED, Domain, values_of
from sulq.schema import bound as b
from sulq.schema.columns import Category, Schema

MOST_CLASSES = 1024


def counting(domain: Domain) -> b.RowSums:
    """One sum for each of `domain.classes()`, in order: the rows that belong to it."""
    profiles = []
    for given in domain.classes():
        profiles.append(given)
        if len(profiles) > MOST_CLASSES:
            raise UnsafeExactly(
                f"the batch tells more than {MOST_CLASSES} public classes apart; use fewer public"
                " columns"
            )
    ones: list[b.Integer] = [
        b.Chosen(_belongs(given, domain.schema), b.Fixed(1), b.Fixed(0)) for given in profiles
    ]
    return b.RowSums(b.Always(), tuple(ones), ())


def _belongs(given: Mapping[str, object], schema: Schema) -> b.Condition:
    parts = tuple(_holds(name, value, schema) for name, value in given.items())
    return b.AllOf(parts) if parts else b.Always()


def _holds(name: str, value: object, schema: Schema) -> b.Condition:
    column = schema[name]
    if not isinstance(column, Category):
        if value is None:
            return b.Missing(b.FlagBit(name), negated=False)
        return b.FlagIs(name, value is True)
    if value is None:
        return b.Missing(b.Text(name), negated=False)
    if value == UNDECLARED:
        return b.Among(name, tuple(values_of(column)), negated=True)  # type: ignore[arg-type]
    return b.Among(name, (value,), negated=False)  # type: ignore[arg-type]
