"""Budget, Ledger, Risk, Learn, Publish and Access, walked in a real browser."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import CANARY, SCHEMA, Site, Visit, write_admissions
from tests.server.console.test_owner_pages import write_wards
from tests.server.serving import serving

from sulq import Database, Promise
from sulq.cli.server_process import report_page
from sulq.policy import TablePolicy, read_policy
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.console import risk
from sulq.server.console.framework import STATIC, squeezed, static_file
from sulq.server.drafts import Draft, DraftColumn
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.routes.drafts import DRAFTS
from sulq.server.service.catalog import Tables

Visits = Callable[..., Visit]
KB = 1000
POLICY_WORDS = {"identifier_ok": "identifier_ok", "partial": "partial", "known": "proposed = false"}
PAGES = ("budget", "ledger", "risk", "learn", "publish", "access")
RIVALS = "SELECT COUNT(*) FROM admissions WHERE age >= 83"
MINE = "SELECT region, AVG(stay_days) FROM admissions WHERE age >= 65 GROUP BY region"


@dataclass
class Home(Site):
    """A site that publishes from a directory."""

    home: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """`admissions` with a few questions in its books, and a file that may be published."""
    place = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("SULQ_STATE", str(place / "state"))
        write_wards(place / "wards.parquet")

        def publish(policy: TablePolicy) -> Database:
            made = Database.open(
                policy.source_path,
                policy.schema(),
                policy.promise,
                policy.ledger_path,
                name=policy.name,
                publish=True,
            )
            return stack.enter_context(made)

        database = stack.enter_context(
            Database.open(
                write_admissions(place / "admissions.parquet"),
                SCHEMA,
                Promise(epsilon=1, delta="1e-6", queries=1000),
                place / "ledger",
                name="admissions",
                publish=True,
            )
        )
        for name, share in {"epi-team": 200, "rival-lab": 50}.items():
            database.grant(name, share)
        database.as_analyst("epi-team").sql(MINE)
        database.as_analyst("rival-lab").sql(RIVALS)
        access, log = Access.open(), io.StringIO()
        accounts = {
            "data-office": Role.OWNER,
            "epi-team": Role.ANALYST,
            "rival-lab": Role.ANALYST,
            "audit-board": Role.AUDITOR,
        }
        tokens = {name: access.lend(name, role) for name, role in accounts.items()}
        tables = Tables({"admissions": database}, publish, place / "sulq.toml")
        app = create_app(tables, access, settings=Settings(), log=Log(log), report=report_page)
        with serving(app) as port:
            yield Home(f"http://127.0.0.1:{port}", access, database, tokens, log, tables, place)
        access.close()


@pytest.fixture(autouse=True)
def state(site: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs in this process: the state directory is the site's, not the test's."""
    monkeypatch.setenv("SULQ_STATE", str(site.home / "state"))


@pytest.mark.slow
def test_what_is_left_and_what_it_bought(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "budget")
    text = page.inner_text("main")
    assert page.title() == "Budget · admissions · sulq"
    assert "Left of your share" in text and "of 200 credits" in text
    assert "40 % could have become" in text and "at the end 65 %" in text
    assert "Too early to tell." in text and "Averages" in text
    assert "Accounts" not in text and "rival-lab" not in "".join(found.bodies)
    owner = visit()
    owner.enter("data-office", "budget")
    lines = owner.page.locator(".listed tbody tr").all_inner_texts()
    assert [line.split()[0] for line in lines] == ["epi-team", "rival-lab", "not"]
    assert owner.page.get_attribute(".gauge.tall", "role") == "img"


