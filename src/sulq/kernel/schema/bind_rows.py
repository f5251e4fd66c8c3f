"""RowBinder: an expression over declared columns becomes an integer program, or a refusal."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal as OneOf

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import Column, Expression, Literal, Operation
from sulq.kernel.query.sql_text import sql_text
from sulq.kernel.schema import fixed_point, program
from sulq.kernel.schema.columns import Category, Flag, Number, Schema, as_number
from sulq.kernel.schema.fixed_point import Steps, against, converted
from sulq.kernel.schema.program import Condition, Integer
from sulq.kernel.schema.ranges import World, round_leaf, truth_of


def like(pattern: str, text: str) -> bool:
    """SQL LIKE without an escape character, in time pattern times text at most."""
    at = place = 0
    star, mark = -1, 0  # the last % seen, and where its match began
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            star, mark = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            place += 1
            at += 1
        elif star >= 0:
            mark += 1
            place, at = star + 1, mark
        else:
            return False
    return all(rest == "%" for rest in pattern[place:])


def category_member(column: Category, negated: bool, values: Sequence[object]) -> Condition:
    """The column is (not) one of the values; what was not declared is nobody's value."""
    wanted = int if column.integers else str
    kept: list[object] = []
    for value in values:
        if type(value) is not wanted:
            raise InvalidQuery(
                f"{column.name} holds {'whole numbers' if wanted is int else 'texts'},"
                f" got {value!r:.80}",
                reason=Reason.WRONG_TYPE,
            )
        if column.values is None or value in column.values:
            kept.append(value)
    if not kept:
        return program.Missing(program.Text(column.name), True) if negated else program.Never()
    return program.Among(column.name, tuple(kept), negated)  # type: ignore[arg-type]


def flag_member(column: Flag, negated: bool, values: Sequence[object]) -> Condition:
    """The flag is (not) one of the values."""
    wanted = set()
    for value in values:
        if not isinstance(value, bool | int | Fraction):
            raise InvalidQuery(
                f"{column.name} is a Flag: compare it with True or False", reason=Reason.WRONG_TYPE
            )
        if value in (0, 1):  # no flag is any other number
            wanted.add(bool(value))
    if negated:
        wanted = {True, False} - wanted
    if not wanted:
        return program.Never()
    if len(wanted) == 2:
        return program.Missing(program.FlagBit(column.name), True)
    return program.FlagIs(column.name, wanted.pop())


# Membership: a Category or a Flag against listed values, decided on declared values only.


SMALLEST = Fraction(1, 2**200)
MOST_FACTORS = 32
LONGEST_PATTERN = 200
MOST_ADDENDS = 256
NARROWEST_CLIP = Fraction(1, 2**31)
"""Of a clip: so much of a unit, or of the range where that is less. docs/proofs/binding.md, 7"""


def _spell(expression: Expression) -> str:
    return sql_text(expression)[:160]


def coefficients_of(seed: object) -> tuple[int, int, int, int]:
    """Of the cubic behind `hashed`: four values of which any row ids see independent bits."""
    digest = hashlib.sha256(f"sulq hashed {seed}".encode()).digest()
    a, b, c, d = (
        int.from_bytes(digest[8 * i : 8 * i + 8], "big") % program.PRIME for i in range(4)
    )
    return a, b, c, d


