"""What a policy says about exact release: off unless the owner vouches for assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sulq.errors import InvalidQuery

KEYS = ("epsilon", "delta", "known_rows", "least", "menu")


@dataclass(frozen=True, slots=True)
class ExactPolicy:
    """The owner's assumptions, and the questions that may be released: a menu of batches.

    `least[column]` is the least probability of each value of that column, whatever else is known
    of the row; questions are spelled as on the command line: "count where ill".
    """

    epsilon: Fraction
    delta: Fraction
    known_rows: int
    least: Mapping[str, Fraction]
    menu: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def read(cls, table: str, facts: Any) -> ExactPolicy:
        """The `exact` part of a table as TOML has it."""
        where = f"[{table}.exact]"
        if not isinstance(facts, Mapping):
            raise InvalidQuery(f"{where} must be a table, got {facts!r:.40}")
        if unknown := sorted(set(facts) - set(KEYS)):
            raise InvalidQuery(f"{where}: unknown {unknown}; it knows {list(KEYS)}")
        if missing := [key for key in KEYS[:4] if key not in facts]:
            raise InvalidQuery(f"{where}: {missing} missing; it needs {list(KEYS[:4])}")
        least, known = facts["least"], facts["known_rows"]
        if not isinstance(least, Mapping) or not least:
            raise InvalidQuery(f"{where}: least says which columns are uncertain: {{ill = 0.05}}")
        if isinstance(known, bool) or not isinstance(known, int) or known < 0:
            raise InvalidQuery(f"{where}: known_rows must be a whole number, got {known!r:.40}")
        return cls(
            _number(f"{where}: epsilon", facts["epsilon"]),
            _number(f"{where}: delta", facts["delta"]),
            known,
            {name: _number(f"{where}: least.{name}", share) for name, share in least.items()},
            _menu(where, facts.get("menu", [])),
        )

    @property
    def facts(self) -> dict[str, Any]:
        """As TOML has it."""
        said: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
        said |= {"known_rows": self.known_rows, "least": dict(self.least)}
        return said | ({"menu": [list(path) for path in self.menu]} if self.menu else {})


def _number(name: str, value: object) -> Fraction:
    real = isinstance(value, int | Decimal | str) and not isinstance(value, bool)
    try:
        number = Fraction(str(value)) if real else Fraction(0)
    except (ValueError, OverflowError, ZeroDivisionError):
        number = Fraction(0)
    if number <= 0:
        raise InvalidQuery(f"{name} must be a number above 0, got {value!r:.40}")
    return number


def _menu(where: str, value: object) -> tuple[tuple[str, ...], ...]:
    """A list of questions is one batch; a list of such lists is a menu of them."""
    batches = [value] if isinstance(value, list) and value and _texts(value) else value
    if not isinstance(batches, list) or not all(_texts(batch) for batch in batches):
        raise InvalidQuery(
            f'{where}: menu is a list of questions, such as ["count where ill"], or a list of such'
            f" lists, got {value!r:.60}"
        )
    return tuple(tuple(batch) for batch in batches)


def _texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, str) for x in value)
