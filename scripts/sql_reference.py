# ruff: noqa: E501
"""docs/reference/sql.md, written from the tables that decide what is in the language.

`python scripts/sql_reference.py` writes the page; tests/sql/test_reference.py keeps it so.
"""

from __future__ import annotations

from pathlib import Path

from sqlglot import exp

from sulq.sql.parse.grammar import (
    AGGREGATES,
    BUCKETS,
    CALCULATIONS,
    DIALECTS,
    KNOWN_OPTIONS,
    LONGEST,
    STRUCTURE,
    TESTS,
    DaysBetween,
    Node,
)
from sulq.sql.parse.row_expr import READERS
from sulq.sql.parse.step_functions import MOST_STEPS, MOST_STEPS_TOGETHER, Ready
from sulq.sql.parse.tabulation import MOST_CELLS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "sql.md"
HIDDEN = ""
"""A node that only carries another; it has no line of its own."""

Lines = dict[type[Node], tuple[str, str]]

STATEMENT: Lines = {
    exp.Select: ("`SELECT a, b AS name`", "aggregates, group columns, arithmetic on them"),
    exp.From: (
        "`FROM people`",
        "the one table, by its own name (a file's, or the owner's `name=`); a frame that nobody named takes any",
    ),
    exp.Table: ("`people AS p`", "an alias; `p.age` names a column with it"),
    exp.TableAlias: (HIDDEN, ""),
    exp.Subquery: (
        "`FROM (SELECT ...) t`",
        "a subquery that filters and computes rows; or a released table: a grouped SELECT, a UNION of such, or a join of them (see below)",
    ),
    exp.With: ("`WITH a AS (SELECT ...)`", "CTEs of the same kinds"),
    exp.CTE: (HIDDEN, ""),
    exp.Join: (
        "`JOIN r ON city = r.key`, `LEFT JOIN`, `USING (key)`",
        "a public lookup table, passed by the caller, on a column with declared values",
    ),
    exp.Where: ("`WHERE condition`", "which rows"),
    exp.Group: (
        "`GROUP BY a, 2, alias`, `GROUP BY ALL`",
        "one cell per declared value or bucket, and one for NULL and undeclared values",
    ),
    exp.Union: (
        "`SELECT ... UNION ALL SELECT ...`",
        "the rows of both, with the names of the first; one plan, charged together or not at all. `UNION` shows rows once that are equal as they are shown",
    ),
    exp.Having: ("`HAVING test`", "which groups, judged by the noisy values; free"),
    exp.Qualify: ("`QUALIFY RANK() OVER (...) <= 3`", "which groups, judged after windows; free"),
    exp.Order: (
        "`ORDER BY n DESC, 1`",
        "by noisy values or keys; free. Groups whose interval holds 0, or that have no reading, come last, and a note says how many",
    ),
    exp.Ordered: ("`DESC`, `NULLS FIRST`", "NULL comes last unless told"),
    exp.Limit: ("`LIMIT 10`", "the first groups"),
    exp.Offset: ("`OFFSET 10`", "after so many"),
    exp.Alias: ("`... AS name`", "a name; without one, columns are called `count`, `avg_age`, ..."),
    exp.Star: ("`COUNT(*)`; `*` in a subquery", "never rows in the outer SELECT"),
    exp.Column: ('`age`, `"Blood Pressure"`, `p.age`', "a declared column; case is ignored"),
}
STATISTICS: Lines = {
    exp.Count: (
        "`COUNT(*)`, `COUNT(x)`, `COUNT(DISTINCT person)`",
        "whole numbers: rows; rows where x is there (of a condition: true or false; `COUNT_IF` counts where it is true); persons, where persons are protected. `COUNT(DISTINCT city)` counts the declared values that surely occur: its interval goes on to their number, since one row cannot be told from none; by groups and beside other figures it is a question of its own",
    ),
    exp.CountIf: ("`COUNT_IF(c)`, `COUNTIF(c)`", "rows where c is true"),
    exp.Sum: ("`SUM(x)`", "NULL adds nothing; **of no rows it is 0**, not NULL"),
    exp.Avg: ("`AVG(x)`", "NULL is skipped; of no rows, for all to see, unknown"),
    exp.Variance: ("`VARIANCE(x)`, `VAR_SAMP(x)`", "of a sample, n - 1"),
    exp.VariancePop: ("`VAR_POP(x)`", "of the rows themselves"),
    exp.Stddev: ("`STDDEV(x)`", "its root, of a sample"),
    exp.StddevSamp: ("`STDDEV_SAMP(x)`", "the same"),
    exp.Corr: (
        "`CORR(x, y)`",
        "of the rows where neither is NULL; not known where noise hides a variance",
    ),
    exp.CovarSamp: ("`COVAR_SAMP(x, y)`", "of a sample, n - 1"),
    exp.CovarPop: ("`COVAR_POP(x, y)`", "of the rows themselves"),
    exp.StddevPop: ("`STDDEV_POP(x)`", "its root, of the rows themselves"),
    exp.Median: (
        "`MEDIAN(x)`",
        "the quantile at 0.5, within the range that WHERE leaves; of no rows, for all to see, unknown",
    ),
    exp.Quantile: ("`QUANTILE(x, p)`", "read off one noisy distribution per x; see below"),
    exp.PercentileCont: ("`PERCENTILE_CONT(x, p)`", "the same"),
    exp.WithinGroup: (
        "`PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)`",
        "the same; `DESC` is 1 - p",
    ),
    exp.Min: ("`MIN(x)`", "the lowest place where clearly anybody is; a note says so"),
    exp.Max: ("`MAX(x)`", "the highest"),
    exp.Filter: ("`SUM(x) FILTER (WHERE c)`", "of the rows where c is true"),
    exp.Distinct: (HIDDEN, ""),
}
ARITHMETIC: Lines = {
    exp.Add: (
        "`+ - * /`",
        "on aggregates, numbers and numeric keys; errors are carried through; `/ 0` is refused, by a key"
        " that is 0 or a count that may be 0 it is unknown; noisy days may differ and be shifted",
    ),
    exp.Sub: (HIDDEN, ""),
    DaysBetween: ("`DATEDIFF(day, MIN(seen), MAX(seen))`", "days between two noisy days or times"),
    exp.Mul: (HIDDEN, ""),
    exp.Div: (HIDDEN, ""),
    exp.Neg: (HIDDEN, ""),
    exp.Paren: (HIDDEN, ""),
    exp.Literal: ("`7`, `'all'`", "constants"),
    exp.Boolean: (HIDDEN, ""),
    exp.Null: (HIDDEN, ""),
    exp.Window: (
        "`SUM(COUNT(*)) OVER ()`, `RANK() OVER (ORDER BY COUNT(*) DESC)`",
        "over the groups that HAVING leaves, free: SUM, AVG, MIN, MAX, COUNT, RANK, DENSE_RANK, ROW_NUMBER, NTILE, PERCENT_RANK, CUME_DIST, LAG, LEAD, FIRST_VALUE, LAST_VALUE, with PARTITION BY, ORDER BY and ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING, CURRENT ROW or UNBOUNDED; the interval of a rank says which places a group may truly have",
    ),
    exp.Subquery: (
        "`COUNT(*) / (SELECT COUNT(*) FROM people WHERE member)`",
        "one value, in SELECT, HAVING and ORDER BY: asked together with the rest; the interval holds its noise too",
    ),
    exp.Grouping: (
        "`GROUPING(city)`, `GROUPING_ID(city, grade)`",
        "with ROLLUP, CUBE, GROUPING SETS: 1 where the key is left out, else 0; of several, as bits",
    ),
    exp.GroupingId: (HIDDEN, ""),
    exp.Round: (
        "`ROUND(x, 2)`",
        "digits of the value; the interval is widened to the same digits, away from it",
    ),
    exp.Trunc: ("`TRUNC(x, 2)`", "digits cut off, of the interval too"),
    exp.Abs: ("`ABS(x)`", ""),
    exp.Ln: ("`LN(x)`, `LOG(x)`, `EXP(x)`, `FLOOR(x)`, `CEIL(x)`", "the image of the interval"),
    exp.Exp: (HIDDEN, ""),
    exp.Log: (HIDDEN, ""),
    exp.Floor: (HIDDEN, ""),
    exp.Ceil: (HIDDEN, ""),
    exp.Pow: ("`POWER(x, 2)`", "a constant from 1 to 4"),
    exp.Case: (
        "`CASE WHEN COUNT(*) > 100 THEN 'large' ELSE 'small' END`",
        "chosen by what is shown; the interval of a number holds what the other branches may be, too",
    ),
    exp.Sqrt: (
        "`SQRT(x)`",
        "of a noisy value below 0 it is 0; of what is never above 0 it is refused",
    ),
    exp.Nullif: (
        "`NULLIF(x, 0)`",
        "x: a ratio says by itself when its bottom may be 0; `NULLIF(x, y)` is a CASE",
    ),
    exp.SafeDivide: ("`SAFE_DIVIDE(x, y)`, `DIV0(x, y)`", "x / y; where y may be 0 it is unknown"),
    exp.Coalesce: (
        "`COALESCE(x, 0)`",
        "x: a noisy answer is never NULL; `COALESCE(city, 'none')` names the group NULL",
    ),
    exp.Cast: (
        "`COUNT(*)::DOUBLE`, `AVG(x)::NUMERIC(10, 2)`",
        "x, which is floating point already; NUMERIC(10, 2) rounds",
    ),
    exp.Anonymous: (
        "`DP_INTERVAL_LOW(n)`, `DP_INTERVAL_HIGH(n)`",
        "the ends of the interval of the column called n",
    ),
}
HAVINGS: Lines = {
    exp.EQ: (
        "`=`, `<>`, `<`, `<=`, `>`, `>=`",
        "of noisy values, keys and constants; texts with texts, days with days",
    ),
    exp.NEQ: (HIDDEN, ""),
    exp.LT: (HIDDEN, ""),
    exp.LTE: (HIDDEN, ""),
    exp.GT: (HIDDEN, ""),
    exp.GTE: (HIDDEN, ""),
    exp.And: ("`AND`, `OR`, `NOT`", "with SQL's three values"),
    exp.Or: (HIDDEN, ""),
    exp.Not: (HIDDEN, ""),
    exp.Between: ("`x BETWEEN a AND b`", ""),
    exp.In: ("`key IN ('a', 'b')`", ""),
    exp.Is: ("`key IS NULL`", "the group of missing and undeclared values"),
}
GROUPS: Lines = {
    exp.Floor: ("`FLOOR(x / 10) * 10`", "and other + - * / with constants around one FLOOR"),
    exp.WidthBucket: ("`WIDTH_BUCKET(x, low, high, n)`", "0 below low, n + 1 from high on"),
}
ROWS: Lines = {
    exp.Column: ("`age`", "a column"),
    exp.Literal: ("`3`, `-2.5`, `1e3`, `'it''s'`", "numbers, exactly as written; texts"),
    exp.Boolean: ("`TRUE`, `FALSE`", ""),
    exp.Null: ("`NULL`", ""),
    exp.Cast: (
        "`DATE '2024-02-29'`, `TIMESTAMP '2024-02-29 12:30:00'`",
        "and casts that change nothing: `age::INT`, `smoker::INT` (1 and 0), `time::DATE` (its day)",
    ),
    exp.Paren: (HIDDEN, ""),
    exp.Add: ("`+ - * /`", "division by something that can be 0 is refused; `CLAMP` it first"),
    exp.Sub: (HIDDEN, ""),
    exp.Mul: (HIDDEN, ""),
    exp.Div: (HIDDEN, ""),
    exp.Neg: (HIDDEN, ""),
    exp.EQ: (
        "`=`, `<>`, `<`, `<=`, `>`, `>=`",
        "declared texts in the order of their letters; a day may be written as text, `seen >= '2024-01-01'`",
    ),
    exp.NEQ: (HIDDEN, ""),
    exp.LT: (HIDDEN, ""),
    exp.LTE: (HIDDEN, ""),
    exp.GT: (HIDDEN, ""),
    exp.GTE: (HIDDEN, ""),
    exp.And: ("`AND`, `OR`, `NOT`", ""),
    exp.Or: (HIDDEN, ""),
    exp.Not: (HIDDEN, ""),
    exp.Between: ("`x BETWEEN a AND b`", "also `NOT BETWEEN`"),
    exp.In: ("`x IN (1, 2)`", "constants; also `NOT IN`"),
    exp.Like: ("`city LIKE 'O%'`", "on categories; also `NOT LIKE`"),
    exp.Is: ("`x IS NULL`", "also `IS NOT NULL`"),
    exp.Case: ("`CASE WHEN c THEN a ELSE b END`", "numbers; texts where grouped by or compared"),
    exp.Coalesce: ("`COALESCE(x, 0)`", ""),
    exp.Abs: ("`ABS(x)`", ""),
    exp.Least: ("`LEAST(x, y)`", "NULL if one is, as in BigQuery (DuckDB skips them)"),
    exp.Greatest: ("`GREATEST(x, y)`", "NULL if one is, as in BigQuery (DuckDB skips them)"),
    exp.Anonymous: ("`CLAMP(x, low, high)`", "moved into [low, high]: less noise"),
    Ready: (HIDDEN, ""),
}
SECTIONS: list[tuple[str, str, Lines, set[type[Node]]]] = [
    ("The statement", "", STATEMENT, set(STRUCTURE)),
    ("Aggregates", "", STATISTICS, set(AGGREGATES)),
    ("Arithmetic on aggregates", "", ARITHMETIC, set(CALCULATIONS)),
    ("Tests in HAVING", "", HAVINGS, set(TESTS)),
    (
        "Groups",
        "A Category or Flag; a Number or day with a declared step; a condition such as `age >= 65`;"
        " `CASE WHEN ... THEN 'label' END`; a column of a lookup; one or two open"
        " columns, whose values nobody declared, with COUNT, SUM, AVG and what else is made of sums"
        " ([which keys are shown](../guides/undeclared-keys.md)). A column declared `complete` has no"
        " group of NULL: rows in which it is missing, or was not declared, add nothing then. And:",
        GROUPS,
        set(BUCKETS),
    ),
    ("Expressions of rows", "Inside aggregates, WHERE, FILTER and subqueries.", ROWS, set(READERS)),
]