class RowBinder:
    """Binds canonical expressions on one schema."""

    def __init__(self, schema: Schema, asked_before: bool = False) -> None:
        self.schema = schema
        self.asked_before = asked_before
        self.notes: list[str] = []  # what binds but may be a slip

    # --- numbers --------------------------------------------------------------------------------

    def centred_number(self, expression: Expression) -> tuple[Steps, Fraction]:
        """A summand, and the middle that was taken off it (0 if it was not asked for)."""
        if isinstance(expression, Operation) and expression.name == "centred":
            value = self.number(expression.operands[0])
            return self._from_middle(value)
        return self.number(expression), Fraction(0)

    def number(self, expression: Expression) -> Steps:
        """A number of the row, with proved bounds."""
        match expression:
            case Column(name):
                return self._column(name)
            case Literal(value):
                return self._constant(value)
            case Operation(name, operands):
                return self._operation(expression, name, operands)
        raise InvalidQuery(f"not a number: {_spell(expression)}", reason=Reason.WRONG_TYPE)

    def _column(self, name: str) -> Steps:
        column = self.schema[name]
        match column:
            case Number():
                return fixed_point.leaf(column, self.schema.bits)
            case Flag():
                return Steps(program.FlagBit(name), 0, 1, Fraction(1))
            case Category():
                raise InvalidQuery(
                    f"{name} is a Category, which has no arithmetic;"
                    f" write when(col({name!r}) == ...).then(1).otherwise(0)",
                    reason=Reason.WRONG_TYPE,
                )

    def _constant(self, value: object) -> Steps:
        if value is None:
            return Steps(program.Fixed(None), 0, 0, Fraction(1))
        if isinstance(value, bool | str):
            raise InvalidQuery(
                f"{value!r:.80} stands where a number is wanted{_day_hint(value)}",
                reason=Reason.WRONG_TYPE,
            )
        kind = "number"
        if isinstance(value, datetime.date):
            kind = "datetime" if isinstance(value, datetime.datetime) else "date"
        number = value if isinstance(value, Fraction) else as_number(value, "a literal")
        if number and not SMALLEST < abs(number) < 1 / SMALLEST:
            raise InvalidQuery(
                "a constant is too large or too small to compute with; rescale",
                reason=Reason.NEEDS_BOUNDS,
            )
        return fixed_point.constant(number, kind)

    def _operation(self, whole: Operation, name: str, operands: tuple[Expression, ...]) -> Steps:
        match name:
            case "choose":
                then, otherwise = self._branches(operands[1], operands[2])
                node = program.BoundChoice(self.condition(operands[0]), then.node, otherwise.node)
                return _either(node, then, otherwise)
            case "coalesce":
                first, instead = self._branches(*operands)
                return _either(program.FirstOf(first.node, instead.node), first, instead)
            case "hashed":
                return self._hashed(operands[0], operands[1])
            case "multiply":
                return self._product(operands)
            case "clip":
                return self._clip(operands)
            case "least" | "greatest":
                return self._extreme(name, operands)
            case "add":
                return self._sum(whole)
        parts = [self.number(operand) for operand in operands]
        match name:
            case "divide":
                try:
                    return fixed_point.divided(*parts)
                except InvalidQuery as error:
                    raise InvalidQuery(
                        f"{error}: {_spell(whole)}", reason=Reason.NEEDS_BOUNDS
                    ) from None
            case "abs":
                return fixed_point.magnitude(parts[0])
            case "centred":
                return self._from_middle(parts[0])[0]
        raise InvalidQuery(f"{name} is not a number: {_spell(whole)}", reason=Reason.WRONG_TYPE)

    def _sum(self, whole: Operation) -> Steps:
        """A day plus days is a day, a day minus a day a number: a moment has weight 1 in all."""
        if len(whole.operands) > MOST_ADDENDS:
            raise InvalidQuery(
                f"a sum has at most {MOST_ADDENDS} parts, got {len(whole.operands)}; ask in pieces",
                reason=Reason.TOO_LARGE,
            )
        weights, rest = zip(*map(_weighed, whole.operands), strict=True)
        values = [self.number(part) for part in rest]
        weight = sum(w for w, v in zip(weights, values, strict=True) if v.kind != "number")
        kind = next((v.kind for v in values if v.constant is None and v.kind != "number"), "number")
        values = one_kind(values, whole)
        parts = [fixed_point.times_constant(w, v) for w, v in zip(weights, values, strict=True)]
        return replace(fixed_point.added(parts), kind=kind if weight == 1 else "number")

    def _product(self, operands: tuple[Expression, ...]) -> Steps:
        if len(operands) > MOST_FACTORS:
            raise InvalidQuery(
                f"a product has at most {MOST_FACTORS} factors, got {len(operands)}",
                reason=Reason.TOO_LARGE,
            )
        factor, rest = Fraction(1), operands
        head = operands[0]
        if isinstance(head, Literal):
            factor, rest = self._constant(head.value).constant or Fraction(0), operands[1:]
        product = self.number(rest[0])
        for operand in rest[1:]:
            product = fixed_point.multiplied(product, self.number(operand))
        return fixed_point.times_constant(factor, product)

    def _clip(self, operands: tuple[Expression, ...]) -> Steps:
        value = self.number(operands[0])
        low, high = (self._clip_bound(operand, value) for operand in operands[1:])
        self._check_width(value, low, high)
        leaf = self._clipped_leaf(value, low, high)
        if leaf is not None:
            return leaf
        least, most = value.low * value.step, value.high * value.step
        # bounds that the value cannot reach need not stretch the grid
        low, high = min(max(low, least), high), max(min(high, most), low)
        value = fixed_point.fitted(fixed_point.fitted(value, low), high)
        floor, ceiling = fixed_point.placed(low, value), fixed_point.placed(high, value)
        node_ = program.Greater(program.Lesser(value.node, ceiling.node), floor.node)
        bottom_, top_ = (min(max(end, floor.low), ceiling.low) for end in (value.low, value.high))
        return Steps(node_, bottom_, top_, value.step, value.exact, None, value.kind)

    def _check_width(self, value: Steps, low: Fraction, high: Fraction) -> None:
        """What a clip leaves is a point, or wide enough for what it cuts: 62 bits hold its factor.

        A column counts as its owner declared it, whatever was clipped before.
        """
        least, most = value.low * value.step, value.high * value.step
        own, leaf = most - least, value.node
        if isinstance(leaf, program.Quantised) and Fraction(leaf.per_unit) * value.step == 1:
            least, most = Fraction(leaf.low), Fraction(leaf.high)
            column = self.schema[leaf.column]
            assert isinstance(column, Number)  # noqa: S101
            own = column.range[1] - column.range[0]
        left = min(high, most) - max(low, least)
        narrowest = NARROWEST_CLIP * min(Fraction(1), own)
        if 0 < left < narrowest and not self.asked_before:
            raise InvalidQuery(
                f"a clip leaves a range of {float(left):.3g}, which is too narrow for what it cuts:"
                f" at least {float(narrowest):.3g} is wanted; take wider bounds, or count the rows"
                " that a condition selects",
                reason=Reason.NEEDS_BOUNDS,
            )

    def _clipped_leaf(self, value: Steps, low: Fraction, high: Fraction) -> Steps | None:
        """A clipped column is a column with narrower bounds, on the grid that suits them."""
        leaf = value.node
        if not isinstance(leaf, program.Quantised) or Fraction(leaf.per_unit) * value.step != 1:
            return None
        low, high = max(low, Fraction(leaf.low)), min(high, Fraction(leaf.high))
        if low >= high:
            return None
        if not value.exact:
            narrow = fixed_point.leaf(Number(leaf.column, low, high), self.schema.bits)
            return replace(narrow, kind=value.kind)
        if any((end / value.step).denominator != 1 for end in (low, high)):
            return None
        node = program.Quantised(leaf.column, float(low), float(high), leaf.per_unit)
        ends = (round_leaf(node, node.low), round_leaf(node, node.high))
        return Steps(node, *ends, value.step, True, None, value.kind)

    def _clip_bound(self, operand: Expression, value: Steps) -> Fraction:
        if not isinstance(operand, Literal):
            raise InvalidQuery(
                f"clip takes constant bounds, got {_spell(operand)}", reason=Reason.NEEDS_BOUNDS
            )
        return self.literal(operand, value.kind)

    def _extreme(self, name: str, operands: tuple[Expression, ...]) -> Steps:
        if len(operands) > MOST_FACTORS:
            raise InvalidQuery(
                f"{name} takes at most {MOST_FACTORS} values, got {len(operands)}",
                reason=Reason.TOO_LARGE,
            )
        result = self.number(operands[0])
        for operand in operands[1:]:
            result, other = one_kind([result, self.number(operand)], operand)
            left, right = fixed_point.aligned(*_harmless(name, result, other))
            pick, node = (min, program.Lesser) if name == "least" else (max, program.Greater)
            result = Steps(
                node(left.node, right.node),
                pick(left.low, right.low),
                pick(left.high, right.high),
                left.step,
                left.exact and right.exact,
                None,
                left.kind,
            )
            result = fixed_point.settled(result)
        return result

    def _branches(self, first: Expression, second: Expression) -> tuple[Steps, Steps]:
        """Two alternatives on one grid; a NULL takes any grid."""
        one, two = self.number(first), self.number(second)
        if one.node == program.Fixed(None):
            return Steps(one.node, two.low, two.high, two.step, two.exact, None, two.kind), two
        if two.node == program.Fixed(None):
            return one, Steps(two.node, one.low, one.high, one.step, one.exact, None, one.kind)
        if one.constant is not None and two.constant is not None:
            step = fixed_point.common_step(one.step, two.step)
            sides = (int(one.constant / step), int(two.constant / step))
            if max(map(abs, sides)) > fixed_point.WIDE:
                raise InvalidQuery(
                    "two constants too far apart to share a grid; round them",
                    reason=Reason.NEEDS_BOUNDS,
                )
            a, b = (Steps(program.Fixed(side), side, side, step) for side in sides)
            return a, b
        left, right = fixed_point.aligned(*one_kind([one, two], first))
        return left, right

    def _from_middle(self, value: Steps) -> tuple[Steps, Fraction]:
        """The value minus the middle of its range, on its own grid."""
        if value.constant is not None:
            return value, Fraction(0)
        middle = (value.low + value.high) // 2
        if middle == 0:
            return value, Fraction(0)
        node = program.Added((value.node, program.Fixed(-middle)))
        shifted = Steps(node, value.low - middle, value.high - middle, value.step, value.exact)
        return shifted, middle * value.step

    def _hashed(self, identity: Expression, seed: Expression) -> Steps:
        if not isinstance(identity, Column) or not isinstance(seed, Literal):
            raise InvalidQuery("hashed takes a public id column and a whole seed")
        column = self.schema[identity.name]
        if not isinstance(column, Number) or not column.public or column.lattice != 1:
            raise InvalidQuery(
                f"hashed needs a public whole-numbered id; declare"
                f" Number({identity.name!r}, 0, ..., step=1, public=True)"
            )
        low, high = column.range
        if low < 0:
            raise InvalidQuery(f"hashed needs ids from 0 up, {identity.name} starts at {low}")
        leaf = program.Quantised(column.name, float(low), float(high), 1.0)
        return Steps(program.HashedBit(leaf, coefficients_of(seed.value)), 0, 1, Fraction(1))

    def literal(self, literal: Literal, kind: str) -> Fraction:
        """A constant in the units of what it is compared with."""
        value = literal.value
        if value is None or isinstance(value, bool | str):
            said = f"{value!r:.80} stands where a number or a date is wanted"
            raise InvalidQuery(f"{said}{_day_hint(value)}", reason=Reason.WRONG_TYPE)
        constant = self._constant(value)
        assert constant.constant is not None  # noqa: S101
        return converted(constant, kind)

    # --- conditions -----------------------------------------------------------------------------

    def condition(self, expression: Expression) -> Condition:
        """A condition of the row."""
        match expression:
            case Literal(value=True):
                return program.Always()
            case Literal(value=False):
                return program.Never()
            case Operation(name="and", operands=parts):
                return program.AllOf(tuple(self.condition(part) for part in parts))
            case Operation(name="or", operands=parts):
                return program.AnyOf(tuple(self.condition(part) for part in parts))
            case Operation(name="lt" | "le" | "eq" | "ne" as name, operands=(left, right)):
                sign: dict[str, OneOf["<", "<=", "=", "<>"]]
                sign = {"lt": "<", "le": "<=", "eq": "=", "ne": "<>"}
                return self._compare(sign[name], left, right)
            case Operation(name="among" | "not_among" as name, operands=(subject, *listed)):
                return self._member(name == "not_among", subject, tuple(listed))
            case Operation(name="like" | "not_like" as name, operands=(subject, pattern)):
                return self._like(name == "not_like", subject, pattern)
            case Operation(name="is_null" | "not_null" as name, operands=(subject,)):
                return program.Missing(self._subject(subject), name == "not_null")
        raise InvalidQuery(f"not a condition: {_spell(expression)}", reason=Reason.WRONG_TYPE)

    def _subject(self, subject: Expression) -> Integer | program.Text:
        if isinstance(subject, Column) and isinstance(self.schema[subject.name], Category):
            return program.Text(subject.name)
        return self.number(subject).node

    def _compare(
        self, sign: OneOf["<", "<=", "=", "<>"], left: Expression, right: Expression
    ) -> Condition:
        columns = [self.schema[x.name] if isinstance(x, Column) else None for x in (left, right)]
        for column in columns:
            if isinstance(column, Category):
                raise InvalidQuery(
                    f"{column.name} is a Category: compare it with = or isin to declared values",
                    reason=Reason.WRONG_TYPE,
                )
        one, two = self.number(left), self.number(right)
        if one.constant is not None and two.constant is None:
            found = against(sign, two, converted(one, two.kind), constant_left=True)
            return self._noted(found, columns[1])
        if two.constant is not None and one.constant is None:
            found = against(sign, one, converted(two, one.kind), constant_left=False)
            return self._noted(found, columns[0])
        a, b = fixed_point.aligned(*one_kind([one, two], left))
        return program.Compared(sign, a.node, b.node)

    def _noted(self, found: Condition, column: Number | Category | Flag | None) -> Condition:
        """A comparison with a column that its declared bounds rule out."""
        if isinstance(column, Number) and truth_of(found, World(frozenset())).verdict == "never":
            bounds = f"{column.low} to {column.high}"
            self.notes.append(f"no row can match: {column.name} is cut to {bounds}")
        return found

    def _member(
        self, negated: bool, subject: Expression, listed: tuple[Expression, ...]
    ) -> Condition:
        values = [item.value for item in listed if isinstance(item, Literal)]
        if isinstance(subject, Column):
            column = self.schema[subject.name]
            if isinstance(column, Category):
                unknown = [v for v in values if column.values and v not in column.values]
                none = ": no row can match" if len(unknown) == len(values) and not negated else ""
                self.notes += [
                    f"{v!r:.60} is not a declared value of {column.name}{none}" for v in unknown
                ]
                return category_member(column, negated, values)
            if isinstance(column, Flag):
                return flag_member(column, negated, values)
            if any(isinstance(value, bool) for value in values):
                raise InvalidQuery(
                    f"{column.name} is a Number, not a condition; compare it",
                    reason=Reason.WRONG_TYPE,
                )
        sign: OneOf["=", "<>"] = "<>" if negated else "="
        number = self.number(subject)
        literals = [item for item in listed if isinstance(item, Literal)]
        parts = tuple(
            against(sign, number, self.literal(item, number.kind), constant_left=False)
            for item in literals
        )
        if len(parts) == 1:
            return parts[0]
        return program.AllOf(parts) if negated else program.AnyOf(parts)

    def _like(self, negated: bool, subject: Expression, pattern: Expression) -> Condition:
        text = pattern.value if isinstance(pattern, Literal) else None
        column = self.schema[subject.name] if isinstance(subject, Column) else None
        if not isinstance(column, Category) or not isinstance(text, str):
            raise InvalidQuery(
                "like takes a Category column and a text pattern", reason=Reason.WRONG_TYPE
            )
        if len(text) > LONGEST_PATTERN:
            raise InvalidQuery(
                f"a pattern has at most {LONGEST_PATTERN} characters", reason=Reason.TOO_LARGE
            )
        if column.whole:
            raise InvalidQuery(
                f"{column.name} holds whole numbers: compare it with = or IN",
                reason=Reason.WRONG_TYPE,
            )
        if column.values is None:
            return program.Matches(column.name, text, negated)
        self.notes.append(
            f"LIKE looks at the declared values of {column.name}; undeclared ones match no pattern"
        )
        matching = [value for value in column.values if like(text, str(value))]
        return category_member(column, negated, matching)


