"""What no file of the project may say: where a machine keeps things, and who typed it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Cut by brackets that change nothing, so that this file passes its own test.
RULES = {
    "a machine's path": r"(?<![\w.~-])/(?:work|opt|root|tmp/build)(?![\w.-])",
    "a folder beside the project": r"\.\./s[h]ared|\bs[h]ared/[a-z]+\.(?:md|json)",
    "a package registry": r"\bpyp[i]\.(?:org|python)|pythonh[o]sted\.|://\S*/[s]imple\b",
    "who wrote it": r"co-auth[o]red-by|generated w[i]th|language m[o]del|\bchatb[o]t",
}


def files() -> list[Path]:
    """Tracked files, and those about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("not a git checkout: nothing says which files are the project's")
    return [path for name in run.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.mark.parametrize("what", RULES)
def test_no_file_says(what):
    pattern = re.compile(RULES[what], re.IGNORECASE)
    faults = [
        f"{path.relative_to(ROOT).as_posix()}:{number}"
        for path in files()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if pattern.search(line)
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a machine's path", "see /" + "work/x.md"),
        ("a machine's path", "'/" + "opt'"),
        ("a machine's path", "file:///" + "root/x"),
        ("a folder beside the project", "../" + "shared/golden"),
        ("a package registry", "https://mirror.example/" + "simple"),
        ("who wrote it", "Co-Authored" + "-By: a. name"),
    ],
)
def test_rule_catches_what_breaks_it(what, line):
    assert re.search(RULES[what], line, re.IGNORECASE)


def test_words_that_only_look_alike_pass():
    lines = ["/workers", "a/root", "/optional", "square/root", "a shared/private lock"]
    assert [line for line in lines for rule in RULES.values() if re.search(rule, line)] == []
