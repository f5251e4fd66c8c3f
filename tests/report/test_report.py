"""audit_report is a pure function of public facts."""

from __future__ import annotations

import base64
import hashlib
from fractions import Fraction
from html.parser import HTMLParser

import pytest
from tests.people import frame, publish

from sulq import Category, Number, Promise, Schema, col, count, histogram, mean, quantiles, total
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.query.sql_text import kind_of
from sulq.report import AskedKind, asked, audit_report, by_kind
from sulq.report.hazards import HAZARDS
from sulq.report.style import SHA256

VOID = {"meta", "br", "circle", "path", "rect"}


class Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def db():
    found = publish(promise=Promise(epsilon=1, delta="1e-6", queries=500))
    found.ask(count(where=col("age") > 30))
    found.ask(mean(col("income")))
    found.ask(histogram("blood"))
    found.ask(total(col("income"), where=col("smoker")))
    found.ask(quantiles("age", [0.5]))
    found.top("blood", k=1)
    found.grant("zoe", 7)
    yield found
    found.close()


def charges(db):
    return [asked(e.question, e.noise, e.charged.values()) for e in db.ledger.entries()]


def test_kinds_are_read_off_the_ledger(db):
    assert [one.kind for one in charges(db)] == [
        "Counts",
        "Averages and spreads",
        "Histograms",
        "Totals",
        "Distributions and quantiles",
        "Largest cells, names only",
    ]
    assert kind_of("{}", '{"derived":[3]}').startswith("Free")


def test_kinds_add_up():
    charges = [("a", Fraction(1)), ("b", Fraction(5)), ("a", Fraction(1, 2))]
    found = by_kind([AskedKind(kind, credits) for kind, credits in charges])
    assert found == [("b", 1, Fraction(5)), ("a", 2, Fraction(3, 2))]
    assert asked('{"alert":{}}', "[]", [Loss.of(Fraction(2)), Loss.of(Fraction(1))]).credits == 2


@pytest.mark.parametrize("public", [True, False])
def test_the_page_is_whole_and_says_what_it_must(db, public):
    page = audit_report(db.statement(), charges(db), public=public, noise_test="pass", at="today")
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    statement = db.statement().statement
    for text in (statement.head, statement.public_key, "one row", "gaussian", "today"):
        assert text in page
    assert all(hazard.what in page for hazard in HAZARDS)
    assert ("zoe" in page) is not public
    assert page == audit_report(
        db.statement(), charges(db), public=public, noise_test="pass", at="today"
    )


def test_the_page_needs_no_style_but_its_sheet_and_marks_who_was_revoked():
    """A browser lets one sheet in by its hash, and no style attribute."""
    with publish() as db:
        db.grant("ann", 10)
        db.grant("carl", 5)
        db.as_analyst("carl").ask(count(where=col("smoker")))
        db.revoke("carl")
        page = audit_report(db.statement(), charges(db), public=False)
    assert "style=" not in page
    sheet = page.split("<style>")[1].split("</style>")[0]
    assert base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode() == SHA256
    lines = {name: page.split(f"<tr><td>{name}")[1].split("</tr>")[0] for name in ("ann", "carl")}
    assert 'rect width="100.0"' in lines["ann"] and "revoked" not in lines["ann"]
    assert "revoked" in lines["carl"] and "rect" not in lines["carl"]


def test_public_pages_do_not_depend_on_the_word(db):
    pages = {
        audit_report(db.statement(), charges(db), public=True, noise_test=word)
        for word in ("pass", "fail")
    }
    assert len(pages) == 1


def test_persons_and_a_broken_chain_are_told():
    rows = frame(300).assign(who=[i % 100 for i in range(300)])
    schema = Schema(Number("age", 0, 120), Category("name"), unit="who", max_rows=3)
    with publish(rows.assign(name="x"), schema, name="<t>") as db:
        page = audit_report(db.statement(), [], public=False, chain="rolled <back>")
    assert "one person (who, up to 3 rows)" in page
    assert "rolled &lt;back&gt;" in page
    assert "&lt;t&gt;" in page
    assert "None yet." in page
