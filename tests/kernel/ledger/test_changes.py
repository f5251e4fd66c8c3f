"""Amend, revoke and close: no order of them, no crash and no rollback undoes spending."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.ledger.catalogues import contents
from tests.kernel.ledger.publishing import (
    LARGER,
    ONE,
    PROMISE,
    ask,
    credits,
    line,
    pay,
    publish,
    raised,
    spent,
)
from tests.kernel.ledger.stores import put_back, save

from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.inspect import statement
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.signing import canonical, link
from sulq.kernel.ledger.state import ChainState
from sulq.kernel.ledger.stores.store import Row


def reopened(place, amended):
    return publish(place, facts=LARGER, cap=credits(20)) if amended else publish(place)


def test_what_is_spent_is_the_same_loss_in_the_new_currency(place):
    journal = publish(place)
    journal.grant("ann", credits(4))
    ask(journal, "a", analyst="ann")
    ask(journal, "b", price=credits(2))
    larger = journal.amend(raised(cap=30, scale="3/2"))
    found = larger.statement()
    assert found.spent == Loss(9 * CREDIT // 2, 0)  # 3 credits of the old kind
    assert line(larger, "ann").spent == Loss(3 * CREDIT // 2, 0)
    assert larger.remaining("ann") == Loss(9 * CREDIT // 2, 0)  # 3 old ones left
    assert larger.remaining("owner") == credits(21)  # 30 less spent and kept
    [before] = found.amended
    assert (before.facts["promise"], before.cap) == (PROMISE, credits(10))
    assert found.facts == LARGER
    journal.close()
    larger.close()
    with pytest.raises(Refused, match=r"amended: it has other promise, cap; open it as it was"):
        publish(place)
    with closing(publish(place, facts=LARGER, cap=credits(30))) as journal:
        assert journal.statement() == found


def test_rounding_is_against_the_owner(place):
    journal = publish(place, cap=Loss(100, 100))
    journal.grant("ann", Loss(10, 0))
    pay(journal, "a", price=Loss(1, 1))
    pay(journal, "b", price=Loss(1, 0), analyst="ann")
    larger = journal.amend(raised(cap=Loss(100, 100), scale="1/3", delta="7/3"))
    assert spent(larger) == Loss(1, 3)  # ceil(2/3), ceil(7/3)
    assert line(larger, "ann").spent == Loss(1, 0)
    assert larger.remaining("ann") == Loss(3, 0)  # floor(9/3)


def test_a_cap_below_what_is_spent_or_granted_is_refused(journal):
    journal.grant("ann", credits(4))
    ask(journal, "a", price=credits(6))
    with pytest.raises(Refused, match=r"10 credits are spent or granted.*it has 9"):
        journal.amend(raised(cap=9, scale="1"))
    assert journal.statement().amended == ()
    journal.revoke("ann")
    assert spent(journal.amend(raised(cap=6, scale="1"))) == credits(6)


def test_a_smaller_loss_cannot_be_written():
    for wrong in ({"scale": "0"}, {"scale": "-1"}, {"delta": "1/2"}):
        with pytest.raises(InvalidQuery, match="never makes what is spent smaller"):
            raised(**wrong)


def test_whoever_opened_the_table_before_is_refused(journal):
    entry = pay(journal, "a")
    aside = journal.reserve("owner", ONE)
    larger = journal.amend(raised())
    for use in (
        lambda: pay(journal, "b"),
        lambda: journal.grant("ann", ONE),
        lambda: journal.remaining("owner"),
        lambda: journal.reserve("owner", ONE),
        lambda: journal.amend(raised(cap=30)),
        lambda: journal.check_asker("owner"),
        lambda: pay(aside, "b"),
    ):
        with pytest.raises(Refused, match="amended since it was opened here; open it again"):
            use()
    with pytest.raises(Refused, match="what was charged stands") as late:
        journal.settle(entry, [1])
    assert late.value.charged_unknown
    aside.close()
    assert spent(larger) == credits(2)
    assert larger.settle(entry, [1]).values == (1,)  # the question still means the same


def test_answers_that_mean_something_else_are_not_found_again(place):
    journal = publish(place)
    first = ask(journal, "a", key="k")
    parts = dict.fromkeys(journal.header.accounts, ONE)
    batch = [('{"ask":"a"}', "a", "n", parts, ONE, ())]
    journal.charge_all(batch, analyst="owner", key="plan")
    larger = journal.amend(raised(keeps=False))
    journal.close()
    assert larger.snapshot(digest="a").stored == ()
    assert not larger.record_at(first.seq).found
    for use in (
        lambda: pay(larger, "a", key="k"),
        lambda: larger.charge_all(batch, analyst="owner", key="plan"),
    ):
        with pytest.raises(Refused, match="before the table was amended"):
            use()
    new = ask(larger, "a", values=(8,))
    assert (new.values, new.charged) == ((8,), {"": ONE})
    assert larger.receipt(first.seq) == first.receipt  # what was released is what it was
    assert next(entry.values for entry in larger.entries()) == first.values
    larger.close()
    with closing(publish(place, facts=LARGER, cap=credits(20))) as journal:
        assert spent(journal) == credits(3)
        assert ask(journal, "a").values == (8,)


def test_answers_that_mean_the_same_stay_free(journal):
    first = ask(journal, "a", key="k")
    larger = journal.amend(raised())
    assert [pay(larger, "a", key=key).values for key in ("k", None)] == [first.values] * 2
    assert spent(larger) == credits(2)


def test_nothing_is_amended_after_a_declaration_or_a_loss(place, state):
    journal = publish(place)
    journal.declare([["q"]], 2, "terms")
    with pytest.raises(Refused, match="declared for exact release"):
        journal.amend(raised())
    journal.close()
    next(state.glob("ledgers/*/anchor")).unlink()
    recover(place)
    with (
        closing(publish(place)) as journal,
        pytest.raises(Refused, match="perhaps an amendment among them"),
    ):
        journal.amend(raised())


# --- crashes and rollbacks ----------------------------------------------------------------------

CHANGES = {
    "revoke": lambda journal: journal.revoke("ann", "r"),
    "close": lambda journal: journal.close_for_good("r"),
    "amend": lambda journal: journal.amend(raised(reason="r")),
}


@pytest.mark.parametrize("step", ["admitted", "committed", "anchored"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_crash_leaves_the_table_before_or_after_a_change(place, monkeypatch, change, step):
    journal = publish(place)
    journal.grant("ann", credits(4))
    ask(journal, "a", analyst="ann")

    def dies(here):
        if here == step:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        with pytest.raises(Refused, match="a write failed"):
            CHANGES[change](journal)
    journal.close()
    done = step != "admitted"
    with closing(reopened(place, done and change == "amend")) as journal:
        found = journal.statement()
        assert (found.closed is not None) == (done and change == "close")
        assert (line(journal, "ann").revoked is not None) == (done and change == "revoke")
        assert found.spent == credits(2 if done and change == "amend" else 1)
    with pytest.raises(Refused):  # and never both
        reopened(place, not (done and change == "amend"))


@pytest.mark.parametrize("change", CHANGES)
def test_a_rollback_over_a_change_gives_nothing_back(place, change):
    """The lost event has no receipt, so all counts as spent, and no amendment raises it again."""
    journal = publish(place)
    journal.grant("ann", credits(4))
    receipt = ask(journal, "a", analyst="ann").receipt.to_json()
    journal.close()
    saved = save(place)
    journal = publish(place)
    changed = CHANGES[change](journal)
    journal.close()
    if change == "amend":
        ask(changed, "much", price=credits(12))
        changed.close()
    put_back(place, saved)
    with pytest.raises(Refused, match="rolled back"):
        publish(place)
    assert recover(place, [receipt]).burnt
    if change == "close":
        with pytest.raises(Refused, match="closed for good, and the ledger has lost that event"):
            publish(place)
        return
    with closing(publish(place)) as journal:
        assert journal.statement().burnt
        assert spent(journal) == credits(10)
        for use in (lambda: pay(journal, "b"), lambda: journal.grant("bob", ONE)):
            with pytest.raises((BudgetSpent, Refused)):
                use()
        with pytest.raises(BudgetSpent):
            pay(journal, "b", analyst="ann")
        with pytest.raises(Refused, match="perhaps an amendment"):
            journal.amend(raised())
        assert pay(journal, "a", analyst="ann").answered  # what that name was given before


def test_a_closed_table_stays_closed_without_its_anchor(place, state):
    """The state directory says so too: a missing anchor proves nothing about the ledger."""
    publish(place).close()
    saved = save(place)
    with closing(publish(place)) as journal:
        journal.close_for_good()
    put_back(place, saved)
    next(state.glob("ledgers/*/anchor")).unlink()
    assert not recover(place).burnt
    with pytest.raises(Refused, match="it stays closed"):
        publish(place)


def test_a_crash_before_the_note_is_mended_at_the_next_opening(place, monkeypatch, state):
    journal = publish(place)
    monkeypatch.setattr("sulq.kernel.ledger.ledger.note_if_closed", lambda *_: None)
    journal.close_for_good()
    journal.close()
    assert not list(state.glob("ledgers/*/closed-*"))
    publish(place).close()
    assert len(list(state.glob("ledgers/*/closed-*"))) == 1


# --- what no honest writer makes ----------------------------------------------------------------


def replayed(journal, *forged):
    """The history of a journal's events, with more after them."""
    history = ChainState()
    history.take(journal._shared.rows())
    for body in forged:
        text = canonical(body | {"table": "people"})
        mark = history.mark
        history.take([Row(mark.seq + 1, link(mark.hash, text), text, None)])
    return history


