"""Fifty-two HTTP requests, in order, to one server. Public names only.

Frozen are status, media type, and the reply with times, tokens, signatures and words masked.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import httpx
from tests.golden import inside
from tests.golden.records import Records, masked, plain
from tests.golden.world import SCHEMA, table

from sulq import Database, Promise, col, count, histogram, mean, outer, quantiles, total
from sulq.kernel.query.vectors import columns
from sulq.wire import question_json

OLD = question_json(count(where=col("age") >= 65))
MEAN = question_json(mean("income", where=col("smoker")))
BLOOD = question_json(histogram("blood"))
GRAM = question_json(outer(columns(["age", "score"]), columns(["age"])))
MIDDLE = question_json(quantiles("age", [0.25, 0.5]))
VISITS = question_json(total("visits"))
SELECT = "SELECT city, COUNT(*) AS n, AVG(age) FROM people WHERE smoker GROUP BY city"

ASKED: list[tuple[str | None, str, Any, str | None]] = [
    # name of the caller, method and path (below the table unless it begins with /), body, key
    (None, "GET /healthz", None, None),
    (None, "GET /v1/tables", None, None),
    ("analyst", "GET /v1/me", None, None),
    ("analyst", "GET /v1/tables", None, None),
    ("analyst", "GET schema", None, None),
    ("analyst", "GET /v1/tables/nobody/schema", None, None),
    ("analyst", "POST quote", {"question": OLD}, None),
    ("analyst", "POST quote", {"question": MEAN, "credits": "5/2"}, None),
    ("analyst", "POST quote", {"question": OLD, "within": 200, "confidence": 0.9}, None),
    ("analyst", "POST quote", {"sql": SELECT}, None),
    ("analyst", "POST quote", {"sql": "SELECT AVG(wealth) FROM people"}, None),
    ("analyst", "POST quote", {}, None),
    ("analyst", "POST ask", {"question": OLD}, None),
    ("analyst", "POST ask", {"question": OLD}, "golden-ask-1"),
    ("analyst", "POST ask", {"question": OLD}, "golden-ask-1"),
    ("analyst", "POST ask", {"question": MEAN}, "golden-ask-1"),
    ("analyst", "POST ask", {"question": MEAN, "credits": 2}, "golden-ask-2"),
    ("analyst", "POST ask", {"question": BLOOD, "max_credits": "1/2"}, "golden-ask-3"),
    ("analyst", "POST ask", {"question": BLOOD}, "golden-ask-4"),
    ("analyst", "POST ask", {"question": GRAM}, "golden-ask-5"),
    ("analyst", "POST ask", {"question": MIDDLE}, "golden-ask-6"),
    ("analyst", "POST ask", {"question": MEAN, "credits": 1000}, "golden-ask-7"),
    ("auditor", "POST ask", {"question": OLD}, "golden-ask-8"),
    ("rival", "POST ask", {"question": OLD}, "golden-ask-9"),
    ("analyst", "POST sql", {"sql": SELECT, "credits": 4}, "golden-sql-1"),
    ("analyst", "POST sql", {"sql": "SELECT age FROM people"}, "golden-sql-2"),
    ("analyst", "POST plan", {"questions": [OLD, BLOOD], "credits": 3}, None),
    ("analyst", "POST plan/ask", {"questions": [OLD, BLOOD], "credits": 3}, "golden-plan-1"),
    ("analyst", "POST reservations", {"credits": 5}, None),
    ("analyst", "POST keys/quote", {"column": "note", "credits": 2}, None),
    ("analyst", "POST keys", {"column": "note", "credits": 2}, "golden-keys-1"),
    (
        "analyst",
        "POST top",
        {"question": question_json(histogram("blood").query), "k": 1, "credits": 1},
        "golden-top-1",
    ),
    ("owner", "POST alerts", {"question": OLD, "above": 5}, "golden-alert-1"),
    ("owner", "GET alerts", None, None),
    ("analyst", "POST exact/quote", {"questions": [OLD]}, None),
    ("analyst", "GET exact/declaration", None, None),
    ("analyst", "GET statement", None, None),
    ("auditor", "GET statement", None, None),
    ("analyst", "GET ledger?after=0&limit=8", None, None),
    ("auditor", "GET ledger?after=0&limit=12", None, None),
    ("analyst", "GET receipts/999999", None, None),
    ("analyst", "GET answers?limit=2", None, None),
    ("owner", "GET grants", None, None),
    ("owner", "POST grants", {"name": "dora", "credits": 3, "rate": "60/min"}, None),
    ("owner", "PATCH grants/dora", {"credits": 2}, None),
    ("owner", "DELETE grants/dora", None, None),
    ("analyst", "POST close", {"reason": "mine"}, None),
    ("analyst", "GET /metrics", None, None),
    ("analyst", "PUT schema", None, None),
    ("owner", "POST close", {"reason": "the study has ended"}, None),
    ("analyst", "POST ask", {"question": GRAM, "credits": 2}, "golden-ask-10"),
    ("analyst", "POST ask", {"question": VISITS}, "golden-ask-11"),
]

CHANCE = frozenset(
    {
        *("at", "salt", "hash", "head", "seal", "signature", "public_key", "ledger", "version"),
        *("token", "link", "code_link", "id", "reservation", "facts_id", "answer_link", "link_of"),
        *("expires", "given", "lent", "created", "since", "table_id", "entry_link", "charge_link"),
    }
)
WORDS = frozenset(
    {
        "detail",
        "hint",
        "title",
        "note",
        "notes",
        "meaning",
        "explain",
        "explanation",
        "alternatives",
    }
)
"""Words may improve."""


def replies(directory: Path) -> Records:
    told: Records = {}
    promise = Promise(epsilon=1, delta="1e-6", credits=100)
    made = Database.open(
        table(), SCHEMA, promise, directory / "people.ledger", name="people", publish=True
    )
    with made as db:
        db.grant("analyst", 60)
        db.grant("rival", 10)
        with inside.served({"people": db}) as (url, tokens), httpx.Client(timeout=120) as client:
            for number, (who, what, body, key) in enumerate(ASKED, 1):
                method, path = what.split(" ")
                headers = {} if who is None else {"Authorization": f"Bearer {tokens[who]}"}
                if key is not None:
                    headers["Idempotency-Key"] = key
                where = path if path.startswith("/") else f"/v1/tables/people/{path}"
                reply = client.request(method, url + where, headers=headers, json=body)
                told[f"{number:02} {who or 'nobody'} {what}"] = _shown(reply)
            told |= fields(client.get(f"{url}/openapi.json").json())
    return told


def fields(described: dict[str, Any]) -> Records:
    """Every route with the fields of its body and of its reply, by their paths."""
    told: Records = {}
    for path, verbs in described["paths"].items():
        for verb, facts in verbs.items():
            body = facts.get("requestBody", {}).get("content", {}).get("application/json", {})
            replies = {
                status: _fields(reply["content"]["application/json"]["schema"], described)
                for status, reply in facts["responses"].items()
                if status.startswith("2") and "application/json" in reply.get("content", {})
            }
            told[f"route {verb.upper()} {path}"] = {
                "parameters": sorted(given["name"] for given in facts.get("parameters", [])),
                "body": _fields(body.get("schema", {}), described),
                "replies": replies,
            }
    return told


def _fields(schema: Any, described: dict[str, Any], depth: int = 4) -> list[str]:
    """Dotted names of the fields of a schema; ! marks those that must be there."""
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    found: set[str] = set()
    for inner in (*schema.get("anyOf", ()), *schema.get("allOf", ()), schema.get("items", {})):
        found |= {*_fields(inner, described, depth)} if inner and depth else set()
    for name, inner in schema.get("properties", {}).items():
        found.add(name + ("!" if name in schema.get("required", ()) else ""))
        if depth:
            found |= {f"{name}.{below}" for below in _fields(inner, described, depth - 1)}
    return sorted(found)


def _shown(reply: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = {
        "status": reply.status_code,
        "type": reply.headers.get("content-type", "").split(";")[0],
    }
    if reply.content:
        found["body"] = reply.text
        with contextlib.suppress(ValueError):
            found["body"] = settled(reply.json())
    return found


def settled(value: Any) -> Any:
    """A reply without chance, time and wording."""
    problem = isinstance(value, dict) and "credits_spent" in value and "code" in value
    hidden = CHANCE | (WORDS if problem else WORDS - {"title"})
    return plain(_no_secrets(masked(value, hidden)))


def _no_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        if '"arming"' in str(value.get("question")) and "digest" in value:
            value = value | {"digest": "*"}
        return {name: _no_secrets(held) for name, held in value.items()}
    if isinstance(value, list):
        return [_no_secrets(held) for held in value]
    if isinstance(value, str):
        if value.startswith('{"') and '"kind"' in value:
            return _no_secrets(masked(json.loads(value), CHANCE))
        return re.sub(r'"arming":"\w+"', '"arming":"*"', re.sub(r"sulq_\w+", "sulq_*", value))
    return value
