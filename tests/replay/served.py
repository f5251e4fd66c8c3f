"""A server in a frozen world: replies to the byte, headers, log lines; its console, its PostgreSQL
port, and the purposes under which tools spend."""

from __future__ import annotations

import io
import json
import random
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
from tests.kernel.engines import extremes
from tests.replay import paths
from tests.replay.tables import Relation
from tests.replay.world import Paid, World
from tests.server.conftest import serving
from tests.server.postgres.test_protocol import Raw, bind, parse
from tests.waiting import LONGEST

from sulq import Database, dbapi
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.postgres.listener import PostgresPort
from sulq.server.routes.questions import ARROW, CSV
from sulq.server.service.catalog import Tables
from sulq.wire import question_json

CLOCK = {"time", "ms", "seconds", "took", "duration_ms"}
"""Of a log line: how long it took is what the pacing is for, and a figure of its own."""
PAGES = ("ask", "budget", "ledger", "table", "risk", "learn", "access")


class Visitors:
    """Clients of one server, one for each role; every reply is seen."""

    def __init__(
        self, world: World, db: Database, client: httpx.Client, tokens: dict[str, str]
    ) -> None:
        self.world, self.client, self.tokens, self.number = world, client, tokens, 0
        self.asked = paths.Asked(world, db)
        self.lines: dict[str, dbapi.Connection] = {}

    def send(
        self, who: str | None, method: str, path: str, body: Any = None, accept: str = "*/*"
    ) -> Any:
        self.number += 1
        headers = {"Idempotency-Key": f"request-{self.number}", "Host": "127.0.0.1:8765"}
        headers["Accept"] = accept
        if who is not None:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        before = self.asked.spent
        with self.world.stepping() as step:
            reply = self.client.request(method, path, json=body, headers=headers)
        kind = "pure" if path.endswith(("/top", "/alerts")) else "sums"
        step.judge = Paid(self.asked.spent - before, self.asked.db.calibration, kind)
        headers = {name: told for name, told in reply.headers.items() if name != "date"}
        self.world.see(f"{method} {path} {reply.status_code}", headers, reply.content)
        return reply

    def execute(self, who: str, text: str, terms: dict[str, Any]) -> None:
        """Ask as pandas and SQLAlchemy do, through DB-API."""
        before, where = self.asked.spent, f"{str(self.client.base_url).rstrip('/')}/t"
        if (name := f"{who} {terms}") not in self.lines:
            self.lines[name] = dbapi.connect(where, token=self.tokens[who], **terms)
        with self.world.stepping() as step:
            try:
                cursor = self.lines[name].cursor().execute(text)
                self.world.see(cursor.description, cursor.credits, cursor.notes)
                self.world.see(cursor.fetchall())
            except dbapi.Error as error:
                self.world.see(type(error), str(error), error.credits_spent)
        step.judge = Paid(self.asked.spent - before, self.asked.db.calibration)


def serve(
    world: World,
    table: Any,
    relation: Relation,
    noise: str,
    visit: Callable[[Visitors], None],
    postgres: PostgresPort | None = None,
) -> None:
    said = io.StringIO()
    with paths.opened(table, relation, noise, name="t") as db:
        db.grant("analyst", db.remaining / 2)
        access = Access.open()
        tokens = {str(role): access.lend(str(role), role) for role in Role}
        settings = Settings(pacing=False)
        app = create_app(
            Tables({"t": db}), access, settings=settings, log=Log(said), postgres=postgres
        )
        with serving(app) as url, httpx.Client(base_url=url, timeout=LONGEST) as client:
            all_of = Visitors(world, db, client, tokens)
            visit(all_of)
            for line in all_of.lines.values():
                line.close()
        access.close()
        world.see(db.statement())
    for line in said.getvalue().splitlines():
        told = json.loads(line)
        world.see(f"log { ({name: told[name] for name in told if name not in CLOCK}) }")


