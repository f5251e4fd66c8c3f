"""What FROM says in a statement over a study, written as subqueries about one person.

    a CTE or subquery that only filters an event table     the table, its conditions in WHERE
    one grouped by the person, with aggregates             the persons who have such a row, and
                                                           (SELECT COUNT(*) ...) for each aggregate
    event tables joined by the person, where only          one table, EXISTS (SELECT ...) for
    what exists matters                                    the others

Each is the same statement in other words, whatever the rows are: `StudyRewriter` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.schema.study import Study
from sulq.sql.parse.declared import bare
from sulq.sql.parse.grammar import Node, wrong

PERSON_ALIAS = "the_person"
ROWS_ALIAS = "of_the_person"
GROUPED_ALIAS = "by_person"


def known_table(study: Study, node: object) -> str | None:
    """The table of the study that a FROM item names."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return None
    name = node.name.casefold()
    return next((one for one in study.names if one.casefold() == name), None)


def unit_of(study: Study, table: str) -> str:
    """The person column of a table."""
    return study.unit if table == study.name else study.table(table).person or study.unit


def conjuncts(node: Node | None) -> list[Node]:
    """The conditions that must all hold."""
    if node is None:
        return []
    node = bare(node)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def all_of(parts: Sequence[Node]) -> Node | None:
    """All conditions as one."""
    return exp.and_(*parts, copy=False) if parts else None


def is_true(condition: Node) -> Node:
    """The condition, false where it is NULL."""
    case = exp.Case(
        ifs=[exp.If(this=condition, true=exp.Literal.number(1))], default=exp.Literal.number(0)
    )
    return exp.EQ(this=case, expression=exp.Literal.number(1))


def set_where(select: Node, parts: Sequence[Node]) -> None:
    found = all_of(parts)
    select.set("where", None if found is None else exp.Where(this=found))


def sources(select: Node) -> list[Node]:
    """FROM and the JOINs of a SELECT."""
    start = select.args.get("from_")
    return [] if start is None else [start, *(select.args.get("joins") or ())]


def written_out(tree: Node, study: Study) -> Node:
    """The statement without CTEs and subqueries in FROM that can be written as one SELECT."""
    made = _checked_ctes(tree, study)
    for count in list(tree.find_all(exp.Count)):
        _filtered(count)
    for select in list(tree.find_all(exp.Select)):
        _wrapped(select, study)
    for select in list(tree.find_all(exp.Select)):
        for source in sources(select):
            _filled_in(source, select, made, study)
        _plain_joins(select, study)
    for name, cte in made.items():
        if not any(table.name.casefold() == name for table in _tables_outside(tree, cte)):
            _drop(cte)
    return tree


def _filtered(count: Node) -> None:
    """COUNT(DISTINCT CASE WHEN x THEN person END) as COUNT(DISTINCT person) FILTER (WHERE x)."""
    inner = count.this.expressions if isinstance(count.this, exp.Distinct) else []
    case = bare(inner[0]) if len(inner) == 1 else None
    if not isinstance(case, exp.Case) or case.this is not None or case.args.get("default"):
        return
    ifs = case.args["ifs"]
    value = bare(ifs[0].args["true"])
    if len(ifs) != 1 or not isinstance(value, exp.Column) or isinstance(count.parent, exp.Filter):
        return
    plain = exp.Count(this=exp.Distinct(expressions=[value.copy()]))
    count.replace(exp.Filter(this=plain, expression=exp.Where(this=ifs[0].this.copy())))


