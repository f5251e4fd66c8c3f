"""What an owner may change on a published table, and what it does to what is spent.

Nothing here reads data. Proof: docs/proofs/ledger.md, section 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from sulq.accounting.calibration import Calibration
from sulq.accounting.losses import coupling_factor
from sulq.accounting.pricing import COARSE, noise_grid
from sulq.errors import Refused
from sulq.schema.columns import Category, Column, Flag, Number, Schema
from sulq.schema.promise import Promise
from sulq.schema.strata import accounts


@dataclass(frozen=True, slots=True)
class Change:
    """One fact of a table, before and after."""

    what: str
    was: str
    now: str


def changes(old: Schema, new: Schema, promised: Promise, promise: Promise) -> tuple[Change, ...]:
    """Everything that differs; `Refused` where it may not."""
    return (*promise_changes(promised, promise), *schema_changes(old, new))


def differences(
    old: Schema, new: Schema, promised: Promise, promise: Promise
) -> tuple[Change, ...]:
    """Everything that differs, whatever may be changed: for a table that was never used."""
    found = [
        *([] if promised == promise else [_promised(promised, old, promise, new)]),
        *(
            Change(name, str(getattr(old, name)), str(getattr(new, name)))
            for name in ("unit", "max_rows", "at_most")
            if getattr(old, name) != getattr(new, name)
        ),
    ]
    names = [column.name for column in old.columns]
    for name in [*names, *(column.name for column in new.columns if column.name not in old)]:
        was, now = (_said(schema[name]) if name in schema else "hidden" for schema in (old, new))
        if was != now:
            found.append(Change(f"column {name}", was, now))
    if accounts(old) != accounts(new):
        found.append(Change("strata", ", ".join(old.strata), ", ".join(new.strata)))
    if not found and old.columns != new.columns:
        found.append(Change("columns", _listed(names), _listed([c.name for c in new.columns])))
    return tuple(found)


def _promised(was: Promise, old: Schema, now: Promise, new: Schema) -> Change:
    """Each in the words of its own unit: a row, or a person."""
    return Change("promise", str(was.about(old.unit)), str(now.about(new.unit)))


def _said(column: Column) -> str:
    public = "public, " if column.public else ""
    step = f", step {column.step}" if isinstance(column, Number) and column.step else ""
    return f"{public}{_domain(column)}{step}"


def promise_changes(old: Promise, new: Promise) -> list[Change]:
    """A promise grows or stays: people were told the old one."""
    if old == new:
        return []
    for name in ("noise", "neighbours"):
        if getattr(old, name) != getattr(new, name):
            _refuse(f"the {name} {getattr(old, name)!r}", "what was answered went by it")
    if old.noise in COARSE:
        _refuse(
            f"a promise with {old.noise} noise",
            "it is an account of a fixed number of counts, made at once (G.1.5)",
        )
    found = []
    for name, was, now in (
        ("epsilon", old.epsilon, new.epsilon),
        ("delta", old.delta, new.delta),
        ("credits", Fraction(old.credits), Fraction(new.credits)),
    ):
        if now < was:
            _refuse(
                f"{name} {_number(was)}", f"{_number(now)} is less; a promise can only be raised"
            )
        if now > was:
            found.append(Change(name, _number(was), _number(now)))
    return found or [Change("promise", str(old), str(new))]


def schema_changes(old: Schema, new: Schema) -> list[Change]:
    """New columns, and tighter bounds of old ones."""
    if old.unit != new.unit:
        _refuse(f"the unit {old.unit!r}", "it says who is protected")
    found = [
        _limit(name, getattr(old, name), getattr(new, name)) for name in ("max_rows", "at_most")
    ]
    for column in old.columns:
        if column.name not in new:
            _refuse(f"column {column.name!r}", "a declared column stays declared")
        found.append(_column(column, new[column.name]))
    for column in new.columns:
        if column.name not in old:
            public = "public, " if column.public else ""
            found.append(Change(f"column {column.name}", "hidden", public + _domain(column)))
    if accounts(old) != accounts(new):
        _refuse(
            "the strata",
            "each is an account with a past; a new public column needs strata ="
            f" {list(old.strata)} in the schema",
        )
    changed = [change for change in found if change is not None]
    if not changed and [c.name for c in old.columns] != [c.name for c in new.columns]:
        _refuse("the order of columns", "nothing else is changed by it")
    return changed


def _limit(name: str, was: int, now: int) -> Change | None:
    if now > was:
        _refuse(f"{name} = {was}", f"{now} is more; bounds can only be tightened")
    return Change(name, str(was), str(now)) if now < was else None


def _column(old: Column, new: Column) -> Change | None:
    """The same column, or one with tighter bounds."""
    what = f"column {old.name!r}"
    if old.public != new.public:
        why = (
            "what was promised to be protected would be given away"
            if new.public
            else "exact sums of it may be out, and strata would lose their past"
        )
        _refuse(f"the {'public' if old.public else 'private'} {what}", why)
    match old, new:
        case Flag(), Flag():
            return None
        case Number(), Number() if (old.kind, old.lattice) == (new.kind, new.lattice):
            (low, high), (least, most) = old.range, new.range
            tighter = low <= least and most <= high
            same = (low, high) == (least, most)
        case Category(), Category():
            tighter = old.values is None or set(new.values or (None,)) <= set(old.values)
            same = old.values == new.values
        case _:
            _refuse(what, "its kind and step stay what they are")
    if not tighter:
        _refuse(f"{_domain(old)} of {what}", f"{_domain(new)} is no part of it")
    return None if same else Change(f"column {old.name}", _domain(old), _domain(new))


def _domain(column: Column) -> str:
    match column:
        case Number():
            return f"{column.low} to {column.high}"
        case Category(values=None):
            return "open text"
        case Category():
            return _listed([str(value) for value in column.values or ()])
    return "yes or no"


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(values[:8])
    return shown if len(values) <= 8 else f"{shown} and {len(values) - 8} more"


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.12g}"


def _refuse(what: str, why: str) -> NoReturn:
    raise Refused(f"{what} cannot be amended: {why}; nothing was changed")


def scale(old: Calibration, new: Calibration) -> tuple[Fraction, Fraction]:
    """What one old credit, and a delta of one, is under the new promise: exactly, never less.

    Gaussian: c credits are a loss of c / R in mu^2, so c R'/R new ones (G.1). Laplace: c / b in
    epsilon, so c b'/b (S4.13). A distance t of samplers costs (1 + e^eps) t of delta (TB.8).
    """
    if old.promise == new.promise:
        return Fraction(1), Fraction(1)
    if new.promise.noise == "laplace":
        return new.unit_scale / old.unit_scale, Fraction(1)
    wider = coupling_factor(new.promise.epsilon) / coupling_factor(old.promise.epsilon)
    return new.unit_variance / old.unit_variance, max(Fraction(1), wider)


def keeps(old: Schema, new: Schema, before: Calibration, after: Calibration) -> bool:
    """True if every stored answer means the same as before: the columns it was bound on are
    there unchanged, and so are both grids."""
    same = (old.bits, old.max_rows, old.at_most) == (new.bits, new.max_rows, new.at_most)
    kept = all(column.name in new and new[column.name] == column for column in old.columns)
    return same and kept and noise_grid(before) == noise_grid(after)
