"""How much time lies between two moments of a row: DATEDIFF, TIMESTAMPDIFF, AGE, MONTHS_BETWEEN.

Of each moment the number of its day, week, month or year is a step function of the calendar; what
lies between two of them is a difference of such numbers. No row is looked at, and no engine's own
function ever sees one.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression, Literal, operation
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import EPOCH
from sulq.sql.parse.calendar import Calendar, Day, Label
from sulq.sql.parse.grammar import DaysBetween, Node, spoken, wrong
from sulq.sql.parse.normalise import unit_of
from sulq.sql.parse.step_functions import StepFunction, check_steps

BETWEEN = (DaysBetween, exp.DateDiff, exp.TimestampDiff, exp.MonthsBetween)
SECONDS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
NUMBERS: dict[str, tuple[str, Label]] = {
    "year": ("year", lambda at: at.year),
    "quarter": ("quarter", lambda at: 4 * at.year + (at.month - 1) // 3),
    "month": ("month", lambda at: 12 * at.year + at.month - 1),
    "week": ("week", lambda at: ((at - EPOCH).days + 3) // 7),
    "week(sunday)": ("week(sunday)", lambda at: ((at - EPOCH).days + 4) // 7),
    "day": ("day", lambda at: (at - EPOCH).days),
}
"""The number of a unit in the calendar, and where it changes."""
MONTHS = {"year": 12, "quarter": 3, "month": 1}


class MomentPair:
    """Two days or times of a row, as expressions, with the range that each can have."""

    def __init__(self, binder: RowBinder, node: Node, later: Expression, earlier: Expression):
        self.binder, self.node = binder, node
        self.later, self.earlier = later, earlier

    def between(self) -> Expression:
        """The number that the node stands for."""
        node = self.node
        if isinstance(node, DaysBetween):
            return self._whole("day") if node.args.get("whole") else self._borders("day")
        if isinstance(node, exp.MonthsBetween):
            return self._months()
        unit = unit_of(node.args.get("unit") or "day", "")
        if isinstance(node, exp.TimestampDiff):
            return self._whole(unit)
        return self._borders(unit)

    # --- parts ----------------------------------------------------------------------------------

    def _kind(self, of: Expression) -> str:
        return self.binder.number(canonical.value(of)).kind

    def _calendar(self, of: Expression) -> Calendar:
        value = self.binder.number(canonical.value(of))
        if value.kind not in ("date", "datetime"):
            raise wrong(self.node, Reason.WRONG_TYPE, f"{spoken(self.node)} wants days or times")
        return Calendar(of, value.kind, value.low * value.step, value.high * value.step)

    def _number(self, of: Expression, unit: str) -> Expression:
        """The number of the unit that holds a moment."""
        if isinstance(of, Literal) and isinstance(of.value, datetime.date):
            return Literal(int(NUMBERS[unit][1](_midnight(of.value))))  # type: ignore[call-overload]
        if unit == "day" and self._kind(of) == "date":
            return minus(of, Literal(EPOCH.date()))
        border, label = NUMBERS[unit]
        return self._calendar(of).by_borders(border, label).number()

    def day_number(self) -> Expression:
        """Days since 1970 of the later one."""
        return self._number(self.later, "day")

    def seconds(self, of: Expression) -> Expression:
        """Seconds since 1970."""
        if isinstance(of, Literal) and isinstance(of.value, datetime.date):
            return Literal((_midnight(of.value) - EPOCH) // datetime.timedelta(seconds=1))
        if self._kind(of) != "date":
            return minus(of, Literal(EPOCH))
        found = operation("multiply", minus(of, Literal(EPOCH.date())), 86_400)
        value = self.binder.number(canonical.value(found))
        low, high = (int(end * value.step) for end in (value.low, value.high))
        return operation("clip", found, low, high)  # a number: days and times do not mix in a sum

    def _since(self, of: Expression, change: Callable[[Calendar], StepFunction]) -> Expression:
        """How far a moment is from where a step function has its constants; in seconds."""
        if isinstance(of, Literal) and isinstance(of.value, datetime.date):
            at = _midnight(of.value)
            (start,) = change(self._calendar(Literal(at))).labels
            return Literal((at - start) // datetime.timedelta(seconds=1))  # type: ignore[operator]
        calendar = self._calendar(of)
        unit = 86_400 if calendar.kind == "date" else 1
        found = minus(of, Literal(EPOCH.date() if unit > 1 else EPOCH))
        starts = change(calendar).mapped(
            lambda at: (at - EPOCH) // datetime.timedelta(seconds=unit)  # type: ignore[operator]
        )
        gone = minus(found, starts.number())
        return operation("multiply", gone, 86_400) if unit > 1 else gone

    def _in_month(self, of: Expression) -> Expression:
        return self._since(of, lambda calendar: calendar.by_borders("month", lambda at: at))

    def _in_year(self, of: Expression) -> Expression:
        """Seconds since the start of the year, as if each had a 29 February: months keep order."""
        return self._since(of, _leaping)

    # --- numbers --------------------------------------------------------------------------------

    def _borders(self, unit: str) -> Expression:
        """How many borders of a unit lie between the two."""
        if unit in NUMBERS:
            return minus(self._number(self.later, unit), self._number(self.earlier, unit))
        if unit == "second":
            return minus(self.seconds(self.later), self.seconds(self.earlier))
        days = {"hour": 24, "minute": 1_440}.get(unit)
        if days and {self._kind(self.later), self._kind(self.earlier)} == {"date"}:
            return operation("multiply", self._borders("day"), days)
        raise wrong(
            self.node,
            Reason.NOT_IN_LANGUAGE,
            f"{unit.upper()} of two times would count each border; write the seconds between them,"
            f" (later - earlier) / {SECONDS.get(unit, 60)}",
        )

    def _whole(self, unit: str) -> Expression:
        """How many whole units have passed, below 0 where the second moment is the later one."""
        if unit in MONTHS:
            return self._whole_months(unit)
        size = SECONDS.get(unit)
        if size is None:
            raise wrong(self.node, Reason.WRONG_FORM, f"the unit {unit!r:.40} is not known here")
        kinds = {self._kind(self.later), self._kind(self.earlier)}
        if kinds == {"date"} and unit == "day":
            return self._borders("day")
        base = minus(self.seconds(self.later), self.seconds(self.earlier))
        if size == 1:
            return base
        value = self.binder.number(canonical.value(base))
        low, high = (int(end * value.step) // size for end in (value.low, value.high))
        check_steps(high - low + 1)
        labels = [at if at >= 0 else at + 1 for at in range(low, high + 1)]
        edges = [size * at + (1 if at < 0 else 0) for at in range(low, high + 2)]
        return StepFunction(base, tuple(edges), tuple(labels)).merged().number()

    def _whole_months(self, unit: str) -> Expression:
        borders = self._borders("year" if unit == "year" else "month")
        place = self._in_year if unit == "year" else self._in_month
        last, first = place(self.later), place(self.earlier)
        early = operation("choose", operation("lt", last, first), -1, 0)
        late = operation("choose", operation("lt", first, last), 1, 0)
        back = operation("lt", self.seconds(self.later), self.seconds(self.earlier))
        whole = operation("add", borders, operation("choose", back, late, early))
        if unit != "quarter":
            return whole
        value = self.binder.number(canonical.value(whole))
        low, high = (int(end * value.step) for end in (value.low, value.high))
        labels = tuple(-(-at // 3) if at < 0 else at // 3 for at in range(low, high + 1))
        return StepFunction(whole, tuple(range(low, high + 2)), labels).merged().number()

    def _months(self) -> Expression:
        """MONTHS_BETWEEN: whole months, and the rest as a part of 31 days."""
        if {self._kind(self.later), self._kind(self.earlier)} != {"date"}:
            raise wrong(self.node, Reason.WRONG_TYPE, "MONTHS_BETWEEN wants two days, not times")
        rest = minus(self._in_month(self.later), self._in_month(self.earlier))
        ends = operation("and", *(self._is_last(of) for of in (self.later, self.earlier)))
        part = operation("multiply", rest, Fraction(1, 31 * 86_400))
        return operation("add", self._borders("month"), operation("choose", ends, 0, part))

    def _is_last(self, of: Expression) -> Expression:
        """Whether a day is the last of its month."""
        return operation("eq", self._in_month(operation("add", of, 1)), 0)


def _midnight(day: datetime.date) -> datetime.datetime:
    """The time that a day or time is."""
    if isinstance(day, datetime.datetime):
        return day
    return datetime.datetime.combine(day, datetime.time())


def minus(left: Expression, right: Expression) -> Expression:
    return operation("add", left, operation("negate", right))


def _leaping(calendar: Calendar) -> StepFunction:
    """Where the year of a moment starts; from March of a year without 29 February a day before."""
    years = calendar.by_borders("year", lambda at: at)
    edges: list[object] = []
    labels: list[object] = []
    for start in years.labels:
        assert isinstance(start, datetime.datetime)  # noqa: S101
        edges.append(start)
        labels.append(start)
        march = start.replace(month=3)
        if (march - start).days == 59:
            edges.append(march)
            labels.append(start - datetime.timedelta(days=1))
    last = Day(years.labels[-1].year + 1, 1, 1)  # type: ignore[attr-defined]
    shown = [
        at if calendar.kind == "datetime" else at.date()  # type: ignore[attr-defined]
        for at in edges
    ]
    end = EPOCH.combine(last, datetime.time()) if calendar.kind == "datetime" else last
    return StepFunction(calendar.of, (*shown, end), tuple(labels), calendar.nullable)