def _wrapped(select: Node, study: Study) -> None:
    """IN (SELECT person FROM visits GROUP BY person HAVING ...): such a SELECT in FROM of another.
    EXISTS with HAVING: that there is a row, and what HAVING says of subqueries."""
    start = select.args.get("from_")
    table = None if start is None else known_table(study, start.this)
    around = select.parent
    if isinstance(around, exp.Subquery):
        around = around.parent
    grouped = select.args.get("group") is not None or select.args.get("having") is not None
    if table in (None, study.name) or not grouped or len(sources(select)) > 1:
        return
    unit = unit_of(study, str(table))
    if isinstance(around, exp.In):
        listed = exp.Select(expressions=[_column(unit, GROUPED_ALIAS)])
        inner = exp.Subquery(this=select.copy())
        inner.set("alias", exp.TableAlias(this=exp.to_identifier(GROUPED_ALIAS)))
        listed.set("from_", exp.From(this=inner))
        select.replace(listed)
    elif isinstance(around, exp.Exists):
        group = select.args.get("group")
        if group is not None and not all(_is_key(key, unit, select) for key in group.expressions):
            return
        having = select.args.get("having")
        plain = select.copy()
        plain.set("group", None)
        plain.set("having", None)
        parts: list[Node] = [exp.Exists(this=plain)]
        for part in conjuncts(None if having is None else having.this):
            said = exp.Paren(this=part.copy())
            for found in list(said.find_all(exp.AggFunc)):
                of = plain.copy()
                of.set("expressions", [found.copy()])
                found.replace(exp.Subquery(this=of))
            parts.append(is_true(said))
        around.replace(exp.paren(exp.and_(*parts)))


def _checked_ctes(tree: Node, study: Study) -> dict[str, Node]:
    """The CTEs by name; `InvalidQuery` for one that hides a table."""
    taken = {name.casefold() for name in study.names}
    made: dict[str, Node] = {}
    for cte in tree.find_all(exp.CTE):
        name = str(cte.alias).casefold()
        if name in taken:
            raise wrong(
                cte,
                Reason.AMBIGUOUS,
                f"WITH {cte.alias:.60} has the name of a table of the study; give it another",
            )
        made[name] = cte
    return made


def _tables_outside(tree: Node, cte: Node) -> Iterator[Node]:
    return (table for table in tree.find_all(exp.Table) if table.find_ancestor(exp.CTE) is not cte)


def _drop(cte: Node) -> None:
    around = cte.parent
    cte.pop()
    if around is not None and not around.expressions:
        around.pop()


def _filled_in(source: Node, select: Node, made: Mapping[str, Node], study: Study) -> None:
    """Write one FROM item out, where it is a SELECT that can be."""
    item = source.this
    if isinstance(item, exp.Subquery):
        inner, alias = item.this, str(item.alias)
    elif isinstance(item, exp.Table) and item.name.casefold() in made:
        inner, alias = made[item.name.casefold()].this, str(item.alias or item.name)
    else:
        return
    if not isinstance(inner, exp.Select) or any(
        inner.args.get(key)
        for key in ("joins", "limit", "offset", "order", "with_", "qualify", "windows")
    ):
        return
    inner = inner.copy()
    start = inner.args.get("from_")
    table = None if start is None else known_table(study, start.this)
    if table is None or start is None:
        return
    own = str(start.this.alias or start.this.name)
    distinct = inner.args.get("distinct")
    if distinct is not None:
        if distinct.args.get("on") is not None or inner.args.get("group") is not None:
            return
        if not isinstance(select.parent, exp.In | exp.Exists) and not (
            isinstance(select.parent, exp.Subquery)
            and isinstance(select.parent.parent, exp.In | exp.Exists)
        ):
            inner.set("group", exp.Group(expressions=[each.copy() for each in inner.expressions]))
        inner.set("distinct", None)
    if inner.args.get("group") is None and inner.args.get("having") is None:
        _filter(source, select, inner, table, own, alias)
    elif table != study.name:
        _grouped(source, select, inner, table, own, alias, study)


# --- filters --------------------------------------------------------------------------------------


def _filter(source: Node, select: Node, inner: Node, table: str, own: str, alias: str) -> None:
    plain = all(
        isinstance(item, exp.Star | exp.Column) and (isinstance(item, exp.Star) or not item.alias)
        for item in inner.expressions
    )
    where = inner.args.get("where")
    nested = where is not None and where.find(exp.Select) is not None
    if not plain or nested or not alias:
        return
    parts = conjuncts(None if where is None else where.this)
    for part in parts:
        _called(part, own, alias)
    source.set("this", exp.alias_(exp.to_table(table), alias, table=True))
    around = select.args.get("where")
    set_where(select, [*conjuncts(None if around is None else around.this), *parts])


