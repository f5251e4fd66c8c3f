"""What an adversary may believe: `sulq beliefs`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sulq.beliefs import curve, largest_move, most_moved_prior
from sulq.beliefs.confidence import USUAL_PRIOR, Worst, one_in, percent_up, worst, worst_so_far
from sulq.cli.context import LocalSession, TableName, command, named
from sulq.cli.output import print_note, show, show_json, table
from sulq.errors import InvalidQuery
from sulq.kernel.schema.promise import Promise
from sulq.learn.plotting.registry import KINDS, ready, save
from sulq.learn.plotting.style import BLUE, GREY, INK, ORANGE, Picture, altair, chart, finished

if TYPE_CHECKING:
    from sulq.policy import TablePolicy

PRIORS = (0.01, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 0.99)


@command
def beliefs(
    session: LocalSession,
    name: TableName = None,
    prior: Annotated[
        float | None, typer.Option(help="What they believed before, 0 to 1.", show_default=False)
    ] = None,
    about: Annotated[
        str | None,
        typer.Option(
            help="value, or presence (under add-remove, where a value costs twice).",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="A promise of your own instead of the table's.", show_default=False),
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="With --epsilon: its delta; 1e-6.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw it: a .png, .svg or .html file.", show_default=False),
    ] = None,
) -> None:
    """How far anyone's belief about one record can move, after all this table will ever say."""
    promise, spent = _promised(session.policy, name, epsilon, delta)
    found = [worst(promise, p, about=about) for p in (PRIORS if prior is None else (prior,))]
    now = (
        None
        if spent is None
        else [worst_so_far(promise, spent, w.prior, about=about) for w in found]
    )
    if plot is not None:
        draw_beliefs(plot, promise, about=about, spent=spent)
    if session.as_json:
        show_json(
            {
                "promise": str(promise),
                "change": found[0].change,
                "beliefs": [_record(w) for w in found],
                "so_far_indicative": now and [_record(w) for w in now],
                "plot": plot,
            }
        )
        return
    show(_beliefs_table(found, now))
    if prior is not None:
        print_note(str(found[0]))
        if now is not None:
            print_note(str(now[0]))
    print_note(f"promise: {promise}")
    print_note(_largest(found[0]))
    print_note("records that repeat each other are not hidden by this: see docs/limits.md")
    if plot is not None:
        print_note(f"drew {plot}")


def _promised(
    policy: Path, name: str | None, epsilon: str | None, delta: str | None
) -> tuple[Promise, Fraction | None]:
    """Return the promise of the options or of the table, and what is spent of it if known."""
    from sulq.exact.terms import UNTIL_RELEASED

    if epsilon is not None:
        if name is not None:
            raise InvalidQuery(
                f"give a table or --epsilon, not both; got {name!r:.40} and {epsilon}"
            )
        return Promise(epsilon, "1e-6" if delta is None else delta), None
    if delta is not None:
        raise InvalidQuery("--delta goes with --epsilon: together they are a promise of your own")
    source = named(policy, name)
    promise, spent = _said(source)
    if source.exact is not None:
        print_note(f"note: {UNTIL_RELEASED}")
    return promise.about(source.unit), spent


def _beliefs_table(found: Sequence[Worst], now: Sequence[Worst] | None) -> Table:
    """Draw a line for each prior; `now` are the beliefs after what was said so far."""
    rows = [[f"{w.prior:.0%}", f"{percent_up(w.posterior)}%", _bar(w.posterior)] for w in found]
    heads = ["believed before", "at most after", ""]
    if now is not None:
        heads.insert(2, "so far (indicative)")
        for row, w in zip(rows, now, strict=True):
            row.insert(2, f"{percent_up(w.posterior)}%")
    if found[0].near is not None:
        heads[1] = f"at most after, but {one_in(found[0].except_for)}"
        heads.insert(1, f"at most after, but {one_in(found[0].near[1])}")
        for row, w in zip(rows, found, strict=True):
            row.insert(1, f"{w.near_percent}%")
    drawn = table(heads, rows)
    drawn.columns[-1].justify = "left"
    return drawn


def _largest(example: Worst) -> str:
    """Say which belief moves most, and how far."""
    change, chance = example.change, example.except_for
    rarely = f", except with a chance below {one_in(chance)}" if chance else ""
    return (
        f"the most any belief moves is {largest_move(change):.1%}, from"
        f" {most_moved_prior(change):.1%} (log-odds rise by {change:.3g} at most{rarely})"
    )


def _said(source: TablePolicy) -> tuple[Promise, Fraction | None]:
    """The table's promise, and what is spent of it: from its ledger, once it is published."""
    import json

    from sulq.errors import Refused
    from sulq.kernel.ledger.inspect import inspect, is_there
    from sulq.kernel.schema.promise import Promise

    if not is_there(source.ledger_path):
        return source.promise, None
    statement = inspect(source.ledger_path).statements.get(source.name)
    if statement is None:
        return source.promise, None
    if statement.released or statement.maybe_released:
        raise Refused(
            "sums were released under assumptions, so no worst-case promise is left for this"
            " table; `sulq ledger` says what holds instead"
        )
    promise = Promise.from_json(json.loads(statement.facts["promise"]))
    return promise, statement.spent.credits_fraction


def _record(w: Any) -> dict[str, Any]:
    names = ("prior", "posterior", "except_for", "near")
    return {**{name: getattr(w, name) for name in names}, "text": str(w)}


def _bar(p: float) -> str:
    return "█" * round(30 * p)


# The picture of a promise: what was believed before against the most believed after.


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
