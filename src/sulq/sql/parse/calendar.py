"""Parts of days and times: EXTRACT, DATE_TRUNC and formats, as step functions over a public range.

Months, weekdays and hours come from the declared bounds of a column and the calendar alone.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import Expression, Literal, operation
from sulq.kernel.schema.columns import EPOCH
from sulq.sql.parse.grammar import Node, wrong
from sulq.sql.parse.step_functions import StepFunction, check_steps, stepped

MOST_UNITS = 10_000
PARTS = (exp.Extract, exp.DateTrunc, exp.TimeToStr)
Day = datetime.date
Label = Callable[[datetime.datetime], object]

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

BY_BORDERS: dict[str, tuple[str, Label]] = {
    "year": ("year", lambda at: at.year),
    "isoyear": ("week", lambda at: at.isocalendar().year),
    "quarter": ("quarter", lambda at: (at.month + 2) // 3),
    "month": ("month", lambda at: at.month),
    "year_month": ("month", lambda at: 100 * at.year + at.month),
    "week": ("week", lambda at: at.isocalendar().week),
    "week0": ("week of year", lambda at: sundays(at)),
    "week1": ("week of year", lambda at: sundays(at) + (Day(at.year, 1, 1).isoweekday() != 7)),
}
"""Parts that change at the starts of a longer unit."""


def sundays(at: datetime.datetime) -> int:
    """How many Sundays a year has had: the number of a week as BigQuery and MySQL count."""
    return ((at.date() - Day(at.year, 1, 1)).days + 7 - at.isoweekday() % 7) // 7


INSIDE: dict[str, tuple[str, str, Label]] = {
    "day": ("month", "day", lambda at: at.day),
    "dayofyear": ("year", "day", lambda at: (at.date() - Day(at.year, 1, 1)).days + 1),
    "dow": ("week", "day", lambda at: at.isoweekday() % 7),
    "dow1": ("week", "day", lambda at: at.isoweekday() % 7 + 1),
    "isodow": ("week", "day", lambda at: at.isoweekday()),
    "monday0": ("week", "day", lambda at: at.weekday()),
    "hour": ("day", "hour", lambda at: at.hour),
}
"""Parts that repeat inside a longer unit: counted from its start."""

LONGEST = {"month": 31, "year": 366, "week": 7, "day": 24}
DIRECTIVES: dict[str, tuple[str, Label]] = {
    "Y": ("year", lambda at: f"{at.year:04}"),
    "y": ("year", lambda at: f"{at.year % 100:02}"),
    "m": ("month", lambda at: f"{at.month:02}"),
    "-m": ("month", lambda at: str(at.month)),
    "B": ("month", lambda at: MONTHS[at.month - 1]),
    "b": ("month", lambda at: MONTHS[at.month - 1][:3]),
    "d": ("day", lambda at: f"{at.day:02}"),
    "-d": ("day", lambda at: str(at.day)),
    "A": ("weekday", lambda at: WEEKDAYS[at.weekday()]),
    "a": ("weekday", lambda at: WEEKDAYS[at.weekday()][:3]),
    "u": ("weekday", lambda at: str(at.isoweekday())),
    "w": ("weekday", lambda at: str(at.isoweekday() % 7)),
    "F": ("day", lambda at: at.date().isoformat()),
    "V": ("week", lambda at: f"{at.isocalendar().week:02}"),
    "G": ("week", lambda at: f"{at.isocalendar().year:04}"),
    "H": ("hour", lambda at: f"{at.hour:02}"),
    "q": ("quarter", lambda at: str((at.month + 2) // 3)),
    "%": ("year", lambda at: "%"),
}
"""What a format may hold, and how long each holds still."""
_FORMAT = re.compile(r"%(-?[A-Za-z%])")
_UNREAD = re.compile(r"MON|DAY|DY|FM|TM|YY|MM|DD|HH|\bQ\b|\"", re.IGNORECASE)
"""Words of a format that were not understood: they would be shown as they stand."""


QUOTE = "\ufdd1"
"""Around letters of a format that stand for themselves."""
_QUOTED = re.compile(f"{QUOTE}[^{QUOTE}]*{QUOTE}")


def is_readable(form: str) -> bool:
    """Whether all of a format is understood."""
    shown = directives(form)
    known = bool(shown) and all(each in DIRECTIVES for each in shown)
    return known and not _UNREAD.search(_FORMAT.sub("", _QUOTED.sub("", form)))


def written(form: str, at: datetime.datetime) -> str:
    """A moment in a format."""
    return _FORMAT.sub(lambda m: str(DIRECTIVES[m[1]][1](at)), form).replace(QUOTE, "")


def directives(form: str) -> list[str]:
    """What a format shows: Y, m, d, ..."""
    return _FORMAT.findall(_QUOTED.sub("", form))


LENGTHS = ("year", "quarter", "month", "week", "day", "hour")


def truncated(at: datetime.datetime, unit: str) -> datetime.datetime:
    """The start of the unit that holds a moment."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - datetime.timedelta(days=day.weekday())
        case "week(sunday)":
            return day - datetime.timedelta(days=day.isoweekday() % 7)
        case "week of year":  # weeks from Sunday that end with the year
            return max(truncated(at, "week(sunday)"), truncated(at, "year"))
        case "hour":
            return at.replace(minute=0, second=0, microsecond=0)
    return day


