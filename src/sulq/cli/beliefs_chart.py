"""The picture of a promise: what was believed before against the most believed after."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from sulq.accounting.confidence import USUAL_PRIOR, Worst, one_in, percent_up, worst
from sulq.beliefs import curve
from sulq.errors import InvalidQuery
from sulq.learn.plot_parts import BLUE, GREY, INK, ORANGE, Picture, altair, chart, finished
from sulq.learn.plots import KINDS, ready, save
from sulq.schema.promise import Promise

PROMISED = "all this database will ever say"
SPENT = "said so far (indicative)"
NOTHING = "nothing said"
COLOURS = {PROMISED: BLUE, SPENT: ORANGE, NOTHING: GREY}
SIZE = 380


def draw_beliefs(
    path: Path, promise: Promise, *, about: str | None, spent: Fraction | None
) -> Path:
    """Write the picture; `spent` credits add the curve of what was said so far."""
    if path.suffix.lower() not in KINDS:
        raise InvalidQuery(f"a picture is one of {', '.join(KINDS)}, got {path.name!r:.60}")
    try:
        ready()
    except ImportError as missing:
        raise InvalidQuery(f"{missing}, or leave --plot out") from None
    return save(picture(promise, about=about, spent=spent), path)


def picture(
    promise: Promise, *, about: str | None = None, spent: Fraction | None = None
) -> Picture:
    """Prior against worst posterior, with the diagonal where nothing is learned."""
    alt = altair()
    lines = {PROMISED: curve(promise, about=about)}
    if spent is not None:
        lines[SPENT] = curve(promise, about=about, spent=spent)
    records = [record for name, points in lines.items() for record in _records(name, points)]
    records += [{"line": NOTHING, "before": p, "after": p} for p in (0, 1)]
    names = [name for name in COLOURS if name in lines or name == NOTHING]
    shown = alt.Scale(domain=names, range=[COLOURS[name] for name in names])
    dashes = alt.Scale(
        domain=names, range=[[1, 0] if name == PROMISED else [5, 4] for name in names]
    )
    key = alt.Legend(title=None, orient="bottom", columns=1, symbolSize=400, labelLimit=400)
    drawn = (
        chart(records, width=SIZE, height=SIZE)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=_axis(alt.X, "before", "believed before"),
            y=_axis(alt.Y, "after", "believed after, at most"),
            color=alt.Color("line:N", scale=shown, sort=names, legend=key),
            strokeDash=alt.StrokeDash("line:N", scale=dashes, sort=names, legend=key),
        )
    )
    example = worst(promise, USUAL_PRIOR, about=about)
    layers = [drawn, *_example(example)]
    return finished(
        alt.layer(*layers), "What anyone may come to believe", _sayings(promise, example)
    )


def _records(name: str, points: Sequence[Worst]) -> list[dict[str, Any]]:
    inner = [{"line": name, "before": p.prior, "after": p.posterior} for p in points]
    ends = ({"line": name, "before": p, "after": p} for p in (0, 1))  # what is certain stays so
    return [next(ends), *inner, next(ends)]


def _axis(channel: Any, field: str, title: str) -> Any:
    alt = altair()
    return channel(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format=".0%", tickCount=5),
    )


def _example(point: Worst) -> list[Picture]:
    """The usual belief, its bound, and the step between them."""
    alt = altair()
    record = {"before": point.prior, "same": point.prior, "after": point.posterior}
    base = chart([{**record, "text": f"{point.prior:.0%} → {percent_up(point.posterior)}%"}])
    x = alt.X("before:Q")
    step = base.mark_rule(color=INK, strokeWidth=1).encode(x=x, y=alt.Y("same:Q"), y2="after:Q")
    dot = base.mark_point(color=INK, filled=True, size=55).encode(x=x, y=alt.Y("after:Q"))
    text = base.mark_text(
        align="right", dx=-8, dy=-8, color=INK, fontSize=12, fontWeight=600
    ).encode(x=x, y=alt.Y("after:Q"), text="text:N")
    return [step, dot, text]


def _sayings(promise: Promise, example: Worst) -> list[str]:
    but = f", except with a chance below {one_in(example.except_for)}" if example.except_for else ""
    return [
        f"epsilon {float(promise.epsilon):.4g}, delta {float(promise.delta):.2g}: about"
        f" {example.subject},",
        f"by someone who knows everyone else's record{but}",
    ]
