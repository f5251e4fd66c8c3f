"""Membership and LIKE, decided on declared values."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import calls

from sulq.answers.statistics import count
from sulq.errors import InvalidQuery
from sulq.kernel.query.expressions import col
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.bind_rows import like
from sulq.kernel.schema.columns import Category, Flag, Number, Schema


@given(st.text("ab%_", max_size=8), st.text("ab", max_size=8))
def test_like_is_the_regular_expression_it_stands_for(pattern: str, text: str) -> None:
    spelled = "".join(".*" if c == "%" else "." if c == "_" else c for c in pattern)
    assert like(pattern, text) is (re.fullmatch(spelled, text, re.DOTALL) is not None)


def test_like_takes_no_exponential_time() -> None:
    """A backtracking matcher needs minutes here; this one some 10^4 steps."""
    assert not like("%_" * 40 + "~", "a" * 200)
    assert calls(lambda: like("%_" * 40 + "~", "a" * 200)) < 20_000


def test_patterns_have_a_length() -> None:
    schema = Schema(Category("note"), Flag("f"))
    bind(count(where=col("note").like("x" * 200)), schema)
    with pytest.raises(InvalidQuery, match="200"):
        bind(count(where=col("note").like("x" * 201)), schema)


def test_a_long_list_binds_its_subject_once() -> None:
    """Processor time of this process, which others do not add to: one of the twenty seconds."""
    schema = Schema(*(Number(f"x{i}", 0, 10, step=1) for i in range(40)))
    wide = sum((col(f"x{i}") for i in range(40)), col("x0"))
    started = time.process_time()
    bind(count(where=wide.isin(range(1_000))), schema)
    assert time.process_time() - started < 20


def test_pricing_over_very_many_strata_is_refused_not_endless() -> None:
    cells = [Category(c, [str(i) for i in range(62)], public=True) for c in ("a", "b")]
    schema = Schema(*cells, Flag("f"))
    either = col("f")
    for place in range(400):
        either = either | ((col("a") == str(place % 60)) & (col("b") == str(place % 61)))
    with pytest.raises(InvalidQuery, match="strata"):
        bind(count(where=either), schema)
    bind(count(where=(col("a") == "1") & (col("b") == "2") & col("f")), schema)
