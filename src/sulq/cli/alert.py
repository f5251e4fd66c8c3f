"""`sulq alert`: arm one on a count or total, check it, list what is armed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sulq.cli.context import Credits, Key, Session, TableName, Where, chosen, command
from sulq.cli.output import charging, key_values, number_text, show, show_json, stored, table
from sulq.cli.question_text import credits_of, hinted, question
from sulq.errors import InvalidQuery
from sulq.formatting import credits_left, credits_text

Watched = Annotated[
    list[str],
    typer.Argument(
        metavar="[TABLE] count | total VALUE", help="What is watched.", show_default=False
    ),
]
Checked = Annotated[
    list[str],
    typer.Argument(
        metavar="[TABLE] NUMBER [count | total VALUE]",
        help="The alert, and what to compare; else what it was armed on.",
        show_default=False,
    ),
]
Above = Annotated[str, typer.Option(help="The level; it fires when the sum has reached it.")]
Firings = Annotated[int, typer.Option(help="How often it may fire: all are paid for now.")]


@command
def arm(
    words: Watched,
    session: Session,
    above: Above,
    firings: Firings = 1,
    where: Where = None,
    credits: Credits = None,
    key: Key = None,
) -> None:
    """Arm an alert. The whole price is charged now (1 credit unless you say); checks are free.

    It is kept in the state directory of the machine that holds the table.
    """
    source, rest = session.source_of(words)
    asked = question(rest, where, (), None, False, source.schema())
    terms: dict[str, Any] = {
        "above": credits_of(above, "--above"),
        "firings": firings,
        "credits": credits_of(credits) or 1,
        "keep": True,
        "key": key,
    }
    with session.oracle(source) as oracle:
        with charging(), hinted(where, *rest):
            found = oracle.alert(asked, **terms)
        left = oracle.remaining
    with stored(found.credits):
        if session.as_json:
            cost = {"credits": found.credits, "credits_left": left}
            show_json({"table": source.name, **_record(found), "margin": found.margin(), **cost})
            return
        sure = f"sums {number_text(found.margin())} or more from the level, at 95%"
        show(
            key_values(
                [
                    ("alert", str(found.number)),
                    ("fires", f"when it has reached {number_text(float(found.above))}"),
                    ("right about", sure),
                    ("cost", credits_text(found.credits)),
                    ("left", credits_left(left)),
                ]
            )
        )


@command
def check(
    words: Checked,
    session: Session,
    where: Where = None,
    key: Key = None,
) -> None:
    """Compare: has it reached the level? Free; a question found below is not compared again."""
    source, rest = session.source_of(words, here=chosen)
    if not rest or not rest[0].isascii() or not rest[0].isdigit():
        raise InvalidQuery(f"want the number of an alert, got {rest[:1]}; see `sulq alert list`")
    number, said = int(rest[0][:18]), rest[1:]
    if where is not None and not said:
        raise InvalidQuery("--where is for another question: say count or total VALUE too")
    other = question(said, where, (), None, False, source.schema()) if said else None
    with session.oracle(source) as oracle, hinted(where, *said):
        found = oracle.kept_alert(number)
        fired = found.check(other, key=key)
    if session.as_json:
        show_json({"table": source.name, "fired": fired, **_record(found)})
        return
    again = f"{found.left} of {found.firings} firings left"
    show(
        key_values(
            [("alert", str(number)), ("verdict", "fires" if fired else "below"), ("", again)]
        )
    )


@command
def listed(
    session: Session,
    name: TableName = None,
) -> None:
    """The alerts that you have armed on a table."""
    source = session.source(name)
    with session.oracle(source, prices=True) as oracle:
        records = [_record(each) for each in oracle.alerts()]
    if session.as_json:
        show_json({"table": source.name, "alerts": records})
        return
    rows = [
        [
            str(r["alert"]),
            r["question"],
            number_text(float(r["above"])),
            f"{r['left']} of {r['firings']}",
        ]
        for r in records
    ]
    show(table(["alert", "question", "above", "firings left"], rows))


def _record(found: Any) -> dict[str, Any]:
    return {
        "alert": found.number,
        "question": found.question,
        "above": float(found.above),
        "firings": found.firings,
        "left": found.left,
    }
