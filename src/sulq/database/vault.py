"""Where the vault of a table lies, and that it is the file that was made.

It lies in the state directory, for the owner's eyes only, with a record beside it: of which table,
schema, grid and data it was made, its size, time, inode and header, and a digest of all its bytes.
A file that is gone is made again; one that is not what was made closes the table.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.database.facts import facts_text, most_rows
from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.remote import place_of
from sulq.kernel.engines.duckdb.workbooks import XlsxFile
from sulq.kernel.engines.engine import Engine, open_engine, scheme_of
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.state_dir import (
    Hold,
    location_name,
    named,
    passing_key,
    private_directory,
    private_path,
    read_private,
    sync_directory,
    write_private,
)
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise

if TYPE_CHECKING:  # loaded when a file is opened: other engines do without
    from sulq.kernel.engines.duckdb.engine import DuckDBEngine, Stamp
    from sulq.kernel.engines.duckdb.vault import VaultEngine

FORMAT = 1
LARGE = 2_000_000
"""Rows from which on a vault is made unless the owner says otherwise; a public number."""
ANY_NUMBER = 2**27
"""What `at_most` is where nobody declared it: it does not say that a table is large."""
SPARE = 2
"""So many times its size must be free on the disk."""
HEADER = 3 * 4096
CHUNK = 1 << 20
SETTLED = 30.0
"""Seconds after the opening until the whole file is read again, in the background."""
WAIT = 600.0
"""Seconds to wait for another process that is making the file."""


class _OtherFile(Refused):
    """The file is not the one that was made."""

    def __init__(self, place: Path) -> None:
        super().__init__(
            "the vault of this table is not the file that was made: somebody wrote to the state"
            " directory, or its disk is failing. Nothing is answered from it. Find out why, remove"
            f" {place}, and open the table again: the vault is made again from the table"
        )


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is compared each time the file is opened."""

    size: int
    changed: int
    inode: int
    header: str


@dataclass(frozen=True, slots=True)
class VaultRecord:
    """What is known of a vault; it stays in the state directory."""

    format: int
    engine: str
    fingerprint: str
    schema: str
    rows: int
    kinds: tuple[str, ...]
    file: str
    facts: FileFacts
    digest: str


