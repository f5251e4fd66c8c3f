"""The closed list of what a statement is built of, and the options each part may carry."""

from __future__ import annotations

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.sql.errors import refused, spoken
from sulq.sql.parse.tokens import Node

STRUCTURE: dict[type[Node], tuple[str, ...]] = {
    exp.Select: (
        "expressions", "from_", "where", "group", "having", "order", "limit", "offset", "with_",
        "joins", "qualify",
    ),
    exp.From: ("this",),
    exp.Table: ("this", "alias"),
    exp.TableAlias: ("this",),
    exp.Subquery: ("this", "alias"),
    exp.With: ("expressions",),
    exp.CTE: ("this", "alias"),
    exp.Join: ("this", "on", "using", "side", "kind"),
    exp.Where: ("this",),
    exp.Union: ("this", "expression", "distinct", "order", "limit", "offset", "with_"),
    exp.Group: ("expressions", "all", "rollup", "cube", "grouping_sets"),
    exp.Having: ("this",),
    exp.Qualify: ("this",),
    exp.Order: ("expressions",),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Alias: ("this", "alias"),
    exp.Star: (),
    exp.Column: ("this", "table"),
}  # fmt: skip

AGGREGATES: dict[type[Node], tuple[str, ...]] = {
    exp.Count: ("this", "big_int"),
    exp.CountIf: ("this",),
    exp.Sum: ("this",),
    exp.Avg: ("this",),
    exp.Variance: ("this",),
    exp.VariancePop: ("this",),
    exp.Stddev: ("this",),
    exp.StddevSamp: ("this",),
    exp.StddevPop: ("this",),
    exp.Corr: ("this", "expression"),
    exp.CovarSamp: ("this", "expression"),
    exp.CovarPop: ("this", "expression"),
    exp.Median: ("this",),
    exp.Quantile: ("this", "quantile"),
    exp.PercentileCont: ("this", "expression"),
    exp.WithinGroup: ("this", "expression"),
    exp.Min: ("this",),
    exp.Max: ("this",),
    exp.Filter: ("this", "expression"),
    exp.Distinct: ("expressions",),
}

CALCULATIONS: dict[type[Node], tuple[str, ...]] = {
    exp.Window: ("this", "over", "partition_by", "order", "spec"),
    exp.Round: ("this", "decimals"),
    exp.Abs: ("this",),
    exp.Sqrt: ("this",),
    exp.Ln: ("this",),
    exp.Exp: ("this",),
    exp.Log: ("this",),
    exp.Floor: ("this",),
    exp.Ceil: ("this",),
    exp.Pow: ("this", "expression"),
    exp.Case: ("ifs", "default"),
    exp.Nullif: ("this", "expression"),
    exp.SafeDivide: ("this", "expression"),
    exp.Coalesce: ("this", "expressions"),
    exp.Cast: ("this", "to"),
    exp.Anonymous: ("this", "expressions"),
    exp.Subquery: ("this",),
    exp.Grouping: ("expressions",),
    exp.GroupingId: ("expressions",),
    exp.Paren: ("this",),
    exp.Neg: ("this",),
    exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",),
    exp.Null: (),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), ("this", "expression")),
}

TESTS: dict[type[Node], tuple[str, ...]] = {
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Is),
        ("this", "expression"),
    ),
    exp.Not: ("this",),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
}

BUCKETS: dict[type[Node], tuple[str, ...]] = {
    exp.Floor: ("this",),
    exp.WidthBucket: ("this", "min_value", "max_value", "num_buckets"),
}

HARMLESS = {"typed", "safe"}
"""Marks that sqlglot sets on a division by itself."""


STATEMENT = (
    "a statement is SELECT ... FROM table [JOIN lookup] [WHERE] [GROUP BY] [HAVING] [ORDER BY]"
    " [LIMIT]"
)
REMEDIES = {
    "distinct": "GROUP BY gives each value once",
    "recursive": "a CTE may only filter and compute rows",
    "columns": "name columns where they are made: SELECT age / 10 AS decade",
    "sample": "noise protects rows already; ask the whole table",
    "expressions": "COUNT takes one value",
    "with_ties": "LIMIT takes a number",
}


def outside(node: Node, what: str | None = None, remedy: str = STATEMENT) -> InvalidQuery:
    """The refusal of something that no statement holds."""
    return refused(node, what, remedy)


def check_options(node: Node, table: dict[type[Node], tuple[str, ...]] = STRUCTURE) -> None:
    """Refuse a part, or an option of a part, that the table does not name."""
    options = table.get(type(node))
    if options is None:
        raise outside(node)
    for name, given in node.args.items():
        if given not in (None, False, [], "") and name not in options and name not in HARMLESS:
            said = name.rstrip("_").replace("_", " ")
            remedy = REMEDIES.get(name, STATEMENT)
            error = outside(node, f"{spoken(node)} with {said}", remedy)
            error.reason = Reason.DISTINCT if name == "distinct" else error.reason
            raise error
