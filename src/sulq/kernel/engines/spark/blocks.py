"""Outer products on Spark's executors: partial sums of each partition, as small integer arrays.

An executor adds up its partition exactly and sends, for each entry that is not 0, two 64-bit parts;
Spark adds those up by entry. No row leaves an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sulq.kernel.engines.blocks import OuterSums
from sulq.kernel.engines.proved import silenced
from sulq.kernel.schema.vector_program import BlockSums, Leaf

PARTS = "entry INT, high BIGINT, low BIGINT"
LOW_BITS = 32
"""sum = high 2^32 + low, 0 <= low < 2^32: 2^31 partitions add up in 64 bits."""


def partial_sums(
    program: BlockSums, place: Mapping[Leaf, int]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For `mapInArrow`: batches of leaves in, one batch of PARTS out."""

    def sums(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        found = silenced(
            lambda: _sums(program, place, batches),
            lambda _: RuntimeError("the partition cannot be added up"),  # this will be logged
        )
        entries = [entry for entry, value in enumerate(found) if value]
        low = [found[entry] & (1 << LOW_BITS) - 1 for entry in entries]
        high = [found[entry] >> LOW_BITS for entry in entries]
        types = (pyarrow.int32(), pyarrow.int64(), pyarrow.int64())
        arrays = [
            pyarrow.array(values, kind)
            for values, kind in zip((entries, high, low), types, strict=True)
        ]
        yield pyarrow.RecordBatch.from_arrays(arrays, ["entry", "high", "low"])

    return sums


def _sums(program: BlockSums, place: Mapping[Leaf, int], batches: Iterable[Any]) -> list[int]:
    return OuterSums(program, place).of(_arrays(batch) for batch in batches)


def _arrays(batch: Any) -> list[Any]:
    """One NumPy array per column; NULL is NaN in a DOUBLE column, a BIGINT column has none."""
    for column in batch.columns:
        if column.null_count and str(column.type) != "double":
            raise ValueError("a whole number is missing")
    return [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def added_up(parts: Iterable[Any], size: int) -> list[int]:
    """The entries of the matrix from the sums of their parts."""
    found = [0] * size
    for entry, high, low in parts:
        found[entry] = (int(high) << LOW_BITS) + int(low)
    return found
