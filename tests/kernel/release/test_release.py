"""There is one flow: who reads rows for an answer, who draws noise for it, and in which order."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from pathlib import Path

from sulq.kernel.release.release import release

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "sulq"

STEPS = ("prepare", "charge", "draw", "read", "check", "finish", "gate", "settle")

# Where an engine is asked for sums of rows: what it returns is called by `release` alone, but for
# quotes, which drop it, and for what is no answer.
PREPARED = {
    "kernel/release/mechanisms.py NoisySums.prepare": 1,
    "kernel/release/mechanisms.py TopK.prepare": 1,
    "kernel/release/mechanisms.py AboveThreshold.prepare": 1,
    "kernel/release/mechanisms.py UndeclaredKeys.prepare": 1,
    "kernel/release/reading.py EngineReader._prepared": 2,  # one mechanism alone, or several merged
    "database/reading.py IndividualReader._prepared": 1,  # of what filters do not read: it refuses
    "database/reading.py check_readable": 1,  # a quote
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
}
DRAWN = {
    "kernel/release/release.py release": 3,
    # as many as there are keys: the stated exception
    "kernel/release/mechanisms.py UndeclaredKeys._shown.reaching": 1,
    "kernel/release/mechanisms.py UndeclaredKeys._shown": 1,
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
            _count(ast.parse(path.read_text("utf-8")), f"{name} ", names, found)
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
