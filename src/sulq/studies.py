"""Studies: several tables about the same persons, one promise.

Publish:    Study, EventTable
Ask:        exists, count_of, sum_of, mean_of, min_of, max_of, first_of, last_of, days_between
Of a row:   latest_of, earliest_of

Guide: docs/guides/studies.md.
"""

from sulq.kernel.query.person_values import (
    count_of,
    days_between,
    earliest_of,
    exists,
    first_of,
    last_of,
    latest_of,
    max_of,
    mean_of,
    min_of,
    sum_of,
)
from sulq.kernel.schema.study import EventTable, Study

__all__ = [
    "EventTable",
    "Study",
    "count_of",
    "days_between",
    "earliest_of",
    "exists",
    "first_of",
    "last_of",
    "latest_of",
    "max_of",
    "mean_of",
    "min_of",
    "sum_of",
]
