"""A policy from the YAML metadata of SmartNoise SQL: the same facts, and what they lack.

Its tables protect rows or a `private_id` under add-remove; so does the policy that is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.schema.promise import Promise
from sulq.policy.columns import OPEN, ColumnPolicy
from sulq.policy.survey import SUGGESTED
from sulq.policy.tables import TablePolicy

TABLE_FACTS = {
    *("max_ids", "max_contrib", "row_privacy", "rows", "sample_max_ids", "censor_dims"),
    *("clamp_counts", "clamp_columns", "use_dpsu"),
}
COLUMN_FACTS = {
    *("type", "name", "private_id", "lower", "upper", "nullable", "missing_value", "cardinality"),
    *("sensitivity",),
}


def read_smartnoise(
    path: str | Path, source: str, ledger: str, table: str | None = None
) -> tuple[TablePolicy, dict[str, str]]:
    """The table of that metadata file as a policy to review, and comments on its columns."""
    found = _tables(_loaded(Path(path)))
    if table is None and len(found) != 1:
        raise InvalidQuery(f"the metadata declares {sorted(found)}; say which with --name")
    name = table if table is not None else next(iter(found))
    if name not in found:
        raise InvalidQuery(f"no table {name!r:.60} in the metadata; it has {sorted(found)}")
    facts = found[name]
    columns: list[ColumnPolicy] = []
    notes: dict[str, str] = {}
    person = None
    for column, given in facts.items():
        if column in TABLE_FACTS:
            continue
        if not isinstance(given, Mapping):
            raise InvalidQuery(f"{name}.{column} must be a mapping with a type")
        if unknown := sorted(set(given) - COLUMN_FACTS):
            raise InvalidQuery(f"{name}.{column}: unknown {unknown}")
        if given.get("private_id"):
            person = column
            continue
        columns.append(ColumnPolicy(column, _facts(name, column, given)))
        if note := _lost(given):
            notes[column] = f"{column}: {note}"
    if not columns:
        raise InvalidQuery(f"the metadata of {name} declares no column to ask about")
    rows = facts.get("row_privacy", person is None)
    promise = Promise(
        SUGGESTED.epsilon, SUGGESTED.delta, SUGGESTED.queries, neighbours="add-remove"
    )
    made = TablePolicy(name, source, ledger, promise, tuple(columns))
    if rows or person is None:
        return made, notes
    most = facts.get("max_contrib", facts.get("max_ids", 1))
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InvalidQuery(f"{name}: max_ids must be a whole number above 0, got {most!r:.40}")
    return replace(made, unit=person, max_rows=most), notes


def _loaded(path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise InvalidQuery("reading YAML needs PyYAML: pip install 'sulq[yaml]'") from None
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except OSError:
        raise InvalidQuery(f"the metadata file {path} cannot be read") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise InvalidQuery(f"{path} is not valid YAML") from None


def _tables(loaded: Any) -> dict[str, Mapping[str, Any]]:
    """Collection, schema and table are nested; the first two may be empty names."""
    found: dict[str, Mapping[str, Any]] = {}
    for collection in _mapping(loaded, "the metadata").values():
        for schema in _mapping(collection, "a collection").values():
            for name, table in _mapping(schema, "a schema").items():
                found[str(name)] = _mapping(table, f"the table {name}")
    return found


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise InvalidQuery(
            f"{what} must be a mapping: SmartNoise metadata is collection, schema, table, column"
        )
    return {str(name): inner for name, inner in value.items()}


def _facts(table: str, column: str, given: Mapping[str, Any]) -> dict[str, Any]:
    low, high = given.get("lower", OPEN), given.get("upper", OPEN)
    match given.get("type"):
        case "int":
            return {"number": [low, high], "step": 1}
        case "float" | "datetime" | "date":
            return {"number": [low, high]}
        case "boolean":
            return {"flag": True}
        case "string":
            return {"category": [OPEN]}
    raise InvalidQuery(
        f"{table}.{column}: type must be int, float, string, boolean or datetime, got"
        f" {given.get('type')!r:.40}"
    )


def _lost(given: Mapping[str, Any]) -> str:
    """What the metadata says and a policy does not."""
    said = []
    if "missing_value" in given:
        said.append("missing values stay NULL here; they are not replaced")
    if "sensitivity" in given:
        said.append("sensitivity follows from the bounds")
    return "; ".join(said)
