"""Four tables that statements of analysts and their programs are about."""

from __future__ import annotations

import datetime
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow

from sulq import Category, Flag, Number, Schema

Day = datetime.date
Time = datetime.datetime

SCHEMAS = {
    "patients": Schema(
        Category("sex", ["F", "M", "X"]),
        Number("age", 0, 110, step=1),
        Number("birth_date", Day(1920, 1, 1), Day(2024, 12, 31)),
        Category("region", ["North", "South", "East", "West"]),
        Category("icd", ["E11.9", "I10", "J45.0", "C50.1", "F32.9", "Z00.0"]),
        Number("bmi", 10, 70, step=0.1),
        Number("systolic", 60, 260, step=1),
        Number("hba1c", 3, 20),
        Flag("smoker"),
        Flag("diabetic"),
        Flag("deceased"),
        Number("admitted", Day(2022, 1, 1), Day(2024, 6, 30)),
        Number("discharged", Day(2022, 1, 1), Day(2024, 12, 31)),
        Number("los", 0, 180, step=1),
        Number("cost", 0, 250_000),
        Category("ward", ["ICU", "Medicine", "Surgery", "Maternity"]),
        Category("note"),
    ),
    "students": Schema(
        Category("school", ["Lincoln HS", "Roosevelt MS", "Adams Elementary", "Jefferson HS"]),
        Category("gender", ["F", "M", "N"]),
        Number("grade_level", 1, 12, step=1),
        Number("math", 0, 100, step=1),
        Number("reading", 0, 100, step=1),
        Number("gpa", 0, 4, step=0.01),
        Flag("frl"),
        Flag("ell"),
        Flag("iep"),
        Number("absences", 0, 180, step=1),
        Number("enrolled", Day(2018, 1, 1), Day(2024, 12, 31)),
        Category("ethnicity", ["Asian", "Black", "Hispanic", "White", "Two or more"]),
        Number("tested_at", Time(2024, 1, 1), Time(2024, 12, 31)),
    ),
    "claims": Schema(
        Category("claim_type", ["inpatient", "outpatient", "pharmacy", "dental"]),
        Category("status", ["paid", "denied", "pending"]),
        Category("state", ["CA", "NY", "TX", "WA", "FL"]),
        Number("billed", 0, 100_000),
        Number("paid", 0, 50_000),
        Number("service_date", Day(2023, 1, 1), Day(2024, 12, 31)),
        Number("submitted_at", Time(2023, 1, 1), Time(2025, 3, 31)),
        Number("age", 0, 100, step=1),
        Category("plan", ["HMO", "PPO", "EPO"]),
        Flag("is_emergency"),
        Category("drg"),
        unit="member_id",
        max_rows=2,
    ),
    "employees": Schema(
        Category("department", ["Engineering", "Sales", "HR", "Finance", "Support"]),
        Category("job_level", [1, 2, 3, 4, 5, 6]),
        Category("country", ["US", "DE", "IN", "BR"]),
        Number("salary", 20_000, 400_000, step=100),
        Number("bonus", 0, 100_000),
        Number("hired_on", Day(2005, 1, 1), Day(2024, 12, 31)),
        Flag("remote"),
        Number("rating", 1, 5, step=1),
        Category("gender", ["F", "M", "N"]),
        Flag("terminated"),
        Category("office"),
        Number("Years at Company", 0, 40, step=1),
    ),
}
QUARTERS = ("hba1c", "cost", "paid", "billed", "bonus")
"""Columns without a step, whose values are quarters: DuckDB adds them up exactly."""
SIZES: dict[str, Callable[[random.Random], float]] = {
    "bmi": lambda draw: draw.randint(150, 450) / 10,
    "gpa": lambda draw: draw.randint(0, 400) / 100,
    "salary": lambda draw: draw.randint(300, 2500) * 100,
}


def _value(column: Any, draw: random.Random) -> Any:
    if isinstance(column, Flag):
        return draw.random() < 0.4
    if isinstance(column, Category):
        return draw.choice(list(column.values or ["alpha", "beta", "gamma"]))
    low, high = column.low, column.high
    if isinstance(low, Time):
        return low + datetime.timedelta(
            minutes=draw.randrange(int((high - low).total_seconds() // 60))
        )
    if isinstance(low, Day):
        return low + datetime.timedelta(days=draw.randint(0, (high - low).days))
    if column.name in SIZES:
        return SIZES[column.name](draw)
    if column.name in QUARTERS:
        return draw.randint(4 * int(low), 4 * min(int(high), 20_000)) / 4
    return draw.randint(int(low), min(int(high), 95))


def rows(name: str, count: int = 900) -> pyarrow.Table:
    """Rows with gaps; every member has two claims, which come soon after the service."""
    draw = random.Random(name)
    found: dict[str, list[Any]] = defaultdict(list)
    for at in range(count):
        row = {
            column.name: None if draw.random() < 0.08 else _value(column, draw)
            for column in SCHEMAS[name].columns
        }
        first, last = row.get("admitted"), row.get("discharged")
        if first and last:
            stay = first + datetime.timedelta(days=draw.randint(-2, 30))
            row["discharged"] = max(min(stay, Day(2024, 12, 31)), Day(2022, 1, 1))
        if row.get("service_date") and row.get("submitted_at"):
            start = datetime.datetime.combine(row["service_date"], datetime.time())
            sent = start + datetime.timedelta(minutes=draw.randint(-2_000, 80_000))
            row["submitted_at"] = max(sent, Time(2023, 1, 1))
        if name == "claims":
            row["member_id"] = f"m{at // 2}"
        for label, value in row.items():
            found[label].append(value)
    return pyarrow.table(dict(found))
