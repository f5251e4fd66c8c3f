"""What was measured, one JSON file a part, with the machine it was measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("results")
PACKAGES = ("duckdb", "numpy", "psycopg", "pyspark", "scikit-learn")


def machine() -> dict[str, Any]:
    """Cores, memory, processor, versions: what figures depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {"python": platform.python_version(), **_versions(), "postgresql": _postgres()},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "unknown")


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def _postgres() -> str:
    try:
        told = subprocess.run(["postgres", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return told.stdout.split()[2]


class Clocked:
    """When a part was measured, how long it took, and how busy the machine was."""

    def __init__(self) -> None:
        self.begun, self.load = time.time(), os.getloadavg()[0]

    def facts(self) -> dict[str, Any]:
        return {
            "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.begun)) + " UTC",
            "seconds": round(time.time() - self.begun),
            "load_before": round(self.load, 2),
            "load_after": round(os.getloadavg()[0], 2),
        }


def save(folder: Path, part: str, lines: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"part": part, **facts, "machine": machine(), "lines": lines}, indent=1)
    (folder / f"{part}.json").write_text(text + "\n", "utf-8")


def load(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Part -> what was saved of it."""
    return {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))
    }
