"""Owners at work in a frozen world: amendments, growth, withdrawal, restarts, recovery, several
tables of the same people, replicas of one ledger, delayed replies, files of a remote store.

Here the ledger is a file, and every row of it is compared too.
"""

from __future__ import annotations

import io
import os
import random
import sqlite3
import threading
from contextlib import closing
from fractions import Fraction
from functools import cached_property, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from tests.replay import paths
from tests.replay.paths import Asked
from tests.replay.tables import Relation
from tests.replay.world import Paid, Step, World

from sulq import Database, Promise, SulqError
from sulq.database.delay import delayed
from sulq.kernel.accounting.mechanisms import delay_for
from sulq.kernel.engines.duckdb.remote import Remote
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.schema.promise import Population


def folder() -> Path:
    """This world's own."""
    return Path(os.environ["SULQ_STATE"]).parent


def see_file(world: World, ledger: Path) -> None:
    """Every row of a ledger file that nobody has open."""
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master ORDER BY 1")]
        for table in tables:
            if not table.startswith(("sqlite_", "ix_")):
                try:
                    rows = file.execute(f"SELECT * FROM {table}").fetchall()
                except sqlite3.OperationalError:  # an index
                    continue
                world.see(*(f"{table} {row}" for row in rows))
    world.see(inspect(ledger).statements)


class Owned:
    """A table on a ledger file, and what an owner does to it."""

    def __init__(self, world: World, table: pa.Table, relation: Relation, noise: str) -> None:
        self.world, self.relation, self.noise, self.whole = world, relation, noise, table
        self.ledger, self.version, self.receipts = folder() / "ledger", 0, [""]
        self.armed: list[Any] = []
        self.promise = paths.promise_of(relation, noise)
        self.db = self.opened()

    @property
    def rows(self) -> pa.Table:
        """The rows that have arrived."""
        return self.whole.filter([at <= self.version for at in self.whole["arrives"].to_pylist()])

    def opened(self) -> Database:
        return self.at(self.ledger)

    def at(self, ledger: Path) -> Database:
        schema = self.relation.schema
        return Database.open(self.rows, schema, self.promise, ledger, name="t", publish=True)

    @property
    def asked(self) -> Asked:
        return Asked(self.world, self.db)

    # --- one act each ---------------------------------------------------------------------------

    def ask(self, rng: random.Random) -> None:
        who: Any = rng.choice([self.db, self.db.as_analyst("ann")])
        found = self.asked.step(partial(who.ask, paths.any_question(rng), **paths.terms(rng)))
        if found is not None:
            self.receipts.append(found.receipt.to_json())

    def plan(self, rng: random.Random) -> None:
        questions = [paths.any_question(rng), paths.whole(rng)]
        planned = self.asked.step(partial(self.db.plan, questions, credits=2))
        if planned is not None:
            self.asked.step(planned.ask)

    def sql(self, rng: random.Random) -> None:
        self.asked.step(partial(self.db.sql, paths.statement(rng)))

    def choose(self, rng: random.Random) -> None:
        of, k = rng.choice(["code", "city"]), rng.choice([1, 2])
        self.asked.step(partial(self.db.top, of, k=k, credits=rng.choice([1, 3])), "pure", k)

    def keys(self, rng: random.Random) -> None:
        column = rng.choice(["note", "city"])
        self.asked.step(partial(self.db.keys, column, credits=rng.choice([1, 5])), "keys")

    def arm(self, rng: random.Random) -> None:
        more: dict[str, Any] = {"above": rng.choice([1, 3, 5]), "keep": rng.random() < 0.5}
        made = self.asked.step(partial(self.db.alert, paths.whole(rng), **more), "pure")
        self.armed += [] if made is None else [made]

    def check(self, rng: random.Random) -> None:
        for one in [*self.armed, *self.db.alerts()][:3]:
            self.world.step(one.check)

    def grant(self, rng: random.Random) -> None:
        self.world.step(partial(self.db.grant, "ann", rng.choice([1, 5, 10**6])))

    def revoke(self, rng: random.Random) -> None:
        self.world.step(partial(self.db.revoke, "ann"))

    def outside(self, rng: random.Random) -> None:
        self.world.step(partial(self.db.charge_outside, Fraction(1, 100), reason="a survey"))

    def restart(self, rng: random.Random) -> None:
        self.db.close()
        see_file(self.world, self.ledger)
        self.db = self.opened()

    def recover(self, rng: random.Random) -> None:
        """The anchor is lost; some receipts are at hand."""
        self.db.close()
        (anchor,) = (folder() / "state").rglob("*anchor*")
        anchor.unlink()
        several = [one for one in self.receipts if one and rng.random() < 0.7]
        self.world.step(partial(recover, self.ledger, several))
        self.db = self.opened()

    def amend(self, rng: random.Random) -> None:
        """A larger promise, or something that is refused. The table is the same object after."""
        old = self.db.promise
        more = rng.choice([2, Fraction(1, 2)])
        words = {"noise": old.noise, "neighbours": old.neighbours, "queries": old.credits}
        promise = Promise(old.epsilon * more, old.delta, **words)  # type: ignore[arg-type]

        def act() -> None:
            self.db = self.db.amend(promise=promise, source=self.rows, reason="more")
            self.promise = promise

        self.world.step(act)

    def grow(self, rng: random.Random) -> None:
        budget = rng.choice([None, 5])

        def act() -> None:
            self.version += 1
            try:
                self.db = self.db.grow(self.rows, reason="more", budget=budget)
            except SulqError:
                self.version -= 1
                raise

        self.world.step(act)

    def withdraw(self, rng: random.Random) -> None:
        """Refused once anything was asked; else the table is published anew."""
        self.world.step(self.db.withdraw)
        self.db.close()
        self.db = self.opened()

    def delay(self, rng: random.Random) -> None:
        """A question whose time is an answer too, and the draw of that time."""

        def act() -> Any:
            delay = delay_for(self.db.calibration, Fraction(1, 1000))
            late = delayed(self.db, delay)
            return late.ask(paths.whole(rng))

        self.asked.step(act)

    def clone(self, rng: random.Random) -> None:
        """The same table opened twice; and the same data with a ledger of its own, refused."""

        def act(ledger: Path) -> Any:
            with self.at(ledger) as other:
                return [repr(other), other.remaining, other.ask(paths.whole(rng))]

        self.asked.step(partial(act, self.ledger))
        self.world.step(partial(act, folder() / "other"))


