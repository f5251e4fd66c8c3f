"""How the files of this folder were made: `python -m tests.golden.old_ledger.make DIRECTORY`, once.

They are not made again: what they are worth is that yesterday's code wrote them. A ledger of five
tables with every kind of event that one machine writes, a second ledger that was recovered, their
state directory (keys that guard nothing but made-up rows), the rows, the policy, receipts, an
export, and what all this tells (expected.json).
"""

from __future__ import annotations

import csv
import json
import os
import sys
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

from tests.golden import inside
from tests.golden.old_ledger.reading import told
from tests.golden.old_ledger.tables import FIRST, PAID, PROMISES, SCHEMAS, opened
from tests.golden.records import plain

from sulq import Answer, EngineFailed, col, count, mean, total

SMOKERS = col("smoker")
POLICY = Path(__file__).parent / "sulq.toml"


def rows() -> dict[str, list[dict[str, Any]]]:
    people = [
        {
            "age": i * 7 % 101,
            "income": i * 7919 % 90_000,
            "smoker": i % 4 == 0,
            "city": ["Oslo", "Paris"][i % 2],
            "note": ["cold", "flu", "cough"][i % 3],
            "visits": i % 6,
        }
        for i in range(120)
    ]
    return {
        "people": people,
        "town": [{"person": i % 50, "visits": i % 4, "ill": i % 7 == 0} for i in range(130)],
        "bits": [{"ill": i % 5 == 0} for i in range(1_000)],
        "done": [{"x": i % 10} for i in range(40)],
        "gone": [{"x": i % 11} for i in range(41)],
        "lost": [{"x": i % 12} for i in range(42)],
    }


def write(name: str, held: list[dict[str, Any]]) -> None:
    with Path(f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(held[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(held)


def act() -> dict[str, Answer]:
    """Publish, ask and change every table, here; what `people` answered first."""
    (Path() / "sulq.toml").write_bytes(POLICY.read_bytes())
    held, here = rows(), Path()
    for name, of in held.items():
        write(name, of)
    with opened(here, "people", **FIRST["people"], publish=True) as db:
        db.grant("ann", 30)
        db.grant("bob", 5)
        first = {word: db.ask(asked, credits=2) for word, asked in PAID["people"].items()}
        ann = db.as_analyst("ann")
        answer = ann.ask(PAID["people"]["count"], credits=2, key="ann-key-1")
        ann.ask(PAID["people"]["count"], credits=2, key="ann-key-1")
        ann.ask(mean("income", where=SMOKERS), key="ann-key-2")
        Path("receipts.jsonl").write_text(answer.receipt.to_json() + "\n", "utf-8")
        plan = db.plan([count(where=col("age") < 10), total("age", where=SMOKERS)], credits=4)
        plan.ask(key="plan-key")
        db.keys("note", credits=20)
        db.top("city", by=total("income"), k=1, credits=1)
        with db.reserve(10) as reserved:
            reserved.ask(count(where=col("income") > 50_000))
        db.charge_outside(credits=3, reason="a table in print")
        db.revoke("bob", "left the project")
        with inside.failing(db), suppress(EngineFailed):
            db.ask(count(where=col("age") == 33), key="retry-key")
        db.ask(count(where=col("age") == 33), key="retry-key")
        db.amend(SCHEMAS["people"], reason="visits are needed").close()
    with opened(here, "town", publish=True) as db:
        db.ask(PAID["town"]["total"], credits=3)
        write("town", [*held["town"], *({"person": 60, "visits": 9, "ill": True},) * 3])
        with db.grow(Path("town.csv"), reason="a new year") as grown:
            for question in PAID["town"].values():
                grown.ask(question, credits=2)
    with opened(here, "bits", publish=True) as db:
        db.declare_exactly([PAID["bits"]["count"]])
        db.ask_exactly([PAID["bits"]["count"]])
        db.ask(PAID["bits"]["count"], credits=2)
        alert = db.alert(PAID["bits"]["count"], above=1, firings=2, credits=6, keep=True)
        alert.check()
    with opened(here, "done", **FIRST["done"], publish=True) as db:
        db.ask(PAID["done"]["count"], credits=2)
        with db.amend(promise=PROMISES["done"], reason="more was agreed") as larger:
            larger.close_for_good("the study has ended")
    with opened(here, "gone", **FIRST["gone"], publish=True) as db:
        db.amend(SCHEMAS["gone"], reason="a slip").withdraw("published by mistake")
    with opened(here, "lost", publish=True) as db:
        db.ask(count(where=col("x") > 3), credits=2)
        lost = db.statement().statement.ledger
    (Path(os.environ["SULQ_STATE"]) / "ledgers" / lost / "anchor").unlink()
    inside.run("recover", "lost", "--yes")
    return first


def export(table: str, file: str) -> None:
    code, out, err = inside.run("ledger", table, "--export", file)
    assert code == 0, out + err


def main(directory: Path) -> None:
    directory.mkdir(parents=True)
    os.environ["SULQ_STATE"] = str(directory.resolve() / "state")
    with chdir(directory):
        first = act()
        found = told(Path())
        assert found["people"]["answers"] == {
            word: plain(answer.value) for word, answer in first.items()
        }  # so that neither repeats nor sharper combinations can be meant
        written = json.dumps(found, indent=1, sort_keys=True) + "\n"
        Path("expected.json").write_text(written, "utf-8")
        export("people", "export.jsonl")
        for name in ("holder", "*.lock", "*-wal"):
            for spare in Path().glob(f"**/{name}"):
                spare.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
