"""sulq: a private statistical database.

An owner publishes a table once, with one lifetime promise; analysts who are not trusted ask it
statistical questions. Every answer is an exact integer sum plus calibrated noise, charged to a
durable ledger that finally turns the table off.

Publish:    Schema, Number, Category, Flag, Promise, Database
Say what:   col, lit, when, parse_sql
Ask:        count, total, mean, variance, covariance, correlation, histogram, cdf, quantiles,
            distribution, SumQuery, outer
Receive:    Answer, Quote, Oracle
From afar:  connect
Errors:     SulqError, InvalidQuery, Refused, BudgetSpent, UnsafeExactly, EngineFailed

Names are loaded when they are first used, so that `sulq --help` needs no engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sulq.moved import install

if TYPE_CHECKING:
    __version__: str
    from sulq.answers.oracle import Answer, Oracle, Quote
    from sulq.answers.statistics import (
        cdf,
        correlation,
        count,
        covariance,
        distribution,
        histogram,
        mean,
        quantiles,
        total,
        variance,
    )
    from sulq.client import connect
    from sulq.database import Database
    from sulq.errors import (
        BudgetSpent,
        EngineFailed,
        InvalidQuery,
        Refused,
        SulqError,
        UnsafeExactly,
    )
    from sulq.kernel.query.expressions import col, lit, when
    from sulq.kernel.query.sum_query import SumQuery, outer
    from sulq.kernel.schema.columns import Category, Flag, Number, Schema
    from sulq.kernel.schema.promise import Promise
    from sulq.sql import parse_sql

_HOME = {
    "client": ["connect"],
    "database": ["Database"],
    "errors": [
        *("SulqError", "InvalidQuery", "Refused", "BudgetSpent", "UnsafeExactly", "EngineFailed")
    ],
    "answers.oracle": ["Answer", "Oracle", "Quote"],
    "kernel.query.expressions": ["col", "lit", "when"],
    "answers.statistics": [
        *("cdf", "correlation", "count", "covariance", "distribution", "histogram", "mean"),
        *("quantiles", "total", "variance"),
    ],
    "kernel.query.sum_query": ["SumQuery", "outer"],
    "kernel.schema.columns": ["Category", "Flag", "Number", "Schema"],
    "kernel.schema.promise": ["Promise"],
    "sql": ["parse_sql"],
}
install()

_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Answer",
    "BudgetSpent",
    "Category",
    "Database",
    "EngineFailed",
    "Flag",
    "InvalidQuery",
    "Number",
    "Oracle",
    "Promise",
    "Quote",
    "Refused",
    "Schema",
    "SulqError",
    "SumQuery",
    "UnsafeExactly",
    "cdf",
    "col",
    "connect",
    "correlation",
    "count",
    "covariance",
    "distribution",
    "histogram",
    "lit",
    "mean",
    "outer",
    "parse_sql",
    "quantiles",
    "total",
    "variance",
    "when",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'sulq' has no attribute {name!r}")
    found = getattr(import_module(f"sulq.{module}"), name)
    globals()[name] = found
    return found


def _version() -> str:
    metadata = import_module("importlib.metadata")
    try:
        return str(metadata.version("sulq"))
    except metadata.PackageNotFoundError:
        return "0+sources"


def __dir__() -> list[str]:
    return __all__