def test_the_chain_is_hashed_here_and_the_receipt_checked(visit: Visits, site: Site) -> None:
    found = visit()
    page = found.page
    found.enter("audit-board", "ledger")
    page.wait_for_selector("[data-checked]")
    rows = site.database.statement().statement.seq
    assert page.get_attribute("[data-page]", "data-checked") == str(rows)
    assert "Checked in this browser just now, every link." in page.inner_text("#here")
    assert "The chain is whole." in page.inner_text("#chain-note")
    number = next(entry.seq for entry in site.database.ledger.entries("epi-team"))
    text = site.database.receipt(number).to_json()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))

    def said(pasted: str) -> str:
        page.fill("#paste", pasted)
        page.click("#check")
        page.wait_for_selector("#verdict .note")
        return str(page.inner_text("#verdict"))

    assert said(text).startswith("Genuine.") and "one row replaced" in page.inner_text("main")
    assert not any("receipt" in url for url in sent)  # nothing is uploaded
    assert said(text.replace('"share":["', '"share":["1')).startswith("Not signed by this table.")
    assert said("{}").startswith("Not a receipt.")
    assert said(f"{text}\n{text}").startswith("All 2 genuine.")
    other = json.loads(text)
    other["signature"] = other["signature"][::-1]
    spelled = json.dumps(other, sort_keys=True, separators=(",", ":"))
    assert "Line 2 of 2" in said(f"{text}\n{spelled}")


def test_an_analyst_checks_what_they_may_read(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "ledger")
    page.wait_for_selector("[data-checked]")
    said = page.inner_text("#here")
    assert "links just now: those whose text you may read" in said
    assert "rest on the server's check" in said
    text = page.inner_text("#entries")
    assert "another account" in text and "Average stay_days, age ≥ 65, by region" in text
    assert not re.search(r"\b83\b", text) and "rival-lab" not in "".join(found.bodies)
    page.fill("#search [name=text]", "stay_days")
    page.wait_for_selector("#entries tbody tr >> nth=1", state="detached")
    with page.expect_download() as saving:
        page.click("#download")
    lines = saving.value.path().read_text().splitlines()
    assert json.loads(lines[0])["redacted"] and "rival-lab" not in "".join(lines)


def test_a_chain_that_was_changed_is_seen_here(visit: Visits) -> None:
    found = visit()
    page = found.page

    def change(route: Any) -> None:
        reply = route.fetch()
        body = reply.json()
        body["entries"][4]["body"] = body["entries"][4]["body"].replace('"at":1', '"at":2', 1)
        route.fulfill(response=reply, json=body)

    page.route("**/v1/tables/admissions/ledger**", change)
    found.enter("audit-board", "ledger")
    page.wait_for_selector("[data-checked=broken]")
    assert "Entry #0005 was changed after it was written." in page.inner_text("#chain-note")
    assert page.locator("#chain-note [role=alert]").count() == 1


@pytest.mark.slow
def test_a_belief_is_moved_by_keyboard(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "risk")
    page.focus("#prior")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    assert page.input_value("#prior-number") == "51"
    after = math.ceil(100 * 0.51 * math.e / (0.49 + 0.51 * math.e))
    assert page.inner_text("[data-r=end]") == f"{after} %"
    assert page.get_attribute("#r-end", "cx") == "51%"
    page.fill("#prior-number", "1")
    page.press("#prior-number", "Tab")
    assert page.inner_text("[data-r=end]") == "3 %"
    page.fill("#prior-number", "700")
    page.press("#prior-number", "Tab")
    assert page.input_value("#prior") == "99"


@pytest.mark.slow
def test_attacks_on_a_made_up_copy(visit: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk, "ROWS", 40)
    monkeypatch.setattr(risk, "SIGMAS", (1.0, 64.0))
    monkeypatch.setattr(risk, "WORDS", {"differencing": ("Difference", "subtract")})
    found = visit()
    page = found.page
    found.enter("epi-team", "risk")
    before = found.left()
    assert "Not tried yet." in page.inner_text("#attacks")
    page.click("#attack")
    page.wait_for_selector("#attacks tbody tr")
    assert "1 of 1 within the limit" in page.inner_text("#attacks")
    assert page.locator(".rebuild .own").count() == 2
    assert found.left() == before