def _called(node: Node, own: str, alias: str) -> None:
    """Columns of a SELECT from one table, by the name that the table has outside."""
    for column in node.find_all(exp.Column):
        if column.table.casefold() in ("", own.casefold()):
            column.set("table", exp.to_identifier(alias))


# --- joins ----------------------------------------------------------------------------------------


def _plain_joins(select: Node, study: Study) -> None:
    """Joins with a comma get their condition from WHERE; an outer join that keeps the events is a
    plain one, for each event has its person."""
    named: dict[str, str] = {}
    for source in sources(select):
        table = known_table(study, source.this)
        if table is None:
            continue
        alias = str(source.this.alias or source.this.name).casefold()
        if isinstance(source, exp.Join):
            side = str(source.args.get("side") or "")
            if not side and not source.args.get("kind"):
                _links_apart(source, select, study, {**named, alias: table})
            to_person = side == "LEFT" and table == study.name and study.name not in named.values()
            of_events = side == "RIGHT" and table != study.name
            if to_person or (of_events and set(named.values()) == {study.name}):
                source.set("side", None)
            if not any(source.args.get(key) for key in ("on", "using", "side", "kind", "method")):
                _with_condition(source, select, study, {**named, alias: table}, alias)
        named[alias] = table


def _links_apart(join: Node, select: Node, study: Study, named: Mapping[str, str]) -> None:
    """Of the conditions of a plain join only that it is by the person stays, the rest is WHERE."""
    parts = conjuncts(join.args.get("on"))
    links = [part for part in parts if is_link(part, study, named)]
    if not links or len(parts) == 1:
        return
    join.set("on", links[0])
    where = select.args.get("where")
    apart = [part for part in parts if part is not links[0]]
    set_where(select, [*conjuncts(None if where is None else where.this), *apart])


def _with_condition(
    join: Node, select: Node, study: Study, named: Mapping[str, str], alias: str
) -> None:
    where = select.args.get("where")
    parts = conjuncts(None if where is None else where.this)
    for part in parts:
        if is_link(part, study, named) and alias in _aliases(part):
            join.set("on", part.copy())
            set_where(select, [other for other in parts if other is not part])
            return


def _aliases(part: Node) -> set[str]:
    return {column.table.casefold() for column in part.find_all(exp.Column)}


def _check_linked(
    select: Node, links: Sequence[Node], study: Study, named: Mapping[str, str]
) -> None:
    """Refuse tables of which two are not joined by the person."""
    joined = [{alias} for alias in named]
    pairs = [_aliases(link) for link in links]
    before: list[str] = []
    for source in sources(select):
        alias = str(source.this.alias or source.this.name).casefold()
        using = [str(one.name).casefold() for one in source.args.get("using") or ()]
        pairs += [
            {alias, other} for other in before if using == [unit_of(study, named[other]).casefold()]
        ]
        before.append(alias)
    for pair in pairs:
        touched = [group for group in joined if group & pair]
        joined = [group for group in joined if not group & pair] + [set().union(*touched)]
    if len(joined) > 1:
        raise wrong(
            select,
            Reason.JOIN,
            f"tables that are not joined by the person; write JOIN ... USING ({study.unit}), or ON"
            " the person columns of both",
        )


