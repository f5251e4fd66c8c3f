"""Where a chain of events is kept: the role every store plays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from sulq.errors import Refused

FORMAT = 2  # of the events; a newer one is refused


class Row(NamedTuple):
    """One event as stored; `noisy` is an answer's integers, `seal` signs a batch."""

    seq: int
    hash: bytes
    body: str
    noisy: str | None
    seal: bytes | None = None  # on the last row of a batch: the signed head of the chain


class Interrupted(Refused):
    """The store could not be reached; it may be at the next try. `charged`: what was being written
    may stand, so the chain must be read anew before anything else is done."""

    def __init__(self, *, charged: bool) -> None:
        stands = "the charge may stand" if charged else "nothing was charged"
        super().__init__(
            f"the server that holds the ledger cannot be reached; {stands}: ask again with the same"
            " key"
        )
        self.charged_unknown = charged


class Store(Protocol):
    """An append-only list of rows. Every failure is `Refused`, never a driver's own error."""

    def append(self, rows: Sequence[Row]) -> None:
        """All or none of `rows`; durable when it returns. After an error the outcome is unknown."""

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Rows with a larger number than `after`, in order."""

    def row(self, seq: int) -> Row:
        """The row of that number."""

    def close(self, *, tidy: bool) -> None:
        """Let go. `tidy` folds side files in; without it nothing more is written."""