def test_grant_once_shown_and_revoke(visit: Visits, site: Site) -> None:
    found = visit()
    page = found.page
    found.enter("data-office", "access")
    page.fill("#name", "ward-planning")
    page.fill("#share", "100")
    assert page.is_disabled("#give")  # until the sum of what stands there has come
    page.wait_for_selector("#give:enabled:has-text('Grant 100 credits')")
    assert "credits stay ungranted" in page.inner_text("#sum")
    page.fill("#share", "5000")
    page.wait_for_selector("#share-help.bad")
    assert page.is_disabled("#give") and "too many" in page.inner_text("#sum")
    assert page.get_attribute("#share", "aria-invalid") == "true"
    page.check("[name=role][value=auditor]")
    page.wait_for_selector("#give:enabled:has-text('Make an auditor')")
    assert page.is_hidden("#share")
    page.check("[name=role][value=analyst]")
    page.fill("#share", "100")
    page.click("#give:enabled:has-text('Grant 100 credits')")
    page.wait_for_selector("#token:visible")
    assert page.evaluate("document.activeElement.textContent") == "Token for ward-planning"
    token = page.inner_text("#token-text")
    assert token.startswith("sulq_") and "/enter#" in page.inner_text("#token-link")
    assert site.access.caller(token) is not None
    found.walk("budget")
    found.walk("access")
    assert token not in page.content()
    assert page.evaluate("JSON.stringify([localStorage, sessionStorage])").find(token) < 0
    row = "tr[data-name=ward-planning]"
    page.click(f"{row} [data-get$=change]")
    page.fill("#more", "20")
    page.click("#change button.primary")
    page.wait_for_selector(f"{row}:has-text('of 120')")
    page.click(f"{row} [data-get$=revoke]")
    page.wait_for_selector("#revoke")
    assert page.evaluate("document.activeElement.textContent") == "Keep"
    assert "The 0 credits it used stay spent. Its 120 unused" in page.inner_text("#revoke")
    page.keyboard.press("Escape")
    assert page.is_hidden("#revoke")
    focused = page.evaluate("document.activeElement.textContent")
    assert " ".join(focused.split()) == "Revoke ward-planning"
    page.click(f"{row} [data-get$=revoke]")
    page.fill("#reason", "project ended")
    page.click("#revoke .bad.primary")
    page.wait_for_selector(f"{row}:has-text('revoked')")
    assert site.access.caller(token) is None
    found.walk("ledger")
    assert "ward-planning revoked: “project ended”" in page.inner_text("#entries")


def test_learning_is_priced_told_and_drawn(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "learn")
    page.wait_for_selector("#bar [data-state=ready]")
    assert page.inner_text("#go") == "Learn for 4 credits"
    before = float(found.left())
    page.fill("#credits", "100")
    page.wait_for_selector("#bar [data-state=large]")
    assert page.is_disabled("#go")
    page.fill("#credits", "3")
    page.wait_for_selector("#go:enabled:has-text('Learn for 3 credits')")
    page.click("#go")
    page.wait_for_selector("#found section")
    assert "Component 1 is mostly" in page.inner_text("#found")
    assert page.locator("#found .wedge").count() == 3
    page.wait_for_selector("#running", state="hidden")
    page.wait_for_selector("#go:enabled")
    assert before - float(found.left()) <= 3.01
    page.check("[name=method][value=tree]", force=True)
    assert page.is_visible("#label")
    page.wait_for_selector("#go:enabled")
    page.click("#found [data-copy]")
    page.wait_for_selector("text=Copied")
    assert "learn.PCA(2, credits=3).fit(db" in page.evaluate("navigator.clipboard.readText()")


@pytest.mark.slow
def test_stop_keeps_what_was_bought(visit: Visits) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "learn")
    page.check("[name=method][value=kmeans]", force=True)
    page.fill("#credits", "6")
    page.wait_for_selector("#go:enabled:has-text('6')")
    page.click("#go")
    page.wait_for_selector("#progress-said:has-text('of about')")
    page.click("#stop")
    page.wait_for_selector("#found .note")
    assert "What was bought is kept" in page.inner_text("#found")
    page.wait_for_selector("#running", state="hidden")


