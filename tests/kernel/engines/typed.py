"""The types that an engine gives to every node of a statement, as its own plan says.

`bad_*` lists what was widened without having been asked for by name. On every engine: no integer
becomes a float or a decimal, no literal is one, shifts and sums take 64-bit integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

WIDER = ("DOUBLE", "FLOAT", "DECIMAL", "HUGEINT", "UHUGEINT")


# --- DuckDB -------------------------------------------------------------------------------------


def bad_on_duckdb(connection: Any, sql: str) -> list[str]:
    """By the plan that DuckDB will run, every expression of which carries its type."""
    text = sql.replace("'", "''")
    plan = connection.execute(f"SELECT json_serialize_plan('{text}', optimize := true)").fetchone()
    told = json.loads(plan[0])
    assert not told["error"], told
    named = {kind: f"AS {kind})" in sql.replace("CAST(0 AS HUGEINT)", "") for kind in WIDER}
    rows = "LOGICAL_AGGREGATE" not in plan[0]
    return [said for node in _nodes(told["plans"], rows) for said in _duckdb(node, named, sql)]


def _nodes(tree: Any, rows: bool) -> Iterator[dict[str, Any]]:
    """What is worked out on rows; above their sums DuckDB goes on in the sums' own type."""
    if isinstance(tree, list):
        for part in tree:
            yield from _nodes(part, rows)
    elif isinstance(tree, dict):
        rows = rows or str(tree.get("type")).startswith("LOGICAL_AGGREGATE")
        if rows and "expression_class" in tree:
            yield tree
        for part in tree.values():
            yield from _nodes(part, rows)


def _kind(node: dict[str, Any]) -> str:
    told = node["value"]["type"] if node["expression_class"] == "BOUND_CONSTANT" else None
    return str((told or node.get("return_type") or {"id": "?"})["id"])


def _name(node: dict[str, Any]) -> str:
    return str(node.get("qname", {}).get("path", [node["type"]])[-1])


def _duckdb(node: dict[str, Any], named: dict[str, bool], sql: str) -> Iterator[str]:
    kind, name = _kind(node), _name(node)
    below = [_kind(child) for child in node.get("children") or []]
    if node["expression_class"] == "BOUND_AGGREGATE":
        if name.startswith("sum") and below not in (["BIGINT"], ["DOUBLE"]):
            yield f"sum of {below}"
        if name.startswith("sum") and below == ["DOUBLE"] and "CAST(sum(" not in sql:
            yield "a sum of DOUBLE nobody asked for"
    elif name == ">>" and set(below) != {"BIGINT"}:
        yield f"shift of {below}"
    elif kind in ("DECIMAL", "FLOAT", "UHUGEINT"):
        yield f"{name}: {kind}"
    elif kind == "HUGEINT" and not named["HUGEINT"]:
        yield f"{name}: HUGEINT"
    elif kind == "DOUBLE" and name == "__cast":
        column = node["children"][0].get("alias") or "?"
        if f"CAST({column} AS DOUBLE)" not in sql:
            yield f"{below[0]} to DOUBLE: {column}"


# --- PostgreSQL ---------------------------------------------------------------------------------

INT8, NUMERIC, FLOATS = 20, 1700, (700, 701)


def bad_on_postgres(cursor: Any, sql: str, width: int) -> list[str]:
    """By the parsed tree of a view of the statement, whose nodes carry the numbers of their types.

    `people` is a view or a table in the cursor's transaction.
    """
    names = ", ".join(f"o{number}" for number in range(width))
    cursor.execute(f"CREATE TEMP VIEW typed ({names}) AS {sql}")
    cursor.execute("SELECT ev_action FROM pg_rewrite WHERE ev_class = 'typed'::regclass")
    tree = cursor.fetchone()[0]
    cursor.execute("DROP VIEW typed")
    bad = []
    for kind in re.findall(r"\{CONST :consttype (\d+)", tree):
        if int(kind) == NUMERIC:
            bad.append("a numeric literal")
    implicit = r"\{FUNCEXPR :funcid \d+ :funcresulttype (\d+) [^{}]*?:funcformat 2 "
    for kind in re.findall(implicit, tree):
        if int(kind) in (NUMERIC, *FLOATS):
            bad.append(f"made {kind} without a word")
    for kind, given in re.findall(
        r"\{AGGREF [^{}]*?:aggtype (\d+) .*?:aggargtypes \((.*?)\)", tree
    ):
        if int(kind) == NUMERIC and given.split() != ["o", str(INT8)]:
            bad.append(f"a sum of {given}")
    return bad


# --- Spark --------------------------------------------------------------------------------------


def bad_on_spark(session: Any, sql: str) -> list[str]:
    """By the analysed plan above the rows themselves."""
    jvm = session._jvm
    asked_for = jvm.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
    plan = session.sql(sql)._jdf.queryExecution().analyzed()
    bad: list[str] = []
    for node in _plan(plan):
        for expression in _listed(node.expressions()):
            _spark(expression, asked_for, bad)
    return bad


def _listed(scala: Any) -> Iterator[Any]:
    for number in range(scala.size()):
        yield scala.apply(number)


def _plan(node: Any) -> Iterator[Any]:
    if node.getClass().getSimpleName() == "SubqueryAlias" and node.alias() == "people":
        return
    yield node
    for child in _listed(node.children()):
        yield from _plan(child)


def _spark(node: Any, asked_for: Any, bad: list[str]) -> str:
    name, kind = node.getClass().getSimpleName(), node.dataType().simpleString()
    below = [_spark(child, asked_for, bad) for child in _listed(node.children())]
    wider = kind.startswith(("decimal", "double", "float"))
    if name == "Cast" and wider and below != [kind] and node.getTagValue(asked_for).isEmpty():
        bad.append(f"{below[0]} made {kind} without a word")
    if name == "Literal" and wider:
        bad.append(f"a {kind} literal")
    if name == "ShiftRight" and below != ["bigint", "int"]:
        bad.append(f"shift of {below}")
    if name == "Sum" and below[0] not in ("bigint", "double", "decimal(20,0)"):
        bad.append(f"sum of {below}")
    return str(kind)
