"""What is raised: one table says what it is called over HTTP and to a shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sulq
from sulq import errors
from sulq.errors import (
    ERROR_CODES,
    BudgetSpent,
    EngineFailed,
    ErrorCodes,
    InvalidQuery,
    NotPublished,
    Reason,
    Refused,
    SulqError,
    TooNoisy,
    Unreachable,
    UnsafeExactly,
    codes_of,
)
from sulq.server.errors import problem_of
from sulq.wire.errors import Problem, error_of

SOURCE = Path(sulq.__file__).parent
TREE = [InvalidQuery, Refused, BudgetSpent, UnsafeExactly, NotPublished, TooNoisy, Unreachable]


@pytest.mark.parametrize("kind", TREE)
def test_the_drawing_says_what_the_table_says(kind):
    drawn = re.search(rf"\+ {kind.__name__} .* (\d+|-) +(\d)\n", errors.__doc__ or "")
    found = codes_of(kind("no"))
    assert drawn is not None
    assert drawn[1] in (str(found.status), "-") and drawn[2] == str(found.exit_code)


def test_a_reason_has_a_row_before_its_class(monkeypatch):
    assert codes_of(InvalidQuery("no")) is ERROR_CODES[InvalidQuery]
    assert codes_of(InvalidQuery("no", reason=Reason.NO_COLUMN)) is ERROR_CODES[Reason.NO_COLUMN]
    assert codes_of(NotPublished("no")) is ERROR_CODES[Refused]
    monkeypatch.setitem(ERROR_CODES, Reason.JOIN, ErrorCodes(418, "joined", 9, "no"))
    assert problem_of(InvalidQuery("no", reason=Reason.JOIN)).status == 418


@pytest.mark.parametrize("kind", [*TREE[:4], TooNoisy])
def test_a_client_raises_what_was_raised(kind):
    error = kind("no", reason=Reason.AMBIGUOUS, about={"column": "wealth"})
    told = error_of(Problem.model_validate(problem_of(error).to_json()))
    assert type(told) is kind
    assert (told.reason, told.about, str(told)) == (error.reason, error.about, str(error))


def test_a_client_tells_the_place_once():
    error = InvalidQuery("no", reason=Reason.UNGROUPED, start=7, end=10, alternatives=("SELECT",))
    sent = problem_of(error).to_json()
    assert sent["detail"] == "no" and sent["reason"] == "ungrouped"
    told = error_of(Problem.model_validate(sent))
    assert isinstance(told, InvalidQuery)
    assert str(told) == str(error) == "no (near character 8)"
    assert (told.start, told.end, told.alternatives) == (7, 10, ("SELECT",))


def test_a_reason_of_a_newer_server_is_let_pass():
    told = error_of(Problem(status=422, code="invalid_query", detail="no", reason="of_tomorrow"))
    assert told.reason is Reason.INVALID_VALUE
    assert isinstance(error_of(problem(EngineFailed())), EngineFailed)


def problem(error: SulqError) -> Problem:
    return Problem.model_validate(problem_of(error).to_json())


def test_every_reason_is_raised_somewhere():
    named = r"(?:reason=|wrong\(\s*[\w.\[\]+ ]+,\s*|= )Reason\.(\w+)"
    texts = (path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    raised = {name for text in texts for name in re.findall(named, text)}
    assert {reason.name for reason in Reason} <= raised
