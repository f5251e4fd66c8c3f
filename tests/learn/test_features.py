"""Public rows are read exactly as a question reads the private ones."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learn.exact_oracle import ExactOracle

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema, col, outer
from sulq.kernel.query.vectors import (
    cells,
    clipped,
    columns,
    concat,
    one_hot,
    ones,
    project,
    scaled,
)
from sulq.learn.features import Features, published

DAY = datetime.date
SCHEMA = Schema(
    Number("id", 0, 50, step=1),
    Number("age", 0, 120, step=1),
    Number("bmi", 10, 60),
    Number("born", DAY(1920, 1, 1), DAY(2020, 1, 1)),
    Number("seen", datetime.datetime(2000, 1, 1), datetime.datetime(2020, 1, 1)),
    Flag("smoker"),
    Category("blood", ["A", "B", "0"]),
    Category("rank", [1, 2, 3]),
)
NAMES = ["age", "bmi", "born", "seen", "smoker", "blood", "rank"]
GRID = 2**-17
"""A coordinate is a whole number of 2^-18; a clip or projection rounds once more."""


FULL = (30, 22.5, DAY(1970, 5, 6), datetime.datetime(2010, 1, 2, 3, 4, 5), True, "B", 2)


def frame(rows: list[tuple]) -> pd.DataFrame:
    """A table of these rows after a full one, which tells the columns' types."""
    found = pd.DataFrame([FULL, *rows], columns=NAMES)
    found.insert(0, "id", np.arange(len(found)))
    return found.astype(
        {
            "age": "Int64",
            "bmi": float,
            "born": "datetime64[s]",
            "seen": "datetime64[us]",
            "smoker": "boolean",
            "blood": object,
            "rank": "Int64",
        }
    )


def engine_rows(data: pd.DataFrame, vector) -> np.ndarray:
    """What a question sees, row by row: each row has a cell of its own."""
    db = Database.open(data, SCHEMA, Promise(1, "1e-6"), ":memory:")
    mine = cells(*(col("id") == k for k in range(len(data))))
    return ExactOracle(db).ask(outer(mine, vector)).value


ROWS = st.tuples(
    st.one_of(st.none(), st.integers(-5, 130)),
    st.one_of(st.none(), st.just(float("nan")), st.floats(0, 80)),
    st.one_of(st.none(), st.dates(DAY(1900, 1, 1), DAY(2030, 1, 1))),
    st.one_of(
        st.none(),
        st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2030, 1, 1)),
    ),
    st.one_of(st.none(), st.booleans()),
    st.sampled_from([None, "A", "B", "0", "AB"]),
    st.sampled_from([None, 1, 2, 3, 9]),
)
TABLES = st.lists(ROWS, max_size=8)


@settings(max_examples=25, deadline=None)
@given(TABLES)
def test_encode_is_what_a_question_sees(rows):
    data = frame(rows)
    features = Features.of(SCHEMA, NAMES)
    assert features.encode(data) == pytest.approx(engine_rows(data, features.as_vector()), abs=GRID)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(TABLES, st.lists(st.floats(0, 1), min_size=11, max_size=11), st.floats(0.2, 3))
def test_centre_clip_and_projection_too(rows, centre, clip):
    """A released vector: what `PCA.as_vector()` is made of. A missing value takes the centre."""
    data = frame(rows)
    middle = np.array(published(centre))
    plain = columns(NAMES, published(middle), published(clip))
    weights = np.random.default_rng(len(rows)).normal(size=(3, 11)).round(3)
    released = concat(
        scaled(project(plain, weights.tolist()), 0.5), clipped(columns(NAMES), 1.5), ones()
    )
    features = Features.of(SCHEMA, released)
    expected = engine_rows(data, released)
    assert features.width == expected.shape[1] == 15
    assert features.encode(data) == pytest.approx(expected, abs=20 * GRID)
    assert np.all(features.encode(data) >= features.low - 20 * GRID)
    assert np.all(features.encode(data) <= features.high + 20 * GRID)


@settings(max_examples=15, deadline=None)
@given(TABLES, st.lists(st.floats(0, 1), min_size=11, max_size=11))
def test_no_row_is_farther_than_the_radius(rows, centre):
    features = Features.of(SCHEMA, NAMES)
    middle = np.array(centre)
    moved = features.encode(frame(rows), middle) - middle
    assert np.linalg.norm(moved, axis=1).max() <= features.radius(middle) + 20 * GRID


def test_frames_arrays_and_mappings_are_read_alike():
    data = frame([(None,) * 7])
    features = Features.of(SCHEMA, NAMES)
    expected = features.encode(data)
    array = np.array([FULL, (None,) * 7], dtype=object)
    assert features.encode(array) == pytest.approx(expected, abs=1e-12)
    assert features.encode(array.tolist()) == pytest.approx(expected, abs=1e-12)
    mapping = {name: array[:, place] for place, name in enumerate(NAMES)}
    assert features.encode(mapping) == pytest.approx(expected, abs=1e-12)
    assert features.encode(pl.DataFrame([FULL], schema=NAMES, orient="row")) == pytest.approx(
        expected[:1], abs=1e-12
    )


def test_missing_takes_the_centre_that_was_learned():
    features = Features.of(SCHEMA, ["age", "blood"])
    centre = np.array([0.3, 0.5, 0.3, 0.2])
    assert features.encode([[None, None]], centre)[0] == pytest.approx(centre)
    assert features.encode([[None, None]])[0] == pytest.approx([0.5, 1 / 3, 1 / 3, 1 / 3])


def test_units_lead_back_to_the_user():
    features = Features.of(SCHEMA, ["age", "bmi", "smoker"])
    assert features.to_user(np.array([0.5, 0.5, 0.25])) == pytest.approx([60, 35, 0.25])
    assert features.keys == ("age", "bmi", "smoker")


@settings(max_examples=15, deadline=None)
@given(TABLES)
def test_rows_differ_only_in_free_directions(rows):
    """A category's coordinates add up to 1, missing or not."""
    features = Features.of(SCHEMA, NAMES)
    moved = features.encode(frame(rows)) - features.middle
    free = features.free
    assert free.shape == (11, 9)
    assert free.T @ free == pytest.approx(np.eye(9), abs=1e-12)
    assert free @ (free.T @ moved.T) == pytest.approx(moved.T, abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"age": [1]}, "lack the columns"),
        ([[1.0]], "array with 2 columns"),
        ([["x", 20.0]], "age wants numbers, got str"),
    ],
)
def test_wrong_rows_are_refused(rows, says):
    with pytest.raises(InvalidQuery, match=says):
        Features.of(SCHEMA, ["age", "bmi"]).encode(rows)


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ("age", "list of column names"),
        ([], "list of column names"),
        (one_hot("blood"), "names or a projection"),
        (["age", "age"], "every name once"),
    ],
)
def test_wrong_features_are_refused(features, says):
    with pytest.raises(InvalidQuery, match=says):
        Features.of(SCHEMA, features)
