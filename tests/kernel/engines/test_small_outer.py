"""Small outer products as plain sums: the same matrix, each product once."""

from __future__ import annotations

import pytest
from tests.kernel.engines import reference, tables, vector_reference

from sulq.kernel.engines.sql.compile import small_outer
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import Vector, columns, concat, norm, ones, scaled
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.vector_program import BlockSums


def bound(left: Vector, right: Vector) -> BlockSums:
    found = bind(outer(left, right), tables.SCHEMA).sums
    assert isinstance(found, BlockSums)
    return found


V = concat(scaled(ones(), 0.5), columns(["x", "n", "smoker"], centre=0.5))
W = columns(["y", "d"], centre=0.25)


@pytest.mark.parametrize(("left", "right"), [(V, V), (V, W), (W, V), (ones(), W), (ones(), ones())])
def test_it_is_the_outer_product(left: Vector, right: Vector) -> None:
    """On rows where values are missing and centres are not 0."""
    program, content = bound(left, right), tables.rows(4, 60)
    small = small_outer(program, 100)
    assert small is not None
    expected = vector_reference.outer_sums(program, content)
    assert any(expected)
    assert small.matrix(reference.exact_sums(small.sums, content)) == expected


def test_a_symmetric_matrix_has_each_product_once() -> None:
    small = small_outer(bound(V, V), 100)
    assert small is not None
    assert len(small.sums.terms) == 10
    assert len(small.entries) == 16


def test_what_is_large_or_no_list_of_coordinates_is_left() -> None:
    assert small_outer(bound(V, V), 9) is None
    assert small_outer(bound(norm(W), V), 100) is None
