"""Backups: a checked copy of a ledger with its keys and register, and putting one back.

A backup is one tar file, mode 0600. It holds no anchor, no token and no alert: those of an old
copy must never count. Proof: docs/proofs/ledger.md, section 17.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sulq.errors import Refused
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.file import Files, behind, opened, path_home, remember
from sulq.kernel.ledger.inspect import PAUSE, TRIES, copy_ledger
from sulq.kernel.ledger.recovery import (
    Evidence,
    RecoveryStep,
    Tried,
    anchor_here,
    assess,
    book_recovery,
    check_place,
    note_gone,
    recover,
    statements,
)
from sulq.kernel.ledger.signing import LedgerKey, key_at, latest_head, passing_signer, replace_key
from sulq.kernel.ledger.state import ChainState
from sulq.kernel.ledger.state_dir import (
    Hold,
    is_shared,
    location_name,
    named,
    private_directory,
    private_path,
    read_private,
    sync_directory,
    write_private,
)
from sulq.kernel.ledger.stores.sqlite import SqliteStore
from sulq.kernel.ledger.stores.store import Row, Store

FORMAT = "sulq backup 1"
MANIFEST = "backup.json"
MOST_MANIFEST = 1 << 24
BLOCK = 1 << 20
_LEDGER = re.compile(r"[0-9a-f]{32}")
_KEPT = re.compile(r"(data|rows|closed|population)-[0-9a-f]{64}(-[0-9a-f]{32})?")
NOTED = ("data", "told")
"""What the register knows of data, whichever table it is or was of."""
_CLAIM = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class BackedUp:
    """One ledger in a backup."""

    ledger: str
    place: str  # where it was, without a password
    tables: tuple[str, ...]
    events: int
    on_server: bool = False  # then the chain itself is PostgreSQL's to back up


# -- making one -----------------------------------------------------------------------------------


def back_up(
    places: Sequence[str | Path], file: Path
) -> tuple[list[BackedUp], dict[str | Path, Refused]]:
    """Write a backup of the ledgers at `places` to a new file, also while they are in use; what
    is in it, and why some are not: one that does not verify never stops the others."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    listed, sums = list[BackedUp](), dict[str, str]()
    problems = dict[str | Path, Refused]()
    try:
        handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w+b") as content:
                with tarfile.open(fileobj=content, mode="w") as archive:
                    for place in places:
                        try:
                            with _parts(place) as (line, parts):
                                for name, part in parts.items():
                                    sums[name] = _add(archive, name, part)
                                listed.append(line)
                        except Refused as problem:
                            problems[place] = problem
                    if not listed:
                        raise next(iter(problems.values()))
                    said = {"format": FORMAT, "sums": sums, "ledgers": [_said(x) for x in listed]}
                    _add(archive, MANIFEST, json.dumps(said).encode())
                content.flush()
                os.fsync(content.fileno())
            failpoints.reached("backup written")
            os.link(draft, file)  # never over an older one
        finally:
            draft.unlink(missing_ok=True)
        sync_directory(file.parent)
    except FileExistsError:
        raise Refused(
            f"there is a file {file} already; give each backup a name of its own"
        ) from None
    except OSError as problem:
        raise Refused(f"the backup {file} cannot be written: {problem.strerror}") from None
    return listed, problems


@contextmanager
def _parts(place: str | Path) -> Iterator[tuple[BackedUp, dict[str, bytes | Path]]]:
    """Return what a backup holds of one ledger: contents, or files to be read."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        copy = Path(private) / "ledger"
        history = _checked_copy(place, copy)
        ledger = history.ledger
        files = Files(ledger)
        secret = read_private(files.key)
        if secret is None:
            raise Refused(
                f"the state directory has no key of the ledger {location_name(place)}: is "
                "SULQ_STATE the directory that it was made with?"
            )
        parts: dict[str, bytes | Path] = {f"{ledger}/key": secret}
        for found in sorted(files.key.parent.iterdir()):
            if _KEPT.fullmatch(found.name):
                content = read_private(found) or b""
                parts[f"{ledger}/state/{found.name}"] = content
                for note in _notes(content) if found.name.startswith("data-") else ():
                    parts[f"{ledger}/{note.parent.name}/{note.name}"] = note
        if not is_shared(place):
            parts[f"{ledger}/ledger"] = copy
        tables, last = tuple(history.tables), history.mark.seq
        yield BackedUp(ledger, location_name(place), tables, last, is_shared(place)), parts


def _notes(content: bytes) -> list[Path]:
    """Return the register's files that say whose this data is, and what is public of it."""
    fingerprint = json.loads(content or b"null")
    if not isinstance(fingerprint, str):
        return []
    found = (private_path(kind, named(fingerprint)) for kind in NOTED)
    return [path for path in found if path.exists()]


