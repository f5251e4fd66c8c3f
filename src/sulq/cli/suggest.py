"""`sulq suggest`: tighter bounds, clips and max_rows, from priced noisy answers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sulq.cli.context import Credits, OwnerSession, chosen, command, opened, quoting
from sulq.cli.output import (
    charging,
    key_values,
    number_text,
    print_note,
    show,
    show_json,
    stored,
    table,
)
from sulq.cli.question_text import credits_of
from sulq.formatting import credits_left, credits_text

if TYPE_CHECKING:
    from sulq.policy import TablePolicy
    from sulq.suggest import Suggestion

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TABLE] [COLUMN]...", help="Numbers; all of them if none is named."),
]
Keep = Annotated[float, typer.Option(help="Share of the rows that bounds leave as they are.")]
Quoted = Annotated[bool, typer.Option("--quote", help="The price only: free.")]


@command
def suggest(
    session: OwnerSession,
    words: Words = None,
    keep: Keep = 0.998,
    credits: Credits = None,
    quoted: Quoted = False,
) -> None:
    """Propose bounds, and for persons max_rows and clips, from priced noisy answers.

    The declared ranges should be generous; what is proposed can be used in questions at once.
    """
    from sulq.suggest import plan_of, price_of
    from sulq.suggest import suggest as ask_for

    source, columns = chosen(session.policy, words or [])
    if quoted:
        with quoting(source) as database:
            plan = plan_of(database.schema, database.size, columns)
            price = price_of(database, plan, credits_of(credits))
        if session.as_json:
            show_json({"table": source.name, "credits": price, "questions": len(plan.questions)})
        else:
            show(key_values([("cost", f"{credits_text(price)}, {len(plan.questions)} questions")]))
        return
    with opened(source) as database:
        oracle = database if session.analyst is None else database.as_analyst(session.analyst)
        with charging():
            found = ask_for(oracle, columns, keep=keep, credits=credits_of(credits))
        left = oracle.remaining
    with stored(found.credits):
        if session.as_json:
            show_json({"table": source.name, **_json(found), "left": left})
        else:
            _show(found, source)
            show(key_values([("cost", credits_text(found.credits)), ("left", credits_left(left))]))


def _json(found: Suggestion) -> dict[str, object]:
    from dataclasses import asdict

    read = asdict(found)
    if read["max_rows"] is not None:
        for name in ("kept", "kept_error"):
            read["max_rows"][name] = {str(m): x for m, x in read["max_rows"][name].items()}
    return read


def _show(found: Suggestion, source: TablePolicy) -> None:
    from sulq.policy.files import policy_line

    facts_of = {column.name: column.facts for column in source.columns}
    rows = [
        [
            one.column,
            _range(one.declared),
            _range(one.proposed),
            f"{number_text(round(one.outside))} ± {number_text(round(1.96 * one.outside_error))}",
            f"{one.error_now / one.error_then:.2g} times less" if one.error_then else "none",
        ]
        for one in found.bounds
    ]
    show(table(["column", "declared", "proposed", "rows outside", "noise of a total"], rows))
    for one in found.bounds:
        low, high = one.proposed
        bounds = [float(f"{end:.12g}") for end in (low, high)]
        kept = {**facts_of[one.column], "number": [int(x) if x == int(x) else x for x in bounds]}
        print_note(f"sulq.toml: {policy_line(one.column, kept)}")
        print_note(f"in a question: col({one.column!r}).clip({low:.12g}, {high:.12g})")
    for clip in found.clips:
        cut = f"{number_text(clip.cut)} ± {number_text(1.96 * clip.cut_error)}"
        print_note(
            f"per person: per_person(total({clip.column!r}), clip=(0, {clip.proposed:.12g})) cuts"
            f" {cut} of about {number_text(clip.total)}"
        )
    if found.max_rows is not None:
        most = found.max_rows
        for each in sorted({most.declared, most.proposed}):
            now = ", as declared," if each == most.declared else ""
            price = most.price_now if each == most.declared else most.price_then
            print_note(
                f"max_rows = {each}{now} keeps {most.kept[each]:.1%} ±"
                f" {1.96 * most.kept_error[each]:.1%} of the rows; a count of rows costs"
                f" {credits_text(Fraction(price))}"
            )
        beyond = (
            f"{number_text(round(most.beyond))} ± {number_text(round(1.96 * most.beyond_error))}"
        )
        print_note(f"looked at: {most.ceiling} rows of each person; {beyond} persons have more")


def _range(ends: tuple[float, float]) -> str:
    return f"{number_text(ends[0])} to {number_text(ends[1])}"