HEAD = f"""\
# SQL

```text
db.sql("SELECT city, COUNT(*) AS n, AVG(income) FROM people WHERE age >= 18 GROUP BY city")
db.quote_sql(text)                       # price and error bars, free
db.sql("EXPLAIN SELECT ...")             # the questions behind it, free
db.sql(text, credits=5)                  # for the whole statement
db.sql("SELECT ... WHERE age > ? AND city = ?", [65, "Oslo"])   # also %s, $1, :name
db.sql(text, dialect="snowflake")        # how it is written
db.sql(text, lookups={{"regions": {{"key": ["Oslo"], "name": ["North"]}}}})
```

On the command line: `sulq ask "SELECT ..."`, `sulq quote "SELECT ..."`, `--lookup regions=regions.csv`, `--dialect mysql`,
`--param 65 --param Oslo` (or `--param low=65` of `:low`). Over HTTP: `"dialect"` and `"params"` beside `"sql"`.

What is listed here is the whole language. Anything else is refused with the reason and the place, and costs
nothing ([why was my question refused](../guides/refused.md)). The refusal (`InvalidQuery`) has the characters
meant, `start` to `end`, and in `alternatives` up to three statements near it that would be answered. A statement has at most {LONGEST:,} characters. Comments
and a final `;` are skipped. Of `db.public.people` only the last part counts.

All counts, sums, means and variances of a statement are one question, priced together; where asking them apart
is cheaper, they are asked apart. Quantiles and ends of one expression share one question. Everything is priced
first: if one question cannot be paid, none is asked. Values outside declared bounds are moved to them, as
everywhere. The number of rows of the whole table is public where rows may be replaced but not added.

Groups without rows are shown too: which groups have rows is private. `HAVING COUNT(*) > 100` hides what the
noise hides anyway. A group that WHERE rules out is not shown. The group NULL holds missing and undeclared
values; `WHERE city IS NOT NULL` leaves it out, and with it the rows of undeclared values, which an ungrouped
COUNT(*) with that WHERE has. LIKE looks at declared values only. An owner who declares all values has neither.
"""
SUBJECTS = f"""\
## Other spellings

Each is read as the words after it.

| written | read as |
|---|---|
| `` `city` ``, `[city]`, `"db"."public"."people"."city"` | `city` |
| `TOP 3`, `FETCH FIRST 3 ROWS ONLY` | `LIMIT 3` |
| `IF(c, a, b)`, `IFF`, `IIF`, `CASE x WHEN 1 THEN a END`, `DECODE(x, 1, a, b)` | `CASE WHEN ...` |
| `IFNULL(x, y)`, `NVL`, `ISNULL(x, y)`, `ZEROIFNULL(x)` | `COALESCE(x, y)` |
| `x IS TRUE`, `x IS NOT FALSE`, `x IS NOT DISTINCT FROM y`, `x <=> y` | a test that is never NULL |
| `count()`, `COUNT_BIG(*)`, `COUNTIF(c)` | `COUNT(*)`, `COUNT_IF(c)` |
| `VAR`, `VARP`, `STD`, `STDEV`, `STDEVP` | `VAR_SAMP`, `VAR_POP`, `STDDEV_SAMP`, `STDDEV_POP` (MySQL's `STD`, `STDDEV`, `VARIANCE`: of the rows themselves) |
| `QUANTILE_CONT(x, p)`, `APPROX_PERCENTILE`, `PERCENTILE_APPROX`, `PERCENTILE_DISC(p) WITHIN GROUP (ORDER BY x)`, `APPROX_QUANTILES(x, 100)[OFFSET(90)]` | `QUANTILE(x, p)` |
| `DATEDIFF(day, a, b)` of days | `b - a` |
| `COUNT(DISTINCT CASE WHEN c THEN x END)` | `COUNT(DISTINCT x) FILTER (WHERE c)` |
| `PIVOT (SUM(x) FOR city IN ('Oslo', 'Paris'))`, `PIVOT people ON city USING SUM(x) GROUP BY grade` | `SUM(x) FILTER (WHERE city = 'Oslo')`, ... by the other columns |
| `TOP 3 WITH TIES ... ORDER BY n` | `QUALIFY RANK() OVER (ORDER BY n) <= 3` |
| `SELECT COUNT(*) AS n, n / SUM(n) OVER () AS share` | an alias further right, or in WHERE, as what it names, unless a column is called so |
| `CAST(x AS varchar(4))`, `CONVERT(char(7), day, 120)` | the first letters of the text |
| `FIELD(x, 'a', 'b')`, MySQL's `INTERVAL(x, 40, 60)`, `EVERY(c)`, `city[1:3]`, `SORT BY`, `/*+ hints */` | `CASE`; `CASE`; `BOOL_AND(c)`; `SUBSTRING(city, 1, 3)`; `ORDER BY`; nothing |
| `DATEADD(month, DATEDIFF(month, 0, day), 0)` | `DATE_TRUNC('month', day)` |
| `COUNT(*) / (SELECT COUNT(*) FROM people)` | by groups, `SUM(COUNT(*)) OVER ()`; without, aggregates with FILTER in one SELECT |
| `DATE_ADD`, `DATE_SUB`, `DATEADD` | a sum with an `INTERVAL` |
| `SELECT DISTINCT city FROM people` | `SELECT city FROM people GROUP BY city`: the declared values, free |
| `(a, b) = (1, 2)`, `(a, b) IN ((1, 2), (3, 4))` | `a = 1 AND b = 2`, ... |
| `x = ANY(ARRAY[1, 2])`, `x = ANY('{{1,2}}')`, `x <> ALL(ARRAY[1, 2])` | `x IN (1, 2)`, `x NOT IN (1, 2)` |
| `x BETWEEN SYMMETRIC a AND b`, `city ILIKE ANY ('o%', 'p%')`, `city SIMILAR TO '(a|b)%'` | both orders; one or the other; a pattern |
| `BOOL_OR(c)`, `LOGICAL_OR`, `BOOL_AND(c)` | `COUNT_IF(c) > 0`, `COUNT_IF(NOT c) = 0` |
| `REGR_SLOPE(y, x)`, `REGR_INTERCEPT`, `REGR_R2`, `REGR_COUNT`, `REGR_AVGX`, `REGR_AVGY`, `SEM(x)` | covariances, variances and means of the rows that have both |
| `OVER w ... WINDOW w AS (...)`, `PERCENTILE_CONT(...) OVER ()`, `ORDER BY ALL` | the window where it is used; without OVER; every column |
| `WITH (NOLOCK)`, `OPTION (MAXDOP 1)`, `N'text'`, DuckDB's `city.lower()`, `city[1]` | nothing; nothing; `'text'`; `LOWER(city)`; `SUBSTRING(city, 1, 1)` |

## Days, times and today

`EXTRACT(part FROM x)`, `DATE_PART('part', x)`, `DATEPART(part, x)`, `YEAR(x)`, `MONTH(x)`, `HOUR(x)` and the like, in SELECT,
GROUP BY, WHERE and inside aggregates: year, quarter, month, week, day, dayofyear, dow, isodow, hour. `DATE_TRUNC` takes
its arguments in either order: year, quarter, month, week, day, of times hour. `TO_CHAR`, `FORMAT_DATE`, `DATE_FORMAT`,
`STRFTIME`, `MONTHNAME`, `DAYNAME` give texts. `LAST_DAY`, `DATEFROMPARTS`, `TIME_BUCKET`, sums with months and what is made of these are worked out for every day of the declared range. `EXTRACT(EPOCH FROM x)`
is in seconds. Between two columns, `DATEDIFF(unit, a, b)` counts the borders of days, weeks, months, quarters or years, and
`TIMESTAMPDIFF`, `EXTRACT(YEAR FROM AGE(b, a))`, DuckDB's `DATESUB` and `MONTHS_BETWEEN` what has passed in whole; a day beside a time is its
midnight. The number of a week is that of ISO; BigQuery's `EXTRACT(WEEK ...)` and MySQL's `WEEK(x)` count the Sundays of the year, T-SQL's
`DATEPART(week, x)` the weeks from Sunday that the year has had. Weekdays are numbered as the dialect counts: PostgreSQL, DuckDB and Snowflake from
0 on Sunday, BigQuery, MySQL, T-SQL and Spark from 1 on Sunday.

`CURRENT_DATE` and `NOW()` are the day (UTC) on which the statement was asked, put into the question as that constant; a note says
which, and tomorrow it is a new question. `INTERVAL '30 days'` goes with constant days in any unit, with columns in days and weeks.

## Texts

On a column with declared values: `LOWER`, `UPPER`, `TRIM`, `SUBSTRING`, `LEFT`, `RIGHT`, `CONCAT`, `||`, `REPLACE`, `LENGTH`,
`SPLIT_PART`, `SUBSTRING_INDEX`, `TRANSLATE`, `LPAD`, `RPAD`, `CONCAT_WS`, `REGEXP_EXTRACT`, `ILIKE`, `STARTS_WITH`, `CONTAINS`, `city > 'P'`, and regular expressions (`~`, `REGEXP`, `RLIKE`, `REGEXP_LIKE`; RE2, at most 200
characters). They are worked out once for the declared values; no row is looked at. On open text there are `=`, `IN`, `LIKE`, `IS NULL`.

## Functions of a number

`FLOOR`, `CEIL`, `ROUND`, `TRUNC`, `%`, `//`, `DIV`, `LN`, `LOG`, `EXP`, `SQRT`, `POWER`, `SIGN` of one column with a declared step and at
most {MOST_STEPS:,} places: exact, or rounded to 2^-20 of the largest. `FLOOR(a * x + b)` goes with any column. Of a column without a step, or
with more places, a table of at most {MOST_CELLS:,} steps is made when the statement is read, with the most steps where the function
changes most, and a note says how far off a value may be. All functions of one statement have at most {MOST_STEPS_TOGETHER:,} steps; tests (`LOG(income) > 2`) are exact to 2^-40 of the range. Such a function
makes groups only where it holds still (`TRUNC(LOG(income + 1))`). No engine's own function is ever used.

Any other function of one column, or of several with declared values, is worked out for every value that they can have, in
GROUP BY, WHERE and inside aggregates: `CASE WHEN city IN ('Oslo', 'Paris') THEN 'Europe' ELSE city END`, `city || '-' || grade`. NULL and
undeclared values count as NULL there. `age / 10` alone makes no groups, for engines differ in what it is: write `FLOOR(age / 10)`.
"""
RESULTS = """\
## Results are tables

What the inner SELECTs compute from rows is asked: one plan with one price, charged together or not at all. All around
them sees released groups only, so it is free, and every figure carries its interval, also where noise is shared.

| written | read as |
|---|---|
| `SELECT region, SUM(n) FROM (SELECT city, region, COUNT(*) AS n ... GROUP BY city, region) t GROUP BY region` | groups of released groups: SUM, AVG, MIN, MAX, COUNT, each with FILTER; groups without rows are among them |
| `WITH a AS (...), b AS (...) SELECT ... FROM a JOIN b ON a.city = b.city` | a join of released tables by their keys: JOIN, LEFT JOIN, CROSS JOIN, USING |
| `ORDER BY n DESC LIMIT 3` inside, WHERE and windows around | in the order in which they stand |
| `GROUP BY ROLLUP (a, b)`, `CUBE (a, b)`, `GROUPING SETS ((a), (b), ())`, `GROUP BY a, b WITH ROLLUP` | the same SELECT by each set of keys; a key that is left out is NULL, and GROUPING tells it from the group NULL |

A SELECT in a condition of rows is asked first: `WHERE age > (SELECT AVG(age) FROM people)`, `WHERE city IN (SELECT city ... ORDER BY
COUNT(*) DESC LIMIT 3)`, `JOIN (SELECT city ... LIMIT 3) t ON people.city = t.city`, `CROSS JOIN (SELECT AVG(age) AS m FROM people) s`. What is released of
it, as this asker got it, stands as a constant, so that a repeat is free. The quote shows its price and the most the rest can cost for any
constant; both are set aside before the first charge. Where it is not known, the rest is NULL and free. The reply names the constant, whose
noise the error bars do not cover. A SELECT that names columns of the outer one is refused.

A coarser level of ROLLUP can be added up from finer groups, which is free and adds up their noise, or be asked by itself. Those levels
are asked which make the widest bar smallest for the same credits; the quote says which. What is asked by itself differs from the sum of
its parts by noise. A window goes around ROLLUP, not beside it: `SELECT ..., RANK() OVER (...) FROM (SELECT ... GROUP BY ROLLUP (a)) t`.
"""
DIALECT_WORDS = f"""\
## Dialects

`dialect=` says whose words a statement takes: {", ".join(f"`{name}`" for name in DIALECTS)}. Without it, PostgreSQL's are
read, and of the others what means nothing else there. It decides how names and texts are quoted, the order of
arguments, how weekdays are numbered and which deviation `STDDEV` is; what a statement *asks* is the same language.
"""
DIFFERENCES = """\
## What differs from engines

| what | here | elsewhere |
|---|---|---|
| `7 / 2` | 3.5; `GROUP BY x / 10` is refused in PostgreSQL and T-SQL, with `FLOOR(x / 10)` as the offer | 3 in PostgreSQL and T-SQL; write `FLOOR(x / 10)` or `x // 10` |
| `QUANTILE(x, [0.1, 0.9])`, `APPROX_QUANTILES(x, 4)`, `HISTOGRAM(x)`, `MODE(x)`, `FORMAT(n, 1)`, a window beside ROLLUP | refused with a whole statement that gives the same figures: a column for each share, groups, numbers, an inner SELECT | lists, maps and texts |
| `SUM` of no rows | 0 | NULL |
| `LEAST`, `GREATEST` with NULL | NULL, as in BigQuery, MySQL, Snowflake | PostgreSQL, DuckDB and Spark skip NULL |
| groups without rows | shown, since which have rows is private | not shown |
| group NULL | missing and undeclared values | missing values |
| undeclared values | match no `=`, `LIKE` or function of texts | are texts like others |
| `=` and `LIKE` | mind capitals | MySQL and T-SQL do not, as they are usually set up |
| `ORDER BY` | NULL last, unless told; groups that noise alone may have made after the others | NULL first in MySQL, T-SQL, Spark |
| `PERCENTILE_CONT` | a place of the lattice or cell | between two rows |
| `MIN`, `MAX` | where clearly anybody is | the one most extreme row |
| `SAFE_DIVIDE`, `DIV0`, `x / NULLIF(y, 0)` | unknown where y may be 0 | NULL or 0 |
| `DATE_TRUNC('week', x)` | from Monday; from Sunday in BigQuery's `WEEK` and in T-SQL | Snowflake and T-SQL may be set otherwise |
| `WEEK` | of ISO; in BigQuery, MySQL and T-SQL as they count | settings may change it |
| `CAST(x AS char)` | one letter in PostgreSQL and Snowflake, else all | as here; 30 letters in T-SQL |
| `DATEDIFF(hour, a, b)` of two times | refused: write `(b - a) / 3600` | counts each full hour of the clock |
| `NOW()` | today's day, UTC | the time |
| `TO_CHAR(day, 'Day')`, `'Month'` | the name alone | padded with blanks in PostgreSQL |
| `SELECT DISTINCT city` | the declared values | those that occur |
| functions worked out as tables | NULL and undeclared values count as NULL | undeclared values are values |
| `LN`, `SQRT`, ... of a column without a step | off by at most what a note says | floating point |
| `ROUND(x)` of a half | away from 0 | to even in some |
"""
TAIL = f"""\
## Days and times

AVG, MEDIAN, QUANTILE, MIN and MAX of a day are days, as are the ends of their intervals, rounded away from the
value; group keys are days too. Error bars are in days (of a time, in seconds). `MAX(seen) - MIN(seen)` is a number
of days, `MAX(seen) > DATE '2024-01-01'` a test; a sum of days is refused. Of rows, `discharged - admitted`
is a number of days (of times, seconds) and may be summed; `admitted + 3` is a day.

## Quantiles, MIN and MAX

They are read off a noisy distribution: `QUANTILE(x, p)` is the place below which a share p of the rows lies, a
point of the lattice where a step is declared, else between the edges of one of 1,024 cells. No answer can tell
of one single row, so MIN and MAX are where *clearly* anybody is; their interval goes on to the declared bound.

## How exact

`... WITHIN 50 CONFIDENCE 95` after the statement asks for error bars of +-50, and pays what that takes.
`... WITHIN 2 PERCENT CONFIDENCE 95` asks for 2 % of the value. That is priced from an earlier answer to the same
question or, for counts, from `rows=`, never from the rows. The result says whether the target was met, judged
from the noisy answer. Priced so are counts, sums, averages, variances and deviations, ratios to a count of the
same rows, and sums and multiples of those. The bar of an average or ratio depends on how many rows match: as `rows=`
says (`--rows`), else it is priced as if all did, and the quote says so; with groups `rows=` is needed. A percentage that stored answers meet already is free.

How far off the *value* of a quantile is depends on how dense the rows lie there, which nobody knows beforehand. So of
`MEDIAN`, `QUANTILE`, `PERCENTILE_CONT`, `MIN` and `MAX` a percentage is one of the rows: `MEDIAN(x) ... WITHIN 2 PERCENT`
shows a value below which 48 to 52 % of the rows lie, at this confidence and up to the rows of its own cell;
`MIN(x) ... WITHIN 2 PERCENT` one with at most 2 % of the rows below it. How many rows there are is taken from `rows=`,
else from the public size (and said, since fewer may match), of groups from an earlier answer. The result says whether
it was met, by its own noisy number of rows; its interval is one of values, as ever. Without PERCENT, or inside
arithmetic, `WITHIN` is refused on quantiles, free. The other way round, `quote_sql(text, credits=5)` tells how far off
ranks may be, in rows (`ranks`). In Python `within=0.02` of `quantiles(...)` is that share.

Whatever a statement is to cost, all its questions are charged in one transaction, or none.

## Differential privacy options

`SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) ...`: {", ".join(f"`{o}`" for o in KNOWN_OPTIONS)}.
They may only tighten. `epsilon` and `delta` bound what this statement alone spends: credits are cut until it is
(epsilon, delta)-private by itself. The owner's promise holds whatever stands there; more than the promise is
refused. `group_selection_strategy=PUBLIC_GROUPS` is what happens; NULL is what is usual;
`SUM(x, contribution_bounds_per_row => (0, 10))` is `SUM(CLAMP(x, 0, 10))`. `max_groups_contributed` below what the owner declared, and another `privacy_unit_column`, are refused.
"""


def page() -> str:
    """The whole page; every node of every table has its line, and no line is of another."""
    said = [HEAD]
    for title, words, lines, nodes in SECTIONS:
        missing = {node.__name__ for node in nodes ^ set(lines)}
        if missing:
            raise SystemExit(f"{title}: say what {sorted(missing)} is, or take it out")
        said.append(f"## {title}\n")
        if words:
            said.append(f"{words}\n")
        table = [f"| {spelled} | {meaning} |" for spelled, meaning in lines.values() if spelled]
        said.append("\n".join(["| | |", "|---|---|", *table]) + "\n")
    return "\n".join([*said, SUBJECTS, RESULTS, DIALECT_WORDS, DIFFERENCES, TAIL])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
