"""Engines that tests share: to load the same rows again tells nothing new and costs 20 ms of CPU.

A table that was opened before, with the same rows, schema and rules of reading, is answered by a
session of its own on the rows that are loaded already. Each test still gets an engine object of its
own, with the stamp of its own file, and closes only that. What is refused is never kept. Parquet is
read in place: in that of a copy. Tests of the engines and of faults load their rows each time.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb import engine
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.schema.columns import Schema

HERE = Path(__file__).parent
APART = (HERE / "kernel" / "engines", HERE / "faults")
MOST = 32
LARGEST = 8 << 20

_load = engine.open_duckdb
_loaded: OrderedDict[Hashable, engine.DuckDBEngine] = OrderedDict()
_process = os.getpid()
sharing = False


def share_for(path: Path) -> None:
    """Share engines in the tests of this file, or load each table anew."""
    global sharing
    sharing = not any(apart in path.parents for apart in APART)


def open_shared(
    source: Any, schema: Schema, *, threads: int | None = None, held: bool = False
) -> engine.DuckDBEngine:
    known = None if held or not sharing or os.getpid() != _process else _content(source)
    if known is None:
        return _load(source, schema, threads=threads, held=held)
    content, path, stamp = known
    key = (content, schema, threads)
    first = _loaded.get(key)
    if first is None:
        in_place = path is not None and path.suffix == ".parquet"
        first = _load(_copy(path) if in_place else source, schema, threads=threads)
        if _content(source) != known:
            first.close()  # the rows changed meanwhile
            return _load(source, schema, threads=threads)
        _loaded[key] = first
        if len(_loaded) > MOST:
            _loaded.popitem(last=False)
    _loaded.move_to_end(key)
    facts = (first.places, first.rows, first.size(), first._fingerprint)
    return engine.DuckDBEngine(first._connection.cursor(), *facts, path, stamp)


def _content(source: Any) -> tuple[Hashable, Path | None, tuple[int, int] | None] | None:
    """What is read and, of a file, its place and stamp; None for what is not shared."""
    if type(source) is pd.DataFrame:
        if source.memory_usage().sum() > LARGEST:
            return None
        try:
            return _hash(pickle.dumps(source)), None, None
        except Exception:  # noqa: BLE001 - whatever cannot be written down is not shared
            return None
    try:
        path, text = engine.file_of(source)
        if path is None or path.stat().st_size > LARGEST:
            return None
        stamp = engine.stamp_of(path)
        rules = replace(text, path="") if type(text) is CsvFile else text
        if rules is not None and type(rules) is not CsvFile:
            return None
        return (_hash(path.read_bytes()), path.suffix, rules), path, stamp
    except (OSError, InvalidQuery):
        return None


def _copy(path: Path | None) -> Path:
    """A copy that no test changes, under the same name: messages may name it."""
    assert path is not None
    return Path(shutil.copyfile(path, _copies() / path.name))


def _copies() -> Path:
    """A new directory, which goes with the process."""
    place = Path(tempfile.mkdtemp(prefix="sulq-tests-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content).hexdigest()


engine.open_duckdb = open_shared
