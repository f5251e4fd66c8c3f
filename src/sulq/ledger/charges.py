"""A loss per account, written compactly: equal losses once, accounts as ranges of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sulq.accounting.losses import Loss
from sulq.errors import InvalidQuery


@dataclass(frozen=True, slots=True)
class Part:
    """Accounts that pay the same; each range includes both ends."""

    loss: Loss
    ranges: tuple[tuple[int, int], ...]

    def accounts(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)


def group(charges: Mapping[str, Loss], numbers: Mapping[str, int]) -> tuple[Part, ...]:
    """Parts of `charges`, each account in exactly one; `numbers` gives every account its number."""
    equal: dict[Loss, list[int]] = {}
    for account, loss in charges.items():
        if (number := numbers.get(account)) is None:
            raise InvalidQuery(
                f"no account {account!r}; the table has {len(numbers)}, fixed when it was published"
            )
        equal.setdefault(loss, []).append(number)
    parts = [_part_of(loss, tuple(found)) for loss, found in equal.items()]
    if len(parts) > 1:
        parts.sort(key=lambda part: part.ranges)
    return tuple(parts)


@lru_cache(maxsize=256)  # most questions touch the same accounts at the same price
def _part_of(loss: Loss, numbers: tuple[int, ...]) -> Part:
    return Part(loss, tuple(_ranges(sorted(numbers))))


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = -2
    for number in numbers:
        if number != last + 1:
            if first >= 0:
                yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last


def loss_to_json(loss: Loss) -> list[str]:
    """Decimal text: these integers exceed what other readers of JSON hold exactly."""
    return [str(loss.credits), str(loss.delta)]


def loss_from_json(found: Sequence[str]) -> Loss:
    return _loss(*found)


@lru_cache(maxsize=1024)  # few prices, many entries
def _loss(credits: str, delta: str) -> Loss:
    return Loss(int(credits), int(delta))


def to_json(parts: Iterable[Part]) -> list[tuple[str, str, str]]:
    return [_part_to_json(part) for part in parts]


@lru_cache(maxsize=1024)
def _part_to_json(part: Part) -> tuple[str, str, str]:
    ranges = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in part.ranges)
    return str(part.loss.credits), str(part.loss.delta), ranges


def from_json(found: Iterable[Sequence[str]]) -> tuple[Part, ...]:
    return tuple([_part(*entry) for entry in found])


@lru_cache(maxsize=1024)
def _part(credits: str, delta: str, accounts: str) -> Part:
    ranges = []
    for piece in accounts.split(","):
        first, dash, last = piece.partition("-")
        ranges.append((int(first), int(last if dash else first)))
    return Part(_loss(credits, delta), tuple(ranges))


def by_name(parts: Iterable[Part], names: Sequence[str]) -> dict[str, Loss]:
    """Parts back to a loss per account name."""
    return {names[number]: part.loss for part in parts for number in part.accounts()}
