"""There is one flow: who reads rows for an answer, who draws noise for it, and in which order."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.people import SCHEMA, frame, publish
from tests.syntax import parsed

from sulq import Category, Database, Schema, col, count, histogram, total
from sulq.errors import InvalidQuery
from sulq.exact import Assumptions
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.release import release as flow
from sulq.kernel.release.release import UndeclaredKeys, release
from sulq.shares import Partners

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "sulq"

STEPS = ("prepare", "charge", "draw", "read", "check", "finish", "gate", "settle")

# Where an engine is asked for sums of rows: what it returns is called by `release` alone, but for
# quotes, which drop it, and for what is no answer.
PREPARED = {
    "kernel/release/release.py NoisySums.prepare": 1,
    "kernel/release/release.py TopK.prepare": 1,
    "kernel/release/release.py AboveThreshold.prepare": 1,
    "kernel/release/release.py UndeclaredKeys.prepare": 1,
    "kernel/release/release.py EngineReader._prepared": 2,  # one mechanism alone, or several merged
    "database/individual.py IndividualReader._prepared": 1,  # it refuses what filters do not read
    "database/table.py PlainReader.check": 1,  # a quote
    "database/individual.py IndividualFilter.reader": 1,  # may refuse
    "database/individual.py IndividualFilter._values": 1,  # called by the filters' own pass
    "database/keys.py quote_keys": 1,
    "database/alerts.py arm_alert": 1,  # may refuse
    "database/exact.py ExactRelease._sizes": 1,  # of public columns
    "database/reuse.py AnswerReuse.public_sums": 1,  # of public columns
    "database/audit.py _check_of": 1,  # the owner's audit of what was drawn
    "database/audit.py _released": 1,
    "database/audit.py _chosen": 1,
    "database/audit.py _keys": 1,
    "cli/exact.py _checks": 1,  # the owner's own checks of what is assumed
    "server/executor.py charged.find_or_prepare": 1,  # a request: no engine is asked
}
DRAWN = {
    "kernel/release/release.py release": 1,
    # as many as there are keys: the stated exception
    "kernel/release/release.py UndeclaredKeys._shown.reaching": 1,
    "kernel/release/release.py UndeclaredKeys._shown": 1,
    "database/alerts.py arm_alert": 1,  # the level of an alert: no row is read for it
    "database/delay.py draw_delay": 1,  # the time of a reply
}
READS = ("prepare", "prepare_keys", "exact_sums")
DRAWS = ("draw_noise", "draw_one_sided", "add_fresh_noise")


def callers(names: tuple[str, ...], source: Path = SOURCE) -> Counter[str]:
    """Every function outside engines and noise that calls one of these, and how often."""
    found: Counter[str] = Counter()
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if not name.startswith(("kernel/engines/", "kernel/noise/")):
            _count(parsed(path), f"{name} ", names, found)
    return found


def _count(node: ast.AST, where: str, names: tuple[str, ...], found: Counter[str]) -> None:
    for child in ast.iter_child_nodes(node):
        inner = where
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{where}.{child.name}" if not where.endswith(" ") else where + child.name
        if isinstance(child, ast.Call):
            called = child.func
            if getattr(called, "attr", getattr(called, "id", None)) in names:
                found[where] += 1
        _count(child, inner, names, found)


def test_one_function_reads_rows_for_an_answer() -> None:
    assert dict(callers(READS)) == PREPARED


def test_one_function_draws_noise_for_an_answer() -> None:
    assert dict(callers(DRAWS)) == DRAWN


def test_a_planted_reader_is_counted(tmp_path: Path) -> None:
    planted = (
        "class Peek:\n    def now(self):\n        return [self.engine.prepare(x)() for x in y]\n"
    )
    (tmp_path / "peek.py").write_text(planted + "noise = draw_noise([])\n")
    assert dict(callers(READS, tmp_path)) == {"peek.py Peek.now": 1}
    assert dict(callers(DRAWS, tmp_path)) == {"peek.py ": 1}


def test_the_flow_on_the_page_is_the_code() -> None:
    """ARCHITECTURE.md shows the body of `release`, and its comments name the steps in order."""
    body = inspect.getsource(release).partition('"""\n')[2]
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert f"```\n{textwrap.dedent(body)}```" in page
    comments = [line.partition("  # ")[2] for line in body.splitlines() if "  # " in line]
    named = [comment.partition(":")[0] for comment in comments]
    assert tuple(named) == STEPS


