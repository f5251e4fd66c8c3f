"""SQL that asks for sums: `parse_sql`, `db.sql`, and conditions and values in SQL spelling.

Names are loaded when they are first used, so that who writes no SQL needs no parser.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sulq.sql.expressions import parse_condition, parse_value

__all__ = ["parse_condition", "parse_value"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sulq.sql' has no attribute {name!r}")
    return getattr(import_module("sulq.sql.expressions"), name)
