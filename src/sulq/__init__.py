"""sulq: a private statistical database.

An owner publishes a table once, with one lifetime promise; analysts who are not trusted ask it
statistical questions. Every answer is an exact integer sum plus calibrated noise, charged to a
durable ledger that finally turns the table off.

Publish:    Schema, Number, Category, Flag, Promise, Database
Say what:   col, lit, when, hashed
Ask:        count, total, mean, variance, histogram, cdf, quantiles, SumQuery, outer
Receive:    Answer, Quote, Oracle
Errors:     SulqError, InvalidQuery, Refused, BudgetSpent, UnsafeExactly, EngineFailed
"""

from sulq.database import Database
from sulq.errors import (
    BudgetSpent,
    EngineFailed,
    InvalidQuery,
    Refused,
    SulqError,
    UnsafeExactly,
)
from sulq.oracle import Answer, Oracle, Quote
from sulq.query.expressions import col, hashed, lit, when
from sulq.query.statistics import cdf, count, histogram, mean, quantiles, total, variance
from sulq.query.sum_query import SumQuery
from sulq.schema.columns import Category, Flag, Number, Schema
from sulq.schema.promise import Promise

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
    "count",
    "hashed",
    "histogram",
    "lit",
    "mean",
    "quantiles",
    "total",
    "variance",
    "when",
]
