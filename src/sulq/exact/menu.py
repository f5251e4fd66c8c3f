"""Several transcripts declared beforehand, of which the answers pick one. S1.14 (ii)

An adversary's event splits by the path that was taken, so the deltas of the paths add up: each
path, as one batch with everything released along it, must do with delta / M. Its whole delta:
dividing only the tail of the coins is not enough. Proofs: docs/proofs/exact.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sulq.errors import InvalidQuery, UnsafeExactly
from sulq.exact.certificate import Certificate, certify
from sulq.exact.domain import Assumptions, Domain


@dataclass(frozen=True, slots=True)
class Menu:
    """A certificate for every path, each with its share of delta."""

    epsilon: Fraction
    delta: Fraction
    paths: tuple[Certificate, ...]

    @property
    def factor(self) -> int:
        """r of whichever path is taken, at most. S1.12"""
        return max(path.factor for path in self.paths)

    @property
    def reached(self) -> float:
        return min(1.0, sum(path.reached for path in self.paths))

    @property
    def guarantee(self) -> str:
        return "noiseless, under assumptions"


def certify_menu(
    paths: Sequence[Domain], sizes: Sequence[Sequence[int]], assumptions: Assumptions
) -> Menu:
    """Certify every path at delta / M, or refuse the whole menu.

    `paths`: each all that is released along it. `sizes`: the classes' public sizes, per path.
    """
    if not paths or len(paths) != len(sizes):
        raise InvalidQuery(
            f"a menu needs paths and class sizes for each, got {len(paths)} and {len(sizes)}"
        )
    share = Assumptions(
        assumptions.epsilon,
        assumptions.delta / len(paths),
        assumptions.known_rows,
        assumptions.least,
    )
    found = []
    for number, (domain, rows) in enumerate(zip(paths, sizes, strict=True), 1):
        try:
            found.append(certify(domain, rows, share))
        except UnsafeExactly as why:
            raise UnsafeExactly(f"path {number} of {len(paths)} of the menu: {why}") from None
    return Menu(assumptions.epsilon, assumptions.delta, tuple(found))
