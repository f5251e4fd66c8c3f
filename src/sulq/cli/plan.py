"""`sulq plan`: several questions priced together; with --yes all of them are asked, or none."""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import (
    Key,
    Receipts,
    Session,
    Terms,
    append_receipts,
    check_receipts,
    chosen,
    command,
)
from sulq.cli.output import (
    charging,
    key_values,
    number_text,
    percent,
    print_note,
    show,
    show_json,
    stored,
    table,
)
from sulq.cli.question_text import spelled
from sulq.errors import InvalidQuery
from sulq.formatting import credits_left, credits_text

if TYPE_CHECKING:
    from sulq.answers.oracle import Answer
    from sulq.client import RemotePlan
    from sulq.database.plan import Plan

Words = Annotated[
    list[str],
    typer.Argument(
        metavar='[TABLE] "QUESTION" ...',
        help='Each question in quotes: "count where smoker", "mean age", "histogram city".',
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Ask: charge every question, or none.")]
SHOWN = 60


@command
def plan(
    words: Words,
    session: Session,
    terms: Terms,
    yes: Yes = False,
    key: Key = None,
    receipts: Receipts = None,
) -> None:
    """Price several questions as one: what each costs, and how exact it will be. Free.

    --credits is shared so that all have the same noise. With --yes one transaction charges every
    question, or none; what was asked before is free.
    """
    if not yes and (key is not None or receipts is not None):
        raise InvalidQuery("--key and --receipts belong to asking: add --yes")
    source, texts = session.source_of(words, here=chosen)
    if not texts:
        raise InvalidQuery('name the questions: sulq plan "count where smoker" "mean age"')
    asked = [spelled(text, source.schema()) for text in texts]
    check_receipts(receipts)
    with ExitStack() as told:
        with session.oracle(source, prices=not yes) as oracle:
            found = oracle.plan(asked, **terms.arguments())
            if not yes:
                _show_plan(found, texts, source.name, session.as_json)
                return
            with charging():
                answers = found.ask(key=key)
            cost = sum((answer.credits for answer in answers), start=Fraction(0))
            told.enter_context(stored(cost))
            left = oracle.remaining
        append_receipts(receipts, [answer.receipt for answer in answers])
        if session.as_json:
            listed = [
                _answer_json(text, answer, terms.confidence)
                for text, answer in zip(texts, answers, strict=True)
            ]
            show_json({"table": source.name, "answers": listed, "credits": cost, "left": left})
            return
        lines = [
            line
            for text, answer in zip(texts, answers, strict=True)
            for line in _answer_lines(text, answer, terms.confidence)
        ]
        show(table(("question", "value", "low", "high", "credits", "receipt"), lines))
        show(key_values([("cost", credits_text(cost)), ("left", credits_left(left))]))


def _show_plan(found: Plan | RemotePlan, texts: list[str], name: str, as_json: bool) -> None:
    lines = found.rows()
    if as_json:
        listed = [{"asked": text, **line} for text, line in zip(texts, lines, strict=True)]
        show_json(
            {
                "table": name,
                "questions": listed,
                "credits": found.credits,
                "left_after": found.left_after,
                "affordable": found.affordable,
                "confidence": found.confidence,
            }
        )
        return
    shown = [
        (
            _short(text),
            "free" if line["repeat"] else credits_text(line["credits"]).split()[0],
            _bar(line["half_width"]),
        )
        for text, line in zip(texts, lines, strict=True)
    ]
    show(table(("question", "credits", f"{percent(found.confidence)} bar"), shown))
    left = credits_left(found.left_after) if found.affordable else "not affordable"
    show(key_values([("together", credits_text(found.credits)), ("left after", left)]))
    for text, line in zip(texts, lines, strict=True):
        if line["note"]:
            print_note(f"note: {_short(text)}: {line['note']}")
    if found.affordable:
        print_note("nothing is charged yet; --yes asks all of it")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 4] + " ..."


def _bar(half: Any) -> str:
    if half is None:
        return "?"
    return f"± {number_text(float(half.max()) if hasattr(half, 'max') else float(half))}"


def _answer_json(text: str, answer: Answer, confidence: float) -> dict[str, Any]:
    low, high = answer.interval(confidence)
    return {
        "asked": text,
        "statistic": answer.kind,
        "value": answer.value,
        "low": low,
        "high": high,
        "keys": answer.keys,
        "credits": answer.credits,
        "receipt": answer.receipt.seq,
        "note": answer.note,
    }


def _answer_lines(text: str, answer: Answer, confidence: float) -> list[tuple[str, ...]]:
    """One line, or one for each cell below the question's own."""
    cost = (credits_text(answer.credits).split()[0], str(answer.receipt.seq))
    records = answer.rows(confidence)
    if not answer.keys:
        (one,) = records
        return [(_short(text), *(number_text(one[end]) for end in ("value", "low", "high")), *cost)]
    lines: list[tuple[str, ...]] = [(_short(text), "", "", "", *cost)]
    for one in records:
        ends = [number_text(one.pop(end)) for end in ("value", "low", "high")]
        lines.append(("  " + ", ".join(map(str, one.values())), *ends, "", ""))
    return lines
