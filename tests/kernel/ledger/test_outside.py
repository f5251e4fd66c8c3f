"""Releases made elsewhere: booked beyond the cap, never lost, and the cap binds all the same."""

from __future__ import annotations

import shutil
from contextlib import closing
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.test_changes import CHARGE, raised, replayed

from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.accounting.outside import NONE, Taken
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.header import Outside
from sulq.kernel.ledger.inspect import statement
from sulq.kernel.ledger.recovery import recover

TAKEN = Taken(Fraction(1, 4), Fraction(1, 10**7))


def release(loss, stands=0, taken=NONE, reason="census"):
    amount = loss if isinstance(loss, Loss) else credits(loss)
    return lambda before: Outside(None, taken.delta, amount, stands, taken, reason)


def test_every_account_pays_and_shares_do_not(path):
    with closing(publish(path, accounts=("N", "S"))) as journal:
        journal.grant("ann", credits(4))
        pay(journal, "a", charges={"N": ONE}, share=ONE)
        booked = journal.outside(release(3))
        lines = {line.name: line.spent for line in journal.statement().accounts}
        assert lines == {"N": credits(4), "S": credits(3)}
        assert journal.remaining("owner") == credits(2)
        assert journal.remaining("ann") == credits(4)
        assert [line.spent for line in journal.statement().analysts] == [ONE, Loss(0, 0)]
        assert journal.statement().outside == (booked,)
        assert booked.seq == journal.head


def test_beyond_the_cap_the_table_is_spent_and_says_by_how_much(place):
    with closing(publish(place)) as journal:
        journal.grant("ann", credits(4))
        first = ask(journal, "a")
        journal.outside(release(20))
        found = journal.statement()
        assert (found.spent, found.left, found.exceeded) == (credits(21), 0, credits(11))
        for use in (
            lambda: pay(journal, "b"),
            lambda: pay(journal, "b", analyst="ann"),
            lambda: journal.grant("bob", ONE),
            lambda: journal.reserve("owner", ONE),
        ):
            with pytest.raises((BudgetSpent, Refused)):
                use()
        assert pay(journal, "a").values == first.values  # repeats stay free
        assert pay(journal, "free", price=Loss(0, 0)).charged is not None
        journal.outside(release(1))
        found = journal.statement()
        assert found.exceeded == credits(12)
    with closing(publish(place)) as journal:
        assert journal.statement() == found


