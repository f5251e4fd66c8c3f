"""Records of what must not change: made, written, read, compared."""

from __future__ import annotations

import difflib
import json
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DIGITS = 9
WIDEST, MOST_LINES = 200, 40
"""Of what is shown of a difference."""
LONGEST = 24
"""Values of an array that are written out; of longer ones the first, and their sum."""

Records = dict[str, Any]


def plain(value: Any) -> Any:
    """A value as JSON: fractions exact, floats to nine digits, arrays short."""
    if isinstance(value, Fraction):
        return (
            f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value + 0)
        )
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return {str(name): plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _float(value: float) -> Any:
    if not math.isfinite(value):
        return str(value)
    short = float(f"{value:.{DIGITS}g}")
    return 0.0 if short == 0 else short


def _array(value: np.ndarray) -> Any:
    flat = [plain(held) for held in value.ravel().tolist()]
    if len(flat) <= LONGEST:
        return {"shape": list(value.shape), "values": flat}
    total = float(np.nansum(value.astype(float)))
    return {"shape": list(value.shape), "first": flat[:8], "sum": _float(total)}


def path_of(part: str) -> Path:
    return HERE / f"{part}.json"


def written(records: Records) -> str:
    """One record per name, sorted, indented so that a diff names what changed."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(held, sort_keys=True, ensure_ascii=False, indent=1)}"
        for name, held in sorted(records.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(part: str) -> Records:
    return dict(json.loads(path_of(part).read_text("utf-8")))


def differences(wanted: Records, got: Records) -> list[str]:
    """What is different, record by record, each with its lines."""
    told = []
    for name in sorted(wanted.keys() | got.keys()):
        if name not in got:
            told.append(f"{name}: is no longer recorded")
        elif name not in wanted:
            told.append(f"{name}: is new; python -m tests.golden records it")
        elif wanted[name] != json.loads(json.dumps(got[name])):
            told.append(f"{name}:\n{_diff(wanted[name], got[name])}")
    return told


def _diff(wanted: Any, got: Any) -> str:
    before, after = (
        json.dumps(held, sort_keys=True, ensure_ascii=False, indent=1).splitlines()
        for held in (wanted, got)
    )
    lines = list(difflib.unified_diff(before, after, "golden", "now", lineterm="", n=1))[2:]
    for place, (one, two) in enumerate(pairwise([*lines])):
        if one.startswith("-") and two.startswith("+"):
            lines[place : place + 2] = _close(one, two)
    return "\n".join(f"  {line[:WIDEST]}" for line in lines[:MOST_LINES])


def _close(one: str, two: str) -> list[str]:
    """Two long lines where they begin to differ."""
    letters = enumerate(zip(one[1:], two[1:], strict=False))
    same = next((place for place, (a, b) in letters if a != b), 0)
    start = 0 if same < WIDEST // 2 else same - 60
    return [line[0] + (" ... " if start else "") + line[1 + start :] for line in (one, two)]


def masked(value: Any, names: frozenset[str], by: str = "*") -> Any:
    """JSON with the values of these names hidden, however deep."""
    if isinstance(value, dict):
        return {
            name: _by(held, by) if _hidden(name, held, names) else masked(held, names, by)
            for name, held in value.items()
        }
    if isinstance(value, list):
        return [masked(held, names, by) for held in value]
    return value


def _by(held: Any, by: str) -> Any:
    """Of a list, how long it is stays."""
    return [by] * len(held) if isinstance(held, list) else by


def _hidden(name: str, held: Any, names: frozenset[str]) -> bool:
    """A number called version is that of a format; a text, random."""
    whole = name == "version" and isinstance(held, int)
    return name in names and held is not None and not whole