def test_from_a_file_to_a_promise(visit: Visits, site: Home) -> None:
    found = visit()
    page = found.page
    found.enter("data-office", "publish")
    page.check("[name=source][value='wards.parquet']")
    page.click("#begin .primary")
    page.wait_for_selector("#table-name")
    assert "and none was kept" in page.inner_text("main")
    page.click("#next")
    page.wait_for_selector("#unit-row")
    page.click("#next")
    page.wait_for_selector("#kind-0")
    declare_columns(page)
    page.click("#next")
    page.wait_for_selector("#smallest")
    choose_promise(page)
    page.reload()  # a draft is kept
    page.wait_for_selector("main:has-text('100 credits, each count within ± 83')")
    page.click("#next")
    page.wait_for_selector("#rehearse")
    page.click("#rehearse")
    page.wait_for_selector("#rehearsal tbody tr")
    assert page.is_visible("#stripe")
    page.click("#next")
    page.wait_for_selector("#last")
    assert page.is_disabled("#publish") and "This cannot be undone." in page.inner_text("main")
    for tick in page.locator("#last [type=checkbox]").all():
        tick.check()
    page.click("#publish")
    page.wait_for_selector("#first-grant")
    page.wait_for_selector("html[data-ready='wards/publish']")  # the picker has the new table
    check_published(page)
    page.go_back()  # the draft is gone, and its address says so
    page.wait_for_selector("html[data-ready='wards/publish']")
    check_published(page)
    grant_first(page)
    assert CANARY not in "".join(found.bodies)
    assert "wards" in read_policy(site.home / "sulq.toml")


def declare_columns(page: Any) -> None:
    """Bounds, values and what is public: wrong ones are marked where they stand."""
    names = page.locator(".columns tbody code").all_inner_texts()
    assert names == ["age", "region", "smoker", "patient_id", "notes", "admitted"]
    assert page.input_value("#kind-4") == "hidden"
    page.fill("#low-0", "60")
    page.fill("#high-0", "10")
    page.wait_for_selector("tr[data-at='0'] .chip.bad")
    assert "The lower bound is above the upper one." in page.inner_text("tr[data-at='0']")
    assert page.get_attribute("#low-0", "aria-invalid") == "true"
    page.fill("#low-0", "0")
    page.fill("#high-0", "110")
    page.wait_for_selector("tr[data-at='0'] .chip.ok")
    page.fill("#values-1", "N, S")
    page.wait_for_selector("tr[data-at='1'] .chip.ok")
    page.check("#public-1", force=True)
    page.wait_for_selector("tr[data-at='1'] .chip:has-text('confirm')")
    assert "Is region really public?" in page.inner_text("#side")
    assert page.get_attribute("#next", "aria-disabled") == "true"
    page.check("#sure-1")
    page.wait_for_selector("tr[data-at='1'] .chip.ok")
    page.select_option("#kind-5", "hidden")
    page.wait_for_selector("tr[data-at='5'] .chip:has-text('hidden')")
    page.wait_for_selector("#next:not([aria-disabled=true])")
    assert "columns.age = {number = [0, 110], step = 1}" in page.inner_text("#policy")


def choose_promise(page: Any) -> None:
    """The grid of promises keeps the focus while it is coloured anew."""
    assert "1,000 credits, each count within ± 262" in page.inner_text("main")
    page.focus("#smallest")
    page.keyboard.press("End")
    page.keyboard.type("5", delay=20)  # the grid is coloured anew around the field
    page.wait_for_selector("td.num:not(.warn, .bad):has([value='1|10000'])")
    assert page.evaluate("document.activeElement.id") == "smallest"
    page.keyboard.type("7")
    assert page.input_value("#smallest") == "1000057"
    page.check("input[name=cell][value='1|100']", force=True)
    page.wait_for_selector("main:has-text('100 credits, each count within ± 83')")
    assert "credits = 100" in page.inner_text("#policy")


def grant_first(page: Any) -> None:
    """The page of a new table leads to its first token."""
    page.click("#first-grant")
    page.wait_for_selector("html[data-ready='wards/access']")
    page.fill("#name", "first")
    page.click("#give:enabled:has-text('10 credits')")
    page.wait_for_selector("#token:visible")


