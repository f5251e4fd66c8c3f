"""A small published-to-be table, and a way to run the command in this process."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from sulq.cli import app
from sulq.errors import InvalidQuery
from sulq.kernel.ledger.inspect import is_published
from sulq.policy import read_policy

POLICY = """
[people]
source = "people.parquet"
ledger = "people.ledger"
promise = {epsilon = 1, delta = 1e-6, queries = 20}
columns.age = {number = [0, 110], step = 1}
columns.income = {number = [0, 1000]}
columns.smoker = {flag = true}
columns.city = {category = ["Oslo", "Paris"], public = true}
columns.seen = {number = [2020-01-01, 2030-01-01]}
"""


@dataclass(frozen=True)
class Reply:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


ACTS = (
    "ask",
    "grant",
    "suggest",
    "plan",
    "keys",
    "top",
    "alert",
    "learn",
    "outside",
    "access",
    "find",
)
"""Commands that want a published table."""


@pytest.fixture
def sulq(unpublished):
    """As `unpublished`, with an owner who publishes the policy's tables before the first act."""

    def run(*words: str) -> Reply:
        free = words[0] == "plan" and "--yes" not in words
        if words[0] in ACTS and not free and not {"--url", "--quote"} & {*words}:
            publish_all(unpublished, words)
        return unpublished(*words)

    return run


def publish_all(run, words=()) -> None:
    """Publish what the policy of these words declares, as far as it can be."""
    given = [words[at + 1] for at, word in enumerate(words) if word in ("-p", "--policy")]
    policy = given[0] if given else "sulq.toml"
    with suppress(InvalidQuery):
        for name, table in read_policy(policy).items():
            if not is_published(table.ledger_path, name):
                run("publish", name, "--yes", "--policy", policy)


@pytest.fixture(scope="session")
def people(tmp_path_factory):
    """20,000 of them in a file."""
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    duckdb.sql(
        "SELECT i AS person_id, i % 100 AS age, i % 1000 AS income, i % 4 = 0 AS smoker,"
        " CASE WHEN i % 2 = 0 THEN 'Oslo' ELSE 'Paris' END AS city,"
        " DATE '2020-01-01' + CAST(i % 3000 AS INTEGER) AS seen FROM range(20000) AS t(i)"
    ).write_parquet(str(path))
    return path


@pytest.fixture
def unpublished(people, tmp_path, monkeypatch):
    """Run `sulq ...` in a directory with people.parquet and sulq.toml; nothing is published."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(people, "people.parquet")
    Path("sulq.toml").write_text(POLICY, "utf-8")
    runner = CliRunner()

    def run(*words: str) -> Reply:
        result = runner.invoke(app, list(words))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Reply(result.exit_code, result.stdout, result.stderr)

    return run
