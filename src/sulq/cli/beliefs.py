"""What an adversary may believe: `sulq beliefs`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.options import TableName
from sulq.cli.screen import POLICY, Json, Policy, guarded, show, show_json, table, talk

if TYPE_CHECKING:
    from sulq.policy import TablePolicy
    from sulq.schema.promise import Promise

PRIORS = (0.01, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 0.99)


def register(app: typer.Typer, role: str) -> None:
    """Add the command to the command line."""
    app.command(rich_help_panel=role)(beliefs)


@guarded
def beliefs(
    name: TableName = None,
    policy: Policy = POLICY,
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
    as_json: Json = False,
) -> None:
    """How far anyone's belief about one record can move, after all this table will ever say."""
    from sulq.accounting.confidence import one_in, percent_up
    from sulq.beliefs import largest_move, most_moved_prior, worst, worst_so_far
    from sulq.cli.opening import named
    from sulq.errors import InvalidQuery
    from sulq.exact.terms import UNTIL_RELEASED
    from sulq.schema.promise import Promise

    if epsilon is None and delta is not None:
        raise InvalidQuery("--delta goes with --epsilon: together they are a promise of your own")
    if epsilon is not None and name is not None:
        raise InvalidQuery(f"give a table or --epsilon, not both; got {name!r:.40} and {epsilon}")
    if epsilon is not None:
        promise, spent = Promise(epsilon, "1e-6" if delta is None else delta), None
    else:
        source = named(policy, name)
        promise, spent = _said(source)
        promise = promise.about(source.unit)
        if source.exact is not None:
            talk(f"note: {UNTIL_RELEASED}")
    found = [worst(promise, p, about=about) for p in (PRIORS if prior is None else (prior,))]
    change = found[0].change
    now = (
        None
        if spent is None
        else [worst_so_far(promise, spent, w.prior, about=about) for w in found]
    )
    if plot is not None:
        from sulq.cli.beliefs_chart import draw_beliefs

        draw_beliefs(plot, promise, about=about, spent=spent)
    if as_json:
        show_json(
            {
                "promise": str(promise),
                "change": change,
                "beliefs": [_record(w) for w in found],
                "so_far_indicative": now and [_record(w) for w in now],
                "plot": plot,
            }
        )
        return
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
    show(drawn)
    if prior is not None:
        talk(str(found[0]))
        if now is not None:
            talk(str(now[0]))
    talk(f"promise: {promise}")
    chance = found[0].except_for
    rarely = f", except with a chance below {one_in(chance)}" if chance else ""
    talk(
        f"the most any belief moves is {largest_move(change):.1%}, from"
        f" {most_moved_prior(change):.1%} (log-odds rise by {change:.3g} at most{rarely})"
    )
    talk("records that repeat each other are not hidden by this: see docs/limits.md")
    if plot is not None:
        talk(f"drew {plot}")


def _said(source: TablePolicy) -> tuple[Promise, Fraction | None]:
    """The table's promise, and what is spent of it: from its ledger, once it is published."""
    import json

    from sulq.errors import Refused
    from sulq.ledger.inspection import inspect, is_there
    from sulq.schema.promise import Promise

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
