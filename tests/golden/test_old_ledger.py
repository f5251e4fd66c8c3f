"""A ledger that yesterday's code wrote: opened, verified, exported, repeated and continued.

`old_ledger/make.py` says how it was made; its files are not made again.
"""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.golden import inside
from tests.golden.old_ledger.reading import told
from tests.golden.old_ledger.tables import NEW, PAID, opened

from sulq import Refused, col, count

HERE = Path(__file__).parent / "old_ledger"
EXPECTED = json.loads((HERE / "expected.json").read_text("utf-8"))


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, private as its owner left it, and the directory we are in."""
    copy = tmp_path / "old"
    shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.setenv("SULQ_STATE", str(copy / "state"))
    monkeypatch.chdir(copy)
    return copy


def reply(*words: str) -> Any:
    code, out, err = inside.run(*words, "--json")
    assert code == 0, err or out
    return json.loads(out)


def exported(path: Path) -> list[Any]:
    """The lines of an export, without hashes and seals."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [{n: held for n, held in line.items() if n not in ("hash", "seal")} for line in lines]


def test_answers_come_back_free_and_what_is_left_is_the_same(old: Path) -> None:
    assert told(old) == EXPECTED
    assert {held["credits"] for held in EXPECTED.values() if held["answers"]} == {"0"}


def test_it_verifies_with_its_receipts(old: Path) -> None:
    for table in ("people", "lost"):
        assert reply("verify", table)["verified"] is True
    found = reply("verify", "people", "--receipts", "receipts.jsonl")
    assert [one["result"] for one in found["results"]] == ["genuine"]


def test_its_export_tells_the_same_events(old: Path) -> None:
    reply("ledger", "people", "--export", "now.jsonl")
    assert exported(old / "now.jsonl") == exported(old / "export.jsonl")
    kinds = {json.loads(line["body"])["kind"] for line in exported(old / "now.jsonl")[1:]}
    assert kinds == {
        *("ledger", "table", "grant", "charge", "answer", "repeat", "plan", "reserve", "return"),
        *("outside", "revoke", "retry", "amend", "version", "declare", "release", "repair"),
        *("close", "withdraw"),
    }
    reply("ledger", "lost", "--export", "lost.jsonl")
    kinds = {json.loads(line["body"])["kind"] for line in exported(old / "lost.jsonl")[1:]}
    assert kinds == {"ledger", "table", "charge", "answer", "recover"}


def test_the_export_of_yesterday_verifies_without_the_ledger(old: Path) -> None:
    (old / "old.ledger").unlink()
    shutil.rmtree(old / "state")
    found = reply("verify", "receipts.jsonl", "--chain", "export.jsonl")
    assert (found["verified"], [one["result"] for one in found["results"]]) == (True, ["genuine"])


@pytest.mark.parametrize("name", NEW)
def test_it_goes_on(old: Path, name: str, quiet: None) -> None:
    left = Fraction(EXPECTED[name]["left"])
    with opened(old, name) as db:
        answer = db.ask(NEW[name], credits=2)
        assert answer.credits == 2
        assert db.remaining == left - 2
        assert db.ask(NEW[name], credits=2).credits == 0
    with opened(old, name) as db:
        assert db.remaining == left - 2
    assert reply("verify", name)["verified"] is True


def test_analysts_go_on_and_alerts_of_a_copy_are_over(old: Path) -> None:
    with opened(old, "people") as db:
        ann = db.as_analyst("ann")
        again = ann.ask(PAID["people"]["count"], credits=2, key="ann-key-1")
        assert (again.credits, again.value) == (0, EXPECTED["people"]["answers"]["count"])
        with pytest.raises(Refused, match="bob"):
            db.as_analyst("bob").ask(PAID["people"]["count"])
    with opened(old, "bits") as db:
        assert db.alerts() == []


def test_closed_tables_stay_closed(old: Path) -> None:
    with opened(old, "done") as db:
        with pytest.raises(Refused):
            db.ask(count(where=col("x") > 9))
        assert db.ask(PAID["done"]["count"], credits=2).credits == 0
    with opened(old, "lost") as db:
        assert db.remaining == Fraction(EXPECTED["lost"]["left"])