CHARGE = {
    "kind": "charge",
    "question": "q",
    "digest": "q",
    "noise": "n",
    "key": None,
    "charges": [["1", "0", "0"]],
    "share": ["1", "0"],
}


@pytest.mark.parametrize(
    "forged",
    [
        [{"kind": "close", "reason": ""}, CHARGE | {"analyst": "owner"}],
        [{"kind": "close", "reason": ""}, {"kind": "close", "reason": ""}],
        [{"kind": "revoke", "analyst": "ann", "reason": ""}, CHARGE | {"analyst": "ann"}],
        [{"kind": "revoke", "analyst": "owner", "reason": ""}],
        [{"kind": "revoke", "analyst": "bob", "reason": ""}],
        [raised(cap=1, scale="1").to_body("people")],
        [raised().to_body("people") | {"scale": ["1/0", "1"]}],
        [raised().to_body("people") | {"scale": ["1", "1/2"]}],
        [raised().to_body("people") | {"reason": 3}],
    ],
)
def test_a_chain_that_breaks_the_rules_is_refused(journal, forged):
    journal.grant("ann", credits(2))
    replayed(journal)
    with pytest.raises(Refused, match="does not verify"):
        replayed(journal, *forged)


def test_an_event_of_a_newer_version_is_told_as_such(journal):
    with pytest.raises(Refused, match="an event 'lend'; use a newer sulq"):
        replayed(journal, {"kind": "lend"})


