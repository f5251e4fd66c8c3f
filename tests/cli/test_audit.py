"""sulq audit --replay says one word; sulq report is one page without a script."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sulq import col, count
from sulq.cli import audit
from sulq.cli.context import named, opened
from sulq.database import audit as replaying
from sulq.kernel.noise.sampler import draw_noise
from sulq.kernel.release import release as flow


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(replaying, "FEWEST", 8)


def ask(number=8):
    with opened(named(Path("sulq.toml"), "people"), publish=True) as database:
        for age in range(number):
            database.ask(count(where=col("age") > age))


def test_it_prints_one_word_and_nothing_else(sulq, few):
    ask()
    reply = sulq("audit", "people", "--replay")
    assert (reply.code, reply.out) == (0, "pass\n")
    assert "8 questions are too few" in reply.err  # of their number alone
    reply = sulq("audit", "--replay", "--json")
    told = '{"replay": "pass", "questions": 8, "shortfall_seen": null}\n'
    assert (reply.out, reply.err) == (told, "")


def test_it_says_the_smallest_fault_that_so_many_questions_show():
    said = audit._sees(2_000, replaying.smallest_shortfall(2_000, "gaussian"), "gaussian")
    assert said == (
        "2,000 questions show noise that is 15% too small or more (an epsilon of 1.18 times the"
        " promise), and two answers without noise"
    )


def test_a_failure_is_one_word_too(sulq, few, monkeypatch):
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [0 * r for r in draw_noise(laws)])
    ask()
    reply = sulq("audit", "--replay")
    assert (reply.code, reply.out) == (3, "fail\n")
    assert '"noise test"' not in reply.out
    sulq("report")
    page = Path("report.html").read_text()
    assert '<span class="chip bad">fail</span>' in page


def test_too_few_are_refused(sulq):
    assert "is not published" in sulq("audit", "--replay").err
    ask()
    reply = sulq("audit", "--replay")
    assert (reply.code, reply.out) == (3, "")
    assert "200" in reply.err
    assert sulq("audit").code == 2


def test_the_report_is_one_page_of_plain_html(sulq, few):
    ask()
    with opened(named(Path("sulq.toml"), "people")) as database:
        database.grant("<b>zoe</b>", 5)
    sulq("audit", "--replay")
    assert sulq("report", "-o", "mine.html").code == 0
    assert sulq("report", "--public", "-o", "all.html").code == 0
    mine, everybody = (Path(f"{name}.html").read_text() for name in ("mine", "all"))
    assert "&lt;b&gt;zoe&lt;/b&gt;" in mine
    assert "zoe" not in everybody
    for page in (mine, everybody):
        assert "NIST SP 800-226" in page
        assert "<script" not in page
        assert "http" not in page
        assert "<b>zoe" not in page
        assert "ε = 1, δ = 10<sup>−6</sup>" in page
        assert "12 <small>of 20 credits left" in page
    assert '<span class="chip ok">pass</span>' in mine
    assert "pass</span>" not in everybody  # a word about the rows is not for everybody
    assert "its word is the owner" in everybody


def test_the_report_is_read_while_another_holds_the_ledger(sulq):
    ask(2)
    with opened(named(Path("sulq.toml"), "people"), publish=True):
        assert sulq("report").code == 0
    assert "not run" in Path("report.html").read_text()


def test_a_lost_anchor_shows(sulq, state_directory):
    ask(1)
    for anchor in state_directory.glob("ledgers/*/anchor"):
        anchor.unlink()
    sulq("report")
    assert '<span class="chip bad">anchor lost</span>' in Path("report.html").read_text()


def test_no_browser_no_pdf(sulq, monkeypatch):
    ask(1)
    assert sulq("report", "-o", "report.txt").code == 2
    monkeypatch.setattr(audit, "BROWSERS", ("no-such-browser",))
    reply = sulq("report", "-o", "report.pdf")
    assert (reply.code, "report.html" in reply.err) == (3, True)
    assert not Path("report.pdf").exists()


@pytest.mark.slow
@pytest.mark.skipif(
    not any(map(shutil.which, audit.BROWSERS)), reason="wants Chromium on this machine"
)
def test_the_pdf_is_one_page(sulq):
    ask(2)
    for name in range(9):
        sulq("grant", f"analyst {name}", "1")
    assert sulq("report", "-o", "report.pdf").code == 0
    content = Path("report.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") == 1
