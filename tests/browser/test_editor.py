"""The editor's proposals and repairs, the basket, and the fonts, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.conftest import Visit

Visits = Callable[..., Visit]
SHIFTS = """() => { window.shifts = 0; new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.shifts += each.hadRecentInput ? 0 : each.value;
}).observe({ type: "layout-shift", buffered: false }); }"""


def test_words_and_values_are_proposed_at_the_caret(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    page.click("#mode [value=sql] >> xpath=..")
    page.focus("#sql")
    page.evaluate(SHIFTS)
    page.keyboard.type("SELECT COUNT(*) FROM admissions WHERE stay")
    page.wait_for_selector("#complete [role=option]")
    list_, caret = page.locator("#complete").bounding_box(), page.locator(".editor").bounding_box()
    assert list_["x"] > caret["x"] + 300  # at the word, not at the edge
    page.keyboard.press("Enter")  # nothing is chosen: a new line, and the list is gone
    assert page.input_value("#sql").endswith("stay\n") and page.is_hidden("#complete")
    page.keyboard.press("Backspace")
    page.keyboard.type("_")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.input_value("#sql").endswith("WHERE stay_days")
    page.keyboard.type(" > 3 AND region = '")
    page.wait_for_selector("#complete :text('Valley')")
    found.accessible("proposals")
    page.keyboard.type("val")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.input_value("#sql").endswith("AND region = 'Valley'")
    page.wait_for_selector("#bar [data-state=ready]:not(.stale)")
    assert page.evaluate("window.shifts") < 0.1  # typing moves nothing about
    assert page.evaluate("document.fonts.check('14px Inter') && document.fonts.size >= 2")


def test_slips_are_repaired_by_a_button_and_undo_brings_them_back(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    page.click("#mode [value=sql] >> xpath=..")
    page.fill("#sql", "SELEC COUNT(*) AS n FROM admissions WHERE age > 90")
    page.click("#bar button:has-text('Did you mean')")
    page.wait_for_selector("#bar [data-state=ready]:not(.stale)")
    assert page.input_value("#sql").startswith("SELECT COUNT")
    page.focus("#sql")
    page.keyboard.press("Control+z")
    assert page.input_value("#sql").startswith("SELEC COUNT")
    page.fill("#sql", "SELECT COUNT(*) AS n FROM admissions WHERE region = 'north' AND age > 9")
    page.wait_for_selector("#bar :text('Did you mean North?')")
    found.accessible("a repair")
    page.click("#bar button:has-text('Use it')")
    page.wait_for_selector("#bar :text('Did you mean North?')", state="detached")
    assert "'North'" in page.input_value("#sql")


def test_a_basket_is_asked_together(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    left = float(found.left())
    for sql in (
        "SELECT sex, COUNT(*) AS n FROM admissions WHERE age > 21 GROUP BY sex",
        "SELECT sex, AVG(stay_days) AS stay FROM admissions WHERE age > 21 GROUP BY sex",
    ):
        found.price(sql)
        page.click("#keep")
        page.wait_for_selector("#basket-ask")
    page.wait_for_selector("#basket li:nth-child(2)")
    found.accessible("the basket")
    page.reload()
    found.ready("ask")
    page.wait_for_selector("#basket li:nth-child(2)")  # it is kept
    page.wait_for_selector("#basket-ask:has-text('two questions')")
    page.click("#basket-ask")
    page.wait_for_selector("#basket h2:has-text('Answers')")
    page.wait_for_function(f"() => Number(document.querySelector('.left b').innerText) < {left}")
    found.fits((390, 320))
    page.click("#basket a >> nth=1")
    found.ready("a")
    assert page.inner_text("h1").startswith("Average stay_days")