# --- one order ----------------------------------------------------------------------------------

OLD = count(where=col("age") >= 65)
OPEN = Schema(*SCHEMA.columns, Category("secret"))
GIVEN = Assumptions(1, 1e-6, known_rows=10, least={"smoker": 0.2})
ORDER = ["charge", "draw", "read", "check", "gate", "settle"]


def opened(**more: Any) -> Database:
    return publish(frame().assign(secret=lambda rows: rows.blood), OPEN, **more)


def shared(db: Database) -> object:
    others = [publish(name=name).share_key for name in ("second", "third")]
    db.set_partners(Partners(others, colluding=1))
    return db.share(OLD, joint="one-sum-1")


ASKING: dict[str, Callable[[Database], object]] = {
    "ask": lambda db: db.ask(OLD),
    "plan": lambda db: db.plan([OLD, total("age", where=col("age") >= 65), count()]).ask(),
    "top": lambda db: db.top("blood", k=2),
    "share": shared,
    "exact": lambda db: db.ask_exactly([count(where=col("smoker"))]),
    "keys": lambda db: db.keys("secret", credits=20),
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done, in order."""
    seen: list[str] = []

    def noted(target: Any, name: str, step: str) -> None:
        real = getattr(target, name)
        monkeypatch.setattr(target, name, lambda *a, **b: (seen.append(step), real(*a, **b))[1])

    for name in ("charge", "charge_all", "release"):
        noted(Ledger, name, "charge")
    noted(Ledger, "settle_all", "settle")
    noted(flow, "draw_noise", "draw")
    noted(flow, "add_fresh_noise", "draw")
    noted(flow, "check_read", "check")
    noted(flow, "hold", "gate")
    return seen


def watch(db: Database, seen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine says when what it prepared reads rows."""

    def watched(prepare: Callable[[Any], Callable[[], Any]]) -> Callable[[Any], Callable[[], Any]]:
        def prepared(program: Any) -> Callable[[], Any]:
            read = prepare(program)
            return lambda: (seen.append("read"), read())[1]

        return prepared

    for name in ("prepare", "prepare_keys"):
        monkeypatch.setattr(db.engine, name, watched(getattr(db.engine, name)))


@pytest.mark.parametrize("asked", ASKING)
def test_every_mechanism_draws_before_it_reads_and_waits_last(asked, steps, monkeypatch):
    """Keys are the exception: a draw for every key that occurs, so it follows the reading."""
    db = opened(exactly=GIVEN) if asked == "exact" else opened()
    watch(db, steps, monkeypatch)
    ASKING[asked](db)
    if asked == "exact":
        del steps[: steps.index("charge")]  # what is assumed was certified on public sizes
    once = [step for at, step in enumerate(steps) if step not in steps[:at]]
    if asked == "keys":
        assert steps == ["charge", "draw", "read", "draw", "draw", "check", "gate", "settle"]
        assert UndeclaredKeys.laws.fget(None) == ()  # type: ignore[attr-defined]
    else:
        assert once == ORDER
        assert max(at for at, step in enumerate(steps) if step == "draw") < steps.index("read")
    assert steps[-2:] == ["gate", "settle"]


def test_a_check_draws_before_it_reads(steps, monkeypatch):
    """Its arming has paid, and it is settled by its verdict."""
    db = opened()
    armed = db.alert(OLD, above=10, credits=5)
    watch(db, steps, monkeypatch)
    steps.clear()
    armed.check()
    assert steps == ["draw", "read", "check", "gate"]


def test_a_repeat_draws_and_reads_nothing(steps, monkeypatch):
    db = opened()
    db.ask(histogram("blood"))
    watch(db, steps, monkeypatch)
    steps.clear()
    db.ask(histogram("blood"))
    assert steps == []  # nor is anything charged


def test_a_choice_of_more_draws_than_are_held_at_once_is_refused_free(monkeypatch):
    monkeypatch.setattr("sulq.database.top.MOST_DRAWS", 5)
    db = opened()
    with pytest.raises(InvalidQuery, match="choose fewer"):
        db.top("blood", k=2)
    assert db.remaining == 100
    db.top("blood", k=1)
