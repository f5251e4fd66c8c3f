"""What every account has spent, added up quickly."""

from __future__ import annotations

from fractions import Fraction

from sulq.ledger.charges import Part


class Tally:
    """One integer per account, kept as a common part and what each has on top.

    A question that touches everybody then costs one addition, however many accounts there are.
    Amounts only grow, so the largest needs no search.
    """

    __slots__ = ("common", "extra", "top")

    def __init__(self, size: int) -> None:
        self.common, self.extra, self.top = 0, [0] * size, 0

    def _everybody(self, part: Part) -> bool:
        return part.ranges == ((0, len(self.extra) - 1),)

    @property
    def most(self) -> int:
        return self.common + self.top

    def worst(self, part: Part) -> int:
        """The most that any account of `part` has."""
        if self._everybody(part):
            return self.most
        return self.common + max(self.extra[number] for number in part.accounts())

    def add(self, part: Part, amount: int) -> None:
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
        """Every account in another currency, rounded up."""
        self.extra = [rounded_up((self.common + extra) * factor) for extra in self.extra]
        self.common, self.top = 0, max(self.extra)

    def __getitem__(self, number: int) -> int:
        return self.common + self.extra[number]

    def copy(self) -> Tally:
        twin = Tally(0)
        twin.common, twin.extra, twin.top = self.common, list(self.extra), self.top
        return twin


def rounded_up(amount: Fraction) -> int:
    return -(-amount // 1)


def in_credits(units: int, *, up: bool = False) -> str:
    """Multiples of 2^-64 credit as decimal text with at most six places."""
    scaled = units * 10**6
    millionths = -(-scaled >> 64) if up else scaled >> 64
    whole, rest = divmod(millionths, 10**6)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
