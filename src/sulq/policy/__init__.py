"""`sulq.toml`: what the owner declares, in a file to read, review and keep under version control.

    [people]
    source = "people.parquet"
    ledger = "people.ledger"
    promise = {epsilon = 1, delta = 1e-6, credits = 1000}
    columns.age = {number = [0, 120], step = 1}
    columns.city = {category = ["Oslo", "Paris"], public = true}
    columns.smoker = {flag = true}

A column that is not declared is hidden.
"""

from __future__ import annotations

from sulq.policy.columns import ColumnPolicy
from sulq.policy.exact import ExactPolicy
from sulq.policy.files import read_policy, write_policy
from sulq.policy.studies import StudyPolicy
from sulq.policy.tables import TablePolicy

__all__ = [
    "ColumnPolicy",
    "ExactPolicy",
    "StudyPolicy",
    "TablePolicy",
    "read_policy",
    "write_policy",
]