# --- one row for each person ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OfPerson:
    """A SELECT over an event table grouped by the person, as subqueries about one person."""

    study: Study
    table: str
    inner: Node
    own: str
    person: str

    @property
    def unit(self) -> str:
        return unit_of(self.study, self.table)

    def about(self, selected: Node) -> Node:
        """SELECT ... FROM visits, of the same person, where the conditions hold."""
        same = exp.EQ(
            this=_column(self.unit, ROWS_ALIAS),
            expression=_column(self.study.unit, self.person),
        )
        made = exp.Select(expressions=[selected])
        place = exp.alias_(exp.to_table(self.table), ROWS_ALIAS, table=True)
        made.set("from_", exp.From(this=place))
        where = self.inner.args.get("where")
        parts = conjuncts(None if where is None else where.this.copy())
        for part in parts:
            _called(part, self.own, ROWS_ALIAS)
        set_where(made, [same, *parts])
        return made

    def valued(self, item: Node) -> Node:
        """The item, each aggregate a subquery of its own."""
        holder = exp.Paren(this=item.copy())
        for found in list(holder.find_all(exp.AggFunc)):
            taken = found.copy()
            _called(taken, self.own, ROWS_ALIAS)
            found.replace(exp.Subquery(this=self.about(taken)))
        return bare(holder.this) if isinstance(holder.this, exp.Subquery) else holder

    def columns(self) -> dict[str, Node] | None:
        """Its columns by name; None where one is neither the person nor an aggregate."""
        given: dict[str, Node] = {}
        for item in self.inner.expressions:
            value, called = item.unalias(), str(item.alias_or_name).casefold()
            key = bare(value)
            if isinstance(key, exp.Column) and key.name.casefold() == self.unit.casefold():
                given[called] = _column(self.study.unit, self.person)
            elif item.find(exp.AggFunc) is None or not called:
                return None
            else:
                given[called] = self.valued(value)
        return given

    def conditions(self) -> list[Node]:
        """That the person has such a row, and what HAVING says."""
        having = self.inner.args.get("having")
        said = conjuncts(None if having is None else having.this)
        exists: Node = exp.Exists(this=self.about(exp.Literal.number(1)))
        return [exists, *(is_true(self.valued(part)) for part in said)]


def _grouped(
    source: Node, select: Node, inner: Node, table: str, own: str, alias: str, study: Study
) -> None:
    """(SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t: who has visits."""
    group = inner.args.get("group")
    keys = [] if group is None else group.expressions
    person = _person_beside(source, select, study)
    if len(keys) != 1 or not _is_key(keys[0], unit_of(study, table), inner) or person is None:
        return
    of_person = _OfPerson(study, table, inner, own, person)
    given = of_person.columns()
    if given is None:
        return
    _replaced(select, alias, given)
    others = [one for one in sources(select) if one is not source]
    events = [one for one in others if known_table(study, one.this) != study.name]
    where = select.args.get("where")
    rest = conjuncts(None if where is None else where.this)
    for gone in (one for one in sources(select) if len(events) < len(others) and one not in events):
        rest += conjuncts(gone.args.get("on"))  # the person table itself stays, once
    place = exp.alias_(exp.to_table(study.name), person, table=True)
    if isinstance(source, exp.Join) and len(events) == len(others):
        source.set("this", place)  # FROM visits v JOIN (...) t: the person comes in its place
        events, place = [*events[1:], source], others[0].this.copy()
    elif isinstance(source, exp.Join) and isinstance(others[0], exp.From) and others[0] in events:
        rest += conjuncts(events.pop(0).args.get("on"))
        events.append(exp.Join(this=place))
        place = others[0].this.copy()
    told = [part for part in rest if not isinstance(part, exp.EQ) or part.this != part.expression]
    set_where(select, [*of_person.conditions(), *told])
    select.args["from_"].set("this", place)
    select.set("joins", events)


def _person_beside(source: Node, select: Node, study: Study) -> str | None:
    """What the person table is called beside a subquery; None where another table is there."""
    person = PERSON_ALIAS
    for other in sources(select):
        if other is source:
            continue
        outer = str(other.args.get("side") or source.args.get("side") or "")
        table = known_table(study, other.this)
        if table is None or outer:
            return None
        if table == study.name:
            person = str(other.this.alias or other.this.name)
    return person


def _is_key(key: Node, unit: str, inner: Node) -> bool:
    key = bare(key)
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
        place = int(key.name) - 1
        listed = inner.expressions
        key = bare(listed[place].unalias()) if 0 <= place < len(listed) else key
    return isinstance(key, exp.Column) and key.name.casefold() == unit.casefold()


def _column(name: str, table: str) -> Node:
    return exp.column(exp.to_identifier(name), table=exp.to_identifier(table))


def _replaced(select: Node, alias: str, given: Mapping[str, Node]) -> None:
    """What the SELECT calls by the names of the subquery's columns, in words of its own."""
    for column in list(select.find_all(exp.Column)):
        if column.find_ancestor(exp.Select) is not select:
            continue
        meant = given.get(column.name.casefold())
        if meant is None or column.table.casefold() not in ("", alias.casefold()):
            continue
        made = meant.copy()
        around = column.parent
        if around is select and column.arg_key == "expressions":
            made = exp.alias_(made, column.name)
        column.replace(made)


