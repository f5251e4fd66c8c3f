"""What an adversary may believe: `sulq beliefs`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sulq.cli.screen import POLICY, Json, Policy, guarded, show, show_json, table, talk

TableName = Annotated[str | None, typer.Argument(metavar="[TABLE]", show_default=False)]
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
    delta: Annotated[str, typer.Option(help="With --epsilon: its delta.")] = "1e-6",
    as_json: Json = False,
) -> None:
    """How far anyone's belief about one record can move, after all this table will ever say."""
    from sulq.beliefs import largest_move, most_moved_prior, worst
    from sulq.cli.opening import named
    from sulq.schema.promise import Promise

    promise = Promise(epsilon, delta) if epsilon else named(policy, name).promise
    found = [worst(promise, p, about=about) for p in (PRIORS if prior is None else (prior,))]
    change = found[0].change
    if as_json:
        show_json(
            {"promise": str(promise), "change": change, "beliefs": [_record(w) for w in found]}
        )
        return
    rows = [(f"{w.prior:.0%}", f"{w.posterior:.1%}", _bar(w.posterior)) for w in found]
    drawn = table(("believed before", "at most after", ""), rows)
    drawn.columns[2].justify = "left"
    show(drawn)
    if prior is not None:
        talk(str(found[0]))
    talk(
        f"the most any belief moves is {largest_move(change):.1%}, from"
        f" {most_moved_prior(change):.1%} (log-odds rise by {change:.3g} at most"
        + (f", but for a chance of {found[0].except_for:.2g})" if found[0].except_for else ")")
    )
    talk("records that repeat each other are not hidden by this: see docs/limits.md")


def _record(w: Any) -> dict[str, Any]:
    return {"prior": w.prior, "posterior": w.posterior, "except_for": w.except_for, "text": str(w)}


def _bar(p: float) -> str:
    return "█" * round(30 * p)
