"""What stands beside the Publish wizard: warnings, what analysts will get, the policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from sulq.accounting.calibration import calibrate
from sulq.accounting.confidence import USUAL_PRIOR, belief_up, moved
from sulq.errors import SulqError
from sulq.schema.promise import Promise
from sulq.server.console.risk_page import rebuilding_limit
from sulq.server.drafts import WEAK, Draft, State, draft_text, rows_of, state_of
from sulq.shown import bar_text, spelled

FEW_ROWS = 10_000
CHIPS = {"ready": "ok", "confirm": "warn", "fix": "bad", "todo": "warn", "hidden": ""}
Note = tuple[str, str, str]
"""Kind, first clause, rest."""


@dataclass(frozen=True, slots=True)
class SideView:
    notes: tuple[Note, ...]
    gets: tuple[tuple[str, str, bool], ...]
    text: str


def side_view(draft: Draft, home: Path, step: str) -> SideView:
    """What stands on the right: warnings, what analysts will get, the policy."""
    notes: list[Note] = []
    if step == "columns":
        notes = column_notes([(column.name, state_of(column)) for column in draft.columns])
    elif step in ("promise", "publish"):
        notes = promise_notes(draft, home)
    gets = _gets(draft) if step == "promise" else ()
    return SideView(tuple(notes), gets, draft_text(draft, home))


def column_notes(states: list[tuple[str, State]]) -> list[Note]:
    notes = [
        ("warn", f"Is {name} really public?", "“Public” means: anyone may already know it for"
         " everyone in the table. Its sizes are then given exactly and free of charge. If it is a"
         " secret, choose private.")
        for name, state in states if state.word == "confirm"
    ]  # fmt: skip
    wrong = [name for name, state in states if state.word in ("fix", "todo")]
    if wrong:
        things = f"{len(wrong)} thing{'s' if len(wrong) > 1 else ''} to fix"
        notes.append(("bad", things, f"before you can go on: {', '.join(wrong[:8])}."))
    notes.append(("info", "Do not read bounds off the data.", "A maximum is one person's value."
                  " Take what everybody knows; what lies beyond counts as the bound."))  # fmt: skip
    return notes


def promise_notes(draft: Draft, home: Path) -> list[Note]:
    notes: list[Note] = []
    try:
        promise = draft.promise
        bar = calibrate(promise).unit_bar
        limit = rebuilding_limit(promise, calibrate(promise).unit_standard_deviation)
    except SulqError as error:
        return [("bad", "This promise cannot be kept.", str(error))]
    if bar > 0.03 * draft.smallest:
        fewer = Promise(draft.epsilon, draft.delta, max(1, draft.queries // 10),
                        neighbours=draft.neighbours)  # fmt: skip
        sharper = bar_text(calibrate(fewer).unit_bar)
        notes.append((
            "warn", "Small groups will not be answerable.",
            f"Below about {spelled(_two(10 * bar), 0)} a count is more than 10 % off. If you need"
            f" those, choose {spelled(max(1, draft.queries // 10), 0)} credits (± {sharper})"
            " rather than weaker protection.",
        ))  # fmt: skip
    if promise.epsilon > WEAK:
        after = belief_up(moved(USUAL_PRIOR, float(promise.epsilon)))
        notes.append(("bad", f"Weak: 40 % can become {after} %.", "Write down why; it stands in the"
                      " policy for everyone to read."))  # fmt: skip
    rows = rows_of(home, draft)
    if rows is not None and rows < FEW_ROWS:
        notes.append(("warn", "A small table.", f"Below {spelled(FEW_ROWS, 0)} rows the noise is"
                      " large beside most answers."))  # fmt: skip
    notes.append(("info", "Are these people in another table here?", "Then the promises add up:"
                  " publish both on one ledger, with sulq init and one policy."))  # fmt: skip
    share = f"{belief_up(limit) if limit > 0.9 else round(100 * limit + 0.05, 1)} %"
    notes.append(("ok", "Checked.", f"Rebuilding attack: at most {share} right (coin: 50 %)."))
    return notes


def _two(value: float) -> float:
    """Two digits, rounded up."""
    place = 10.0 ** max(0, len(str(int(value))) - 2)
    return math.ceil(value / place) * place


def _gets(draft: Draft) -> tuple[tuple[str, str, bool], ...]:
    """(question, bar, unusable) for a few questions, from bounds alone."""
    try:
        bar = calibrate(draft.promise).unit_bar
    except SulqError:
        return ()
    return (
        ("A count of anybody", f"± {bar_text(bar)}", False),
        *(
            (f"The same, in a group of {spelled(size, 0)}", *_relative(bar / size))
            for size in sorted({draft.smallest, 100_000, 500}, reverse=True)
        ),
    )


def _relative(share: float) -> tuple[str, bool]:
    return ("unusable", True) if share > 0.25 else (f"± {math.ceil(1000 * share) / 10:g} %", False)