# --- tables joined by the person ------------------------------------------------------------------


def one_table(select: Node, study: Study, named: Mapping[str, str]) -> None:
    """Event tables joined by the person, where only what exists matters: the first stays, the
    others become EXISTS. `named` has the tables of the SELECT by alias, in its order."""
    events = [alias for alias, table in named.items() if table != study.name]
    first, others = events[0], set(events[1:])
    where = select.args.get("where")
    parts = conjuncts(None if where is None else where.this)
    links = [link for source in sources(select) for link in conjuncts(source.args.get("on"))]
    _check_linked(
        select, [one for one in (*parts, *links) if is_link(one, study, named)], study, named
    )
    kept = []
    for source in sources(select):
        alias = str(source.this.alias or source.this.name).casefold()
        if isinstance(source, exp.Join):
            parts += conjuncts(source.args.get("on"))
            source.set("on", None)
        if alias not in others:
            kept.append(source)
    own: list[Node] = []
    of_others: dict[str, list[Node]] = {alias: [] for alias in events[1:]}
    for part in parts:
        if is_link(part, study, named):
            continue  # all are joined to the first
        about = _mentioned(part, study, named) & others
        if len(about) > 1:
            raise wrong(
                part,
                Reason.JOIN,
                "a condition on rows of two joined tables; compare each with the first table of"
                " FROM",
            )
        if about:
            of_others[next(iter(about))].append(part)
        else:
            own.append(part)
    for alias, found in of_others.items():
        table = named[alias]
        same = exp.EQ(
            this=_column(unit_of(study, table), alias),
            expression=_column(unit_of(study, named[first]), first),
        )
        inner = exp.Select(expressions=[exp.Literal.number(1)])
        inner.set("from_", exp.From(this=exp.alias_(exp.to_table(table), alias, table=True)))
        set_where(inner, [same, *found])
        own.append(exp.Exists(this=inner))
    set_where(select, own)
    start = next(one for one in kept if str(one.this.alias or one.this.name).casefold() == first)
    select.set("from_", exp.From(this=start.this))
    persons = [one for one in kept if one is not start]
    select.set(
        "joins", [exp.Join(this=one.this, on=_same(one, first, named, study)) for one in persons]
    )


def _same(source: Node, first: str, named: Mapping[str, str], study: Study) -> Node:
    alias = str(source.this.alias or source.this.name)
    unit = unit_of(study, named[first])
    return exp.EQ(this=_column(study.unit, alias), expression=_column(unit, first))


def _owner(column: exp.Column, study: Study, named: Mapping[str, str]) -> str | None:
    """The alias of the table that a column is of; None where it is of no table here."""
    if column.table:
        return column.table.casefold() if column.table.casefold() in named else None
    name, found = column.name.casefold(), []
    for alias, table in named.items():
        listed = study if table == study.name else study.table(table)
        if name in {one.name.casefold() for one in listed.columns}:
            found.append(alias)
    if len(found) > 1:
        raise wrong(
            column,
            Reason.AMBIGUOUS,
            f"{column.name!r:.60} is in {' and '.join(named[one] for one in found)}; write"
            f" {found[0]}.{column.name:.60}",
        )
    return found[0] if found else None


def _mentioned(part: Node, study: Study, named: Mapping[str, str]) -> set[str]:
    if part.find(exp.Select) is not None:
        return set()
    owners = (_owner(column, study, named) for column in part.find_all(exp.Column))
    return {owner for owner in owners if owner is not None}


def is_link(part: Node, study: Study, named: Mapping[str, str]) -> bool:
    """Whether a condition says that rows of two tables are of one person."""
    if not isinstance(part, exp.EQ):
        return False
    sides = [bare(part.this), bare(part.expression)]
    return all(_is_person(side, study, named) for side in sides)


def _is_person(node: Node, study: Study, named: Mapping[str, str]) -> bool:
    table = named.get(node.table.casefold()) if isinstance(node, exp.Column) else None
    return table is not None and node.name.casefold() == unit_of(study, table).casefold()
