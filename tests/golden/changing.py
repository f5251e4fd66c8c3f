"""Records of the events of a table's whole life: the acts of the old ledger, done again today."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

from tests.golden.asking import HIDDEN, without_chance
from tests.golden.old_ledger.make import act, export
from tests.golden.records import Records, masked, plain


def changes(directory: Path) -> Records:
    told: Records = {}
    with chdir(directory):
        act()
        for table in ("people", "lost"):
            export(table, f"{table}.jsonl")
            lines = Path(f"{table}.jsonl").read_text("utf-8").splitlines()
            for line in map(json.loads, lines[1:]):
                body = json.loads(line["body"])
                without_chance(body)
                told[f"{table} {line['seq']:02} {body['kind']}"] = {
                    "body": plain(masked(body, HIDDEN)),
                    "noisy": None if "noisy" not in line else line["noisy"][:200],
                    "names": sorted(line.keys() - {"seal"}),
                }
    return told
