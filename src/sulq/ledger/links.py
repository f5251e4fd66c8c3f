"""Every link of a chain by its number, in a file without a name: memory does not grow with it."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path

from sulq.ledger.catalogue import NoRoom
from sulq.ledger.chain import START


class Links:
    """Ends with the process. Its owner serialises; every failure is `NoRoom`."""

    def __init__(self) -> None:
        try:
            self._file, path = tempfile.mkstemp(prefix="sulq-")
            weakref.finalize(self, os.close, self._file)
            Path(path).unlink()
        except OSError:
            raise NoRoom from None
        self[0] = START

    def __setitem__(self, seq: int, link: bytes) -> None:
        try:
            written = os.pwrite(self._file, link, seq * len(START))
        except OSError:
            written = 0
        if written != len(link):
            raise NoRoom

    def __getitem__(self, seq: int) -> bytes:
        """Zeros or nothing where there is none, which no link is."""
        try:
            return os.pread(self._file, len(START), seq * len(START))
        except OSError:
            raise NoRoom from None
