"""docs/profiles.md from the stored profiles, with what was done about each path."""

# ruff: noqa: E501 - sentences of the page

from __future__ import annotations

from typing import Any

from benchmarks.tables import duration, table

HEAD = """# Profiles of the five hottest paths

Written by `python -m benchmarks profiles` (part of `make bench`): cProfile, own time of each function, the twelve that took most. Native code (DuckDB, BLAS, SQLite)
counts where Python called it; `acquire` is a thread that waits for the ledger's writer, that is for the disk. The time of a call is taken without the profiler.
"""
DONE = {
    "warm count": "Half is DuckDB reading rows, most of the rest two synced writes of the ledger (charge, then answer; the order is the promise's safety, and it stays)."
    " Done before: plans of SQL are kept, half-widths looked up, the price of a repeated shape is not worked out again. Left: binding in exact fractions, about"
    " 2 ms, because a price must not rest on floats.",
    "group-by": "Done now: the decoder works out its strides once and not for every row of the result. What is left of Python is one integer a cell, and the conversion"
    " of cells to user units in exact fractions.",
    "Gram matrix": "Streaming rows out of DuckDB, rounding them to the grid and one BLAS product a block. Done before: rows cross through the Arrow C interface without a"
    " copy, buffers are made once, blocks are as long as exact products below 2^53 allow. What remains beside the product is one pass that rounds.",
    "a served ask": "As the warm count, plus HTTP, JSON and a stored reply for retries (one more SQLite write). Done before: reads of one decision wait together"
    " (`LedgerFile.at_rest`), replies and ledger are written by group commit, so that many callers share a sync.",
    "opening and publishing": "Reading the file once to hash it, and DuckDB's own look at the file; then the synced files of key, anchor and register. The hash is what tells a"
    " changed table from the published one; it runs at the speed of SHA-256 and only at opening. Nothing else was worth doing.",
}


def document(results: dict[str, dict[str, Any]]) -> str:
    part = results.get("profiles")
    if part is None:
        return HEAD + "\nNothing is measured yet.\n"
    found = [
        HEAD,
        f"Measured {part['date']}, load {part['load_before']} before, {part['lines'][0]['rows']:,} rows.\n",
    ]
    for line in part["lines"]:
        rows = [
            (
                f"`{one['where']}`",
                f"{one['calls']:,.0f}" if one["calls"] >= 1 else "<1",
                f"{100 * one['share']:.1f} %",
            )
            for one in line["top"]
        ]
        found += [
            f"## {line['path'][0].upper()}{line['path'][1:]}\n",
            f"{duration(line['ms'] / 1000)} a call, {duration(line['cpu_ms'] / 1000)} of CPU.\n",
            table(("function", "calls each", "own time"), rows),
            f"{DONE[line['path']]}\n",
        ]
    return "\n".join(found)
