"""Answers that are shared, and boards of them, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.browser.conftest import Site, Visit

Visits = Callable[..., Visit]
SQL = "SELECT region, AVG(stay_days) AS stay FROM admissions WHERE smoker GROUP BY region"
BAD = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def sharing(site: Site) -> Iterator[None]:
    site.tables.sharing = frozenset({"admissions"})
    yield
    site.tables.sharing = frozenset()


def test_a_board_is_made_shared_read_and_saved(visit: Visits, site: Site, tmp_path: Path) -> None:
    """From an answer to a colleague's screen and a file on disk, without a letter of SQL."""
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    found.price(SQL)
    found.ask()
    shown = page.inner_text("#result")
    page.click("text=Its own page")
    found.ready("a")
    page.click("text=Put it on a board")
    found.ready("board")
    page.fill("#board-name", f"Stay {BAD}")
    page.click("form:has(#board-name) button:not([type])")
    page.wait_for_selector("h1:has-text('Stay <img')")
    page.fill("#board-text", f"Smokers only. {BAD}")
    page.click("form:has(#board-text) button")
    page.wait_for_selector(".board-text")
    page.fill("#board-reader", "small")
    page.click("form:has(#board-reader) button")
    page.wait_for_selector("text=Take back")
    assert page.inner_text("#result") == shown
    found.accessible("a board")
    found.fits((390, 320))
    for width in (1440, 1024, 768):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 900})
    with page.expect_download() as download:
        page.click("text=Save as a file")
    kept = tmp_path / "board.html"
    download.value.save_as(kept)
    address, head = page.url, site.database.ledger.head

    reader = visit()
    reader.enter("small", "boards")
    before = reader.left()
    reader.accessible("the list of boards")
    reader.page.click("a:has-text('Stay <img')")
    reader.ready("board")
    assert reader.page.url == address
    assert reader.page.inner_text("#result") == shown and reader.left() == before
    assert reader.page.locator("#board-text, #board-reader").count() == 0
    assert site.database.ledger.head == head

    context = page.context.browser.new_context(java_script_enabled=False)
    alone = context.new_page()
    alone.goto(kept.as_uri())
    assert alone.inner_text("#result") == shown and alone.locator("svg").count() >= 1
    assert "Smokers only." in alone.inner_text("main")
    context.close()


@pytest.mark.slow
def test_an_answer_is_shared_and_taken_back(visit: Visits, site: Site) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    found.price("SELECT COUNT(*) AS n FROM admissions WHERE smoker AND age > 70")
    found.ask()
    page.click("text=Its own page")
    found.ready("a")
    page.fill("#reader", "small")
    page.click("form:has(#reader) button")
    page.wait_for_selector("#sharing li:has-text('small')")
    found.accessible("a shared answer")
    reader = visit()
    reader.enter("small", "boards")
    reader.page.click("main a:has-text('Count, smoker')")
    reader.ready("a")
    assert reader.page.inner_text("#result") == page.inner_text("#result")
    assert reader.page.locator("#reader").count() == 0
    page.click("text=Take back")
    page.wait_for_selector("#sharing li", state="detached")
    auditor = visit()
    auditor.enter("audit-board", "ledger")
    assert "epi-team took back" in auditor.page.inner_text("#acts")
    auditor.accessible("the ledger with shares")