class TableVault:
    """The place of one table's vault."""

    def __init__(self, ledger: str | Path, table: str) -> None:
        self._names = ("vaults", named(json.dumps([location_name(ledger), table])))
        self.folder = private_path(*self._names)

    # --- the record -----------------------------------------------------------------------------

    def record(self) -> VaultRecord | None:
        """None where there is none, or one that this version cannot use."""
        try:
            form: Any = json.loads(read_private(self.folder / "record.json") or b"null")
            facts = FileFacts(**form["facts"])
            return VaultRecord(**{**form, "facts": facts, "kinds": tuple(form["kinds"])})
        except (TypeError, LookupError, ValueError):
            return None  # made again, which costs time and nothing else

    def _write(self, record: VaultRecord) -> None:
        content = json.dumps(asdict(record)).encode()
        write_private(self.folder / "record.json", content, replace=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time makes or removes the file."""
        private_directory(*self._names)
        hold = Hold(self.folder / "lock", "of a vault", time.monotonic() + WAIT)
        try:
            yield
        finally:
            hold.release()

    # --- opening --------------------------------------------------------------------------------

    def find(self, source: Any, schema: Schema) -> VaultEngine | None:
        """An engine over the vault of this source and schema, whose grid may be another; None if
        there is none. `Refused` if the file is not the one that was made."""
        record = self.record()
        if record is None or not _reads(record, schema):
            return None
        from sulq.kernel.engines.duckdb.engine import file_hash, file_of, stamp_of

        path, text = file_of(source)
        if path is None:
            return None
        stamp = stamp_of(path)  # before it is read
        if file_hash(path, text) != record.fingerprint:
            return None  # grown, say; the ledger will tell
        return self._opened(record, (path, stamp), json.loads(record.schema))

    def _opened(
        self, record: VaultRecord, source: tuple[Path, Stamp], form: Any
    ) -> VaultEngine | None:
        from sulq.kernel.engines.duckdb.vault import Contents, open_vault

        place = self.folder / record.file
        file = _open(place)
        if file is None:
            return None
        try:
            found, known = _facts(file), record.facts
            whole = found != known
            if whole:
                if found.size != known.size or _digest(file) != record.digest:
                    raise _OtherFile(place)
                self._write(replace(record, facts=found))
            stamps = [source, (place, (found.size, found.changed))]
            engine = open_vault(
                place_of(file),
                Schema.from_json(form),
                Contents(record.rows, record.kinds),  # type: ignore[arg-type]
                record.fingerprint,
                stamps,
            )
            if not whole:
                _check_later(engine, place, record.digest)
        except InvalidQuery:
            raise _OtherFile(place) from None
        finally:
            file.close()
        return engine

    def check(self) -> bool:
        """Read the whole file and compare it with what was made; False if there is none."""
        record = self.record()
        file = None if record is None else _open(self.folder / record.file)
        if record is None or file is None:
            return False
        with file:
            if _digest(file) != record.digest:
                raise _OtherFile(self.folder / record.file)
        return True

    # --- making ---------------------------------------------------------------------------------

    def make(self, engine: DuckDBEngine, source: Any, schema: Schema) -> VaultEngine:
        """Make the file from the source that `engine` reads, and open it; `SulqError` or `OSError`
        if it cannot be made. What was there of older versions goes."""
        from sulq.kernel.engines.duckdb.engine import file_of, stamp_of

        path, _ = file_of(source)
        assert path is not None  # noqa: S101
        stamp = stamp_of(path)
        with self._alone():
            record = self.record()
            if record is not None and _same(record, engine, schema):  # another process was quicker
                found = self._opened(record, (path, stamp), json.loads(record.schema))
                if found is not None:
                    return found
            self._clear(None)
            name = f"{passing_key()[:16]}.duckdb"
            try:
                record = self._made(engine, source, schema, name)
            except BaseException:
                self._clear(None)
                raise
            self._write(record)
            found = self._opened(record, (path, stamp), json.loads(record.schema))
        if found is None:
            raise Refused("the vault was removed while it was made; open the table again")
        return found

    def _made(self, engine: DuckDBEngine, source: Any, schema: Schema, name: str) -> VaultRecord:
        from sulq.kernel.engines.duckdb.vault import VERSION, write_vault

        place = self.folder / name
        contents = write_vault(source, schema, place, int(passing_key()[:16], 16))
        place.chmod(0o600)
        file = _open(place)
        if file is None or contents.rows != engine.rows or not engine.unchanged():
            raise Refused("the data has changed while its vault was made; open the table again")
        with file:
            os.fsync(file.fileno())
            facts, digest = _facts(file), _digest(file)
        sync_directory(self.folder)
        return VaultRecord(
            FORMAT,
            VERSION,
            engine.fingerprint(),
            facts_text(schema.to_json()),
            contents.rows,
            contents.kinds,
            name,
            facts,
            digest,
        )

    def _clear(self, kept: str | None) -> None:
        for found in self.folder.iterdir() if self.folder.is_dir() else ():
            if found.name not in ("lock", kept):
                found.unlink(missing_ok=True)

    def remove(self) -> None:
        """Of a table that was withdrawn nothing is left."""
        if self.folder.is_dir():
            with self._alone():
                self._clear(None)


def _reads(record: VaultRecord, schema: Schema) -> bool:
    """Whether this version can read the file, and it was made for these columns on any grid."""
    from sulq.kernel.engines.duckdb.vault import VERSION

    if (record.format, record.engine) != (FORMAT, VERSION):
        return False
    bits = json.loads(record.schema).get("bits")
    return bits is not None and facts_text(schema.on_grid(bits).to_json()) == record.schema


def _same(record: VaultRecord, engine: Engine, schema: Schema) -> bool:
    from sulq.kernel.engines.duckdb.vault import VERSION

    of = facts_text(schema.to_json())
    known = (record.format, record.engine, record.fingerprint, record.schema)
    return known == (FORMAT, VERSION, engine.fingerprint(), of)


def _open(place: Path) -> BufferedReader | None:
    try:
        return place.open("rb")
    except FileNotFoundError:
        return None
    except OSError:
        raise Refused(f"the vault {place} cannot be read") from None


def _facts(file: BufferedReader) -> FileFacts:
    facts = os.fstat(file.fileno())
    header = os.pread(file.fileno(), HEADER, 0)
    return FileFacts(
        facts.st_size, facts.st_mtime_ns, facts.st_ino, hashlib.sha256(header).hexdigest()
    )


def _digest(file: BufferedReader) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _check_later(engine: VaultEngine, place: Path, digest: str) -> None:
    """Read the whole file once, in the background; a table whose vault is another is closed."""
    weakref.finalize(engine, engine.ended.set)
    work = partial(_check_whole, weakref.ref(engine), place, digest, engine.ended)
    threading.Thread(target=work, name="sulq-vault", daemon=True).start()


def _check_whole(
    engine: weakref.ref[VaultEngine], place: Path, digest: str, ended: threading.Event
) -> None:
    if ended.wait(SETTLED):
        return
    found = hashlib.sha256()
    with suppress(OSError, SulqError), place.open("rb") as file:
        while part := file.read(CHUNK):
            if ended.is_set():
                return
            found.update(part)
    open_one = engine()
    if open_one is not None:
        if found.hexdigest() != digest:
            open_one.spoil()
        open_one.checked.set()


# --- which tables have one ------------------------------------------------------------------------


def why_none(source: Any, schema: Schema, ledger: str | Path) -> str | None:
    """Why there can be no vault of this table; None if there can."""
    if ledger in (":memory:", ""):
        return "a vault needs a ledger in a file: the table of one in memory ends with its process"
    path = source.path if isinstance(source, CsvFile | XlsxFile) else source
    if not isinstance(path, str | os.PathLike) or scheme_of(path):
        return "a vault is made of a file (Parquet, CSV or a workbook), not of this source"
    if type(schema) is not Schema or schema.unit != "row":
        return "a vault is made of a table whose rows are protected, not yet of persons or studies"
    return None


def wants_vault(
    wanted: bool | None, source: Any, schema: Schema, ledger: str | Path, individual: bool
) -> bool:
    """Whether a vault may be used at all; `Refused` if the owner asks for one that cannot be."""
    reason = why_none(source, schema, ledger)
    if reason is None and individual:
        reason = "individual accounting holds the rows in memory, and has no vault"
    if wanted and reason is not None:
        raise Refused(f"{reason}; leave vault = true out")
    return wanted is not False and reason is None


def is_large(schema: Schema, promise: Promise, engine: Engine) -> bool:
    """Whether a vault is made unasked: by public numbers alone."""
    if promise.neighbours == "replace":
        return engine.size() >= LARGE
    return LARGE <= schema.at_most != ANY_NUMBER


def with_vault(
    engine: Engine,
    source: Any,
    schema: Schema,
    promise: Promise,
    ledger: Ledger,
    wanted: bool | None,
) -> Engine:
    """The engine over the vault of this table, made if there is none, in place of one over its
    source; the same engine where there is no vault and none is to be."""
    from sulq.kernel.engines.duckdb.engine import DuckDBEngine
    from sulq.kernel.engines.duckdb.vault import VaultEngine, size_of

    place = ledger.place
    if place is None or not isinstance(engine, DuckDBEngine):
        return engine
    vault = TableVault(place, ledger.header.name)
    if isinstance(engine, VaultEngine):
        if engine.schema == schema:
            return engine
        direct = open_engine(source, schema)  # the grid is another since
        engine.close()
        return with_vault(direct, source, schema, promise, ledger, wanted)
    if not wanted and not is_large(schema, promise, engine):
        return engine
    try:
        kinds = [engine.places[column.name].kind for column in schema.columns]
        needed = SPARE * size_of(schema, kinds, most_rows(schema, promise, engine))
        private_directory("vaults")
        if shutil.disk_usage(private_path("vaults")).free < needed:
            raise Refused(
                f"a vault of this table needs {needed >> 20:,} MiB free in the state directory;"
                " make room, or set vault = false"
            )
        found = vault.make(engine, source, schema)
    except _OtherFile:
        raise
    except (SulqError, OSError) as problem:
        if not wanted:
            return engine  # which reads the source itself
        if isinstance(problem, OSError):
            raise Refused(
                "the vault of this table could not be written; make room in the state directory,"
                " or set vault = false"
            ) from None
        raise
    engine.close()
    return found


def known_vault(source: Any, schema: Schema, ledger: str | Path, table: str) -> VaultEngine | None:
    """The vault that was made of this table and source earlier, open; None if there is none."""
    return TableVault(ledger, table).find(source, schema)


def forget_vault(ledger: Ledger) -> None:
    """Remove the vault of a table, if there is one."""
    if ledger.place is not None:
        TableVault(ledger.place, ledger.header.name).remove()


def check_vault(ledger: str | Path, table: str) -> bool:
    """Read the vault of a table from end to end: False if there is none, `Refused` if it is not the
    file that was made."""
    return TableVault(ledger, table).check()
