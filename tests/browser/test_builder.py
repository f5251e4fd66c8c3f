"""Questions built by clicking, and answers that have an address, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.browser.conftest import Site, Visit

Visits = Callable[..., Visit]
ASKED = "#bar [data-state=ready]:not(.stale)"


def built(found: Visit) -> str:
    """The statement of the builder, once it is priced."""
    found.page.wait_for_selector(ASKED)
    return " ".join(found.page.input_value("#sql").split())


def test_a_question_is_built_by_clicking_and_asked(visit: Visits) -> None:
    """No letter of SQL is typed; the price stands beside it, and the answer comes."""
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    page.wait_for_selector("#build:visible")
    page.select_option("#measure", "AVG")
    offered = page.locator("#of option:not([disabled])").all_inner_texts()
    assert offered == ["age", "stay_days", "smoker"]  # what has an average
    page.select_option("#of", "stay_days")
    page.select_option("#filter-column", "age")
    page.fill("#filters [data-end=low]", "65")
    assert page.input_value("#filters [data-track=low]") == "65"
    page.select_option("#filter-column", "sex")
    page.check("""#filters [value="'F'"]""")
    page.check("""#filters [value="'X'"]""")
    page.select_option("#by1", "region")
    page.wait_for_function("() => document.querySelector('#sql').value.includes('GROUP BY region')")
    assert built(found) == (
        "SELECT region, AVG(stay_days) AS average FROM admissions WHERE age >= 65"
        " AND sex IN ('F', 'X') GROUP BY region"
    )
    assert "±" in page.inner_text("[data-q=get]")
    assert page.inner_text("#go") == "Ask for 1.25 credits"
    found.ask()
    assert page.locator("#result tbody tr").count() == 4
    page.click("#filters fieldset:has(legend:has-text('sex')) [data-drop]")
    page.wait_for_function("() => !document.querySelector('#sql').value.includes('sex')")
    assert page.evaluate("document.activeElement.id") == "filter-column"
    found.accessible("the builder")