@pytest.mark.slow
def test_the_adviser_reads_the_rows_for_the_owner(visit: Visits, site: Home) -> None:
    """Ids, decimal commas, ?, several rows for a person: not ready, until the owner says so."""
    lines = [
        f"{70_000 + 3 * (i % 300)};{40 + i % 60},5;{'FM'[i % 2]};{'AZ'[i < 4]};{18 + i % 70}"
        for i in range(900)
    ]
    (site.home / "visits.csv").write_text("PatientId;weight;sex;ward;age\n" + "\n".join(lines))
    shape = {
        "PatientId": ("number", "0", "100000", ""),
        "weight": ("number", "0", "300", ""),
        "sex": ("category", "", "", "female, male"),
        "ward": ("category", "", "", "A, Z"),
        "age": ("number", "18", "87", ""),
    }
    columns = [
        DraftColumn(
            name=name,
            type="bigint" if kind == "number" else "varchar",
            kind=kind,
            low=low,
            high=high,
            values=values,
            public=name == "ward",
            confirmed=name == "ward",
        )
        for name, (kind, low, high, values) in shape.items()
    ]
    with (site.home / "sulq.toml").open("a") as policy:
        policy.write(
            "\n[elsewhere]\nsource = 'x.csv'\nledger = 'x.ledger'\npromise = {epsilon = 2}\n"
        )
        policy.write("columns.ill = {flag = true}\n")
    number = DRAFTS.add(Draft(name="visits", source="visits.csv", columns=columns, queries=10))
    found = visit()
    page = found.page
    found.enter("data-office", f"publish?draft={number}&step=publish")
    page.wait_for_selector("#fits")
    assert page.inner_text("#board") == "40 % becomes at most 65 %"
    text = page.inner_text("main")
    for said in (
        "one ROW: a person with several rows is not protected as a person",
        "PatientId repeats: if it tells people apart",
        "ward: 2 cells, 1 of them with fewer than 10 rows",
        "PatientId looks like an identifier, by its name.",
        "most of the others have a decimal comma, as in 62,5.",
        '("F", "female").',
        "age has bounds that are the data's own ends.",
        "elsewhere lose epsilon",
    ):
        assert said in text, said
    assert page.inner_text("#advised") == "not ready"
    for tick in page.locator("#last [type=checkbox]").all():
        tick.check()
    assert page.is_disabled("#publish")
    found.accessible("advice")
    found.fits((390, 320))
    page.set_viewport_size({"width": 1280, "height": 900})
    for name in ("identifier_ok-0", "partial-1", "partial-2", "known-4"):
        page.check(f"#{name}")
        page.wait_for_selector(f"#policy:has-text('{POLICY_WORDS[name[:-2]]}')")
    page.check("#apart")
    page.wait_for_selector("#policy:has-text('apart = true')")
    page.wait_for_selector("#advised:has-text('ready'):not(:has-text('not'))")
    assert "identifier_ok = true" in page.inner_text("#policy")
    for tick in page.locator("#last [type=checkbox]").all():
        tick.check()
    page.click("#publish")
    page.wait_for_selector("#first-grant")
    table = read_policy(site.home / "sulq.toml")["visits"]
    assert "identifier_ok" not in json.dumps(table.schema().to_json())
    assert "decimal comma" not in site.log.getvalue()


def check_published(page: Any) -> None:
    page.wait_for_selector("h1:text-is('wards is published')")
    said = page.inner_text("main")
    assert "Draft" not in said and "cannot be undone" not in said and "no such draft" not in said
    page.wait_for_selector("#top summary:has-text('wards')")  # parts of a page come one by one
    page.wait_for_function("document.querySelectorAll('.steps li.done').length === 6")  # rehearsed


@pytest.mark.slow
def test_a_tick_waits_for_what_its_step_asks(visit: Visits, site: Home) -> None:
    shutil.copy(site.home / "wards.parquet", site.home / "more.parquet")
    found = visit()
    found.enter("data-office", "publish")
    page = found.page
    page.check("input[value='more.parquet']")
    page.click("#begin button")
    page.wait_for_selector("#table-name")
    page.goto(page.url + "&step=publish")
    page.wait_for_selector("[data-page][data-step=publish]")
    done = page.locator(".steps li.done").all_inner_texts()
    assert [text.split("\n")[-1] for text in done] == ["Source", "Who is protected", "Promise"]
    page.goto(f"{site.url}/t/admissions/publish?draft={'0' * 16}")
    page.wait_for_selector("main:has-text('This draft is gone.')")
    assert page.is_visible("#begin")
    (site.home / "more.parquet").unlink()