def test_the_price_is_told_what_was_taken_before(journal):
    seen = []

    def price(before):
        seen.append(before)
        return release(1, CREDIT // 2, TAKEN)(before)

    for _ in range(3):
        journal.outside(price)
    assert seen == [NONE, TAKEN, Taken(2 * TAKEN.epsilon, 2 * TAKEN.delta)]
    found = journal.statement()
    assert found.taken == Taken(3 * TAKEN.epsilon, 3 * TAKEN.delta)
    assert (found.spent, sum(one.stands for one in found.outside)) == (credits(3), 3 * CREDIT // 2)


def test_a_price_that_fails_books_nothing_and_the_ledger_goes_on(journal):
    def price(_before):
        raise InvalidQuery("no")

    with pytest.raises(InvalidQuery):
        journal.outside(price)
    assert ask(journal, "a").values == (7,)
    assert journal.statement().outside == ()


def test_what_was_taken_out_of_a_promise_stays_with_it(journal):
    journal.outside(release(1, CREDIT, TAKEN))
    with pytest.raises(Refused, match="taken out of this promise"):
        journal.amend(raised())
    same = journal.header.facts
    amended = journal.amend(raised(cap=10, scale="1", facts=same | {"schema": "[]"}))
    assert spent(amended) == ONE


def test_outside_credits_are_amended_as_others_are(journal):
    journal.outside(release(3))
    assert spent(journal.amend(raised())) == credits(6)


def test_nothing_is_booked_on_a_closed_table_nor_taken_beside_exact_release(path):
    with closing(publish(path)) as journal:
        journal.declare([["q"]], 2, "terms")
        with pytest.raises(Refused, match="state it in credits"):
            journal.outside(release(1, CREDIT, TAKEN))
        journal.outside(release(1))
        journal.close_for_good()
        with pytest.raises(Refused, match="closed for good"):
            journal.outside(release(1))
        assert spent(journal) == ONE


@pytest.mark.parametrize("step", ["admitted", "committed", "anchored"])
def test_a_crash_leaves_the_table_before_or_after(place, monkeypatch, step):
    journal = publish(place)
    ask(journal, "a")

    def dies(here):
        if here == step:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        with pytest.raises(Refused, match="a write failed"):
            journal.outside(release(20))
    journal.close()
    with closing(publish(place)) as journal:
        assert spent(journal) == credits(1 if step == "admitted" else 21)


def test_a_lost_release_counts_as_everything(path, tmp_path):
    with closing(publish(path)) as journal:
        receipt = ask(journal, "a").receipt.to_json()
    shutil.copy(path, tmp_path / "backup")
    with closing(publish(path)) as journal:
        journal.outside(release(2))
    shutil.copy(tmp_path / "backup", path)
    assert recover(path, [receipt]).burnt
    with closing(publish(path)) as journal:
        assert spent(journal) == credits(10)
        journal.outside(release(2))  # entered again: more, never less
        assert spent(journal) == credits(12)
        with pytest.raises(BudgetSpent):
            pay(journal, "b")


def test_a_recovery_never_lowers_what_is_beyond_the_cap(path, state):
    with closing(publish(path)) as journal:
        journal.outside(release(20))
    anchor = next(state.glob("ledgers/*/anchor"))
    anchor.write_bytes(b"x" * anchor.stat().st_size)
    assert recover(path).burnt
    with closing(publish(path)) as journal:
        assert spent(journal) == credits(20)


BODY = release(20)(NONE).to_body("people")
BOOKED = {"analyst": "owner"} | CHARGE


@pytest.mark.parametrize(
    "forged",
    [
        [BODY | {"loss": ["-1", "0"]}],
        [BODY | {"stands": str(21 * CREDIT)}],
        [BODY | {"stands": "-1"}],
        [BODY | {"delta": "1/10"}],
        [BODY | {"reason": 3}],
        [BODY, BOOKED | {"charges": [["1", "0", "0"]]}],  # charged when nothing was left
        [BODY | {"stands": "1", "taken": ["1/2", "0"]}, raised().to_body("people")],
    ],
)
def test_a_chain_that_breaks_the_rules_is_refused(journal, forged):
    replayed(journal, BODY)
    with pytest.raises(Refused, match="does not verify"):
        replayed(journal, *forged)


amounts = st.integers(0, 6 * CREDIT)
acts = st.one_of(
    st.tuples(st.just("charge"), st.sampled_from(["owner", "ann"]), st.sampled_from("NS"), amounts),
    st.tuples(st.just("grant"), amounts),
    st.tuples(st.just("outside"), amounts),
)


@given(st.lists(acts, max_size=16))
def test_in_every_order_an_answer_fits_the_cap_with_all_that_was_booked(history):
    journal, paid = publish(":memory:", accounts=("N", "S")), {"N": 0, "S": 0}
    for number, (kind, *rest) in enumerate(history):
        before = journal.statement()
        try:
            match kind:
                case "charge":
                    who, account, price = rest
                    loss = Loss(price, 0)
                    pay(journal, f"q{number}", charges={account: loss}, share=loss, analyst=who)
                    paid[account] += price
                    assert not price or paid[account] <= 10 * CREDIT
                case "grant":
                    journal.grant("ann", Loss(rest[0], 0))
                    assert max(paid.values()) + rest[0] <= 10 * CREDIT
                case "outside":
                    journal.outside(release(Loss(rest[0], 0)))
                    paid = {name: found + rest[0] for name, found in paid.items()}
        except Refused:
            assert kind != "outside"
            assert journal.statement() == before
    found = journal.statement()
    assert {line.name: line.spent.credits for line in found.accounts} == paid
    assert statement(replayed(journal), "people") == found
