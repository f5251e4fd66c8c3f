"""The Arrow C stream of a DuckDB relation as NumPy arrays, through ctypes alone.

Arrays are views into the engine's memory: valid until the next step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import EngineFailed

FORMATS: dict[bytes, Any] = {b"l": np.int64, b"g": np.float64}
"""What a column may hold: BIGINT or DOUBLE."""


class _Schema(ctypes.Structure):
    pass


_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]


class _Array(ctypes.Structure):
    pass


_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", _Release),
        ("private_data", ctypes.c_void_p),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def blocks(relation: Any) -> Iterator[list[NDArray[np.generic]]]:
    """The relation's rows, block by block, one array per column.

    NULL is NaN in a DOUBLE column; a BIGINT column must have none.
    """
    capsule = relation.__arrow_c_stream__()  # releases the stream when it goes
    at = _pointer(capsule, b"arrow_array_stream")
    stream = _Stream.from_address(at)
    types = _types(stream, at)
    while True:
        batch = _Array()
        if stream.get_next(at, ctypes.byref(batch)):
            raise EngineFailed()  # the engine's own words may quote rows
        if not batch.release:
            return
        try:
            yield _columns(batch, types)
        finally:
            batch.release(ctypes.byref(batch))


def _types(stream: _Stream, at: int) -> list[Any]:
    schema = _Schema()
    if stream.get_schema(at, ctypes.byref(schema)):
        raise EngineFailed()
    try:
        formats = [schema.children[i].contents.format for i in range(schema.n_children)]
    finally:
        schema.release(ctypes.byref(schema))
    if any(name not in FORMATS for name in formats):
        raise EngineFailed()
    return [FORMATS[name] for name in formats]


def _columns(batch: _Array, types: list[Any]) -> list[NDArray[np.generic]]:
    found = []
    for number, kind in enumerate(types):
        child = batch.children[number].contents
        nulls = bool(child.null_count and child.buffers[0])
        if child.length != batch.length or batch.offset or (nulls and kind is np.int64):
            raise EngineFailed()
        size = child.length + child.offset
        if size == 0:
            found.append(np.empty(0, kind))
            continue
        memory = (ctypes.c_char * (8 * size)).from_address(child.buffers[1])
        values = np.frombuffer(memory, kind)[child.offset :]
        found.append(_with_nan(values, child, size) if nulls else values)
    return found


def _with_nan(values: NDArray[np.generic], child: _Array, size: int) -> NDArray[np.generic]:
    """A copy with NaN where the validity bitmap has a 0."""
    memory: Any = (ctypes.c_char * ((size + 7) // 8)).from_address(child.buffers[0])
    bitmap: NDArray[np.uint8] = np.frombuffer(memory, np.uint8)
    valid = np.unpackbits(bitmap, bitorder="little", count=size)
    return np.where(valid[child.offset :], values, np.nan)
