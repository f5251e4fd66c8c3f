"""Numbers as they stand on a screen: one rule for pages, terminal and report.

Digits end where the noise begins. Bars and prices round up, what is left rounds down, and a range
is the interval rounded outwards, within what is possible: on the screen, in charts and in files.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from sulq.kernel.schema.columns import EPOCH

MINUS = "−"
NEAR = 1e-9
"""A bar that already has its digits stays: binary fractions lie a hair above them."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value and its bar in the same decimals; `low` and `high` are value -+ the shown bar."""

    value: str
    bar: str
    low: str
    high: str
    places: int
    number: float
    half: float

    @property
    def weak(self) -> bool:
        """True if the range contains 0."""
        return bool(self.bar) and abs(self.number) <= self.half

    @property
    def range(self) -> str:
        return f"{self.low} to {self.high}" if self.bar else self.value

    def __str__(self) -> str:
        return f"{self.value} ± {self.bar}" if self.bar else self.value


def value_with_bar(value: float, bar: float) -> Shown:
    """`8.9 ± 1.2`: bars from 10 on in whole units, below in two digits, always rounded up."""
    if not math.isfinite(value) or not math.isfinite(bar):
        return Shown("no reading", "", "", "", 0, value, bar)
    if bar <= 0:
        said = spelled(value, None)
        return Shown(said, "", said, said, 0, value, 0.0)
    half, places = bar_up(bar)
    number = round(value, places) + 0.0
    low, high = number - half, number + half
    said, bar_said, low_said, high_said = (spelled(x, places) for x in (number, half, low, high))
    return Shown(said, bar_said, low_said, high_said, places, number, half)


def outward(low: float, high: float, places: int, possible: tuple[float, float]) -> tuple[str, str]:
    """An interval in these decimals, rounded outwards but never beyond what is possible."""
    least, most = possible
    unit = 10.0**-places
    lower = math.floor(low / unit + NEAR) * unit
    upper = math.ceil(high / unit - NEAR) * unit
    return (
        spelled(lower, places) if lower >= least else spelled(least, None),
        spelled(upper, places) if upper <= most else spelled(most, None),
    )


def bar_up(bar: float) -> tuple[float, int]:
    """A bar as it is shown, and its decimals."""
    if bar >= 10:
        return float(math.ceil(bar * (1 - NEAR))), 0
    places = 1 - math.floor(math.log10(bar))
    half = math.ceil(bar * (1 - NEAR) * 10**places) / 10**places
    return bar_up(half) if half >= 10 else (half, _digits(half))


def bar_text(bar: float) -> str:
    """A bar alone, without its ±."""
    half, places = bar_up(bar) if bar > 0 else (0.0, 0)
    return spelled(half, places)


def _digits(half: float) -> int:
    """Decimals of two significant digits; 0.995 rounded up to 1.0 has one."""
    return max(0, 1 - math.floor(math.log10(half) + NEAR))


def spelled(number: float, places: int | None) -> str:
    """Thousands with a comma, a true minus sign; `None` keeps up to six digits."""
    if places is None:
        text = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.6g}"
    else:
        text = f"{number:,.{places}f}"
    if text.startswith("-"):
        text = text[1:] if not text.strip("-0.,") else MINUS + text[1:]
    return text


def about(value: float, bar: float) -> str:
    """`about 14,200`: rounded to the bar's leading digit."""
    if bar <= 0 or not math.isfinite(bar):
        return spelled(value, None)
    place = math.floor(math.log10(bar) + NEAR)
    return spelled(round(value, -place) + 0.0, max(0, -place))


def decimal_text(credits: Fraction) -> str:
    """Return credits paid in four decimals, rounded up; below 0.001 in three digits.

    Python, the terminal and files show these: people add them up.
    """
    return _four(credits, ROUND_CEILING)


def decimal_left(credits: Fraction) -> str:
    """Return credits left as `decimal_text` does, rounded down."""
    return _four(credits, ROUND_FLOOR)


def credits_text(credits: Fraction) -> str:
    """Return credits paid: "1 credit", "2.5 credits"."""
    return f"{decimal_text(credits)} credit{'' if credits == 1 else 's'}"


def credits_left(credits: Fraction) -> str:
    """Return credits left: "1 credit", "2.5 credits"."""
    return f"{decimal_left(credits)} credit{'' if credits == 1 else 's'}"


def _four(credits: Fraction, way: str) -> str:
    exact = Context(prec=60, rounding=way).divide(*map(Decimal, credits.as_integer_ratio()))
    if 0 < abs(exact) < Decimal("0.001"):
        return f"{float(Context(prec=3, rounding=way).plus(exact)):.3g}"
    text = f"{exact.quantize(Decimal('0.0001'), context=Context(prec=60, rounding=way)):,f}"
    return text.rstrip("0").rstrip(".")


def price_text(credits: Fraction) -> str:
    """Return credits to pay as a screen has room for: whole, ½, or rounded up to three digits."""
    return _three(credits, ROUND_CEILING)


def left_text(credits: Fraction) -> str:
    """Return credits left as a screen has room for: the same, rounded down."""
    return _three(credits, ROUND_FLOOR)


def credits_word(credits: Fraction) -> str:
    """ "2 credits", "1 credit", "½ credit"."""
    return f"{price_text(credits)} {'credit' if 0 < credits <= 1 else 'credits'}"


def _three(credits: Fraction, way: str) -> str:
    if credits == Fraction(1, 2):
        return "½"
    if credits.denominator == 1:
        return spelled(float(credits), 0)
    context = Context(prec=40, rounding=way)
    exact = context.divide(Decimal(credits.numerator), Decimal(credits.denominator))
    if abs(exact) >= 100:
        return spelled(float(exact.quantize(Decimal(1), rounding=way)), 0)
    short = Context(prec=3, rounding=way).plus(exact)
    return f"{short:f}".rstrip("0").rstrip(".") if "." in f"{short:f}" else f"{short:f}"


def ordinal(number: int) -> str:
    """A receipt's number: "#0252"."""
    return f"#{number:04d}"


# Days and times, which are numbers inside.

OUTWARDS = (math.floor, math.ceil)
"""The ends of an interval are rounded away from each other: it holds at least as often."""


def moment_of(number: float, kind: str, whole: Callable[[float], int] = round) -> Any:
    """Return days or seconds since 1970 as a date or a datetime, rounded to a whole one.

    A number of another `kind` is returned as it is; None where there is no such day.
    """
    if kind not in ("date", "datetime"):
        return number
    try:
        step = datetime.timedelta(**{"days" if kind == "date" else "seconds": whole(number)})
        return EPOCH.date() + step if kind == "date" else EPOCH + step
    except (ValueError, OverflowError):
        return None


# Texts in files that spreadsheets open.

_RUN_BY_SHEETS = re.compile(r"[-=+@\t\r]")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)


def sheet_text(text: str) -> str:
    """Return a text for a cell of a spreadsheet: one that would be run as a formula is quoted."""
    return f"'{text}" if _RUN_BY_SHEETS.match(text) and not _NUMBER.fullmatch(text) else text
