"""A file that somebody else made is read whole by a child process, before this one opens it.

Parsers of Parquet and CSV are large, and a file made to break one ends the process that reads it.
The child has no network where the system lets it give that up, no environment, and limits on
memory, time and what it writes. If it dies, the file cannot be read, and no more is said.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sulq.errors import InvalidQuery, SulqError
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.workbooks import XlsxFile
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.study import Study

KINDS = {"csv": CsvFile, "xlsx": XlsxFile}
SECONDS = 60
"""To start, and to read a small file."""
BYTES_A_SECOND = 10_000_000
MEMORY_SHARE = 0.6
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # of unshare(2)
CHILD = """
import sys
from sulq.kernel.engines.duckdb.engine import open_duckdb
from sulq.kernel.engines.duckdb.quarantine import in_child
from sulq.kernel.schema.columns import Schema
sys.exit(in_child(lambda source, told: open_duckdb(source, Schema.from_json(told)).read_through()))
"""
COMPLAINT = 3
UNPACKED = 200
"""A workbook, or text in another encoding, becomes at most so many times larger."""
LONGEST = 400
"""Letters of a complaint that are passed on."""


def check_file(source: Any, schema: Schema) -> None:
    """`InvalidQuery` unless a child process could read every declared column of this file.

    What is no file (a frame, an address) is left to its engine. Of a study, every table's file.
    """
    if isinstance(schema, Study) and isinstance(source, Mapping):
        for name, one in source.items():
            columns = schema.columns if name == schema.name else schema.table(name).columns
            if columns:
                check_file(one, Schema(*columns))
        return
    path = getattr(source, "path", source)  # of a CSV file or workbook with rules of its own
    if isinstance(path, str | os.PathLike) and Path(path).is_file():
        read_in_child(source, CHILD, schema.to_json())


def read_in_child(source: Any, program: str, more: object = None) -> None:
    """Let a child process read a file first, by `program`, which ends with what `in_child` says.

    `source` is a path or a file with rules of its own; `more` is told to the program.
    """
    path = Path(getattr(source, "path", source))
    before = path.stat()
    named = {"path": str(path), "word": getattr(source, "word", None), "more": more}
    given = json.dumps(named | {"rules": getattr(source, "rules", {})}).encode()
    code, told = _ended(program, given, SECONDS + before.st_size / BYTES_A_SECOND)
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise InvalidQuery(f"{path.name} has changed while it was read: let it be whole, try again")
    if code == COMPLAINT and told:
        raise InvalidQuery(told)
    if code:
        raise InvalidQuery(
            f"{path.name} cannot be read: the process that tried has ended; have it written again"
            " as Parquet by somebody you trust"
        )


def _ended(program: str, given: bytes, limit: float) -> tuple[int, str]:
    """How the child ended (0: it could read everything), and its complaint."""
    try:
        child = subprocess.run(  # noqa: S603 - our own interpreter, and no word of the file's
            [sys.executable, "-sB", "-c", program],  # no compiled files: it may not write
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LC_ALL": "C.UTF-8"},
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, ""
    told = child.stdout[:LONGEST].decode("utf-8", "replace")
    return child.returncode, "".join(letter for letter in told if letter.isprintable())


# --- in the child -------------------------------------------------------------------------------


def in_child(read: Callable[[Any, Any], object]) -> int:
    """Read the file whose path and rules come on stdin; the exit code."""
    given = json.load(sys.stdin)
    path, kind = Path(given["path"]), KINDS.get(given["word"])
    source: Any = path if kind is None else kind(path, **given["rules"])
    _confine(0 if path.suffix == ".parquet" else UNPACKED * path.stat().st_size)
    try:
        read(source, given["more"])
    except SulqError as error:
        sys.stdout.write(str(error))
        return COMPLAINT
    return 0


def _confine(writes: int) -> None:
    """Give up the network, core files and most of the memory, and the writing of files larger than
    `writes`: a workbook is read as CSV, from memory that counts as a file."""
    with suppress(OSError, AttributeError):  # a system without it: the other limits hold
        ctypes.CDLL(None).unshare(NEW_USER | NEW_NETWORK)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: writes}
    most[resource.RLIMIT_DATA] = int(pages * MEMORY_SHARE)
    for limit, amount in most.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (amount, amount))