def _either(node: Integer, one: Steps, two: Steps) -> Steps:
    return fixed_point.settled(
        Steps(
            node,
            min(one.low, two.low),
            max(one.high, two.high),
            one.step,
            one.exact and two.exact,
            None,
            one.kind,
        )
    )


def _weighed(part: Expression) -> tuple[Fraction, Expression]:
    """A part of a sum as a constant times the rest."""
    match part:
        case Operation("multiply", (Literal(int() | Fraction() as factor), rest)):
            if factor and not isinstance(factor, bool):
                return Fraction(factor), rest
    return Fraction(1), part


def _day_hint(value: object) -> str:
    """How a day is written, where it was written as text."""
    try:
        moment = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        return ""
    day, parts = moment.date(), f"{moment.year}, {moment.month}, {moment.day}"
    if moment.time() == datetime.time():
        return f"; write DATE '{day}' in SQL, datetime.date({parts}) in Python"
    clock = f"{moment.hour}, {moment.minute}, {moment.second}"
    return (
        f"; write TIMESTAMP '{day} {moment:%H:%M:%S}' in SQL,"
        f" datetime.datetime({parts}, {clock}) in Python"
    )


def one_kind(parts: list[Steps], where: Expression) -> list[Steps]:
    kinds = {part.kind for part in parts if part.constant is None} - {"number"}
    if len(kinds) > 1:
        raise InvalidQuery(
            f"dates and datetimes do not mix here: {_spell(where)}", reason=Reason.WRONG_TYPE
        )
    kind = kinds.pop() if kinds else "number"
    return [
        part if part.constant is None else fixed_point.constant(converted(part, kind), kind)
        for part in parts
    ]


def _harmless(name: str, value: Steps, other: Steps) -> tuple[Steps, Steps]:
    """A constant that can never be picked need not stretch the grid."""
    if other.constant is None or value.constant is not None:
        return value, other
    edge = (value.high if name == "least" else value.low) * value.step
    never = other.constant > edge if name == "least" else other.constant < edge
    return value, fixed_point.constant(edge, other.kind) if never else other
