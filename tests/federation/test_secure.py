"""Owners who add securely: one noise for all, drawn in shares, under masks that cancel. V.4"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from nacl.public import PrivateKey
from tests.federation.test_rows import FRAMES, QUESTIONS, SCHEMA, frame
from tests.kernel.noise.conftest import _assert_follows

import sulq.database.sharing as sharing
import sulq.kernel.release.release as flow
from sulq import (
    BudgetSpent,
    Database,
    EngineFailed,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    SulqError,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.database.audit import _checks
from sulq.database.table import PlainReader
from sulq.federation import Partners, SecureRowSplit, split_rows
from sulq.kernel.accounting.loss import parts_slack
from sulq.kernel.ledger.backup import Backup, back_up, restore
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, DividedLaplace
from sulq.kernel.query.sql_text import kind_of, question_text
from sulq.learn import PCA
from sulq.shares import MODULUS, totals

PURE, GAUSSIAN = Promise(1), Promise(1, 1e-6)
ASKED = count(where=col("age") >= 65)


def met(owners: Sequence[Database], colluding: int = 1) -> list[Database]:
    """The owners, each with the others' keys."""
    keys = [owner.share_key for owner in owners]
    for own, owner in zip(keys, owners, strict=True):
        owner.set_partners(Partners([key for key in keys if key != own], colluding))
    return list(owners)


def opened(
    promise: Promise = PURE,
    frames: Sequence[pd.DataFrame] = FRAMES,
    colluding: int = 1,
    schema: Schema = SCHEMA,
) -> list[Database]:
    tables = [
        Database.open(rows, schema, promise, ":memory:", name=f"owner{place}")
        for place, rows in enumerate(frames)
    ]
    return met(tables, colluding)


def left(owners: Sequence[Database]) -> list[Fraction]:
    return [owner.remaining for owner in owners]


# --- the sum ------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.kind)
def test_masks_cancel_and_the_total_is_that_of_one_table(
    question: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [0] * len(laws))
    found = split_rows(*opened(GAUSSIAN), secure=True).ask(question)
    whole = Database.open(pd.concat(FRAMES), SCHEMA, GAUSSIAN, ":memory:")
    bound = whole.bind(question)
    exact = bound.lifted(whole.engine.prepare(bound.sums)())
    assert list(found.values) == exact