@pytest.mark.slow
def test_the_audit_report_has_its_style(visit: Visits, site: Home) -> None:
    """As the console opens it: a page that inherits the console's policy."""
    site.database.grant("carl", 5)
    site.database.revoke("carl")
    for who, page_name in (("data-office", "ledger"), ("audit-board", "budget")):
        found = visit()
        found.enter(who, page_name)
        with found.page.expect_popup() as opened:
            found.page.click("[data-report]")
        report = opened.value
        report.wait_for_selector("h1:text-is('admissions')")
        assert report.url.startswith("blob:")
        assert report.evaluate("document.styleSheets[0].cssRules.length") > 30
        assert "system-ui" in report.evaluate("getComputedStyle(document.body).fontFamily")
        assert report.evaluate("document.querySelector('.mark').getBoundingClientRect().width") < 40
        bars = report.evaluate(GAUGES)
        assert len(bars) >= 3 and all(0 < inside <= wide for inside, wide in bars)
        assert "revoked" in report.inner_text("tr:has-text('carl')")
        assert report.locator(".gauge:visible").count() == len(bars)


@pytest.mark.slow
def test_every_number_is_on_the_ledgers_page(visit: Visits, site: Home) -> None:
    found = visit()
    found.enter("audit-board", "ledger")
    text = ""
    while True:
        text += " ".join(found.page.locator("#entries tbody th").all_inner_texts())
        older = found.page.locator("#entries button:text-is('Older')")
        if not older.count():
            break
        first = found.page.inner_text("#entries tbody th")
        older.click()
        found.page.wait_for_function(
            "(first) => document.querySelector('#entries tbody th').innerText !== first", arg=first
        )
    numbers = [int(number) for number in re.findall(r"#(\d+)", text)]
    assert sorted(numbers) == list(range(1, site.database.statement().statement.seq + 1))
    assert re.search(r"#\d+ answered", text)


@pytest.mark.slow
def test_made_up_rows_are_tried_from_the_tables_page(visit: Visits) -> None:
    """The link opens what it says: the first example, answered on rows that belong to nobody."""
    found = visit()
    found.enter("epi-team", "table")
    left, page = found.left(), found.page
    page.click("a[href$='#made-up']")
    found.ready("ask")
    page.wait_for_selector("#made-up:disabled:has-text('Making up rows')")
    page.wait_for_selector("#answer .chip:text-is('made-up rows')")
    page.wait_for_selector("#made-up:enabled:text-is('Try on made-up rows')")
    assert page.input_value("#sql").startswith("SELECT") and "#" not in page.url
    assert page.is_visible("#stripe") and found.left() == left


@pytest.mark.slow
def test_a_private_median_is_not_called_public(visit: Visits) -> None:
    """Also where the range is as narrow as one step: what was paid for is no public fact."""
    found = visit()
    found.enter("epi-team", "ask")
    found.price("SELECT MEDIAN(stay_days) FROM admissions")
    found.ask()
    page = found.page
    assert page.locator("#answer .chip:text-is('public')").count() == 0
    assert "public" not in page.inner_text("#result")
    assert not page.inner_text("#bar [data-q=get]").startswith("none")
    assert not re.search(r"\bfree\b", page.inner_text("#answer header"))


SHOWN = """() => [...document.querySelectorAll("#result tbody tr")].map((row) => [
  row.cells[0].innerText, row.querySelector("data")?.value ?? "", row.cells[1].innerText,
  row.cells[2].innerText])"""


