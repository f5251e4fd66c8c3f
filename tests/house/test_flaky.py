"""The tool that finds tests that hang on chance: its estimates, and the noise of the gate."""

from __future__ import annotations

import ast
import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from sulq.kernel.noise import entropy
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace
from sulq.kernel.noise.sampler import draw

TESTS = Path(__file__).parents[1]
SCRIPT = Path(__file__).parents[2] / "scripts" / "flaky"


@pytest.fixture(scope="module")
def flaky() -> ModuleType:
    loader = SourceFileLoader("flaky", str(SCRIPT))
    spec = spec_from_loader("flaky", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_rate_is_told_from_the_share_of_failures_when_stretched(flaky: ModuleType) -> None:
    """P(|z| > 4.892) = 1e-6; stretched by 8 that is P(|z| > 0.611) = 0.541."""
    assert flaky.rate_from(8.0, 541, 1_000) == pytest.approx(1e-6, rel=0.05)
    assert flaky.rate_from(4.0, 221, 1_000) == pytest.approx(1e-6, rel=0.05)
    assert math.isnan(flaky.rate_from(1.5, 20, 20))  # hangs on many draws: no estimate
    assert flaky.rate_from(4.0, 0, 1) > 1e-6  # one run that passed proves little
    # exp(-13.8 / 22.5) = 0.541: an exponential tail is stretched until it is as likely
    assert 1e-6 ** (1 / flaky.exponential(8.0)) == pytest.approx(0.541, abs=1e-3)


def test_programs_that_a_test_starts_are_stretched_too(flaky: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(flaky.SITE)
    code = """
import json
from fractions import Fraction
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace
from sulq.kernel.noise.sampler import draw
print(json.dumps([draw(law(Fraction(9)), 1000) for law in (DiscreteGaussian, DiscreteLaplace)]))
"""
    told = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        flaky.HOME: str(SCRIPT),
        flaky.FACTOR: "8",
        flaky.DREW: str(tmp_path / "drew"),
    }
    run = subprocess.run(
        [sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True
    )
    normal, exponential = json.loads(run.stdout)
    assert {value % 8 for value in normal} == {0} and any(normal)
    by = flaky.exponential(8.0)
    assert {abs(value - by * round(value / by)) < 0.51 for value in exponential} == {True}
    assert (tmp_path / "drew").exists()


def test_the_gate_draws_the_same_noise_each_time(settled: None) -> None:
    laws = DiscreteGaussian(Fraction(10**8)), DiscreteLaplace(Fraction(10**4))
    first = [draw(law, count) for law in laws for count in (3, 30)]
    assert len({value for values in first for value in values}) > 50  # and not one number
    entropy.os.urandom.__self__.seed(14)  # type: ignore[attr-defined]
    assert [draw(law, count) for law in laws for count in (3, 30)] == first


SENDS = {"get", "post", "put", "delete", "patch", "request", "stream", "Client", "AsyncClient"}


def hasty(text: str) -> list[int]:
    """Lines that send with the library's own patience: 5 seconds, too few for a busy machine."""
    if "httpx." not in text:
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {f"httpx.{name}" for name in SENDS}
        and not any(word.arg == "timeout" for word in node.keywords)
    ]


def test_whoever_sends_says_how_long_to_wait() -> None:
    assert hasty("httpx.get(url)\nhttpx.get(url, timeout=120)\nhttpx.Client()") == [1, 3]
    found = {path: hasty(path.read_text()) for path in TESTS.rglob("*.py")}
    assert not {str(path.relative_to(TESTS)): lines for path, lines in found.items() if lines}