@pytest.mark.sample(3)
@pytest.mark.parametrize("promise", [PURE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(("owners", "colluding"), [(2, 0), (3, 0), (3, 1), (5, 1)])
def test_the_bar_is_that_of_one_noise(promise: Promise, owners: int, colluding: int) -> None:
    tables = opened(promise, [frame(30, seed) for seed in range(owners)], colluding)
    analysts = []
    for table in tables:
        table.grant("ann", 50)
        analysts.append(table.as_analyst("ann"))
    secure, alone = split_rows(*analysts, secure=True), tables[0].quote(ASKED).standard_error
    larger = math.sqrt(owners / (owners - colluding))
    assert secure.quote(ASKED).standard_error == pytest.approx(alone * larger, rel=1e-6)
    answer = secure.ask(ASKED)
    assert answer.standard_error == pytest.approx(alone * larger, rel=1e-6)
    assert answer.credits == 1 and [ann.remaining for ann in analysts] == [49] * owners
    assert answer.receipt.seq == tuple(receipt.seq for receipt in answer.receipt.each)
    truth = sum(int((frame(30, seed).age >= 65).sum()) for seed in range(owners))
    assert abs(float(answer) - truth) < 20 * answer.standard_error


@pytest.mark.sample(1)
@pytest.mark.parametrize("colluding", [1, 2])
def test_errors_of_totals_follow_the_law_that_is_told(colluding: int) -> None:
    """Three thousand cells of totals, at a false alarm of 1e-6."""
    schema = Schema(Number("age", 0, 100, step=1))
    rows = pd.DataFrame({"age": np.arange(100)})
    tables = opened(Promise(100, queries=1000), [rows] * 4, colluding, schema)
    secure = split_rows(*tables, secure=True)
    cells, errors = histogram("age", edges=list(range(0, 101, 2))), []
    for number in range(60):
        answer = secure.ask(cells, key=f"round-{number}-of-it")
        errors += [value - 8 for value in answer.values[:-1]]
    assert answer.laws == (DividedLaplace(Fraction(10), Fraction(4, 4 - colluding)),)
    _assert_follows(errors, answer.laws[0])


@pytest.mark.slow
def test_the_figures_of_the_guide() -> None:
    """The standard error of a count by owners and colluders, as the guide's table has it."""
    for promise, alone, shown in (
        (
            GAUSSIAN,
            42.2,
            {
                2: (59.7, 42.2),
                3: (73.2, 42.2, 51.7),
                5: (94.5, 42.2, 47.2),
                10: (133.6, 42.2, 44.5),
            },
        ),
        (
            PURE,
            141.4,
            {
                2: (200.0, 141.4),
                3: (244.9, 141.4, 173.2),
                5: (316.2, 141.4, 158.1),
                10: (447.2, 141.4, 149.1),
            },
        ),
    ):
        tables = opened(promise, [frame(20, seed) for seed in range(10)])
        keys = [table.share_key for table in tables]
        for table in tables:
            table.grant("ann", 9)
        assert round(tables[0].quote(ASKED).standard_error, 1) == alone
        for owners, (plain, *secure) in shown.items():
            some = tables[:owners]
            assert round(split_rows(*some).quote(ASKED).standard_error, 1) == plain
            for colluding, wanted in enumerate(secure):
                for table, own in zip(some, keys, strict=False):
                    others = [key for key in keys[:owners] if key != own]
                    table.set_partners(Partners(others, colluding))
                joint = split_rows(*(table.as_analyst("ann") for table in some), secure=True)
                assert round(joint.quote(ASKED).standard_error, 1) == wanted


def test_within_is_the_bar_of_the_total() -> None:
    for promise in (PURE, GAUSSIAN):
        secure = split_rows(*opened(promise), secure=True)
        quote = secure.quote(ASKED, within=100)
        assert quote.interval()[1] <= 100 < 1.1 * quote.interval()[1]
        assert secure.ask(ASKED, within=100).credits == quote.credits


def test_sql_and_learners_see_one_table() -> None:
    secure = split_rows(*opened(Promise(5, 1e-6)), secure=True)
    found = secure.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city")
    assert sum(cell.value for cell in found.column("n")) == pytest.approx(23_500, abs=300)
    keyed = [secure.sql("SELECT COUNT(*), AVG(age) FROM t", key="k 1") for _ in range(2)]
    assert [found.credits > 0 for found in keyed] == [True, False]
    assert PCA(n_components=1).fit(secure, ["age", "income"]).components_.shape == (1, 2)


def test_tables_of_very_different_size_add_up_or_are_refused_free() -> None:
    promise = Promise(100)
    tables = opened(promise, [frame(20_000, 1), frame(10, 2), frame(10, 3)])
    assert len({table.schema.bits for table in tables}) == 2
    secure = split_rows(*tables, secure=True)
    found = secure.ask(total("income"))
    truth = sum(frame(*of).income.clip(-1000, 5000).sum() for of in ((20_000, 1), (10, 2), (10, 3)))
    assert float(found) == pytest.approx(truth, abs=10 * found.standard_error + 1000)


# --- what leaves --------------------------------------------------------------------------------


def test_without_all_shares_there_is_nothing() -> None:
    shares = [table.share(ASKED, joint="one-sum-1").values for table in opened()]
    whole = totals(shares)
    assert whole is not None and abs(whole[0]) < 10**6
    for gone in range(3):
        assert totals([*shares[:gone], *shares[gone + 1 :]]) is None
    assert all(0 <= value < MODULUS for share in shares for value in share)


def test_masks_of_another_sum_are_other_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name, the question, its noise, who takes part, how many collude: one of them changed,
    all is changed; also where another analyst uses the same name."""
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [0] * len(laws))
    tables = opened(frames=[frame(5, 1)] * 4)
    first, keys = tables[0], [table.share_key for table in tables[1:]]
    sent: list[int] = []

    def ask(question: Any = ASKED, joint: str = "sum-number-1", **terms: Any) -> None:
        name = f"analyst{len(sent)}"
        first.grant(name, 3)
        share = first.as_analyst(name).share(question, joint=joint, **terms)
        assert share.credits == terms.get("credits", 1) and first.left_for(name) <= 2
        sent.append(share.values[0])

    ask()
    ask(joint="sum-number-2")
    ask(count(where=col("age") >= 66))
    ask(credits=2)
    first.set_partners(Partners(keys, 2))
    ask()
    first.set_partners(Partners(keys[:2], 1))
    ask()
    for place, one in enumerate(sent):  # uniform and independent: near each other never
        for two in sent[:place]:
            assert min((one - two) % MODULUS, (two - one) % MODULUS) > 1 << 200
    entries = list(first.ledger.entries())
    assert len({entry.digest for entry in entries}) == len(sent)  # each charged by itself


def test_masks_are_known_to_the_two_owners_alone_and_every_cell_has_its_own() -> None:
    """Who knows both public keys and the text knows nothing: the masks need a secret of the two."""
    one, two, outsider = (PrivateKey.generate() for _ in range(3))
    names = [secret.public_key.encode().hex() for secret in (one, two)]
    text, cells = "what the owners agree on", 50
    here = sharing._stream(one, *names, text, cells)
    assert here == sharing._stream(two, *reversed(names), text, cells)
    guessed = sharing._stream(outsider, *names, text, cells)
    found = [*here, *guessed]
    for place, mask in enumerate(found):  # uniform and independent: near each other never
        for other in found[:place]:
            assert min((mask - other) % MODULUS, (other - mask) % MODULUS) > 1 << 200


def test_no_difference_of_two_cells_is_told() -> None:
    """Under one mask for all cells the differences of an owner's own noisy cells would be bare."""
    share = opened()[0].share(histogram("city"), joint="one-sum-1").values
    for place, one in enumerate(share):
        for two in share[:place]:
            assert min((one - two) % MODULUS, (two - one) % MODULUS) > 1 << 200


def test_a_sum_is_drawn_once_and_a_retry_gets_the_same_bytes() -> None:
    tables = opened()
    first = tables[0].share(ASKED, joint="one-sum-1")
    again = tables[0].share(ASKED, joint="one-sum-1")
    assert first.values == again.values and (first.credits, again.credits) == (1, 0)
    assert tables[0].quote_share(ASKED, joint="one-sum-1").quote.repeat
    with pytest.raises(Refused, match="was used for another question"):
        tables[0].share(total("income"), joint="one-sum-1")
    keys = [table.share_key for table in tables[1:]]
    tables[0].set_partners(Partners([*keys, opened()[0].share_key], 1))
    with pytest.raises(Refused, match="was used for another question"):
        tables[0].share(ASKED, joint="one-sum-1")
    assert tables[0].remaining == 99


def test_the_same_question_again_is_free() -> None:
    secure = split_rows(*opened(), secure=True)
    first = secure.ask(ASKED)
    assert secure.quote(ASKED).repeat and secure.quote(ASKED).credits == 0
    again = secure.ask(ASKED)
    assert (again.value, again.credits) == (first.value, 0) and secure.remaining == 99
    assert secure.ask(ASKED, credits=2).credits == 2  # finer: another sum
    assert secure.ask(ASKED, credits=2).credits == 0 and secure.remaining == 97


@pytest.mark.sample(1)
@pytest.mark.parametrize("promise", [PURE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_another_session_gets_the_stored_total_free(tmp_path: Path, promise: Promise) -> None:
    """Tables closed and opened again, another split of them, the price said or not, in any of its
    spellings: the same total to the bit, nothing charged, nothing drawn, no row read."""
    rows = [frame(30, seed) for seed in range(3)]

    def session() -> list[Database]:
        return met(
            [
                Database.open(
                    each, SCHEMA, promise, tmp_path / f"{place}.ledger", name="p", publish=True
                )
                for place, each in enumerate(rows)
            ]
        )

    owners = session()
    first = split_rows(*owners, secure=True).ask(ASKED)
    entries = [len(list(owner.ledger.entries())) for owner in owners]
    assert entries == [1, 1, 1] and left(owners) == [99, 99, 99]
    for owner in owners:
        owner.close()
    owners = session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "draw_noise", _never)
        for owner in owners:
            patch.setattr(owner, "reader", PlainReader(_Unread(owner.engine)))
        for terms in ({}, {"credits": 1}, {"credits": 1.0}, {"credits": Fraction(1)}):
            secure = split_rows(*reversed(owners), secure=True)
            quote = secure.quote(ASKED, **terms)
            assert quote.repeat and (quote.credits, quote.left_after) == (0, 99)
            again = secure.ask(ASKED, **terms)
            assert (again.values, again.credits) == (first.values, 0)
            assert again.laws == first.laws
    assert left(owners) == [99, 99, 99]
    assert [len(list(owner.ledger.entries())) for owner in owners] == entries
    for owner in owners:
        owner.close()


def _never(*_: Any) -> Any:
    raise AssertionError("drawn or read for a repeat")


class _Unread:
    """An engine whose rows nobody may read."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def prepare(self, program: Any) -> Callable[[], list[int]]:
        self._engine.prepare(program)
        return _never

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def test_a_repeat_is_answered_when_nothing_is_left() -> None:
    tables = opened(Promise(1, queries=2))
    secure = split_rows(*tables, secure=True)
    first = secure.ask(ASKED, credits=2)
    assert left(tables) == [0, 0, 0]
    again = split_rows(*tables, secure=True).ask(ASKED, credits=2)
    assert (again.values, again.credits) == (first.values, 0)
    with pytest.raises(BudgetSpent):
        secure.ask(ASKED)  # with other noise it is another sum
    assert left(tables) == [0, 0, 0]


def test_another_analyst_pays_for_the_same_total() -> None:
    tables, found = opened(), []
    for name in ("ann", "bob", "ann"):
        for table in tables:
            table.grant(name, 5)
        asked = split_rows(*(table.as_analyst(name) for table in tables), secure=True)
        found.append(asked.ask(ASKED))
    assert len({answer.values for answer in found}) == 1
    assert [answer.credits for answer in found] == [1, 1, 0]
    assert [table.left_for("ann") for table in tables] == [4 + 5] * 3
    assert [table.left_for("bob") for table in tables] == [4] * 3


def test_after_growth_the_same_question_is_another_sum() -> None:
    """Of other rows, with other masks: asked, charged, and not taken for a key used twice."""
    tables = opened(Promise(1), [frame(30, seed) for seed in range(3)])
    split_rows(*tables, secure=True).ask(ASKED)
    grown = met([tables[0].grow(frame(40, 0)), *tables[1:]])
    again = split_rows(*grown, secure=True)
    assert not again.quote(ASKED).repeat
    assert again.ask(ASKED).credits == 1 and again.ask(ASKED).credits == 0
    assert left(grown[1:]) == [98, 98]


def test_who_has_sent_a_share_sends_it_again_after_a_dropout() -> None:
    """Without a key: the next try is the same sum, and who paid for it does not pay again."""
    tables = opened()

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(tables[1], name)

        def share(self, *args: Any, **terms: Any) -> Any:
            for other in (tables[0], tables[2]):  # they have sent theirs
                other.share(*args, **terms)
            raise Refused("closed")

    broken: Any = Failing()
    with pytest.raises(Refused):
        split_rows(tables[0], broken, tables[2], secure=True).ask(ASKED)
    sent = [next(iter(table.ledger.entries())).values for table in (tables[0], tables[2])]
    split_rows(*tables, secure=True).ask(ASKED)
    assert [next(iter(table.ledger.entries())).values for table in (tables[0], tables[2])] == sent
    assert left(tables) == [99, 99, 99]


def test_two_analysts_of_one_sum_get_the_same_share() -> None:
    table = opened()[0]
    table.grant("ann", 5), table.grant("bob", 5)
    ann, bob = (table.as_analyst(name).share(ASKED, joint="one-sum-1") for name in ("ann", "bob"))
    assert ann.values == bob.values and ann.credits == bob.credits == 1
    assert [table.left_for(name) for name in ("ann", "bob")] == [4, 4]
    assert table.remaining == 91  # the lifetime paid once: 1, and 8 are granted


def test_a_share_is_no_answer_to_anything_else() -> None:
    """Neither is a masked number an answer, nor an answer a share."""
    tables = opened(GAUSSIAN)
    split_rows(*tables, secure=True).ask(ASKED)
    assert not tables[0].quote(ASKED).repeat and tables[0].quote(ASKED).credits == 1
    assert tables[0].ask(ASKED).credits == 1
    assert tables[0].share(ASKED, joint="one-sum-2").credits == 1
    assert tables[0].remaining == 97
    checks = list(_checks(tables[0], None))  # type: ignore[arg-type]
    assert [check.drawn for check in checks] == [False, True, False]
    entry = next(tables[0].ledger.entries())
    assert list(json.loads(entry.noise)) == ["share"]  # unlike the noise of an answer: no law
    assert question_text(entry.question) == "SHARE OF 3 OWNERS: COUNT(*) WHERE age >= 65"
    assert kind_of(entry.question, entry.noise) == "Shares of sums over several owners"


# --- the price ----------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.kind)
@pytest.mark.parametrize("promise", [PURE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_a_share_costs_what_the_question_costs(question: Any, promise: Promise) -> None:
    table = opened(promise)[0]
    asked = table.quote_share(question, rows=10).quote
    assert asked.credits == table.quote(question, rows=10).credits
    bound, cost, _ = sharing._priced(table._sharing, question, None, 0.95, None, 10, "owner")
    whole = table.price(bound, None, 0.95, None, 10)
    more = [
        mine.delta - plain.delta
        for (mine, _), (plain, _) in zip(cost.losses, whole.losses, strict=True)
    ]
    assert all(extra > 0 for extra in more) if promise.delta else more == [0] * len(more)
    assert all(extra < 2**20 for extra in more)  # of 2^-128 each: nothing, and charged


def test_what_gaussian_parts_lack_is_charged() -> None:
    """The distance of a sum of parts to one draw, added up term by term. V.4"""
    for variance, parts in ((1, 2), (1, 3), (Fraction(3, 2), 2), (2, 5)):
        part = DiscreteGaussian(Fraction(variance))
        whole = DiscreteGaussian(Fraction(variance) * parts)
        one = np.array([part.pmf(t) for t in range(-60, 61)])
        together = one
        for _ in range(parts - 1):
            together = np.convolve(together, one)
        middle = len(together) // 2
        wanted = np.array([whole.pmf(t - middle) for t in range(len(together))])
        apart = np.abs(together - wanted).sum() / 2
        slack = float(parts_slack(Fraction(variance), parts))
        assert apart < slack
        assert (variance, parts) != (1, 2) or slack < 100 * apart  # not for nothing
    assert parts_slack(Fraction(2**40), 9) < Fraction(1, 2**800)
    with pytest.raises(InvalidQuery, match="less noise than can be drawn"):
        parts_slack(Fraction(99, 100), 2)


def test_a_share_too_small_anywhere_spends_nothing_anywhere() -> None:
    tables = opened(Promise(1, queries=10))
    tables[1].ask(count(where=col("ill")), credits=9)
    secure = split_rows(*tables, secure=True)
    for key in (None, "known-key"):
        with pytest.raises(BudgetSpent):
            secure.ask(total("income"), credits=2, key=key)
    assert left(tables) == [10, 1, 10]


def test_an_owner_that_fails_leaves_nothing_readable_and_the_rest_is_paid() -> None:
    tables = opened()

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(tables[1], name)

        def share(self, *args: Any, **terms: Any) -> Any:
            raise Refused("closed")

    broken: Any = Failing()
    with pytest.raises(Refused) as caught:
        split_rows(tables[0], broken, tables[2], secure=True).ask(ASKED, key="one-attempt")
    assert "key='one-attempt'" in caught.value.__notes__[0]
    assert caught.value.credits_spent is None and tables[1].remaining == 100
    split_rows(*tables, secure=True).ask(ASKED, key="one-attempt")
    assert left(tables) == [99, 99, 99]


def test_a_stop_between_charge_and_store_is_paid_once() -> None:
    tables = opened()

    def fails(laws: Any) -> Any:
        assert tables[0].remaining == 99  # charged before anything is drawn or read
        raise EngineFailed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(EngineFailed):
        patch.setattr(flow, "draw_noise", fails)
        tables[0].share(ASKED, joint="one-sum-1")
    shares = [table.share(ASKED, joint="one-sum-1").values for table in tables]
    assert totals(shares) is not None and left(tables) == [99, 99, 99]


def test_rows_are_read_after_the_charge_and_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    table, seen = opened()[0], []
    draw, prepare = flow.draw_noise, table.engine.prepare

    def prepared(program: Any) -> Callable[[], list[int]]:
        read = prepare(program)

        def reading() -> list[int]:
            seen.append(("read", table.remaining))
            return read()

        return reading

    def drawing(laws: Any) -> list[int]:
        seen.append(("draw", table.remaining))
        return draw(laws)

    monkeypatch.setattr(table.engine, "prepare", prepared)
    monkeypatch.setattr(flow, "draw_noise", drawing)
    table.quote_share(ASKED)
    table.share(ASKED, joint="one-sum-1"), table.share(ASKED, joint="one-sum-1")
    assert seen == [("draw", 99), ("read", 99)]


# --- refused, free ------------------------------------------------------------------------------

GOOD = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
LOW_ORDER = [
    "00" * 32,
    "01" + "00" * 31,
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


@pytest.mark.parametrize("key", [*LOW_ORDER, "09" + "00" * 30 + "80", "ff" * 32])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    """Of low order, or a second spelling of a point."""
    with pytest.raises(InvalidQuery, match="is no public key"):
        Partners([key, GOOD], 1)


def test_partners_are_named_rightly() -> None:
    tables = opened()
    keys = [table.share_key for table in tables]
    for wrong in ("", "x" * 64, keys[0].upper() + "a", None, keys[0][:-1]):
        with pytest.raises(InvalidQuery, match="64 hexadecimal digits"):
            Partners([wrong, keys[1]], 0)  # type: ignore[list-item]
    with pytest.raises(InvalidQuery, match="there twice"):
        Partners([keys[1], keys[1]], 0)
    with pytest.raises(InvalidQuery, match="2 to 1000 owners"):
        Partners([], 0)
    for colluding in (-1, True, 1.0, "1"):
        with pytest.raises(InvalidQuery, match="number of owners from 0"):
            Partners(keys[1:], colluding)  # type: ignore[arg-type]
    with pytest.raises(InvalidQuery, match="own key is among"):
        tables[0].set_partners(Partners(keys, 1))
    with pytest.raises(InvalidQuery, match="got str"):
        tables[0].set_partners("all")  # type: ignore[arg-type]


@pytest.mark.parametrize(("owners", "colluding"), [(2, 1), (2, 2), (3, 2), (5, 4), (5, 9)])
def test_more_may_not_collude_than_leave_two(owners: int, colluding: int) -> None:
    keys = [PrivateKey.generate().public_key.encode().hex() for _ in range(owners - 1)]
    with pytest.raises(InvalidQuery, match="draw the whole noise by itself"):
        Partners(keys, colluding)


def test_an_owner_is_told_no_total_where_none_may_be() -> None:
    tables = opened(colluding=0)
    secure = split_rows(*tables, secure=True)
    for verb in (secure.quote, secure.ask):
        with pytest.raises(Refused, match="no owner may learn a total"):
            verb(ASKED)
    assert left(tables) == [100] * 3


def test_owners_who_do_not_agree_are_refused_before_any_pays() -> None:
    tables = opened()
    keys = [table.share_key for table in tables]
    stranger = Database.open(FRAMES[2], SCHEMA, PURE, ":memory:", name="stranger")
    with pytest.raises(Refused, match="named no partners"):
        split_rows(*tables, stranger, secure=True).ask(ASKED)
    for few in (tables[:2], [tables[0], tables[1], tables[1]]):
        with pytest.raises(Refused, match="these are not those"):
            split_rows(*few, secure=True).ask(ASKED)
    met([tables[0], tables[1], stranger])
    with pytest.raises(Refused, match="names other partners"):
        split_rows(*tables, secure=True).ask(ASKED)
    four = [*tables, stranger]
    met(four, 2)
    tables[2].set_partners(Partners([*keys[:2], stranger.share_key], 1))
    with pytest.raises(Refused, match="another number that may collude"):
        split_rows(*four, secure=True).ask(ASKED)
    met(four, 2)
    with pytest.raises(Refused, match="noise of another size"):
        split_rows(*four, secure=True).ask(mean("income"), within=50)
    assert left(four) == [100] * 4
    with pytest.raises(InvalidQuery, match="cannot give shares"):
        split_rows(split_rows(*tables), split_rows(*tables), secure=True)


def test_a_sum_has_a_name() -> None:
    table, wrong = opened()[0], ("short", "has a blank", "x" * 129, 7, None)
    for joint in wrong:
        with pytest.raises(InvalidQuery, match="joint sum is named by"):
            table.share(ASKED, joint=joint)  # type: ignore[arg-type]
    assert table.remaining == 100


@pytest.mark.sample(1)
@pytest.mark.parametrize("noise", ["binomial", "huber"])
def test_noise_that_is_not_divided_is_refused(noise: str) -> None:
    tables = opened(Promise(2, 1e-5, queries=10, noise=noise))
    with pytest.raises(InvalidQuery, match="gaussian and laplace noise only"):
        tables[0].share(ASKED, joint="one-sum-1")
    assert left(tables) == [10] * 3


def test_balances_of_persons_are_not_covered() -> None:
    promise = Promise(1, 1e-6, neighbours="add-remove")
    table = Database.open(FRAMES[2], SCHEMA, promise, ":memory:", individual=True)
    with pytest.raises(Refused, match="not covered by individual accounting"):
        table.share(ASKED, joint="one-sum-1")


def test_shares_that_do_not_belong_together_give_no_total() -> None:
    tables = opened()

    class Liar:
        def __getattr__(self, name: str) -> Any:
            return getattr(tables[1], name)

        def share(self, query: Any, joint: str, **terms: Any) -> Any:
            return tables[1].share(query, joint=joint + "x", **terms)

    liar: Any = Liar()
    with pytest.raises(SulqError, match="do not belong together") as caught:
        split_rows(tables[0], liar, tables[2], secure=True).ask(ASKED, key="one-attempt")
    assert caught.value.credits_spent is None


# --- keys ---------------------------------------------------------------------------------------


def test_a_key_lasts_as_long_as_rows_and_facts(tmp_path: Path) -> None:
    """A mask must never be used for a second draw: new rows or new facts, a new key."""
    place = tmp_path / "a.ledger"

    def table(rows: pd.DataFrame = FRAMES[2], **terms: Any) -> Database:
        return Database.open(rows, SCHEMA, PURE, place, name="people", publish=True, **terms)

    with table() as first:
        key = first.share_key
        secret = first._sharing.secret.encode()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in files if "state" not in str(path))
    with table() as again:
        assert again.share_key == key
        other = Database.open(FRAMES[1], SCHEMA, PURE, place, name="others", publish=True)
        assert other.share_key != key
        other.close()
        grown = again.grow(FRAMES[0])
        grown_key = grown.share_key
        assert grown_key != key
        amended = grown.amend(promise=Promise(2), source=FRAMES[0])
        assert amended.share_key not in (key, grown_key)
        amended.close()
    memory = Database.open(frame(30, 1), SCHEMA, PURE, ":memory:", name="people")
    before = memory.share_key
    assert memory.grow(frame(40, 1)).share_key != before


def test_lost_events_and_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told may be among what was lost: another key. Replicas would have one each."""
    table = opened()[0]
    key, book = table.share_key, table.ledger._book
    book.history.gaps.append(range(7, 9))
    lost = table.share_key
    book.history.gaps.append(range(12, 20))
    assert len({key, lost, table.share_key}) == 3
    monkeypatch.setattr(book, "replica", 1, raising=False)
    for verb in (table.quote_share, lambda asked: table.share(asked, joint="one-sum-1")):
        with pytest.raises(Refused, match="a ledger of its own"):
            verb(ASKED)
    assert table.remaining == 100


def test_after_a_restore_nobody_gets_a_second_draw_under_the_same_masks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup from before a share, put back: the share is forgotten, and so is its key."""
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    place = tmp_path / "a.ledger"

    def table() -> Database:
        return Database.open(FRAMES[2], SCHEMA, PURE, place, name="people", publish=True)

    others = [PrivateKey.generate().public_key.encode().hex() for _ in range(2)]
    with table() as first:
        first.ask(count(where=col("age") >= 50))
    back_up([place], tmp_path / "kept")
    with table() as first:
        first.set_partners(Partners(others, 1))
        key = first.share_key
        receipt = first.share(ASKED, joint="one-sum-1").receipt
    for end in ("", "-wal", "-shm"):
        Path(f"{place}{end}").unlink(missing_ok=True)
    with Backup(tmp_path / "kept") as kept:
        restore(kept, "people", place, [receipt.to_json()])
    with table() as again:
        assert again.remaining == PURE.credits - 2  # the share is paid for, and its value is lost
        assert again.share_key != key


def test_the_secret_is_the_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    ledger = tmp_path / "a.ledger"
    with Database.open(FRAMES[2], SCHEMA, PURE, ledger, name="p", publish=True) as table:
        assert len(table.share_key) == 64
        (kept,) = (tmp_path / "state").rglob("sharing-*")
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        kept.write_bytes(b"cut")
        with pytest.raises(Refused, match="is damaged"):
            table.share_key  # noqa: B018
        kept.unlink()
        assert table.share_key != "" and kept.exists()


# --- neighbours ---------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("promise", [PURE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_neighbours_differ_in_masked_numbers_only(promise: Promise) -> None:
    """Price, text, law, refusal: nothing else may tell two tables apart that differ in a row."""
    rows = frame(60, 5)
    other = rows.copy()
    other.loc[0] = [3, -1000.0, "b", not rows.ill[0]]
    said = []
    for mine in (rows, other):
        tables = opened(promise, [mine, FRAMES[2], FRAMES[2]])
        keys = [table.share_key for table in tables]
        found: list[Any] = []
        for number, question in enumerate([*QUESTIONS, total(col("age") * col("income"))]):
            share = tables[0].share(question, joint=f"sum-number-{number}")
            found.append((share.credits, share.joint.laws, share.joint.steps, len(share.values)))
        entries = [(e.question, e.noise, dict(e.charged)) for e in tables[0].ledger.entries()]
        found += [(_unnamed(asked, keys), noise, paid) for asked, noise, paid in entries]
        said.append((found, tables[0].remaining))
    assert said[0] == said[1]


def _unnamed(text: str, keys: Sequence[str]) -> str:
    """Without the keys, which are random, and their order."""
    listed = ",".join(f'"{key}"' for key in sorted(keys))
    assert listed in text
    return text.replace(listed, "")


def test_a_split_says_what_it_is() -> None:
    secure = split_rows(*opened(), secure=True)
    assert isinstance(secure, SecureRowSplit)
    assert repr(secure).startswith("<SecureRowSplit of 3 owners")
    answer = secure.ask(ASKED)
    assert "drawn in shares by several owners" in answer.explain()
    assert isinstance(answer.laws[0], DividedLaplace)
    whole = opened(colluding=0)
    for table in whole:
        table.grant("ann", 9)
    ann = split_rows(*(table.as_analyst("ann") for table in whole), secure=True)
    assert isinstance(ann.ask(ASKED).laws[0], DiscreteLaplace)  # exactly one draw


def test_a_reopened_ledger_keeps_its_key_and_another_table_has_another(tmp_path: Path) -> None:
    """Partners name a table by its key, so the key outlives the process."""
    keys: dict[int, set[str]] = {}
    for seed in (1, 2):
        source = tmp_path / f"{seed}.csv"
        frame(200, seed).to_csv(source, index=False)
        for publish in (True, False):
            ledger = tmp_path / f"{seed}.ledger"
            with Database.open(source, SCHEMA, PURE, ledger=ledger, publish=publish) as owner:
                keys.setdefault(seed, set()).add(owner.share_key)
    assert [len(found) for found in keys.values()] == [1, 1]
    assert keys[1] != keys[2]
