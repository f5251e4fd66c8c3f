"""Random vectors that bind on a given schema."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sulq.errors import InvalidQuery
from sulq.kernel.query import vectors as q
from sulq.kernel.query.expressions import Expression, col
from sulq.kernel.query.vectors import Vector
from sulq.kernel.schema.bind_vectors import VectorBinder
from sulq.kernel.schema.columns import Category, Flag, Number, Schema

COMPOUND = (
    *("project", "clipped", "nearest", "from_nearest", "margin", "signed", "residual", "classes"),
    *("softmax", "norm", "squares", "crossed", "concat", "concat", "scaled"),
)


class VectorMaker:
    """Draws vectors over the columns of a schema."""

    def __init__(self, schema: Schema, rng: random.Random, names: Sequence[str]) -> None:
        self.schema, self.rng = schema, rng
        self.names = list(names)
        self.binder = VectorBinder(schema)
        self.declared = [
            name
            for name in names
            if isinstance(schema[name], Flag)
            or (isinstance(schema[name], Category) and schema[name].values is not None)
        ]
        self.numbers = [name for name in names if isinstance(schema[name], Number)]
        self.flags = [name for name in names if isinstance(schema[name], Flag)]

    def length(self, vector: Vector) -> int:
        return len(self.binder.bind(vector))

    def number(self) -> float:
        rng = self.rng
        return rng.choice([rng.uniform(-2, 2), rng.uniform(-1, 1), 0.5, 0, -0.25, 0.125, 1])

    def row(self, size: int) -> list[float]:
        return [self.number() for _ in range(size)]

    def rows(self, size: int) -> list[list[float]]:
        found = [self.row(size) for _ in range(self.rng.randint(1, 4))]
        found[0][0] = 0.75
        return found

    def condition(self) -> Expression:
        rng = self.rng
        name = rng.choice(self.names)
        column = self.schema[name]
        if isinstance(column, Number):
            low, high = column.range
            return col(name) >= float(low + (high - low) * rng.randint(0, 8) / 8)
        if isinstance(column, Flag):
            return col(name) == rng.choice([True, False])
        return col(name) == (rng.choice(column.values) if column.values else "ann")

    def label(self) -> str | Expression:
        return self.rng.choice(self.flags) if self.rng.random() < 0.5 else self.condition()

    def vector(self, depth: int = 3) -> Vector:
        """A vector of at most 12 coordinates."""
        while True:
            try:
                found = self._vector(depth)
                if self.length(found) <= 12:
                    return found
            except InvalidQuery:
                continue

    def _vector(self, depth: int) -> Vector:
        if depth <= 0 or self.rng.random() < 0.2:
            return self._plain()
        return self._compound(depth - 1)

    def _plain(self) -> Vector:
        rng = self.rng
        match rng.choice(["columns"] * 4 + ["one_hot", "one_hot", "bins", "cells", "ones"]):
            case "one_hot":
                return q.one_hot(rng.choice(self.declared), other=rng.random() < 0.5)
            case "bins":
                name = rng.choice(self.numbers)
                low, high = self.schema[name].range
                inner = sorted({rng.randint(-1, 9) for _ in range(rng.randint(2, 5))} | {4, 5})
                edges = [float(low + (high - low) * i / 8) for i in inner]
                return q.bins(name, edges, other=rng.random() < 0.5)
            case "cells":
                return q.cells(*(self.condition() for _ in range(rng.randint(1, 4))))
            case "ones":
                return q.ones()
        names = rng.sample(self.names, rng.randint(1, min(3, len(self.names))))
        centre: object = rng.choice([None, 0.5, 0.3, 1.2])
        vector = q.columns(names, centre)
        if rng.random() < 0.4:
            vector = q.columns(names, self.row(self.length(vector)))
        if rng.random() < 0.5:
            vector = q.columns(names, vector.centre, rng.choice([0.1, 0.5, 0.9, 2]))
        return vector

    def _compound(self, depth: int) -> Vector:
        rng = self.rng
        inner = self.vector(depth)
        size = self.length(inner)
        match rng.choice(COMPOUND):
            case "project":
                return q.project(inner, self.rows(size))
            case "clipped":
                return q.clipped(inner, rng.choice([0.05, 0.4, 1, 1.7]))
            case "nearest":
                return q.nearest(inner, self.rows(size))
            case "from_nearest":
                return q.from_nearest(inner, self.rows(size), rng.choice([None, 0.3, 1]))
            case "margin":
                return q.margin(inner, self.label(), self.row(size), self.number() / 4)
            case "signed":
                return q.signed(inner, self.label())
            case "residual":
                scale = rng.choice([1, 10])
                weights = [scale * w for w in self.row(size)]
                loss = rng.choice(["linear", "logistic", "hinge"])
                label = rng.choice(self.numbers) if loss == "linear" else self.label()
                clip = rng.choice([None, 0.5]) if loss == "linear" else None
                return q.residual(inner, weights, label, loss, clip)
            case "classes":
                name = rng.choice([n for n in self.declared if n not in self.flags])
                count = len(self.schema[name].values or ())
                rows = [self.row(size) for _ in range(count)]
                return q.residual(inner, rows, name, "logistic")
            case "softmax":
                return q.softmax(inner, self.rows(size))
            case "norm":
                length = q.norm(inner)
                if rng.random() < 0.3:
                    return length
                return q.bins(length, [0, 0.2, 0.4, 0.7, 1.5], other=rng.random() < 0.5)
            case "squares":
                return q.squares(inner)
            case "crossed":
                return q.crossed(inner, self.vector(depth - 1))
            case "scaled":
                return q.scaled(inner, rng.choice([-1, 0.6, 3, -0.37, 1.5]))
        return q.concat(inner, self.vector(depth - 1))