def _checked_copy(place: str | Path, copy: Path) -> ChainState:
    """A whole ledger in one file: its chain verifies and is not behind its anchor."""
    for left in reversed(range(TRIES)):
        # The anchor is read before the ledger: one in use only runs ahead of it.
        known = (read_private(path_home(location_name(place)) / "ledger") or b"").decode("ascii")
        anchor = read_private(Files(known).anchor) if known else None
        for end in ("", "-wal", "-shm"):
            Path(f"{copy}{end}").unlink(missing_ok=True)
        try:
            _copy(place, copy)
            return _verified(copy, anchor, place)
        except FileNotFoundError:
            raise Refused(f"there is no ledger at {location_name(place)}") from None
        except Refused:  # its holder may have written while we copied
            if not left:
                raise
        time.sleep(PAUSE)
    raise AssertionError


def _copy(place: str | Path, copy: Path) -> None:
    book = opened(place)
    if book is None:
        copy_ledger(place, copy)
        return
    store = SqliteStore(copy, create=True)  # a second handle would drop this process's lock
    try:
        book.read(lambda: _fill(store, book.rows()))
    finally:
        store.close(tidy=True)


def _fill(store: Store, rows: Iterable[Row]) -> None:
    for row in rows:
        store.append([row])


def _verified(copy: Path, anchor: bytes | None, place: str | Path) -> ChainState:
    store = SqliteStore(copy)
    try:
        history = _taken(store, place)
        key = key_at(Files(history.ledger).key)
        if not history.sealed_by([key.public if key else history.public]):
            raise Refused(f"the ledger {location_name(place)} does not verify; run `sulq verify`")
        mark = latest_head(anchor or b"", history.ledger, [history.public])
        if mark is not None and behind(mark, store, history):
            raise Refused(
                f"the ledger {location_name(place)} was rolled back: its anchor has seen later "
                "events; a backup of it would lack them. Run `sulq recover` first"
            )
    finally:
        store.close(tidy=True)
    return history


def _taken(store: Store, place: str | Path) -> ChainState:
    history = ChainState()
    history.take(store.rows())
    if not history.ledger:
        raise Refused(f"the ledger {location_name(place)} is empty")
    return history


def _said(line: BackedUp) -> dict[str, Any]:
    return {
        "ledger": line.ledger,
        "place": line.place,
        "tables": list(line.tables),
        "events": line.events,
        "on_server": line.on_server,
    }


def _add(archive: tarfile.TarFile, name: str, part: bytes | Path) -> str:
    """Add a file and return its SHA-256: against rot, not against whoever has the key in it."""
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = 0o600, int(time.time())
    if isinstance(part, bytes):
        info.size = len(part)
        archive.addfile(info, io.BytesIO(part))
        return hashlib.sha256(part).hexdigest()
    with part.open("rb") as source:
        info.size = os.fstat(source.fileno()).st_size
        archive.addfile(info, source)
        source.seek(0)
        return hashlib.file_digest(source, "sha256").hexdigest()


# -- reading one ----------------------------------------------------------------------------------


