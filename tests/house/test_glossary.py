"""The glossary: 41 words in order, each with the field's name and one plain sentence."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"
ROWS = re.findall(
    r"^\| (?!word|---)(.*) \| (.*) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE
)


def test_there_are_41_words_in_order():
    words = [word for word, _, _ in ROWS]
    assert len(set(words)) == 41
    assert words == sorted(words)


def test_each_has_the_fields_name_and_one_sentence():
    assert [word for word, field, _ in ROWS if not field.strip()] == []
    assert [word for word, _, told in ROWS if not re.fullmatch(r"[A-Z][^.]*\.", told)] == []
    assert [word for word, _, told in ROWS if word.lower() not in told.lower()] == []