# --- every order --------------------------------------------------------------------------------

names = st.sampled_from(["ann", "bob"])
amounts = st.integers(0, 9 * CREDIT // 2)
scales = st.fractions(Fraction(1, 7), 3, max_denominator=7).filter(bool)
acts = st.one_of(
    st.tuples(st.just("grant"), names, amounts),
    st.tuples(st.just("charge"), names | st.just("owner"), amounts),
    st.tuples(st.just("charge"), names | st.just("owner"), amounts),
    st.tuples(st.just("reserve"), names | st.just("owner"), amounts),
    st.tuples(st.just("revoke"), names),
    st.tuples(st.just("amend"), st.integers(0, 30 * CREDIT), scales, st.booleans()),
    st.tuples(st.just("close")),
)


def act(journal, held, number, kind, *rest):
    """The journal to go on with; `Refused` leaves everything as it was."""
    match kind:
        case "grant":
            journal.grant(rest[0], Loss(rest[1], 0))
        case "charge":
            ask(journal, f"q{number % 7}", analyst=rest[0], price=Loss(rest[1], 0))
        case "reserve":
            held.append(journal.reserve(rest[0], Loss(rest[1], 0)))
        case "revoke":
            journal.revoke(rest[0])
        case "amend":
            held.append(journal)
            cap, scale, keeps = rest
            journal = journal.amend(raised(cap=Loss(cap, 0), scale=scale, keeps=keeps))
        case "close":
            journal.close_for_good()
    return journal


@given(st.lists(acts, max_size=20))
def test_every_order_keeps_the_cap_and_reads_back_equal(history):
    journal, held = publish(":memory:"), []
    worth, loss = Fraction(1), Fraction(0)  # of a credit today, and what was lost, in old credits
    for number, done in enumerate(history):
        before = journal.statement()
        try:
            journal = act(journal, held, number, *done)
        except Refused:
            assert journal.statement() == before
            continue
        found = journal.statement()
        if done[0] == "amend":
            worth /= done[2]
        else:
            assert found.spent.credits >= before.spent.credits
        loss += 0 if done[0] != "charge" else _new(before, found) * worth
        assert found.spent.credits * worth >= loss  # never less than was lost, whatever it is in
        kept = sum(
            line.granted.credits - line.spent.credits for line in found.analysts if line.granted
        )
        own = sum(line.left.credits for line in found.reservations if line.analyst == "owner")
        assert kept >= 0
        assert found.spent.credits + kept + own <= found.cap.credits
        for gone in found.analysts:
            assert gone.revoked is None or gone.granted == gone.spent
        if before.closed is not None:
            assert found == before
    again = replayed(journal)
    assert statement(again, "people") == journal.statement()
    one, other = again.tables["people"], journal._table
    assert one.budgets.shares == other.budgets.shares
    assert one.budgets.reserved == other.budgets.reserved
    assert contents(again.tables["people"].catalogue) == contents(journal._table.catalogue)
    for facts in ("closed", "amended", "header"):
        assert getattr(one, facts) == getattr(other, facts)
    for opened in (*held, journal):
        opened.close()


def _new(before, after):
    """What one charge has cost, in today's steps."""
    return after.spent.credits - before.spent.credits
