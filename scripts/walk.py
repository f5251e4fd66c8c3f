"""Follow a question through the package: which modules it enters, how often it changes files.

    python scripts/walk.py                a count, its repeat, SQL, outer, a restart, POST ask
    python scripts/walk.py count --order  the modules in the order in which they are first entered
    python scripts/walk.py --json         the numbers, for a machine

Real calls on all threads, by `sys.setprofile`, on a made-up table of 2,000 rows with a ledger
file. Lambdas and comprehensions count as functions of their file. Each kind is called once before
it is followed, so that imports do not count. Numbers vary by a few per cent with what is drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from sulq import Database, Number, Promise, Schema, col, count, outer
from sulq.kernel.query.vectors import columns
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.service.catalog import Tables
from sulq.wire import question_json

SOURCE = Path(__file__).resolve().parents[1] / "src" / "sulq"
INSIDE = str(SOURCE) + os.sep
SCHEMA = Schema(Number("age", 0, 120, step=1), Number("income", 0, 500_000))
PROMISE = Promise(epsilon=1, delta=1e-6, credits=1_000)


@dataclass
class Walk:
    """What one call did in the package."""

    order: list[str] = field(default_factory=list)
    functions: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0
    switches: int = 0
    last: dict[int, str] = field(default_factory=dict)

    def enter(self, path: str, name: str) -> None:
        module = path.removeprefix(INSIDE).removesuffix(".py")
        self.calls += 1
        self.functions.add((module, name))
        if module not in self.order:
            self.order.append(module)
        thread = threading.get_ident()
        self.switches += self.last.get(thread, module) != module
        self.last[thread] = module

    def numbers(self) -> dict[str, int]:
        server = [module for module in self.order if module.startswith("server/")]
        return {
            "modules": len(self.order),
            "of the server": len(server),
            "functions": len(self.functions),
            "calls": self.calls,
            "switches": self.switches,
        }


class Tracer:
    """Sees every call of every thread that starts after it; notes them while a walk is on."""

    def __init__(self) -> None:
        self.walk: Walk | None = None
        threading.setprofile(self.see)
        sys.setprofile(self.see)

    def see(self, frame: Any, event: str, _: object) -> None:
        if event == "call" and self.walk and frame.f_code.co_filename.startswith(INSIDE):
            self.walk.enter(frame.f_code.co_filename, frame.f_code.co_name)

    def follow(self, work: Callable[[int], object]) -> Walk:
        work(0)
        found = self.walk = Walk()
        try:
            work(1)
        finally:
            self.walk = None
        return found


def write_table(path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = zip(rng.integers(0, 100, 2_000), rng.integers(0, 90_000, 2_000), strict=True)
    path.write_text("age,income\n" + "".join(f"{age},{income}\n" for age, income in rows))
    return path


@contextmanager
def opened(home: Path) -> Any:
    with Database.open(
        home / "people.csv", SCHEMA, PROMISE, ledger=home / "people.ledger", publish=True
    ) as database:
        yield database


def follow_all(home: Path) -> dict[str, Walk]:
    os.environ["SULQ_STATE"] = str(home / "state")
    write_table(home / "people.csv")
    tracer, found = Tracer(), {}
    with opened(home) as db:
        older = [count(where=col("age") >= age) for age in (65, 40)]
        found["count"] = tracer.follow(lambda turn: db.ask(older[turn]))
        found["repeat"] = tracer.follow(lambda turn: db.ask(older[0]))
        select = "SELECT AVG(income), COUNT(*) FROM people WHERE age < {}"
        found["sql"] = tracer.follow(lambda turn: db.sql(select.format(30 + turn)))
        both = columns(["age", "income"])
        found["outer"] = tracer.follow(lambda turn: db.ask(outer(both, both), credits=1 + turn))

    def restart(turn: int) -> None:
        with opened(home):
            pass

    found["restart"] = tracer.follow(restart)
    with opened(home) as db:
        db.grant("ann", 100)
        access = Access.open()
        bearer = {"Authorization": f"Bearer {access.lend('ann', Role.ANALYST)}"}
        with TestClient(create_app(Tables({"people": db}), access)) as client:

            def post(turn: int) -> None:
                body = {"question": question_json(count(where=col("age") >= 50 + turn))}
                headers = bearer | {"Idempotency-Key": f"walk-number-{turn}"}
                reply = client.post("/v1/tables/people/ask", json=body, headers=headers)
                assert reply.status_code == 200, reply.text

            found["POST ask"] = tracer.follow(post)
        access.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", help="count, repeat, sql, outer, restart, 'POST ask'")
    parser.add_argument("--order", action="store_true", help="modules in order of first entry")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        found = follow_all(Path(home))
    found = {kind: walk for kind, walk in found.items() if kind in (options.kinds or found)}
    if options.json:
        numbers = {kind: walk.numbers() | {"order": walk.order} for kind, walk in found.items()}
        print(json.dumps(numbers, indent=1))
        return
    for kind, walk in found.items():
        print(f"{kind:9}" + "".join(f"{n:6} {what}" for what, n in walk.numbers().items()))
        if options.order:
            print("".join(f"    {module}\n" for module in walk.order))


if __name__ == "__main__":
    main()
