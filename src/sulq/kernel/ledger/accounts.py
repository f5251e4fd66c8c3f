"""A loss per account, written compactly: equal losses once, accounts as ranges of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from sulq.errors import BudgetSpent, InvalidQuery
from sulq.kernel.accounting.loss import Loss


@dataclass(frozen=True, slots=True)
class AccountCharge:
    """Accounts that pay the same; each range includes both ends."""

    loss: Loss
    ranges: tuple[tuple[int, int], ...]

    def accounts(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)


def group_charges(
    charges: Mapping[str, Loss], numbers: Mapping[str, int]
) -> tuple[AccountCharge, ...]:
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
def _part_of(loss: Loss, numbers: tuple[int, ...]) -> AccountCharge:
    return AccountCharge(loss, tuple(_ranges(sorted(numbers))))


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


def to_json(parts: Iterable[AccountCharge]) -> list[tuple[str, str, str]]:
    return [_part_to_json(part) for part in parts]


@lru_cache(maxsize=1024)
def _part_to_json(part: AccountCharge) -> tuple[str, str, str]:
    ranges = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in part.ranges)
    return str(part.loss.credits), str(part.loss.delta), ranges


def from_json(found: Iterable[Sequence[str]]) -> tuple[AccountCharge, ...]:
    return tuple([_part(*entry) for entry in found])


@lru_cache(maxsize=1024)
def _part(credits: str, delta: str, accounts: str) -> AccountCharge:
    ranges = []
    for piece in accounts.split(","):
        first, dash, last = piece.partition("-")
        ranges.append((int(first), int(last if dash else first)))
    return AccountCharge(_loss(credits, delta), tuple(ranges))


def charges_by_account(parts: Iterable[AccountCharge], names: Sequence[str]) -> dict[str, Loss]:
    """Turn parts back into a loss per account name."""
    return {names[number]: part.loss for part in parts for number in part.accounts()}


# What may be written: checked before the writer's thread sees it, so that nobody's input stops it.
#
# Every text must come back from the ledger as it went in, every amount as a short decimal number.


NAME = 4096  # characters of an analyst, key, digest, table or account
TEXT = 2**24  # of a question, a noise law or a fact
AMOUNT = 2**256  # steps; far above every cap


def check_text(what: str, value: object, most: int = NAME) -> None:
    """Raise `InvalidQuery` unless `value` is text that can be stored."""
    if type(value) is not str:
        raise InvalidQuery(f"the {what} must be text, got {type(value).__name__}")
    if len(value) > most:
        raise InvalidQuery(f"the {what} has {len(value)} characters, the most is {most}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidQuery(f"the {what} holds half a character (a lone surrogate)") from None


def check_loss(what: str, value: object) -> None:
    """Raise `InvalidQuery` unless `value` is a loss that can be stored."""
    if not isinstance(value, Loss):
        raise InvalidQuery(f"the {what} must be a Loss, got {type(value).__name__}")
    if max(value.credits, value.delta) >= AMOUNT:
        raise InvalidQuery(f"the {what} is larger than any budget; ask for less")


def check_texts(question: str, digest: str, noise: str, analyst: str, key: str | None) -> None:
    """`InvalidQuery` unless all that a question is stored with is text that can be."""
    for what, text, most in (
        ("question", question, TEXT),
        ("digest", digest, NAME),
        ("noise", noise, TEXT),
        ("analyst's name", analyst, NAME),
        ("key", "" if key is None else key, NAME),
    ):
        check_text(what, text, most)


# What every account has spent, added up quickly.


class SpentTotals:
    """One integer per account, kept as a common part and what each has on top.

    A question that touches everybody then costs one addition, however many accounts there are.
    Amounts only grow, so the largest needs no search.
    """

    __slots__ = ("common", "extra", "top")

    def __init__(self, size: int) -> None:
        self.common, self.extra, self.top = 0, [0] * size, 0

    def _everybody(self, part: AccountCharge) -> bool:
        return part.ranges == ((0, len(self.extra) - 1),)

    @property
    def most(self) -> int:
        return self.common + self.top

    def worst(self, part: AccountCharge) -> int:
        """Return the most that any account of `part` has."""
        if self._everybody(part):
            return self.most
        return self.common + max(self.extra[number] for number in part.accounts())

    def add(self, part: AccountCharge, amount: int) -> None:
        if self._everybody(part):
            self.common += amount
            return
        for number in part.accounts():
            self.extra[number] += amount
            self.top = max(self.top, self.extra[number])

    def fill(self, least: int) -> None:
        """Raise every account to `least`."""
        self.extra = [max(extra, least - self.common) for extra in self.extra]
        self.top = max(self.extra)

    def scale(self, factor: Fraction) -> None:
        """Convert every account to another currency, rounded up."""
        self.extra = [rounded_up((self.common + extra) * factor) for extra in self.extra]
        self.common, self.top = 0, max(self.extra)

    def __getitem__(self, number: int) -> int:
        return self.common + self.extra[number]

    def copy(self) -> SpentTotals:
        twin = SpentTotals(0)
        twin.common, twin.extra, twin.top = self.common, list(self.extra), self.top
        return twin


def rounded_up(amount: Fraction) -> int:
    return -(-amount // 1)


def in_credits(units: int, *, up: bool = False) -> str:
    """Write multiples of 2^-64 credit as decimal text with at most six places."""
    scaled = units * 10**6
    millionths = -(-scaled >> 64) if up else scaled >> 64
    whole, rest = divmod(millionths, 10**6)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


# Credits set aside: out of an analyst's share, or by the owner out of what nobody was granted.
#
# A reservation pays as a share does, question by question. What it has left when it ends goes back
# where it came from. It lives no longer than the process that made it: the next opening of the
# ledger ends it, or another replica. Proof: docs/proofs/ledger.md, section 8.


NOTHING = Loss(0, 0)


@dataclass(slots=True)
class Reservation:
    """Set aside by one event, for whoever asks through it."""

    seq: int
    analyst: str
    amount: Loss
    at: int  # for display only
    spent: Loss = NOTHING
    replica: int | None = None  # whose it is, where several share the ledger

    @property
    def left(self) -> Loss:
        return minus_clamped(self.amount, self.spent)

    def pay(self, analyst: str, share: Loss) -> None:
        """Book what was admitted; `ValueError` for what no honest writer books."""
        if analyst != self.analyst or not share.within(self.left):
            raise ValueError("spent from a reservation that does not have it")
        self.spent += share


def minus_clamped(loss: Loss, other: Loss) -> Loss:
    """Return what is left of `loss`, never below nothing."""
    return Loss(max(0, loss.credits - other.credits), max(0, loss.delta - other.delta))


# What one version of a table's data may spend, inside the lifetime cap.
#
# It plans, and promises nothing of its own: a person's loss adds over the versions they are in,
# and the cap bounds the sum. Nothing of it comes back with a new version. docs/proofs/ledger.md,
# 16.


@dataclass(frozen=True, slots=True)
class VersionBudget:
    """In steps of credits, as accounts are kept. `allowed` is None where only the cap limits."""

    start: int = 0  # what the worst account had lost before this version
    allowed: int | None = None
    outside: int = 0  # booked meanwhile as released elsewhere, on every account

    @property
    def top(self) -> int | None:
        """Return what an account may have lost by the end of this version."""
        return None if self.allowed is None else self.start + self.allowed

    def left(self, spent: int, aside: int) -> int | None:
        """Return what is left for a question on an account that has lost so much."""
        return None if self.top is None else max(0, self.top - spent - aside)

    def admit(self, spent: int, due: int, aside: int) -> None:
        if self.top is None or not due or spent + due + aside <= self.top:
            return
        raise BudgetSpent(
            "this is more than the present version of the data may still spend"
            f" ({in_credits(max(0, self.top - spent - aside))} of {in_credits(self.allowed or 0)}"
            " credits are left of it); ask a cheaper question: the rest of the lifetime budget is"
            " kept for versions to come"
        )

    def moved(self, loss: int) -> VersionBudget:
        """Something else was booked on every account: it is not this version's."""
        return replace(self, start=self.start + loss, outside=self.outside + loss)

    def scaled(self, credits: Fraction) -> VersionBudget:
        """In another currency: what was spent rounds up and what may be down, so that a version
        that is used up stays so."""
        allowed = None if self.allowed is None else max(1, int(self.allowed * credits))
        start, outside = (rounded_up(steps * credits) for steps in (self.start, self.outside))
        return VersionBudget(start, allowed, outside)


WHOLE = VersionBudget()


def steps_of(credits: Fraction | None) -> int | None:
    """Return credits as steps, rounded down."""
    if credits is None:
        return None
    if credits <= 0:
        raise InvalidQuery(f"a version's budget must be above 0 credits, got {credits}")
    return int(credits * 2**64 // 1)
