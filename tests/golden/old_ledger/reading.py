"""What the old ledger tells: read from a copy of this folder, with nothing charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.golden.old_ledger.tables import PAID, opened
from tests.golden.records import plain


def told(directory: Path) -> dict[str, Any]:
    """For every table: what is left and spent, and stored answers with what they cost now."""
    found: dict[str, Any] = {}
    for name in ("people", "town", "bits", "done", "lost"):
        with opened(directory, name) as db:
            account = db.statement()
            answers = {word: db.ask(asked, credits=2) for word, asked in PAID.get(name, {}).items()}
            found[name] = {
                "left": plain(db.remaining),
                "spent": plain(account.spent),
                "answers": {word: plain(answer.value) for word, answer in answers.items()},
                "credits": plain(sum(answer.credits for answer in answers.values())),
            }
            if name == "people":
                found[name]["ann"] = plain(db.left_for("ann"))
            if name == "bits":
                exact = db.ask_exactly([PAID[name]["count"]])[0]
                found[name]["alerts"] = [
                    [alert.number, alert.left, plain(alert.margin())] for alert in db.alerts()
                ]
                found[name]["exact"] = [plain(exact.value), plain(exact.credits)]
    return found
