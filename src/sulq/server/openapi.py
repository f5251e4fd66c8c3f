"""The description of the API, and a page made of it that needs no script and no other host."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import FastAPI

from sulq.wire import Problem

PROBLEM = {"$ref": "#/components/schemas/Problem"}
ANY_PROBLEM = {
    "description": "refused, or failed: `code` says how, `credits_spent` what it cost",
    "content": {"application/problem+json": {"schema": PROBLEM}},
}
OPEN = ("/healthz", "/v1/enter", "/v1/question-schema")
OFFERED = ("/v1/", "/healthz", "/metrics")
"""The rest is the console's own."""
ABOUT = (
    "Statistics about tables of people. Every answer is noisy, has an error bar and a price, and is"
    " charged to a lifetime budget. Credits are sent twice: as a number for people, and exactly as"
    " text such as `3/2`. Replies of questions leave on a public clock."
)


def describe(app: FastAPI) -> None:
    """Bearer tokens and problem+json, for every route."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        found = made()
        found["info"]["description"] = ABOUT
        parts = found.setdefault("components", {})
        parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        schemas = parts.setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = Problem.model_json_schema(mode="serialization")
        found["paths"] = {
            path: verbs for path, verbs in found["paths"].items() if path.startswith(OFFERED)
        }
        for path, verbs in found["paths"].items():
            for verb in verbs.values():
                verb["responses"].pop("422", None)
                verb["responses"]["default"] = ANY_PROBLEM
                if path not in OPEN:
                    verb["security"] = [{"bearer": []}]
        app.openapi_schema = found
        return found

    app.openapi = described  # type: ignore[method-assign]


def page(found: dict[str, Any]) -> str:
    """The routes as plain HTML."""
    rows = "".join(
        f"<tr><td><code>{escape(name.upper())}</code></td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(verb.get('description') or verb.get('summary', ''))}</td></tr>"
        for path, verbs in found["paths"].items()
        for name, verb in verbs.items()
    )
    schemas = "".join(_schema(name, one) for name, one in found["components"]["schemas"].items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>API · sulq</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head><body><main>'
        f"<h1>The API of sulq</h1><p>{escape(found['info']['description'])}</p>"
        "<p>Send <code>Authorization: Bearer TOKEN</code>. For machines:"
        ' <a href="/openapi.json">/openapi.json</a>.</p>'
        "<h2>Routes</h2><table><thead><tr><th>verb</th><th>path</th>"
        f"<th>what</th></tr></thead><tbody>{rows}</tbody></table><h2>Bodies and replies</h2>"
        f"{schemas}</main></body></html>"
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    fields = "".join(
        f"<li><code>{escape(field)}</code>: {escape(_kind(facts))}"
        f"{' (required)' if field in schema.get('required', ()) else ''}</li>"
        for field, facts in schema.get("properties", {}).items()
    )
    about = escape(schema.get("description", ""))
    head = f'<section id="{escape(name)}"><h3>{escape(name)}</h3>'
    return f"{head}<p>{about}</p><ul>{fields}</ul></section>"


def _kind(facts: dict[str, Any]) -> str:
    if "$ref" in facts:
        return str(facts["$ref"]).rpartition("/")[2]
    if "anyOf" in facts:
        return " or ".join(dict.fromkeys(_kind(one) for one in facts["anyOf"]))
    if facts.get("type") == "array":
        return f"list of {_kind(facts.get('items', {}))}"
    kind = str(facts.get("const", facts.get("type", "anything")))
    return f"{kind}, {facts['description']}" if "description" in facts else kind
