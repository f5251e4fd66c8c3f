"""What all pictures share: colours, type, and the few marks they are made of.

Altair is an optional package, so it is loaded when the first picture is drawn. Colours are Okabe
and Ito's, which people with any colour vision tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sulq.learn.features import Array

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
YELLOW, SKY, GREY, INK = "#E69F00", "#56B4E9", "#8A8F98", "#24292F"
PALETTE = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, "#7F5539", GREY)
FAINT = "#E6E8EB"
FONT = "Helvetica, Arial, DejaVu Sans, sans-serif"
MOST_BARS = 24
"""More coordinates than this are cut to the longest bars."""

Records = list[dict[str, Any]]
Picture = Any
"""An altair chart; Any because the package may be absent."""


def altair() -> Any:
    """The package, or how to get it."""
    try:
        import altair
    except ImportError as missing:
        raise ImportError("pictures need altair: pip install 'sulq[report]'") from missing
    return altair


def chart(records: Iterable[dict[str, Any]], **size: Any) -> Picture:
    """A chart of these records, which travel inside it."""
    alt = altair()
    return alt.Chart(alt.Data(values=list(records)), **size)


def finished(drawn: Picture, title: str, said: Sequence[str] = ()) -> Picture:
    """The chart with its title, what is to be known below it, and the house's look."""
    alt = altair()
    named = drawn.properties(
        background="white",
        padding=12,
        title=alt.TitleParams(title, subtitle=list(said), anchor="start", offset=14 if said else 8),
    )
    return (
        named.configure(font=FONT)
        .configure_view(strokeWidth=0)
        .configure_title(
            color=INK,
            fontSize=15,
            fontWeight=600,
            subtitleColor="#57606A",
            subtitleFontSize=11.5,
            subtitlePadding=6,
            subtitleLineHeight=15,
        )
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            labelFontSize=11,
            titleFontSize=11.5,
            titleFontWeight="normal",
            domainColor=GREY,
            tickColor=GREY,
            gridColor=FAINT,
            titlePadding=8,
            labelLimit=220,
        )
        .configure_legend(
            labelColor=INK,
            titleColor=INK,
            labelFontSize=11,
            titleFontSize=11.5,
            titleFontWeight="normal",
            symbolStrokeWidth=2,
        )
        .configure_header(labelColor=INK, labelFontSize=12, titleFontSize=12)
    )


def panel(text: str) -> Any:
    """The title of one part of a picture."""
    return altair().TitleParams(text, fontSize=12, fontWeight=600, color=INK, anchor="start")


def colours(field: str, names: Sequence[Any], title: str | None = None, **legend: Any) -> Any:
    """One colour a name, in order; again from the first when they run out."""
    alt = altair()
    shades = [PALETTE[place % len(PALETTE)] for place in range(len(names))]
    key = alt.Legend(title=title, **legend) if legend or title is not None else None
    return alt.Color(
        f"{field}:N",
        scale=alt.Scale(domain=[str(name) for name in names], range=shades),
        sort=None,
        legend=key if key is not None else alt.Legend(title=None),
    )


def bars_with_errors(
    records: Records,
    *,
    across: str,
    colour: str = BLUE,
    width: int = 300,
    reach: float | None = None,
    labels: bool = True,
) -> Picture:
    """Bars from 0, one a `name`, with their 95 % intervals where `low` and `high` are known.

    Bars whose interval holds 0 are drawn pale: they may be noise. `reach` fixes the scale.
    """
    alt = altair()
    shown = records
    if len(records) > MOST_BARS:
        shown = sorted(records, key=lambda record: -abs(record["value"]))[:MOST_BARS]
    shown = [{**record, "sure": _is_sure(record)} for record in shown]
    base = chart(shown, width=width, height=alt.Step(20))
    y = alt.Y(
        "name:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False, labels=labels)
    )
    if reach is None:
        x = alt.X("value:Q", title=across, axis=alt.Axis(tickCount=5))
    else:
        marks = [-reach, -reach / 2, 0, reach / 2, reach]
        x = alt.X(
            "value:Q",
            title=across,
            scale=alt.Scale(domain=[-reach, reach], clamp=True),
            axis=alt.Axis(values=marks, format=".2~g"),
        )
    bars = base.mark_bar(size=12, cornerRadius=1.5, color=colour).encode(
        x,
        y,
        opacity=alt.condition("datum.sure", alt.value(1.0), alt.value(0.35)),
        tooltip=["name:N", alt.Tooltip("value:Q", format=".4g")],
    )
    layers = [bars]
    if any("low" in record for record in shown):
        layers.append(
            base.transform_filter("isValid(datum.low)")
            .mark_rule(color=INK, strokeWidth=1.3)
            .encode(alt.X("low:Q"), alt.X2("high:Q"), y)
        )
    zero = chart([{"zero": 0}]).mark_rule(color=GREY, strokeWidth=1).encode(alt.X("zero:Q"))
    return alt.layer(*layers, zero)


def _is_sure(record: dict[str, Any]) -> bool:
    return "low" not in record or record["low"] > 0 or record["high"] < 0


def interval(value: float, error: float | None) -> dict[str, float]:
    """A value and its 95 % interval, where its standard error is known."""
    if error is None or not error > 0:
        return {"value": float(value)}
    half = 1.96 * float(error)
    return {"value": float(value), "low": float(value) - half, "high": float(value) + half}


def weighed(keys: Sequence[str], weights: Array, errors: Array | None) -> Records:
    """Weights by coordinate. What a Category's values share shows in no row, and is taken out.

    Its error is that shared part's for the most, so differences between values get no bar.
    """
    shown = without_constants(keys, weights[None, :])[0]
    return [
        {"name": key, **interval(shown[i], None if errors is None or "=" in key else errors[i])}
        for i, key in enumerate(keys)
    ]


def without_constants(keys: Sequence[str], matrix: Array) -> Array:
    """Weights (one row each) minus their mean over the values of each Category."""
    shown = matrix.copy()
    names = [key.partition("=")[0] if "=" in key else "" for key in keys]
    for name in set(names) - {""}:
        places = [place for place, other in enumerate(names) if other == name]
        shown[:, places] -= shown[:, places].mean(axis=1, keepdims=True)
    return shown
