"""The wheel is enough: it installs in a clean environment and runs the tour."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_wheel_installs_and_runs_the_demo(tmp_path: Path) -> None:
    """Builds, installs with its base dependencies, and runs `sulq demo` outside the clone."""
    quiet = {"check": True, "cwd": tmp_path, "stdout": subprocess.DEVNULL}
    built = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(built, **quiet)
    (wheel,) = tmp_path.glob("sulq-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "clean"], **quiet)
    subprocess.run(["clean/bin/pip", "install", "-q", str(wheel)], **quiet)
    away = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SULQ_STATE")}
    shown = subprocess.run(
        ["clean/bin/sulq", "demo"],
        cwd=tmp_path,
        env=away,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "0 of 20 credits left" in shown.stdout
    assert "\x1b" not in shown.stdout
