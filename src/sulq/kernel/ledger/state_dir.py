"""The state directory: what must not lie beside the ledger, because it watches the ledger."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from sulq.errors import Refused

POLL = 0.02  # seconds between two tries for a lock


def state_directory() -> Path:
    """`SULQ_STATE`, else the XDG state directory; private to the owner."""
    found = os.environ.get("SULQ_STATE")
    if not found:
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        found = str(Path(home) / "sulq")
    if not Path(found).is_absolute():
        raise Refused(
            f"the state directory {found!r} is a relative path: it would move with the working "
            "directory; set SULQ_STATE to an absolute path"
        )
    return Path(found)


def private_path(*names: str) -> Path:
    """A path below the state directory; nothing is made."""
    return state_directory().joinpath(*names)


def private_directory(*names: str) -> Path:
    """A directory of the state directory, made if missing, for the owner's eyes only."""
    directory = state_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if directory.stat().st_mode & 0o022:
            raise Refused(
                f"others may write to the state directory {directory}; take that right away "
                f"(chmod go-w {directory}), or set SULQ_STATE to a private one"
            )
        for name in names:
            directory = directory / name
            if not directory.is_dir():
                directory.mkdir(mode=0o700, exist_ok=True)
                sync_directory(directory.parent)
    except OSError:
        raise Refused(
            f"the state directory {directory} cannot be made; set SULQ_STATE to one that "
            "can be written"
        ) from None
    return directory


def identity(path: str | Path) -> tuple[int, int] | None:
    """Which file a path names; None if there is none."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def named(text: str) -> str:
    """A file name for any text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def passing_key() -> str:
    """A key for as long as this process lives; written nowhere."""
    return secrets.token_hex(32)


def read_private(path: Path) -> bytes | None:
    """The file's bytes, or None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        raise Refused(f"the state file {path} cannot be read") from None


def write_private(path: Path, content: bytes, *, replace: bool) -> bool:
    """Write whole or not at all, durably, mode 0600. Without `replace`: False if it exists."""
    draft = path.with_name(f".{secrets.token_hex(8)}")
    try:
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                if os.write(handle, content) != len(content):
                    raise OSError(errno.ENOSPC, "short write")
                os.fsync(handle)
            finally:
                os.close(handle)
            if replace:
                draft.replace(path)
            else:
                os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        sync_directory(path.parent)
    except FileExistsError:
        return False
    except OSError:
        raise Refused(f"the state file {path} cannot be written") from None
    return True


def sync_directory(directory: Path) -> None:
    """Make durable which files a directory has."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Hold:
    """A lock that dies with its process; one on a file of its own says which process holds it.

    The ledger itself is held too: SQLite's locks on it end when its process closes any handle of
    the file, this one does not.
    """

    def __init__(
        self, path: Path, what: str, deadline: float, *, create: bool = True, note: bool = True
    ) -> None:
        """Wait until `deadline` (monotonic), then `Refused` with the holder's number, if noted."""
        try:
            self._handle = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
        except OSError:
            raise Refused(f"{path} cannot be opened for writing; check path and rights") from None
        try:
            while not self._try():
                if time.monotonic() >= deadline:
                    raise Refused(
                        f"the ledger {what} is held by {self._holder(note)}; "
                        "one process at a time may open it: close it there first"
                    )
                time.sleep(POLL)
            if self.identity != identity(path):
                raise Refused(f"the ledger {what} was replaced while it was opened; try again")
            if note:
                os.pwrite(self._handle, f"{os.getpid():<20d}".encode("ascii"), 0)
        except BaseException:
            self.release()
            raise

    @property
    def handle(self) -> int:
        """For whoever reads or writes the file that is held."""
        return self._handle

    @property
    def identity(self) -> tuple[int, int]:
        """Which file is held, whatever its name."""
        found = os.fstat(self._handle)
        return found.st_dev, found.st_ino

    def _holder(self, note: bool) -> str:
        found = os.pread(self._handle, 20, 0).decode("ascii", "replace").strip() if note else ""
        return f"process {found}" if found else "another process"

    def _try(self) -> bool:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            if problem.errno not in (errno.EAGAIN, errno.EACCES):
                raise Refused(
                    "the disk cannot lock files; keep the ledger on a local one, and set "
                    "SULQ_STATE to a local directory"
                ) from None
            return False
        return True

    def release(self) -> None:
        """Let go; in a forked child this leaves the parent's lock as it is."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


# Where a ledger lies: in a file, in memory, or on a PostgreSQL server that replicas share.
#
# postgresql://user@host:5432/database?ledger=people
# postgresql://user@/database?host=/var/run/postgresql&ledger=people
#
# All but `ledger` is PostgreSQL's own address and goes to the driver as it is. An address may hold
# a password: it is never shown.


FORM = "postgresql://user@host/database?ledger=name"
SCHEMES = ("postgresql", "postgres")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")


@dataclass(frozen=True, slots=True)
class LedgerLocation:
    """A ledger on a server."""

    server: str = field(repr=False)
    name: str
    shown: str  # without user and password; an address too

    @property
    def table(self) -> str:
        return f'"sulq"."{self.name}"'

    @property
    def lock(self) -> int:
        """The number that whoever writes to this ledger locks."""
        digest = hashlib.sha256(b"sulq ledger " + self.name.encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def is_shared(path: str | Path) -> bool:
    """True for the address of a ledger on a server."""
    return isinstance(path, str) and path.startswith(tuple(f"{name}://" for name in SCHEMES))


def read_place(url: str) -> LedgerLocation:
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Refused(f"the address of a shared ledger has the form {FORM}") from None
    names = [value for key, value in given if key == "ledger"]
    database = parts.path.removeprefix("/")
    if len(names) != 1 or not database or "/" in database or "\0" in unquote(url):
        raise Refused(f"the address of a shared ledger has the form {FORM}")
    if not _NAME.fullmatch(names[0]):
        raise Refused(
            f"a shared ledger is named by 1 to 48 of a-z, 0-9 and _, a letter first; got"
            f" {names[0]!r:.60}"
        )
    rest = [(key, value) for key, value in given if key != "ledger"]
    server = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(rest), ""))
    said = dict(rest)
    asked = {"host": said.get("host", host), "port": str(said.get("port", port or 5432))}
    shown = f"postgresql:///{database}?{urlencode(asked, safe='/')}&ledger={names[0]}"
    return LedgerLocation(server, names[0], shown)


def location_name(path: str | Path) -> str:
    """One name for a place, however it is spelled; for the state directory and for messages."""
    if is_shared(path):
        return read_place(str(path)).shown
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        raise Refused(f"no ledger can be at {str(path)!r}; give another path") from None


def ledger_identity(path: str | Path) -> tuple[int, int] | str | None:
    """Which ledger a path names: the file, or the server's; None if there is no file."""
    return read_place(str(path)).shown if is_shared(path) else identity(path)
