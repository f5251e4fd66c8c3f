"""The audit report: one page of HTML, made of the ledger's public facts. No script, no request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from html import escape
from typing import NamedTuple

from sulq.account import Account
from sulq.beliefs.confidence import percent_up, worst, worst_so_far
from sulq.formatting import left_text, price_text
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.inspect import AnalystLine
from sulq.kernel.query.sql_text import kind_of
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.study import Study, schema_from_json
from sulq.report.hazards import HAZARDS, NOT_COVERED
from sulq.report.style import LOGO, STYLE

__all__ = ["AskedKind", "asked", "audit_report"]

MOST_ANALYSTS, MOST_KINDS = 6, 6
LOW = Fraction(1, 10)
NOISE_TESTS = {
    "pass": ("ok", "pass"),
    "fail": ("bad", "fail"),
    None: ("", "not run"),
}


def audit_report(
    account: Account,
    charges: Iterable[AskedKind],
    *,
    public: bool,
    auditor: bool = False,
    noise_test: str | None = None,
    chain: str | None = None,
    at: str = "",
) -> str:
    """One table on one page. `public` leaves out names, and the word of the noise test; for an
    `auditor` only that word is left out.

    `charges`: one `asked(question, noise, losses)` for each. `noise_test`: "pass", "fail" or None.
    `chain`: what is wrong with the chain or its anchor; None: both verify. `at`: when, as text.
    """
    table = escape(account.statement.table)
    parts = [
        _header(account, "public" if public else "auditor" if auditor else "owner", at),
        f'<div class="row">{_promise(account)}{_budget(account)}</div>',
        f'<div class="row">{_questions(list(charges))}'
        f"{_trust(account, public or auditor, noise_test, chain)}</div>",
        "" if public else _analysts(account.statement.analysts),
        _hazards(),
        _not_covered(),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Audit report: {table}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _header(account: Account, reader: str, at: str) -> str:
    seen = account.statement
    who = "public version" if reader == "public" else f"{reader}’s version, with names"
    closed = seen.closed
    state = ("warn", "Closed for good") if closed is not None else ("ok", "Open")
    return (
        f"<header>{LOGO}<div><h1>{escape(seen.table)}</h1>"
        '<p class="muted">Audit report of a private statistical table</p></div>'
        f'<span class="chip {state[0]}">{state[1]}</span>'
        f'<div class="end muted">{escape(at)}<br>{who}</div></header>'
    )


def _promise(account: Account) -> str:
    promise = account.promise
    schema = schema_from_json(json.loads(account.statement.facts["schema"]))
    unit, most = schema.unit, schema.max_rows
    if unit == "row":
        whom = "one row"
    elif isinstance(schema, Study):
        names = ", ".join(schema.names)
        whom = f"one person ({escape(unit)}), with all rows in {escape(names)}"
    else:
        rows = "1 row" if most == 1 else f"up to {most:,} rows"
        whom = f"one person ({escape(unit)}, {rows})"
    change = "its values change" if promise.neighbours == "replace" else "it is there or not"
    symbols = f"ε = {_plain(promise.epsilon)}, δ = {_power(promise.delta)}"
    if not account.as_promised:
        words = f'<p class="said">{escape(account.guarantee)}</p>'
    else:
        words = f'<p class="said">{_believed(promise)}</p>'
    lines = [
        ("protected", f"{whom}; neighbours: {change}"),
        ("promise", f"<b>{symbols}</b>, {escape(promise.noise)} noise"),
    ]
    return f'<section class="card"><h2>Promise</h2>{words}{_list(lines)}</section>'


def _budget(account: Account) -> str:
    seen = account.statement
    cap = seen.cap.credits_fraction
    share = min(Fraction(1), account.spent / cap) if cap else Fraction(1)
    left = account.left - seen.reserved.credits_fraction
    lines = [("spent", f"{price_text(account.spent)} of {left_text(cap)} credits, for good")]
    if len(seen.accounts) > 1:
        lines.append(("strata", f"{len(seen.accounts):,}; this is the one that spent most"))
    if account.as_promised:
        now = worst_so_far(account.promise, account.spent)
        said = f"{100 * now.prior:.3g} % could have become {percent_up(now.posterior)} %"
        lines.append(("so far", f"{said} <small>(indicative)</small>"))
    big = f"{left_text(left)} <small>of {left_text(cap)} credits left</small>"
    if seen.closed is not None:
        unspent = left_text(max(cap - account.spent, Fraction(0)))
        never = f"{unspent} of {left_text(cap)} credits were never spent"
        big = f"0 left <small>closed for good; {never}</small>"
    return (
        '<section class="card"><h2>Budget for life</h2>'
        f'<p class="big">{big}</p>'
        f"{_gauge(1 - share)}"
        f"{_list(lines)}</section>"
    )


def _questions(charges: list[AskedKind]) -> str:
    lines = by_kind(charges)
    if len(lines) > MOST_KINDS:
        rest = lines[MOST_KINDS - 1 :]
        count, credits = sum(line[1] for line in rest), sum((line[2] for line in rest), Fraction(0))
        lines = [*lines[: MOST_KINDS - 1], ("Others", count, credits)]
    rows = "".join(
        f'<tr><td>{kind}</td><td class="n">{count:,}</td>'
        f'<td class="n">{price_text(credits)}</td></tr>'
        for kind, count, credits in lines
    )
    if not rows:
        return '<section class="card"><h2>Questions</h2><p class="muted">None yet.</p></section>'
    return (
        '<section class="card"><h2>Questions</h2><table><tr><th>kind</th><th class="n">asked</th>'
        f'<th class="n">credits</th></tr>{rows}</table></section>'
    )


def _trust(account: Account, public: bool, noise_test: str | None, chain: str | None) -> str:
    seen = account.statement
    style, word = NOISE_TESTS[noise_test]
    if public:  # the word is a function of the rows
        style, word = "", "not run" if noise_test is None else "run; its word is the owner’s"
    good, said = ("ok", "verifies") if chain is None else ("bad", escape(chain))
    lines = [
        ("chain", f'<span class="chip {good}">{said}</span> {seen.seq:,} events'),
        ("noise test", f'<span class="chip {style}">{word}</span>'),
    ]
    if seen.recoveries:
        lines.append(("recoveries", f"{seen.recoveries:,}, recorded for ever"))
    if amended := len(seen.amended):
        often = "once" if amended == 1 else f"{amended:,} times"
        lines.append(("amended", f"{often}; what was spent stayed spent"))
    if seen.withdrawn is not None:
        lines.append(("withdrawn", f"before anything was asked, {escape(str(seen.withdrawn))}"))
    lines += [
        ("head", f"<code>{escape(seen.head)}</code>"),
        ("public key", f"<code>{escape(seen.public_key)}</code>"),
    ]
    return f'<section class="card"><h2>Trust</h2>{_list(lines)}</section>'


def _analysts(analysts: tuple[AnalystLine, ...]) -> str:
    shown = sorted(analysts, key=lambda line: -line.spent.credits)
    more = len(shown) - MOST_ANALYSTS
    rows = "".join(
        f"<tr><td>{escape(line.name)}</td><td>{_share(line)}</td>"
        f'<td class="n">{price_text(line.spent.credits_fraction)}</td>'
        f'<td class="n">{_granted(line)}</td></tr>'
        for line in shown[:MOST_ANALYSTS]
    )
    if more > 0:
        rows += f'<tr><td class="muted" colspan="4">and {more:,} more</td></tr>'
    return (
        '<section class="card"><h2>Analysts</h2><table><tr><th>name</th><th>left</th>'
        f'<th class="n">spent</th><th class="n">granted</th></tr>{rows}</table></section>'
    )


def _granted(line: AnalystLine) -> str:
    return "owner" if line.granted is None else left_text(line.granted.credits_fraction)


def _share(line: AnalystLine) -> str:
    """What is left of a grant, as a bar."""
    if line.granted is None or (not line.granted.credits and line.revoked is None):
        return ""
    if line.revoked is not None:
        return '<span class="chip">revoked</span>'
    return _gauge(max(Fraction(0), 1 - Fraction(line.spent.credits, line.granted.credits)), " thin")


def _gauge(left: Fraction, kind: str = "") -> str:
    """Drawn by attributes: a page that takes one style sheet by its hash takes no style beside."""
    low = " low" if left < LOW else ""
    wide = f"{float(100 * left):.1f}"
    return (
        f'<svg class="gauge{kind}{low}" viewBox="0 0 100 1" preserveAspectRatio="none" role="img"'
        f' aria-label="{wide} % left"><rect width="{wide}" height="1"/></svg>'
    )


def _hazards() -> str:
    rows = "".join(
        f"<tr><td>{escape(one.what)}</td><td>{escape(one.done)}</td><td>{escape(one.duty)}</td></tr>"
        for one in HAZARDS
    )
    return (
        '<section class="card hazards"><h2>Hazards, after NIST SP 800-226</h2><table><tr>'
        "<th>hazard</th><th>what sulq does</th><th>what stays your duty</th></tr>"
        f"{rows}</table></section>"
    )


def _not_covered() -> str:
    said = "; ".join(escape(one) for one in NOT_COVERED)
    return (
        f'<section class="card"><h2>Not covered by any promise of this kind</h2><p>{said}.</p>'
        '<p class="muted">Receipts: <code>sulq verify receipts.jsonl --head HASH</code>. Noise:'
        " <code>sulq audit --replay</code>, which says pass or fail and nothing else.</p></section>"
    )


def _list(lines: list[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in lines)}</dl>"


def _believed(promise: Promise) -> str:
    """The bound that people read, and the wider one that holds but for delta."""
    found = worst(promise)
    figure, _, rest = found.limits.partition(" %")
    return (
        f"Who knew every other record and believed <b>{100 * found.prior:.3g} %</b> about one may,"
        f" after everything that is ever answered, believe at most <b>{figure} %</b>{rest}."
    )


def _plain(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"


def _power(value: Fraction) -> str:
    """1e-06 as 10 to the -6."""
    if value == 0:
        return "0"
    digits, _, exponent = f"{float(value):.3g}".partition("e")
    if not exponent:
        return digits
    front = "" if digits == "1" else f"{digits} · "
    return f"{front}10<sup>{str(int(exponent)).replace('-', '−')}</sup>"


# What was asked, by kind: read off the canonical texts that the ledger keeps.


class AskedKind(NamedTuple):
    """One charge: what kind of question, and what the account that paid most paid."""

    kind: str
    credits: Fraction


def asked(question: str, noise: str, losses: Iterable[Loss]) -> AskedKind:
    """A charge of the ledger, as the report counts it."""
    most = max((loss.credits_fraction for loss in losses), default=Fraction(0))
    return AskedKind(kind_of(question, noise), most)


def by_kind(charges: Iterable[AskedKind]) -> list[tuple[str, int, Fraction]]:
    """Kind, how many, and credits of the accounts that paid most; the dearest first."""
    found: dict[str, tuple[int, Fraction]] = {}
    for charge in charges:
        count, credits = found.get(charge.kind, (0, Fraction(0)))
        found[charge.kind] = count + 1, credits + charge.credits
    lines = [(kind, count, credits) for kind, (count, credits) in found.items()]
    return sorted(lines, key=lambda line: (-line[2], -line[1], line[0]))