class Backup:
    """A backup that is open for reading."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._archive = tarfile.open(file, "r:")  # noqa: SIM115 - closed by `close`
        except FileNotFoundError:
            raise Refused(f"there is no backup {file}") from None
        except (OSError, tarfile.TarError):
            raise self._damaged() from None
        try:
            said = json.loads(self._bytes(MANIFEST, MOST_MANIFEST))
            if said["format"] != FORMAT:
                raise self._damaged()
            self._sums: dict[str, str] = dict(said["sums"])
            self.ledgers = [
                BackedUp(
                    str(one["ledger"]),
                    str(one["place"]),
                    tuple(map(str, one["tables"])),
                    int(one["events"]),
                    bool(one["on_server"]),
                )
                for one in said["ledgers"]
            ]
            if not all(_LEDGER.fullmatch(one.ledger) for one in self.ledgers):
                raise self._damaged()
        except (LookupError, TypeError, ValueError):
            self.close()
            raise self._damaged() from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._archive.close()

    def __enter__(self) -> Backup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _damaged(self) -> Refused:
        return Refused(f"{self.file} is not a whole backup of format {FORMAT!r}; use another one")

    def of(self, table: str) -> BackedUp:
        """Return the ledger that has this table."""
        found = [one for one in self.ledgers if table in one.tables]
        if len(found) != 1:
            has = sorted(name for one in self.ledgers for name in one.tables)
            raise Refused(f"the backup {self.file} has no table {table!r}; it has {has}")
        return found[0]

    def key(self, line: BackedUp) -> LedgerKey:
        try:
            return LedgerKey(self._part(f"{line.ledger}/key"))
        except ValueError:
            raise self._damaged() from None

    def register(self, line: BackedUp) -> Iterator[tuple[Path, bytes]]:
        """The register's files, and where in the state directory they belong."""
        for name in sorted(self._sums):
            ledger, _, rest = name.partition("/")
            kind, _, file = rest.partition("/")
            if ledger != line.ledger or not file:
                continue
            if kind == "state" and _KEPT.fullmatch(file):
                yield private_path("ledgers", ledger, file), self._part(name)
            elif kind in NOTED and _CLAIM.fullmatch(file):
                yield private_path(kind, file), self._part(name)
            else:
                raise self._damaged()

    def copy_ledger(self, line: BackedUp, target: Path) -> None:
        """Write the ledger to a new file, mode 0600."""
        name, wanted = f"{line.ledger}/ledger", hashlib.sha256()
        source = self._open(name)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            while block := source.read(BLOCK):
                wanted.update(block)
                file.write(block)
        if wanted.hexdigest() != self._sums.get(name):
            raise self._damaged()

    def _part(self, name: str) -> bytes:
        content = self._bytes(name, MOST_MANIFEST)
        if hashlib.sha256(content).hexdigest() != self._sums.get(name):
            raise self._damaged()
        return content

    def _bytes(self, name: str, most: int) -> bytes:
        return bytes(self._open(name).read(most))

    def _open(self, name: str) -> Any:
        try:
            found = self._archive.extractfile(name)
        except (KeyError, OSError, tarfile.TarError):
            found = None
        if found is None:
            raise self._damaged()
        return found


# -- putting one back -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restored(Tried):
    """What a restore did, or would do; `before` is the backup's word."""

    aside: Path | None = None  # where the file is now that was in the place


def restore(
    backup: Backup,
    table: str,
    path: str | Path,
    receipts: Iterable[str] = (),
    *,
    journal: str | Path | None = None,
    dry_run: bool = False,
    wait: float = 5.0,
) -> Restored:
    """Put the ledger with this table in its place, at the most that it, the anchor that this
    machine wrote, the receipts journal or receipts prove spent.

    Without a word that is at least as new as the backup everything counts as spent. The recovery
    is written into a copy, which is then put in the place: a crash leaves the place as it was, or
    a ledger that counts all it must.
    """
    line = backup.of(table)
    if opened(path) is not None:
        raise Refused(f"the ledger {location_name(path)} is open in this process; close it first")
    _check_register(backup, line)
    if line.on_server != is_shared(path):
        kind = "on a PostgreSQL server" if line.on_server else "in a file"
        raise Refused(f"table {table!r} of this backup had its ledger {kind}; restore it to one")
    if line.on_server:
        return _restore_on_server(backup, line, path, list(receipts), dry_run=dry_run)
    files, target = Files(line.ledger), Path(location_name(path))
    where = None if journal is None else Path(location_name(journal))
    with _locked(line, target, wait) as home, _draft(target, dry_run) as draft:
        backup.copy_ledger(line, draft)
        with closing(_Closing(draft)) as copy:
            store = copy.store
            history = _taken(store, path)
            if (history.ledger, history.mark.seq) != (line.ledger, line.events):
                raise Refused(f"{backup.file} is not a whole backup; use another one")
            before, key = statements(history), backup.key(line)
            with Evidence.held(
                history, files, receipts, where, wait, key=key, strict=True
            ) as evidence:
                step = assess(store, history, evidence, replicas=False)
                signs = _signs(step, evidence, files, dry_run)
                if step.event is not None:
                    book_recovery(store, history, step, signs)
                found = Restored(step.told, before, statements(history))
                if dry_run:
                    return found
                _install(backup, line, files, signs)
                note_gone(line.ledger, step.gone)
                failpoints.reached("state restored")
                if step.event is not None:
                    evidence.take_over(store, history, signs, files)
                failpoints.reached("journal taken over")
                copy.close()
                aside = _put(draft, target)
                failpoints.reached("ledger restored")
                anchor_here(files, history, signs)
                remember(home, line.ledger)
                return replace(found, aside=aside)


class _Closing:
    """A ledger that is folded into one file when it is closed."""

    def __init__(self, path: Path) -> None:
        self.path, self.store, self._open = path, SqliteStore(path), True

    def close(self) -> None:
        if self._open:
            self._open = False
            self.store.close(tidy=True)
            log = Path(f"{self.path}-wal")
            if log.exists() and not log.stat().st_size:
                log.unlink()