ACTS = {
    Owned.ask: 8,
    Owned.plan: 2,
    Owned.sql: 3,
    Owned.choose: 3,
    Owned.keys: 2,
    Owned.arm: 2,
    Owned.check: 2,
    Owned.grant: 2,
    Owned.revoke: 1,
    Owned.outside: 1,
    Owned.restart: 2,
    Owned.recover: 1,
    Owned.amend: 1,
    Owned.grow: 2,
    Owned.withdraw: 1,
    Owned.delay: 1,
    Owned.clone: 1,
}
"""What is done, and how often."""


def owner(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    """Any of `ACTS` in any order, on one ledger file."""
    owned = Owned(world, table, relation, noise)
    for _ in range(paths.STEPS):
        (act,) = rng.choices(list(ACTS), list(ACTS.values()))
        before = len(world.steps)
        act(owned, rng)
        if len(world.steps) == before:
            world.step(partial(str, owned.db.remaining))
    owned.asked.end()
    owned.db.close()
    see_file(world, owned.ledger)


def population(
    world: World, table: Any, rng: random.Random, relation: Relation, noise: str
) -> None:
    """Two tables of the same people, of whom one has other rows in both: one account pays."""
    promise = paths.promise_of(relation, noise)
    people = Population("town", promise)
    ledger = folder() / "ledger"
    other = table.append_column("more", pa.array(range(len(table))))  # other data to the register
    both = [
        paths.opened(held, relation, noise, ledger=ledger, name=name, population=people)
        for name, held in (("one", table), ("two", other))
    ]
    for _ in range(paths.STEPS):
        db = rng.choice(both)
        question = paths.whole(rng) if rng.random() < 0.5 else paths.any_question(rng)
        credits = rng.choice([None, 1, 2, 10])
        world.step(partial(db.ask, question, credits=credits))
        world.see(*(f"remaining {one.remaining}" for one in both))
    line = both[0].statement().statement.population
    assert line is not None
    judge = Paid(line.spent.credits_fraction, both[0].calibration)
    for db in both:
        Asked(world, db).end()
    world.steps.append(Step(0, end=world.tape.begin(), judge=judge))
    for db in both:
        db.close()
    see_file(world, ledger)


# --- files of a remote store ----------------------------------------------------------------------


class Store:
    """Serves one Parquet file at a time, whose name and headers never change."""

    content = b""

    @cached_property
    def url(self) -> str:
        held = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(held.content)))
                self.send_header("ETag", '"one"')
                self.end_headers()
                self.wfile.write(held.content)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/people.parquet"


STORE = Store()


def remote(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    """Any of the paths that ask, on a file that is fetched from a web server."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    STORE.content = file.getvalue()
    path = rng.choice([paths.ask, paths.sql, paths.plan, paths.mixed])
    path(world, Remote(STORE.url), rng, relation, noise)


paths.ONCE |= {"owner": owner, "population": population, "remote": remote}
