"""A row program as one SELECT of integer SQL.

What must be mentioned twice is named in an inner SELECT, so the text grows linearly. Bounds are
carried along and checked, so no value in the table can make the statement fail.
docs/proofs/engines.md, claims 4-6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sulq.errors import InvalidQuery
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.leaves import (
    ColumnSql,
    Leaf,
    as_leaf,
    at_least,
    below,
    is_no_number,
    is_number,
    leaf_sql,
    stored,
)
from sulq.kernel.schema.program import (
    PRIME,
    Added,
    AllOf,
    Always,
    Among,
    AnyOf,
    BoundChoice,
    BoundScaled,
    Compared,
    Condition,
    Divided,
    FirstOf,
    Fixed,
    FlagBit,
    FlagIs,
    Greater,
    HashedBit,
    Integer,
    Lesser,
    Magnitude,
    Matches,
    Missing,
    Multiplied,
    Never,
    Quantised,
    Shifted,
    Text,
)


@dataclass(frozen=True, slots=True)
class Lines:
    column: str
    """Of the engine."""
    sql: str


def half_lines(node: Compared, places: Mapping[str, ColumnSql]) -> Lines | None:
    """The test, or None where the comparison is not of one leaf with a constant."""
    if isinstance(node.right, Fixed) and node.right.value is not None:
        subject, constant, turned = node.left, node.right.value, False
    elif isinstance(node.left, Fixed) and node.left.value is not None:
        subject, constant, turned = node.right, node.left.value, True
    else:
        return None
    bottom = _bottom(subject)
    held = places.get(bottom.value.column) if bottom else None
    if bottom is None or held is None:
        return None
    leaf, place = stored(bottom, held)

    def reaches(bound: int) -> str:
        return _reaches(subject, bound, leaf, place, True)

    def stays_below(bound: int) -> str:
        return _reaches(subject, bound, leaf, place, False)

    match node.operator, turned:
        case ("<", False):
            sql = stays_below(constant)
        case ("<=", False):
            sql = stays_below(constant + 1)
        case ("<", True):
            sql = reaches(constant + 1)
        case ("<=", True):
            sql = reaches(constant)
        case ("=", _):
            sql = f"({reaches(constant)} AND {stays_below(constant + 1)})"
        case _:
            sql = f"({stays_below(constant)} OR {reaches(constant + 1)})"
    return Lines(place.sql, sql)


def _bottom(node: Integer) -> Leaf | None:
    """The leaf under shifts, non-zero scales and added constants."""
    leaf = as_leaf(node)
    if leaf is not None:
        return leaf
    match node:
        case BoundScaled(value=inner, factor=factor) if factor:
            return _bottom(inner)
        case Shifted(value=inner, bits=bits) if bits >= 0:
            return _bottom(inner)
        case Added(parts=(inner, Fixed(value=int()))) | Added(parts=(Fixed(value=int()), inner)):
            return _bottom(inner)
    return None


def _reaches(node: Integer, bound: int, leaf: Leaf, place: ColumnSql, up: bool) -> str:
    """node >= bound (up) or node < bound, carried down to the leaf."""
    if as_leaf(node) is not None:
        return at_least(leaf, place, bound) if up else below(leaf, place, bound)
    match node:
        case BoundScaled(value=inner, factor=factor) if factor > 0:
            return _reaches(inner, -(-bound // factor), leaf, place, up)
        case BoundScaled(value=inner, factor=factor):
            # factor * v >= bound  <=>  v <= floor(bound / factor)
            return _reaches(inner, bound // factor + 1, leaf, place, not up)
        case Shifted(value=inner, bits=bits):
            half = 1 << (bits - 1) if bits else 0
            return _reaches(inner, (bound << bits) - half, leaf, place, up)
        case Added(parts=(inner, Fixed(value=int(c)))) | Added(parts=(Fixed(value=int(c)), inner)):
            return _reaches(inner, bound - c, leaf, place, up)
    raise AssertionError("not a chain over a leaf")  # pragma: no cover


# A comparison of one column with a constant, as a test of the bare column.
#
# 2 (x + 3) < 40 says leaf(x) < 17, and that says x < T: vectorised, and pruned by zone maps.


LARGEST = 2**62
MOST_BITS = 62
CHAIN = 100
"""Parts of a sum that are written without brackets between them."""
BASE, NAMED = "c", "m"
"""First letters of the columns of the table and of the inner SELECTs."""


@dataclass(frozen=True, slots=True)
class Value:
    """An integer expression: its text, proved bounds, and the inner SELECT it needs."""

    sql: str
    low: int
    high: int
    nullable: bool
    level: int = 0
    bare: bool = False
    """Cheap enough to mention twice."""
    real: str | None = None
    """The same as an integer-valued DOUBLE."""

    @property
    def constant(self) -> int | None:
        return self.low if self.low == self.high and not self.nullable else None

    @property
    def largest(self) -> int:
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class Test:
    """A condition's text and the inner SELECT it needs."""

    sql: str
    level: int = 0


