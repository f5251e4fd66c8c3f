"""Charts, cross tables, comparisons and files of an answer, in a real browser."""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.browser.conftest import Site, Visit

Visits = Callable[..., Visit]
TWO = (
    "SELECT sex, smoker, AVG(stay_days) AS stay, COUNT(*) AS n FROM admissions GROUP BY sex, smoker"
)


def test_two_keys_a_switch_a_comparison_and_files(
    visit: Visits, site: Site, tmp_path: Path
) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    found.price(TWO)
    found.ask()
    panels = page.locator(".panel")
    assert panels.count() == 2 and panels.nth(0).is_visible() and panels.nth(1).is_hidden()
    assert page.inner_text(".cross thead >> visible=true").split("\t")[0].startswith("sex, by")
    page.click(".panels .choice >> nth=1")
    assert panels.nth(1).is_visible() and panels.nth(0).is_hidden()
    found.accessible("a cross table")

    left = found.left()
    page.click("#compare button")
    page.wait_for_selector("#compare-first")
    page.select_option("#compare-figure", "1")
    page.wait_for_selector("#compare .axis-title:has-text('number of')")
    page.focus("#compare-second")
    page.select_option("#compare-second", "3")
    page.wait_for_function(
        "() => document.querySelector('#compare-second').value === '3'"
        " && /told apart|higher/.test(document.querySelector('#compare .result').innerText)"
    )
    assert page.evaluate("document.activeElement.id") == "compare-second"  # not lost
    found.accessible("a comparison")
    assert found.left() == left

    with page.expect_download() as download:
        page.click("button:has-text('Excel')")
    download.value.save_as(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        assert b"stay_low" in book.read("xl/s1.xml")
    with page.expect_download() as download:
        page.click("button:has-text('as SVG') >> visible=true")
    download.value.save_as(tmp_path / "a.svg")
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    alone = page.context.browser.new_page()
    alone.goto((tmp_path / "a.svg").as_uri())
    assert alone.evaluate("document.querySelectorAll('.body').length") >= 6
    alone.close()
    found.fits((390, 320))
    for width in (1440, 1180, 1024, 768):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
