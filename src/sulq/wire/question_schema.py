"""The form of a question as JSON Schema (draft 2020-12), for clients in other languages.

What fits the schema is read; whether it can be answered still depends on the table. It is made of
the same tables of operations and vectors that the reader uses.
"""

from __future__ import annotations

from typing import Any

from sulq.answers.statistics import MOST_SHARES, STATISTICS
from sulq.kernel.query.expressions import ARITY
from sulq.kernel.query.sum_query import FORMAT, MOST_GROUPS, MOST_TERMS
from sulq.kernel.query.vectors import KINDS, MOST_NUMBERS, parameters

Json = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def question_schema() -> Json:
    """Return the JSON Schema of `question` in the bodies of `quote`, `ask` and `plan`."""
    return {
        "$schema": DRAFT,
        "title": "A question",
        "description": "A statistic and the sums that it is computed from.",
        **_object(
            {
                "kind": {"enum": list(STATISTICS)},
                "query": {"anyOf": [_ref("sums"), _ref("outer")]},
                "shares": {
                    "description": "of quantiles: 0.5 is the median",
                    "type": "array",
                    "items": {"type": "number", "minimum": 0, "maximum": 1},
                    "maxItems": MOST_SHARES,
                },
            },
            optional=("shares",),
        ),
        "$defs": {
            "sums": _sums(),
            "outer": _outer(),
            "group": _group(),
            "expression": {"anyOf": [_ref("literal"), _tagged("col", _TEXT), *_operations()]},
            "literal": _literal(),
            "vector": {"anyOf": [_vector(name) for name in KINDS]},
        },
    }


_TEXT: Json = {"type": "string"}
_FLAG: Json = {"type": "boolean"}
_RATIO: Json = {"type": "string", "pattern": r"^-?\d{1,200}(/\d{1,200})?$"}
_NUMBER: Json = {
    "description": "exact: '0.5', '1/3' or '2'",
    "type": "string",
    "pattern": r"^(-?\d{1,60}(\.\d{1,60})?(e[+-]?\d{1,2})?|-?\d{1,60}/\d{1,60})$",
}


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _object(fields: Json, optional: tuple[str, ...] = (), about: str = "") -> Json:
    """Return an object with these fields and no others."""
    made: Json = {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }
    return {"description": about, **made} if about else made


def _list(items: Json, least: int = 0, most: int | None = None) -> Json:
    found: Json = {"type": "array", "items": items, "minItems": least}
    return found if most is None else {**found, "maxItems": most}


def _tagged(name: str, *parts: Json) -> Json:
    """Return a list of a name and exactly these parts."""
    return {
        "type": "array",
        "prefixItems": [{"const": name}, *parts],
        "items": False,
        "minItems": 1 + len(parts),
    }


def _optional(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _sums() -> Json:
    return _object(
        {
            "sulq": {"const": FORMAT},
            "rows": _ref("expression"),
            "terms": _list(_ref("expression"), 1, MOST_TERMS),
            "groups": _list(_ref("group"), 0, MOST_GROUPS),
            "clip": {**_list(_ref("literal"), 2, 2), "description": "of each person's own sum"},
            "uncut": {"const": True},
        },
        optional=("clip", "uncut"),
        about="Add up each of `terms` over the rows where `rows` is true, by cells of `groups`.",
    )


def _outer() -> Json:
    return _object(
        {
            "sulq": {"const": FORMAT},
            "rows": _ref("expression"),
            "outer": _list(_ref("vector"), 2, 2),
        },
        about="Add up all products of a coordinate of one vector with one of the other.",
    )


def _group() -> Json:
    return _object(
        {
            "of": _ref("expression"),
            "edges": _optional(_list(_ref("literal"), 2)),
            "bins": _optional({"type": "integer", "minimum": 1}),
            "other": _FLAG,
            "tree": {"const": True},
        },
        optional=("tree",),
        about="Cells by declared values, by edges or by equal bins; `other`: one cell for the rest",
    )


def _literal() -> Json:
    dated = {"type": "string", "description": "ISO 8601"}
    return {
        "anyOf": [
            _tagged("null"),
            _tagged("bool", _FLAG),
            _tagged("num", _RATIO),
            _tagged("text", _TEXT),
            _tagged("date", dated),
            _tagged("datetime", dated),
        ]
    }


def _operations() -> list[Json]:
    """Return a schema for every operation: its name, then as many operands as it takes."""
    return [
        {
            "type": "array",
            "prefixItems": [{"const": name}],
            "items": _ref("expression"),
            "minItems": 1 + least,
            "maxItems": 1 + most,
        }
        for name, (least, most) in ARITY.items()
    ]


def _vector(name: str) -> Json:
    kind, _ = KINDS[name]
    return _tagged(name, _object({field: _field(field) for field in parameters(kind)}))


def _field(name: str) -> Json:
    numbers = _list(_NUMBER, 0, MOST_NUMBERS)
    rows = _list(numbers, 0, MOST_NUMBERS)
    fields: dict[str, Json] = {
        "names": _list(_TEXT, 1, MOST_NUMBERS),
        "column": _TEXT,
        "kind": _TEXT,
        "other": _FLAG,
        "centre": _optional(numbers),
        "clip": _optional(_NUMBER),
        "at_most": _NUMBER,
        "factor": _NUMBER,
        "weights": {"anyOf": [numbers, rows]},
        "matrix": rows,
        "centres": rows,
        "edges": _list(_ref("literal"), 2, MOST_NUMBERS),
        "conditions": _list(_ref("expression"), 1, MOST_NUMBERS),
        "label": _ref("expression"),
        "of": {"anyOf": [_ref("vector"), _ref("expression")]},
        "vector": _ref("vector"),
        "left": _ref("vector"),
        "right": _ref("vector"),
        "parts": _list(_ref("vector"), 1, MOST_NUMBERS),
    }
    return fields[name]
