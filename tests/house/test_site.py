"""The site of `make docs`: every page has one place behind a door; nothing is loaded from afar."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
DOORS = ["Start", "For owners", "For analysts", "For auditors", "Operate", "Reference"]
DOORS += ["Why it is private"]
SETTINGS: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
FROM_THE_ROOT = {"readme.md", "architecture.md", "contributing.md"}


def pages_of(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for part in nav:
            yield from pages_of(part)
    else:
        for part in nav.values():
            yield from pages_of(part)


def test_the_doors_are_the_seven():
    assert [name for door in SETTINGS["nav"] for name in door] == DOORS


def test_every_page_is_in_the_nav_once():
    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert sorted(pages_of(SETTINGS["nav"])) == sorted(written | FROM_THE_ROOT)


def test_a_page_that_is_named_twice_or_deep_is_found():
    nav = [{"Start": ["a.md", {"More": [{"B": "b.md"}]}]}, {"Next": "a.md"}]
    assert list(pages_of(nav)) == ["a.md", "b.md", "a.md"]


def test_the_build_is_strict_and_loads_no_font_from_elsewhere():
    assert SETTINGS["strict"] is True
    assert SETTINGS["theme"]["font"] is False
    assert {"search", "offline"} <= set(SETTINGS["plugins"])
    for script in SETTINGS["extra"]["polyfills"]:
        assert (ROOT / "docs" / script).exists()


def test_links_to_code_become_words_and_links_to_pages_stay():
    code = "\n```\n[c](../../y.py)\n```"
    text = "[a](../../README.md#one) [b](../limits.md) [c](../../src/x.py)" + code
    hooks = runpy.run_path(str(ROOT / "scripts" / "site.py"))
    assert set(hooks["PAGES"]) == FROM_THE_ROOT
    made = hooks["site_text"](text, "guides/a.md", {"readme.md", "limits.md"})
    assert made == "[a](../readme.md#one) [b](../limits.md) c" + code


@pytest.mark.slow
def test_the_site_builds_and_asks_no_other_host(tmp_path):
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    elsewhere = [
        f"{path.name}: {address}"
        for path in tmp_path.rglob("*.html")
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", path.read_text("utf-8"))
        for address in re.findall(r'(?:src|href)="(https?://[^"]*)"', tag)
    ]
    assert elsewhere == []
    assert (tmp_path / "search" / "search_index.js").exists()