def http(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    def visit(all_of: Visitors) -> None:
        for _ in range(paths.STEPS):
            one(all_of, rng)
        for path in ("statement", "ledger?after=0&limit=50", "answers?limit=5", "alerts"):
            for who in ("analyst", "auditor", "owner"):
                all_of.send(who, "GET", f"/v1/tables/t/{path}")
        for path in ("/v1/tables", "/v1/me", "/healthz", "/metrics"):
            all_of.send("owner", "GET", path)

    serve(world, table, relation, noise, visit)


def one(all_of: Visitors, rng: random.Random) -> None:
    """One request of an analyst: any route that asks."""
    question = question_json(paths.any_question(rng))
    more = {"credits": rng.choice([1, 3, "1/3", 10**6])} if rng.random() < 0.3 else {}
    bodies: list[tuple[str, Any]] = [
        ("ask", {"question": question, **more}),
        ("ask", {"question": question, **more, "max_credits": 2}),
        ("quote", {"question": question, **more}),
        ("sql", {"sql": paths.statement(rng), **more}),
        ("plan/ask", {"questions": [question, question_json(paths.whole(rng))], "credits": 2}),
        ("keys", {"column": "note", "credits": 10**5}),  # refused: too dear
        ("top", {"question": question_json(paths.histogram("code").query), "k": 1}),
        ("alerts", {"question": question_json(paths.whole(rng)), "above": rng.choice([0, 9])}),
        ("ask", {"question": {"kind": "count", "where": str(extremes.number(rng))}}),
    ]
    path, body = rng.choice(bodies)
    all_of.send(rng.choice(["analyst", "analyst", "owner"]), "POST", f"/v1/tables/t/{path}", body)


def console(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    def visit(all_of: Visitors) -> None:
        for _ in range(paths.STEPS // 2):
            wish = {"sql": paths.statement(rng)}
            who = rng.choice(["analyst", "owner"])
            all_of.send(who, "POST", "/console/t/quote", wish)
            all_of.send(who, "POST", "/console/t/ask", wish | {"max_credits": "5"})
            all_of.send(who, "GET", f"/console/t/{rng.choice(PAGES)}")
            told = f"/console/t/a/{rng.randint(1, 12)}"
            all_of.send(who, "GET", told)
            all_of.send(who, "GET", f"{told}/compare?first=1&other={rng.choice([0, 4])}")
            all_of.send(who, "GET", f"{told}/file/{rng.choice(['csv', 'svg', 'xlsx'])}")
            together = {"sql": [wish["sql"], paths.statement(rng)]}
            all_of.send(who, "POST", "/console/t/basket", together)
            all_of.send(who, "POST", "/console/t/basket/ask", together | {"max_credits": "5"})
        for who in ("analyst", "owner", "auditor"):
            for page in PAGES:
                all_of.send(who, "GET", f"/console/t/{page}")
        all_of.send("owner", "GET", "/console/t/entries")
        all_of.send("auditor", "GET", "/console/t/chain.jsonl")

    serve(world, table, relation, noise, visit)


SHEETS = (CSV, ARROW)


def purposes(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    """Tools that spend under names, with little for each, over HTTP in each format and DB-API; some
    spend nothing at all."""

    def visit(all_of: Visitors) -> None:
        for _ in range(2 * paths.STEPS):
            question = question_json(rng.choice([paths.whole, paths.any_question])(rng))
            text = paths.statement(rng)
            path, body = rng.choice([("ask", {"question": question}), ("sql", {"sql": text})])
            name, credits = rng.choice(["tiles", "report"]), rng.choice("139")
            limit: dict[str, Any] = rng.choice(
                [{"purpose": name, "purpose_credits": credits}, {"max_credits": 0}]
            )
            who, door = rng.choice(["analyst", "owner"]), rng.choice(["*/*", *SHEETS, "dbapi"])
            for _ in range(2 if rng.random() < 0.3 else 1):  # the same again, as a tool refreshes
                if door == "dbapi":
                    terms = {"purpose": name, "credits": int(credits)} if len(limit) > 1 else {}
                    all_of.execute(who, text, terms)
                else:
                    all_of.send(who, "POST", f"/v1/tables/t/{path}", body | limit, door)
        all_of.send("owner", "GET", "/v1/tables/t/statement")

    serve(world, table, relation, noise, visit)


# --- PostgreSQL's protocol ------------------------------------------------------------------------

BROWSED = (
    "SELECT * FROM t LIMIT 5",
    "SELECT n, income FROM t WHERE ill ORDER BY n",
    "SELECT relname, reltuples FROM pg_class WHERE relname = 't'",
    "SELECT MIN(n), MAX(income) FROM t",
    "SELECT DISTINCT code FROM t",
    "SELECT city FROM t GROUP BY city",
    "COPY t TO STDOUT",
    "SELECT n_live_tup FROM pg_stat_user_tables",
)
SET = (
    "SET sulq.credits = 9; SET sulq.purpose = 'tiles'",
    "SET sulq.credits = 0; SET sulq.purpose = ''",
    "SET sulq.intervals = on",
    "SET sulq.filters = declared",
    "BEGIN",
    "ROLLBACK",
    "SHOW sulq.credits",
)


def wire(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    """A client of the PostgreSQL port: statements, prepared statements, cursors, settings."""
    listening = socket.create_server(("127.0.0.1", 0))
    reached = SimpleNamespace(port=listening.getsockname()[1])

    def visit(all_of: Visitors) -> None:
        who = rng.choice(["analyst", "owner"])
        client = Raw(reached)
        spending = {} if rng.random() < 0.2 else {"options": SPENDING}
        world.see(client.start(all_of.tokens[who], database="t", **spending))
        for _ in range(3 * paths.STEPS):
            before = all_of.asked.spent
            with world.stepping() as step:
                said = message(client, rng)
                world.see(*said)
                if said[-1] == ("Z", b"E"):  # a transaction that failed refuses all that follows
                    world.see(*client.query("ROLLBACK"))
            step.judge = Paid(all_of.asked.spent - before, all_of.asked.db.calibration)
        client.socket.close()

    serve(world, table, relation, noise, visit, PostgresPort(listening))


SPENDING = "-c sulq.credits=30 -c sulq.purpose=report"


def message(client: Any, rng: random.Random) -> list[tuple[str, bytes]]:
    """One exchange, whole."""
    plain = (
        f"SELECT city, COUNT(*) AS n, AVG(n) FROM t WHERE n > {rng.randint(-5, 5)} GROUP BY city"
    )
    texts = [paths.statement(rng)] * 2 + [plain] * 2 + [rng.choice(BROWSED), rng.choice(SET)]
    text = rng.choice(texts)
    match rng.randrange(6):
        case 0:
            parse(client, f"SELECT COUNT(*) AS n FROM t WHERE {rng.choice(COMPARED)} $1")
            bind(client, rng.choice(["1", "-7", "0", "x", "1e30"]), formats=(rng.choice([0, 1]),))
        case 1:
            parse(client, text)
            bind(client)
        case 2:
            cursor = f"BEGIN; DECLARE c CURSOR FOR {text}; FETCH 2 FROM c; FETCH ALL FROM c; COMMIT"
            found: list[tuple[str, bytes]] = client.query(cursor)
            return found
        case _:
            return list(client.query(text))
    if rng.random() < 0.5:
        client.send("D", b"P\0")
    client.send("E", b"\0" + rng.choice([0, 1]).to_bytes(4, "big"))
    client.send("S")
    return list(client.until("Z"))


COMPARED = ("n >", "income <=", "code =", "city =", "ill =")

paths.ONCE |= {"http": http, "console": console, "purposes": purposes, "wire": wire}