def test_typed_sql_is_shown_in_the_builder_where_it_fits(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    page.wait_for_selector("#build:visible")
    asked = "SELECT sex, COUNT(*) AS n FROM admissions WHERE age BETWEEN 20 AND 40 AND NOT smoker"
    found.price(f"{asked} AND region = 'North' GROUP BY sex")
    page.wait_for_selector("#filters fieldset:nth-child(3)")
    assert page.input_value("#measure") == "COUNT" and page.input_value("#by1") == "sex"
    ends = [page.input_value(f"#filters [data-end={end}]") for end in ("low", "high")]
    assert ends == ["20", "40"]
    assert page.is_checked("#filters [value=no]")
    assert page.is_checked("""#filters [value="'North'"]""")
    assert page.is_hidden("#beyond")
    before = page.input_value("#sql")
    found.price("SELECT AVG(age) / 2 AS x FROM admissions")
    page.wait_for_selector("#beyond:visible")  # it stays in SQL, as it was typed
    assert page.input_value("#sql") == "SELECT AVG(age) / 2 AS x FROM admissions"
    found.price(before)
    page.wait_for_selector("#beyond", state="hidden")
    page.click("#mode [value=sql]")
    assert page.is_hidden("#build")
    page.reload()
    found.ready("ask")
    assert page.is_hidden("#build")  # remembered


@pytest.mark.slow
def test_bands_two_groups_and_a_phone(visit: Visits) -> None:
    found = visit(width=390)
    page = found.page
    found.enter("epi-team", "ask")
    page.wait_for_selector("#build:visible")
    page.select_option("#by1", "age")
    page.fill("#width1", "25")
    page.select_option("#by2", "sex")
    page.wait_for_function("() => document.querySelector('#sql').value.includes('GROUP BY 1, sex')")
    text = "SELECT FLOOR(age / 25) * 25 AS age_from, sex, COUNT(*) AS n FROM admissions"
    assert built(found) == f"{text} GROUP BY 1, sex"
    found.fits((390, 320))


@pytest.mark.slow
def test_an_example_can_be_undone(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    page.fill("#sql", "SELECT COUNT(*) FROM admissions WHERE age = 7")
    page.click("#examples summary")
    page.click("#examples [data-sql] >> nth=1")
    page.wait_for_function("() => !document.querySelector('#sql').value.includes('age = 7')")
    page.keyboard.press("Control+z")
    assert "age = 7" in page.input_value("#sql")


@pytest.mark.slow
def test_the_list_of_columns_closes_with_the_word(visit: Visits) -> None:
    """Enter makes a new line where nothing is being completed."""
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    page.fill("#sql", "SELECT COUNT(*) FROM admissions WHERE ag")
    page.focus("#sql")
    page.keyboard.press("End")
    page.keyboard.press("Control+Space")
    page.wait_for_selector("#complete:visible")
    page.keyboard.type("e >= 50")
    assert page.is_hidden("#complete")
    page.keyboard.press("Enter")
    assert page.input_value("#sql").endswith("age >= 50\n")


@pytest.mark.slow
def test_an_answer_has_an_address_a_name_and_a_note(visit: Visits, site: Site) -> None:
    """Reloaded, in history and on the table's page it is the same answer; opening it is free."""
    found = visit()
    page = found.page
    found.enter("epi-team", "ask")
    found.price("SELECT region, AVG(age) AS old FROM admissions WHERE smoker GROUP BY region")
    found.ask()
    shown, left = page.inner_text("#result"), found.left()
    page.click("text=Its own page")
    found.ready("a")
    address = page.url
    assert page.inner_text("h1") == "Average age, smoker, by region"
    assert page.inner_text("#result") == shown and found.left() == left
    page.fill("#answer-name", "Age of smokers <script>")
    page.fill("#answer-note", "<img src=x onerror=alert(1)>")
    page.check("[name=pinned]")
    page.click("#words button")
    page.wait_for_selector("#answer-title:has-text('Age of smokers <script>')")
    head = site.database.ledger.head
    page.reload()  # days later it would be the same: the ledger has it
    found.ready("a")
    assert page.inner_text("#result") == shown
    assert page.input_value("#answer-note") == "<img src=x onerror=alert(1)>"
    assert site.database.ledger.head == head and found.left() == left  # nothing written or spent
    found.accessible("a stored answer")
    page.click("[data-receipt]")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.click("text=Cite")
    page.wait_for_selector("text=Copied")
    cited = page.evaluate("navigator.clipboard.readText()")
    assert cited.startswith("Average age, smoker, by region. Table “admissions”")
    assert f"receipt #{int(address.rsplit('/', 1)[1]):04d}." in cited
    page.wait_for_selector("text=Cite")
    page.click("text=Copy link")
    page.wait_for_selector("[data-link]:text-is('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == address
    page.click("text=Edit this question")
    found.ready("ask")
    assert "AVG(age) AS old" in page.input_value("#sql")
    assert "★ Age of smokers <script>" in page.inner_text("#mine a >> nth=0").replace("\n", " ")
    page.set_viewport_size({"width": 1024, "height": 900})
    for place in ("table", "ledger"):
        found.walk(place)
        assert page.locator(f"a[href='{address.removeprefix(site.url)}']").count() == 1
        cut = "() => [...document.querySelectorAll('.table')].some((t) => t.closest('.card')"
        assert not page.evaluate(f"{cut}.scrollWidth > t.closest('.card').clientWidth + 1)"), place
    found.page.set_viewport_size({"width": 390, "height": 900})
    page.goto(address)
    found.ready("a")
    found.fits((390, 320))


@pytest.mark.slow
def test_an_answer_opens_for_who_was_told_it_and_for_the_owner(visit: Visits, site: Site) -> None:
    told = site.database.as_analyst("epi-team").sql(
        "SELECT sex, COUNT(*) AS n FROM admissions WHERE age < 30 GROUP BY sex"
    )
    number = told.receipts[0].body["seq"]
    owner = visit()
    owner.enter("data-office", f"a/{number}")
    assert "told to epi-team" in owner.page.inner_text("main")
    assert owner.page.locator("#result tbody tr").count() == 4