@contextmanager
def _locked(line: BackedUp, target: Path, wait: float) -> Iterator[Path]:
    """Nobody else opens the place or the ledger meanwhile; what is there is older or damaged."""
    where, deadline = str(target), time.monotonic() + wait
    if not target.parent.is_dir():
        raise Refused(f"there is no directory {target.parent} for the ledger; make it first")
    home = private_directory("paths", named(where))
    check_place(home, line.ledger, where)
    private_directory("ledgers", line.ledger)
    with ExitStack() as stack:
        stack.callback(Hold(home / "holder", where, deadline).release)
        stack.callback(Hold(Files(line.ledger).holder, where, deadline).release)
        if target.exists():
            held = Hold(target, where, deadline, create=False, note=False)
            stack.callback(held.release)
            _check_older(target, line)
        yield home


def _check_older(target: Path, line: BackedUp) -> None:
    """Raise `Refused` if the ledger in the place has all that the backup has."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:
        copy, history = Path(private) / "ledger", None
        with suppress(Refused, OSError):  # then it is damaged
            copy_ledger(target, copy)
            with closing(_Closing(copy)) as there:
                history = _taken(there.store, target)
    if history is not None and history.ledger != line.ledger:
        raise Refused(f"{target} is another ledger than the one in the backup; give another path")
    if history is not None and history.mark.seq >= line.events:
        raise Refused(
            f"the ledger {target} is whole and has {history.mark.seq} events, the backup"
            f" {line.events}: nothing is lost that the backup has. If the table is closed, run"
            " `sulq recover`; to put the backup there all the same, move the file away"
        )


@contextmanager
def _draft(target: Path, dry_run: bool) -> Iterator[Path]:
    """Return where the copy is made: beside its place, or where nothing stays."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:
        draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        draft = Path(private) / "ledger" if dry_run else draft
        try:
            yield draft
        except OSError as problem:
            raise Refused(f"the backup cannot be put at {target}: {problem.strerror}") from None
        finally:
            for end in ("", "-wal", "-shm"):
                with suppress(OSError):
                    Path(f"{draft}{end}").unlink(missing_ok=True)


def _signs(step: RecoveryStep, evidence: Evidence, files: Files, dry_run: bool) -> LedgerKey:
    """The key that goes on; a new one where the chain and the state directory have two."""
    if step.keeps_key and evidence.present is not None:
        return evidence.present
    return passing_signer() if dry_run else replace_key(files.key)


def _check_register(backup: Backup, line: BackedUp) -> None:
    for path, content in backup.register(line):
        there = read_private(path)
        if path.parent.name == "data" and there not in (None, content):
            raise Refused(
                "data of this backup is registered with another ledger here; restore it where it"
                " was published, or with a state directory of its own"
            )


def _install(backup: Backup, line: BackedUp, files: Files, key: LedgerKey) -> None:
    """Key and register; what the state directory has of them stays."""
    private_directory("ledgers", line.ledger)
    for kind in NOTED:
        private_directory(kind)
    for path, content in backup.register(line):
        write_private(path, content, replace=False)
    if key_at(files.key) is None:
        write_private(files.key, key.secret, replace=True)


def _put(draft: Path, target: Path) -> Path | None:
    """Put the copy in its place; what was there, with its log, is moved aside and stays."""
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    aside = target.with_name(f"{target.name}.before-restore-{secrets.token_hex(4)}")
    there = target.exists()
    for end in ("", "-wal", "-shm"):
        source = Path(f"{target}{end}")
        if source.exists():
            source.rename(f"{aside}{end}")
    sync_directory(target.parent)
    draft.rename(target)
    sync_directory(target.parent)
    return aside if there else None


def _restore_on_server(
    backup: Backup, line: BackedUp, path: str | Path, receipts: list[str], *, dry_run: bool
) -> Restored:
    """The chain was put back on the server by PostgreSQL's own means; here the state follows."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:
        copy, files = Path(private) / "ledger", Files(line.ledger)
        copy_ledger(path, copy)
        with closing(_Closing(copy)) as there:
            store = there.store
            history = _taken(store, path)
            if history.ledger != line.ledger:
                raise Refused(f"{location_name(path)} is another ledger than the one in the backup")
            before, key = statements(history), backup.key(line)
            with Evidence.held(history, files, receipts, None, 0, key=key, strict=True) as evidence:
                step = assess(store, history, evidence, replicas=True)
                if step.event is not None:
                    book_recovery(store, history, step, _signs(step, evidence, files, True))
            found = Restored(step.told, before, statements(history))
    if dry_run:
        return found
    _install(backup, line, files, key)
    return replace(found, found=recover(path, receipts, strict=True))
