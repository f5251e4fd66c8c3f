"""Random expressions over a schema, as an analyst who tries everything would write them."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from sulq.kernel.query.expressions import Expression, col, lit, when
from sulq.kernel.schema.columns import Category, Flag, Number, Schema


class Questioner:
    """Makes random well-typed expressions. `divide` adds division by what excludes 0."""

    def __init__(self, schema: Schema, random: Random, divide: bool = False) -> None:
        self.schema, self.random, self.divide = schema, random, divide
        self.numbers = [c.name for c in schema.columns if isinstance(c, Number)]
        self.flags = [c.name for c in schema.columns if isinstance(c, Flag)]
        self.categories = [c for c in schema.columns if isinstance(c, Category)]

    def number(self, depth: int) -> Expression:
        r = self.random
        if depth <= 0 or r.random() < 0.15:
            return self.leaf()
        kind = r.randrange(12 if self.divide else 11)
        match kind:
            case 0 | 1:
                return self.number(depth - 1) + self.number(depth - 1)
            case 2:
                return self.number(depth - 1) - self.number(depth - 1)
            case 3:
                return self.number(depth - 1) * self.number(depth - 2)
            case 4:
                return self.number(depth - 1) * self.constant()
            case 5:
                return abs(self.number(depth - 1))
            case 6:
                return self.number(depth - 1).min(self.number(depth - 1))
            case 7:
                return self.number(depth - 1).max(self.number(depth - 1))
            case 8:
                low = r.randint(-3, 3)
                return self.number(depth - 1).clip(low, low + r.randint(0, 4))
            case 9:
                branch = when(self.condition(depth - 1)).then(self.number(depth - 1))
                return branch.otherwise(self.number(depth - 1))
            case 10:
                return self.number(depth - 1).coalesce(self.number(depth - 1))
        under = self.number(depth - 1).clip(1, 5) * r.choice([1, -1])
        return self.number(depth - 1) / under

    def constant(self) -> Fraction | int:
        r = self.random
        return r.choice([r.randint(-4, 4), Fraction(r.randint(-9, 9), r.randint(1, 4))])

    def leaf(self) -> Expression:
        r = self.random
        pool = [*self.numbers, *self.flags]
        return lit(self.constant()) if r.random() < 0.2 else col(r.choice(pool))

    def condition(self, depth: int) -> Expression:
        r = self.random
        if depth > 0 and r.random() < 0.5:
            match r.randrange(4):
                case 0:
                    return self.condition(depth - 1) & self.condition(depth - 1)
                case 1:
                    return self.condition(depth - 1) | self.condition(depth - 1)
                case _:
                    return ~self.condition(depth - 1)
        return self.atom(depth)

    def atom(self, depth: int) -> Expression:
        r = self.random
        match r.randrange(9):
            case 0 if self.flags:
                return col(r.choice(self.flags)) == r.choice([True, False])
            case 1 if self.flags:
                return col(r.choice(self.flags))  # type: ignore[return-value]
            case 2 | 3 if self.categories:
                category = r.choice(self.categories)
                values = [*(category.values or ("x", "y")), "undeclared"]
                if isinstance(values[0], int):
                    values[-1] = 99
                picked = r.sample(values, r.randint(1, len(values)))
                return col(category.name).isin(picked)
            case 4 if self.categories:
                category = r.choice(self.categories)
                return col(category.name) != (category.values or ("x",))[0]
            case 5:
                return self.number(depth - 1).is_null()
            case 6:
                return col(r.choice(self.numbers)).isin([r.randint(-1, 3), r.randint(-1, 3)])
        left, right = self.number(depth - 1), self.number(depth - 1)
        if r.random() < 0.5:
            right = lit(self.constant())
        return r.choice(
            [left < right, left <= right, left > right, left >= right, left == right, left != right]
        )