@pytest.mark.slow
def test_the_file_says_what_the_screen_says(visit: Visits) -> None:
    """Each value with its digits and its range; a row without a reading has no number in it."""
    found = visit()
    found.enter("epi-team", "ask")
    found.price("SELECT sex, AVG(stay_days) AS stay FROM admissions WHERE age >= 40 GROUP BY sex")
    found.ask()
    shown = found.page.evaluate(SHOWN)
    with found.page.expect_download() as saving:
        found.page.click("#csv")
    rows = list(csv.DictReader(io.StringIO(saving.value.path().read_text())))
    assert [row["sex"] for row in rows] == [key for key, *_ in shown]
    assert [row["stay"] for row in rows] == [value for _, value, *_ in shown]
    for row, (_, value, said, ends) in zip(rows, shown, strict=True):
        assert (value == "") == (said == "no reading")
        assert ends == (f"{row['stay_low']} to {row['stay_high']}" if value else "")
        assert not value or 0 <= float(row["stay_low"]) <= float(row["stay_high"]) <= 60
        assert row["credits"] and row["confidence"] == "95 %" and row["receipt"].startswith("#")
    assert "" in [row["stay"] for row in rows]


GAUGES = """() => [...document.querySelectorAll(".gauge")].map((gauge) => [
  gauge.firstElementChild.getBoundingClientRect().width, gauge.getBoundingClientRect().width])"""


def test_nothing_of_others_and_no_row_reaches_an_analyst(visit: Visits, site: Site) -> None:
    found = visit()
    page = found.page
    found.enter("epi-team", "table")
    for place in ("learn", "budget", "risk", "ledger"):
        found.walk(place)
        assert "style=" not in page.inner_html("main")
        assert "anonymous" not in page.inner_text("main").lower()
    seen = "".join(found.bodies) + page.content()
    token = site.tokens["epi-team"]
    assert "rival-lab" not in seen and "data-office" not in seen and CANARY not in seen
    assert "age >= 83" not in seen and "age ≥ 83" not in seen
    assert token not in page.content() and token not in page.url
    assert CANARY not in site.log.getvalue() and token not in site.log.getvalue()


@pytest.mark.slow
def test_every_page_is_accessible_and_fits_a_phone(visit: Visits) -> None:
    found = visit()
    page = found.page

    def check(what: str) -> None:
        found.accessible(what)
        found.fits((390, 320))
        page.set_viewport_size({"width": 1280, "height": 900})

    found.enter("data-office", "budget")
    for place in PAGES:
        found.walk(place)
        if place == "learn":
            page.wait_for_selector("#bar [data-state]")
            page.fill("#credits", "1")
            page.click("#go:enabled:has-text('Learn for 1 credit')")
            page.wait_for_selector("#found > *")
        check(place)
    page.click("tr[data-name=epi-team] [data-get$=revoke]")
    page.wait_for_selector("#revoke")
    check("revoke")
    found.walk("publish")
    page.click("#begin .primary")
    page.wait_for_selector("#table-name")
    check("publish, source")
    for step in ("who", "columns", "promise", "rehearse", "publish"):
        page.click(f".steps a[href$='step={step}']")
        page.wait_for_selector(f"[data-page][data-step={step}]")
        found.ready("publish")
        check(f"publish, {step}")


def test_what_a_page_loads_stays_small() -> None:
    """Uncompressed, as written: the stylesheet, the two large scripts, everything."""
    size = {entry.name: len(static_file(entry.name) or b"") for entry in STATIC.iterdir()}
    scripts = {name for name in size if name.endswith(".js")}
    pages = {
        f"{name}.js" for name in ("ask", "basket", "build", "complete", "ledger", "risk", "learn")
    }
    assert scripts == pages | {"app.js", "theme.js"}  # the other pages need none of their own
    assert size["sulq.css"] <= 24 * 1024 and size["ask.js"] <= 15 * KB
    assert size["ledger.js"] <= 10 * KB and size["build.js"] <= 12 * KB
    assert size["sulq.css"] + sum(size[name] for name in scripts) <= 82 * KB  # unpacked, all pages
    parts = ("app", "ask", "basket", "build", "complete")
    sent = sum(len(squeezed(name)) for name in ("sulq.css", *(f"{part}.js" for part in parts)))
    assert sent <= 30 * KB  # what the heaviest page is sent, cold, the fonts apart
    fonts = [name for name in size if name.endswith(".woff2")]
    assert sum(size[name] for name in fonts) <= 80 * KB
    licences = {name for name in size if name.endswith("-license.txt")}
    assert len(licences) == len(fonts) == 2
