"""The hazards of a private data release, after NIST SP 800-226: what is done, and by whom.

In our own words; the grouping follows that publication's pyramid, from the promise down to the
machine it rests on.
"""

from __future__ import annotations

from typing import NamedTuple


class Hazard(NamedTuple):
    """What may go wrong, what sulq does about it, and what stays with who runs it."""

    what: str
    done: str
    duty: str


HAZARDS = (
    Hazard(
        "A promise too weak to mean anything",
        "The promise is also printed as the most anyone may come to believe",
        "Choose it with the people it protects in mind",
    ),
    Hazard(
        "The wrong unit: rows where persons are meant",
        "A person column and its most rows are enforced on every question",
        "Name the column that tells persons apart",
    ),
    Hazard(
        "Losses that add up unseen",
        "One cap for the table's whole life; no reset, no refund, all analysts together",
        "Other tables about the same people add to it",
    ),
    Hazard(
        "Sensitivity wrong, or bounds taken from the rows",
        "Bounds are declared; sensitivity is proved on the integers that are summed",
        "Take bounds from knowledge, not from the data",
    ),
    Hazard(
        "Floating point and weak randomness",
        "Integers from column to noise; exact draws from the operating system's bits",
        "Keep the operating system sound",
    ),
    Hazard(
        "Refusals, prices and groups that tell",
        "Prices and refusals read no row; empty cells are answered like others",
        "Declare columns public only if they are",
    ),
    Hazard(
        "Timing and other side channels",
        "Served answers leave on a public clock; errors are constant",
        "Keep the clock on; give analysts no account on the machine",
    ),
    Hazard(
        "Raw data in reach",
        "A locked engine; no row in logs, errors, temporary files or receipts",
        "Guard the machine, the file, its copies and backups",
    ),
    Hazard(
        "Faults in the code, or a ledger rewritten",
        "Proofs and tests; signed chain and receipts; replay of the noise",
        "Note heads elsewhere; replay; verify receipts",
    ),
    Hazard(
        "Noise read as fact; small groups drowned",
        "Every answer has an error bar, known before it is paid for",
        "Do not decide about people on what the bar swallows",
    ),
)

NOT_COVERED = (
    "What is true of everybody, and so of you",
    "rows that depend on each other (families, copies)",
    "columns wrongly declared public",
    "the same people in other tables",
    "the owner, who has the data",
    "whoever runs code on the machine",
)