NULL = "CAST(NULL AS BIGINT)"


def places_of(values: Sequence[str] | Sequence[int], place: ColumnSql) -> list[int]:
    """Where declared values stand in a "listed" column."""
    at: dict[object, int] = {value: number for number, value in enumerate(place.values)}
    if any(value not in at for value in values):
        raise InvalidQuery("a value that was not declared stands in no list")
    return [at[value] for value in values]


def checked(value: Value) -> Value:
    """Within +-2^62, or refused: an overflow would depend on the rows."""
    if value.largest > LARGEST:
        raise InvalidQuery("a value could pass 2^62 on the way; use fewer factors or smaller ones")
    constant = value.constant
    if constant is not None:
        return Value(Dialect.integer(constant), constant, constant, False, bare=True)
    return value


def _either(v: Value, w: Value) -> tuple[int, int]:
    """The range of one value or the other; a NULL has none."""
    real = [value for value in (v, w) if value.sql != NULL] or [v]
    return min(value.low for value in real), max(value.high for value in real)


@dataclass(slots=True)
class Emitter:
    """Translates nodes; remembers what it named and how often each node was asked for."""

    places: Mapping[str, ColumnSql]
    shared: frozenset[Integer] = frozenset()
    uses: Counter[Integer] = field(default_factory=Counter)
    layers: list[list[tuple[str, str]]] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    _known: dict[Integer, Value] = field(default_factory=dict)
    _names: int = 0

    @property
    def dialect(self) -> type[Dialect]:
        """How the engine of this table spells SQL; a table has at least one column."""
        return next(iter(self.places.values())).dialect

    def place(self, column: str) -> ColumnSql:
        place = self._held(column)
        self.columns.add(place.sql)
        return place

    def _held(self, column: str) -> ColumnSql:
        place = self.places.get(column)
        if place is None:
            raise InvalidQuery(f"no column {column!r} in this table")
        return place

    def leaf(self, leaf: Leaf) -> tuple[Leaf, ColumnSql]:
        """The leaf, and the column that it is read from."""
        leaf, place = stored(leaf, self._held(leaf.value.column))
        self.columns.add(place.sql)
        return leaf, place

    def named(self, value: Value) -> Value:
        """The value under a name of an inner SELECT, unless it may be repeated as it is."""
        if value.bare:
            return value
        name = f"{NAMED}{self._names}"
        self._names += 1
        while len(self.layers) <= value.level:
            self.layers.append([])
        self.layers[value.level].append((name, value.real or value.sql))
        level = value.level + 1
        sql = Dialect.bigint(name) if value.real else name
        real = name if value.real else None
        return Value(sql, value.low, value.high, value.nullable, level, True, real)

    def integer(self, node: Integer) -> Value:
        self.uses[node] += 1
        value = self._known.get(node)
        if value is None:
            value = checked(self._integer(node))
            if node in self.shared:
                value = self.named(value)
            self._known[node] = value
        return value

    def _integer(self, node: Integer) -> Value:
        leaf = as_leaf(node)
        if leaf is not None:
            text, is_real = leaf_sql(*self.leaf(leaf))
            sql, real = (Dialect.bigint(text), text) if is_real else (text, None)
            return Value(sql, leaf.least, leaf.most, True, real=real)
        match node:
            case Fixed(value=None):
                return Value(NULL, 0, 0, True, bare=True)
            case Fixed(value=int(constant)):
                return Value(Dialect.integer(constant), constant, constant, False, bare=True)
            case FlagBit(column=column):
                return Value(self.dialect.flag_bit(self.place(column).sql), 0, 1, True, bare=True)
            case Added(parts=parts):
                return self._added(parts)
            case BoundScaled(value=inner, factor=factor):
                return self._product(self.integer(inner), self.integer(Fixed(factor)))
            case Multiplied(left=left, right=right):
                product = self._product(self.integer(left), self.integer(right))
                return replace(product, low=max(product.low, 0)) if left == right else product
            case Shifted(value=inner, bits=bits):
                return self._shifted(self.integer(inner), bits)
            case Divided(over=over, under=under):
                return self._divided(self.integer(over), self.integer(under))
            case Lesser(left=left, right=right):
                return self._extreme(self.integer(left), self.integer(right), "<=")
            case Greater(left=left, right=right):
                return self._extreme(self.integer(left), self.integer(right), ">=")
            case Magnitude(value=inner):
                v = self.integer(inner)
                low = 0 if v.low <= 0 <= v.high else min(abs(v.low), abs(v.high))
                return Value(f"abs({v.sql})", low, v.largest, v.nullable, v.level)
            case BoundChoice(condition=condition, then=then, otherwise=otherwise):
                return self._chosen(
                    self.condition(condition), self.integer(then), self.integer(otherwise)
                )
            case FirstOf(value=inner, instead=instead):
                v, w = self.integer(inner), self.integer(instead)
                if not v.nullable:
                    return v
                sql = f"COALESCE({v.sql}, {w.sql})"
                low, high = _either(v, w)
                return Value(Dialect.bigint(sql), low, high, w.nullable, max(v.level, w.level))
            case HashedBit(value=inner, coefficients=coefficients):
                return self._hashed(self.integer(inner), coefficients)
            case Quantised():  # pragma: no cover - every Quantised is a leaf
                raise AssertionError
        raise InvalidQuery(f"no such integer: {type(node).__name__}")

    def _added(self, parts: tuple[Integer, ...]) -> Value:
        values = [self.integer(part) for part in parts]
        low = high = level = 0
        nullable = False
        for v in values:
            low, high = low + v.low, high + v.high
            nullable, level = nullable or v.nullable, max(level, v.level)
            if max(abs(low), abs(high)) >= 2 * LARGEST:  # a sum on the way would overflow
                checked(Value("", low, high, nullable))
        texts = [v.sql for v in values] or [Dialect.integer(0)]
        if len(texts) > CHAIN and sum(v.largest for v in values) < 2 * LARGEST:
            chunks = [texts[at : at + CHAIN] for at in range(0, len(texts), CHAIN)]
            texts = [f"({' + '.join(chunk)})" for chunk in chunks]  # parsers recurse along a sum
        return Value(f"({' + '.join(texts)})", low, high, nullable, level)

    def _product(self, v: Value, w: Value) -> Value:
        for nothing, factor in ((v, w), (w, v)):
            if nothing.low == nothing.high == 0 and not factor.nullable:
                return nothing  # an optimiser might multiply the constants of 0 x C x D
        ends = [a * b for a in (v.low, v.high) for b in (w.low, w.high)]
        level = max(v.level, w.level)
        return Value(f"({v.sql} * {w.sql})", min(ends), max(ends), v.nullable or w.nullable, level)

    def _shifted(self, v: Value, bits: int) -> Value:
        if not 0 <= bits <= MOST_BITS:
            raise InvalidQuery(f"a shift is by 0 to {MOST_BITS} bits, got {bits}")
        if bits == 0:
            return v
        half = 1 << (bits - 1)
        sql = self.dialect.floor_shift(f"({v.sql} + {Dialect.integer(half)})", bits)
        return Value(sql, (v.low + half) >> bits, (v.high + half) >> bits, v.nullable, v.level)

    def _divided(self, v: Value, w: Value) -> Value:
        """floor((2 v + w) / 2 w): truncated division, less one where it left a remainder below."""
        if w.low < 1:
            raise InvalidQuery("a divisor could be zero or negative")
        ends = [(2 * a + b) // (2 * b) for a in (v.low, v.high) for b in (w.low, w.high)]
        low, high = 2 * v.low + w.low, 2 * v.high + w.high
        wide = max(abs(low), abs(high), 2 * w.high) > LARGEST
        typed = self.dialect.wide if wide else Dialect.bigint
        w = self.named(w)
        over = Value(
            f"({typed('2')} * {typed(v.sql)} + {typed(w.sql)})",
            low,
            high,
            v.nullable or w.nullable,
            max(v.level, w.level),
        )
        under = f"({typed('2')} * {typed(w.sql)})"
        if low < 0:
            over = self.named(over)
        divided = self.dialect.wide_division if wide else self.dialect.truncated_division
        sql = Dialect.bigint(divided(over.sql, under))
        if low < 0:
            one, none = Dialect.integer(1), Dialect.integer(0)
            less = f"CASE WHEN {over.sql} % {under} < {typed('0')} THEN {one} ELSE {none} END"
            sql = f"({sql} - {Dialect.bigint(less)})"
        return Value(sql, min(ends), max(ends), over.nullable, over.level)

    def _extreme(self, v: Value, w: Value, keeps: str) -> Value:
        pick = min if keeps == "<=" else max
        low, high = pick(v.low, w.low), pick(v.high, w.high)
        nullable = v.nullable or w.nullable
        if not nullable:
            function = "LEAST" if keeps == "<=" else "GREATEST"
            level = max(v.level, w.level)
            return Value(f"{function}({v.sql}, {w.sql})", low, high, False, level)
        v, w = self.named(v), self.named(w)
        sql = (
            f"CASE WHEN {v.sql} {keeps} {w.sql} THEN {v.sql}"
            f" WHEN {w.sql} {keeps} {v.sql} THEN {w.sql} END"
        )
        return Value(Dialect.bigint(sql), low, high, True, max(v.level, w.level))

    def _chosen(self, test: Test, v: Value, w: Value) -> Value:
        low, high = _either(v, w)
        return Value(
            Dialect.bigint(f"CASE WHEN {test.sql} THEN {v.sql} ELSE {w.sql} END"),
            low,
            high,
            v.nullable or w.nullable,
            max(test.level, v.level, w.level),
        )

    def _hashed(self, v: Value, coefficients: tuple[int, int, int, int]) -> Value:
        prime = Dialect.integer(PRIME)
        residue = f"({v.sql} % {prime})"
        if v.low < 0:
            residue = f"(({residue} + {prime}) % {prime})"
        x = self.named(Value(residue, 0, PRIME - 1, v.nullable, v.level))
        first, *rest = (Dialect.integer(c % PRIME) for c in coefficients)
        sql = first
        for coefficient in rest:
            sql = f"(({sql} * {x.sql} + {coefficient}) % {prime})"
        return Value(f"({sql} % {Dialect.integer(2)})", 0, 1, v.nullable, x.level)

    # --- conditions -----------------------------------------------------------------------------

    def condition(self, node: Condition) -> Test:
        match node:
            case Always() | AllOf(parts=()):
                return Test("TRUE")
            case Never() | AnyOf(parts=()):
                return Test("FALSE")
            case AllOf(parts=parts):
                return self._joined(parts, " AND ")
            case AnyOf(parts=parts):
                return self._joined(parts, " OR ")
            case Compared():
                return self._compared(node)
            case FlagIs(column=column, value=value):
                flag = self.place(column).sql
                return Test(flag if value else f"(NOT {flag})")
            case Among():
                return self._among(node)
            case Matches(column=column, pattern=pattern, negated=negated):
                place = self.place(column)
                if place.kind == "listed":
                    raise InvalidQuery("LIKE goes by the declared values of this column")
                like = self.dialect.like(place.sql, pattern)
                return Test(f"(NOT ({like}))" if negated else f"({like})")
            case Missing(subject=subject, negated=negated):
                return self._missing(subject, negated)
        raise InvalidQuery(f"no such condition: {type(node).__name__}")

    def _joined(self, parts: tuple[Condition, ...], word: str) -> Test:
        tests = [self.condition(part) for part in parts]
        sql = word.join(test.sql for test in tests)
        return Test(f"({sql})", max(test.level for test in tests))

    def _compared(self, node: Compared) -> Test:
        lines = half_lines(node, self.places)
        if lines is not None:
            self.columns.add(lines.column)
            return Test(lines.sql)
        v, w = self.integer(node.left), self.integer(node.right)
        return Test(f"({v.sql} {node.operator} {w.sql})", max(v.level, w.level))

    def _held_anyway(self, column: str) -> str:
        """Where the column is; its stored steps, which are NULL on the same rows, if they are read
        already."""
        steps = self._held(column).steps
        if steps is not None and steps.sql in self.columns:
            return steps.sql
        return self.place(column).sql

    def _among(self, node: Among) -> Test:
        place = self.place(node.column)
        if place.kind == "listed":
            known = [Dialect.integer(at) for at in places_of(node.values, place)]
        elif place.kind == "code":
            held_codes = [v for v in node.values if isinstance(v, int) and abs(v) < 2**63]
            known = [Dialect.integer(v) for v in held_codes]
        else:
            held = [v for v in node.values if isinstance(v, str) and self.dialect.can_hold(v)]
            known = [self.dialect.text(v) for v in held]
        if not known:
            return Test(f"({place.sql} IS NOT NULL)" if node.negated else "FALSE")
        word = "NOT IN" if node.negated else "IN"
        return Test(f"({place.sql} {word} ({', '.join(known)}))")

    def _missing(self, subject: Integer | Text, negated: bool) -> Test:
        if isinstance(subject, Text):
            sql = self._held_anyway(subject.column)
            return Test(f"({sql} IS NOT NULL)" if negated else f"({sql} IS NULL)")
        leaf = as_leaf(subject)
        if leaf is not None:
            _, place = self.leaf(leaf)
            return Test(f"({is_number(place)})" if negated else is_no_number(place))
        value = self.integer(subject)
        if not value.nullable:
            return Test("TRUE" if negated else "FALSE")
        return Test(f"({value.sql} IS {'NOT ' if negated else ''}NULL)", value.level)