def after(start: datetime.datetime, unit: str) -> datetime.datetime:
    """The start of the next unit."""
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    if unit == "week of year":
        first = truncated(start, "week(sunday)") + datetime.timedelta(days=7)
        return min(first, after(truncated(start, "year"), "year"))
    if months is None:
        hours = {"hour": 1, "day": 24}.get(unit, 168)
        return start + datetime.timedelta(hours=hours)
    month = start.month - 1 + months
    return start.replace(year=start.year + month // 12, month=month % 12 + 1)


def starts(
    first: datetime.datetime, last: datetime.datetime, unit: str
) -> Iterator[datetime.datetime]:
    """The starts of the units from the one that holds `first` to the one after `last`."""
    at = truncated(first, unit)
    for _ in range(MOST_UNITS + 1):
        yield at
        if at > last:
            return
        at = after(at, unit)
    raise InvalidQuery(
        f"more than {MOST_UNITS:,} groups; take a longer unit than {unit}, or narrow the range",
        reason=Reason.TOO_LARGE,
    )


class Calendar:
    """Reads parts of one day or time that lies between `low` and `high`, in its own units."""

    def __init__(
        self, of: Expression, kind: str, low: Fraction, high: Fraction, nullable: bool = True
    ) -> None:
        self.of, self.kind, self.nullable = of, kind, nullable
        second = 1 if kind == "datetime" else 86_400
        self.first, self.last = (
            EPOCH + datetime.timedelta(seconds=math.floor(end * second)) for end in (low, high)
        )

    def read(self, node: Node) -> StepFunction:
        """The step function that a part of this moment is."""
        match node:
            case exp.Extract():
                return self._part(str(node.this.name), node)
            case exp.DateTrunc():
                return self._truncated(str(node.args["unit"].name).casefold(), node)
            case exp.TimeToStr():
                return self._formatted(str(node.args["format"].name), node)
        raise wrong(node, Reason.NO_GROUPS, "no part of a day that is known here")

    def _edge(self, at: datetime.datetime) -> object:
        return at if self.kind == "datetime" else at.date()

    def by_borders(self, unit: str, label: Label) -> StepFunction:
        """Labels that hold still from one start of a unit to the next."""
        edges = list(starts(self.first, self.last, unit))
        labels = tuple(label(at) for at in edges[:-1])
        return StepFunction(self.of, tuple(map(self._edge, edges)), labels, self.nullable)

    def _inside(self, outer: str, step: str, label: Label) -> StepFunction:
        """Labels that repeat in each longer unit: how far the moment is from its start."""
        seconds = {"day": 86_400, "hour": 3_600}[step]
        unit = 1 if self.kind == "datetime" else 86_400
        if seconds < unit:  # the hour of a day without a time
            ends = (self._edge(self.first), self._edge(self.last + datetime.timedelta(days=1)))
            return StepFunction(self.of, ends, (0,), self.nullable)
        edges = list(starts(self.first, self.last, outer))
        check_steps(len(edges) - 1)
        zero = Literal(EPOCH if self.kind == "datetime" else EPOCH.date())
        since = [Literal(int((at - EPOCH).total_seconds()) // unit) for at in edges[:-1]]
        start = stepped(self.of, list(map(self._edge, edges)), since, self.nullable)
        passed = operation("add", self.of, operation("negate", zero), operation("negate", start))
        size = LONGEST[outer] * seconds // unit
        base = operation("clip", passed, 0, size - 1)
        model = self._long_one(edges, outer)
        count = LONGEST[outer]
        labels = tuple(
            label(model + datetime.timedelta(seconds=seconds * at)) for at in range(count)
        )
        places = tuple(at * seconds // unit for at in range(count + 1))
        return StepFunction(base, places, labels, self.nullable)

    def _long_one(self, edges: list[datetime.datetime], outer: str) -> datetime.datetime:
        """A unit that has all the days there can be: only their number matters."""
        if outer == "month":
            return datetime.datetime(2024, 1, 1)
        return datetime.datetime(2024, 1, 1) if outer == "year" else edges[0]

    def _part(self, unit: str, node: Node) -> StepFunction:
        if unit in BY_BORDERS:
            return self.by_borders(*BY_BORDERS[unit])
        if unit in INSIDE:
            return self._inside(*INSIDE[unit])
        known = ", ".join(["year", "quarter", "month", "week", "day", "dow", "isodow", "hour"])
        raise wrong(
            node, Reason.NO_GROUPS, f"the unit {unit!r:.40} makes no groups; there are {known}"
        )

    def _truncated(self, unit: str, node: Node) -> StepFunction:
        if unit == "hour" and self.kind == "datetime":
            return self.by_borders("hour", lambda at: at)
        if unit == "hour":
            unit = "day"
        if unit not in (*LENGTHS, "week(sunday)"):
            known = ", ".join(LENGTHS)
            raise wrong(
                node, Reason.NO_GROUPS, f"the unit {unit!r:.40} makes no groups; there is {known}"
            )
        return self.by_borders(unit, lambda at: at.date())

    def _formatted(self, form: str, node: Node) -> StepFunction:
        if not is_readable(form):
            said = "%Y, %m, %B, %b, %d, %A, %a, %H (YYYY, MM, Month, Mon, DD, Day, HH24)"
            raise wrong(node, Reason.NO_GROUPS, f"this format cannot be read; there are {said}")
        lengths = {DIRECTIVES[each][0] for each in directives(form)}

        def label(at: datetime.datetime) -> str:
            return written(form, at)

        if lengths == {"weekday"}:
            return self._inside("week", "day", label)
        if lengths == {"hour"}:
            return self._inside("day", "hour", label)
        lengths = {"day" if length == "weekday" else length for length in lengths}
        unit = max(lengths, key=LENGTHS.index)
        if unit == "week" and lengths & {"month", "quarter", "year"} - {"week"}:
            unit = "day"
        if unit == "hour" and self.kind != "datetime":
            unit = "day"
        return self.by_borders(unit, label).merged()


def part_of(node: Node, at: datetime.date) -> object:
    """A part of one public day or time."""
    moment = at if isinstance(at, datetime.datetime) else EPOCH.combine(at, datetime.time())
    match node:
        case exp.Extract():
            unit = str(node.this.name)
            if unit in BY_BORDERS:
                return BY_BORDERS[unit][1](moment)
            if unit in INSIDE:
                return INSIDE[unit][2](moment)
        case exp.DateTrunc():
            unit = str(node.args["unit"].name).casefold()
            if unit in (*LENGTHS, "week(sunday)"):
                start = truncated(moment, unit)
                return start if unit == "hour" else start.date()
        case exp.TimeToStr():
            form = str(node.args["format"].name)
            if is_readable(form):
                return written(form, moment)
    raise wrong(node, Reason.NO_GROUPS, "no part of a day that is known here")
