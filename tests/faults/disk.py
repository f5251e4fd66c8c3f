"""A disk that can be full, fail to sync, or lose what was not synced when the power goes.

The ledger's file goes through SQLite's file layer, the anchor through the system calls it makes.
Not modelled: sectors torn in the middle of a ledger page, re-ordered directory entries.
"""

from __future__ import annotations

import errno
import os
import random

import apsw


class Disk(apsw.VFS):
    """Fails at the `at`-th call; `kind` is full, sync or power."""

    def __init__(self, kind: str, at: int, *, sticky: bool = False, loss: float = 1.0) -> None:
        self.kind, self.at, self.sticky, self.loss = kind, at, sticky, loss
        self.count, self.armed, self.dead = 0, False, False
        self.files: list[File] = []
        self.anchor_undo: list[tuple[int, bytes, int]] = []
        self.dice = random.Random(at)
        self.name = f"disk-{id(self)}"
        super().__init__(self.name, "")

    @property
    def fired(self) -> bool:
        return self.count >= self.at

    def xOpen(self, name, flags):
        file = File(name, flags, self)
        self.files.append(file)
        return file

    def hit(self, call: str) -> bool:
        """True if this call fails."""
        if self.dead:
            return True
        counted = {"full": ["write"], "sync": ["sync"], "power": ["write", "sync"]}[self.kind]
        if not self.armed or call not in counted:
            return False
        self.count += 1
        fails = self.count == self.at or (self.sticky and self.count > self.at)
        if fails and self.kind == "power":
            self.dead = True
            for file in self.files:
                file.lose()
            for handle, old, offset in reversed(self.anchor_undo):
                if self.dice.random() < self.loss:
                    REAL_PWRITE(handle, old, offset)
        return fails

    def pwrite(self, handle: int, data: bytes, offset: int) -> int:
        if self.hit("write"):
            raise OSError(errno.ENOSPC, "disk full")
        self.anchor_undo.append((handle, os.pread(handle, len(data), offset), offset))
        return REAL_PWRITE(handle, data, offset)

    def fdatasync(self, handle: int) -> None:
        if self.hit("sync"):
            raise OSError(errno.EIO, "sync failed")
        self.anchor_undo.clear()


REAL_PWRITE = os.pwrite


class File(apsw.VFSFile):
    """Remembers what un-synced writes replaced."""

    def __init__(self, name, flags, disk: Disk) -> None:
        super().__init__("", name, flags)
        self.disk = disk
        self.undo: list[tuple[int, bytes, int]] = []

    def xWrite(self, data, offset):
        if self.disk.hit("write"):
            raise apsw.FullError("disk full")
        size = super().xFileSize()
        old = super().xRead(min(len(data), size - offset), offset) if offset < size else b""
        self.undo.append((offset, old, size))
        super().xWrite(data, offset)

    def xTruncate(self, size):
        if self.disk.hit("write"):
            raise apsw.IOError("disk full")
        super().xTruncate(size)

    def xSync(self, flags):
        if self.disk.hit("sync"):
            raise apsw.IOError("sync failed")
        super().xSync(flags)
        self.undo.clear()

    def lose(self):
        """Each un-synced write is lost with probability `loss`, newest first."""
        for offset, old, size in reversed(self.undo):
            if self.disk.dice.random() < self.disk.loss:
                if old:
                    super().xWrite(old, offset)
                else:
                    super().xTruncate(size)
        self.undo.clear()
