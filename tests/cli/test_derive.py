"""`sulq derive`: rows of any kind become bounded numbers before they are published."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pytest


@pytest.fixture
def notes(sulq):
    pd.DataFrame({"note": ["a b c", None, "d", "x y"], "n": [1, 0, 2, 4]}).to_parquet(
        "notes.parquet"
    )
    return sulq


def test_texts_become_numbers_and_failures_null(notes):
    reply = notes(
        "derive",
        "notes.parquet",
        "words = len(string_split(note, ' '))",
        "tenth = 10 // n",
        "as_number = CAST(note AS INTEGER)",
        "-o",
        "out.parquet",
    )
    assert reply.code == 0, reply.err
    found = duckdb.sql("SELECT words, tenth, as_number FROM 'out.parquet'").fetchall()
    assert found == [(3, 10, None), (None, None, None), (1, 5, None), (2, 2, None)]
    made = notes("init", "out.parquet", "-o", "out.toml", "--json")
    assert "words" in made.json["not_askable_yet"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["notes.parquet", "words", "-o", "a.parquet"], "NAME=EXPRESSION"),
        (["none.parquet", "x = 1", "-o", "a.parquet"], "no file"),
        (["notes.parquet", "note = 1", "-o", "a.parquet"], "already"),
        (["notes.parquet", "x = missing + 1", "-o", "a.parquet"], "expression of x"),
        (["notes.parquet", "x = 1 +", "-o", "a.parquet"], "expression of x"),
        (["notes.parquet", "x = 1", "x = 2", "-o", "a.parquet"], "each column once"),
        (["notes.parquet", "x = 1", "-o", "a.csv"], "must end in .parquet"),
        (["notes.parquet", "x = 1", "-o", "notes.parquet"], "not overwritten"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(notes, words, said):
    reply = notes("derive", *words)
    assert reply.code == 2
    assert said in reply.err
    assert not Path("a.parquet").exists()


def test_no_row_is_quoted(notes):
    """The engine's own message would name the value."""
    reply = notes("derive", "notes.parquet", "x = error(note)", "-o", "a.parquet")
    for value in ("a b c", "x y"):
        assert value not in reply.err + reply.out
