"""Every import path that the documents have shown stays importable, wherever its code lives.

imports.txt has what README, docs and CONTRIBUTING show, and the names of the contract. A path may
be added there (`python -m tests.golden.shown`); one that goes needs a reason and a commit.
"""

from __future__ import annotations

import pytest
from tests.golden.shown import is_there, listed, named, shown


@pytest.mark.parametrize("path", listed())
def test_the_path_is_there(path: str) -> None:
    assert is_there(path)


def test_what_is_shown_today_is_there_too() -> None:
    assert [path for path in sorted(shown() | named()) if not is_there(path)] == []
