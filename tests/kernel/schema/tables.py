"""Two small tables for vectors: one whose every row can be listed, one of five numbers."""

from __future__ import annotations

from sulq.kernel.query import vectors as q
from sulq.kernel.schema.columns import Category, Flag, Number, Schema

SCHEMA = Schema(
    Number("a", 0, 2),
    Number("b", -1, 1, step=1),
    Flag("f"),
    Category("c", ["x", "y"]),
    Number("z", 0, 2, public=True),
    Category("g", ["p", "q"], public=True),
)
FIVE = Schema(
    *(Number(f"n{i}", 0, 1) for i in range(5)),
    Category("label", ["u", "v", "w"]),
    Flag("y"),
    Category("town", ["p", "q"], public=True),
)
NAMES = [f"n{i}" for i in range(5)]
ROW = q.columns(NAMES)
