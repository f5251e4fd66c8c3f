"""One account for the people of several tables: both caps bind, in one transaction, for good."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent
from tests.kernel.ledger.test_changes import raised, replayed
from tests.kernel.ledger.test_outside import release

from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.events import event_from
from sulq.kernel.ledger.header import PopulationMembership
from sulq.kernel.ledger.inspect import statement
from sulq.kernel.ledger.recovery import recover

TOWN = PopulationMembership("town", "{}", credits(6), Fraction(1), Fraction(1))


def member(factor=1, cap=6, *, delta="1", promise="{}"):
    size = cap if isinstance(cap, Loss) else credits(cap)
    return PopulationMembership("town", promise, size, Fraction(factor), Fraction(delta))


def both(place, one=TOWN, other=TOWN, **more):
    return publish(place, member=one, **more), publish(place, name="other", member=other, **more)


def town(journal):
    return journal.statement().population


def test_both_tables_pay_and_the_joint_cap_binds(place):
    one, other = both(place)
    ask(one, "a", price=credits(4))
    assert other.remaining("owner") == credits(2)
    with pytest.raises(BudgetSpent, match="population 'town' 3 of its credits, and 2 are left"):
        pay(other, "a", price=credits(3))
    ask(other, "a", price=credits(2))
    assert (town(one), town(other)) == (town(one), town(one))
    assert (town(one).spent, town(one).tables) == (credits(6), ("people", "other"))
    assert (spent(one), spent(other)) == (credits(4), credits(2))
    for journal in (one, other):
        assert ask(journal, "a", price=credits(2)).values == (7,)  # repeats are free
        assert pay(journal, "free", price=Loss(0, 0)).charged is not None
        with pytest.raises(BudgetSpent, match="town"):
            pay(journal, "b")
        with pytest.raises(Refused):
            journal.grant("ann", ONE)
        journal.close()
    with closing(publish(place, member=TOWN)) as journal:
        assert town(journal).spent == credits(6)


def test_a_tables_own_cap_binds_too(place):
    one, _ = both(place, member(cap=30), member(cap=30))
    ask(one, "a", price=credits(10))
    with pytest.raises(BudgetSpent, match="lifetime budget"):
        pay(one, "b")


def test_losses_are_converted_and_rounded_up(path):
    small = Loss(10, 10)
    roomy = credits(10, 100)
    one, other = both(path, member("1/3", small, delta="7/3"), member("5/2", small), cap=roomy)
    assert other.remaining("owner") == Loss(4, 10)  # of the population's 10 credits
    pay(one, "a", price=Loss(4, 1))
    assert town(one).spent == Loss(2, 3)  # ceil(4/3), ceil(7/3)
    assert other.remaining("owner") == Loss(3, 7)
    assert one.remaining("owner") == Loss(24, 3)
    pay(other, "a", price=Loss(3, 7))
    assert town(one).spent == Loss(10, 10)
    with pytest.raises(BudgetSpent, match="more delta"):
        pay(one, "b", price=Loss(0, 1))


def test_the_worst_account_of_a_question_counts(path):
    one, _ = both(path, accounts=("N", "S"))
    pay(one, "a", charges={"N": ONE, "S": credits(2)}, share=ONE)
    pay(one, "b", charges={"N": ONE}, share=ONE)
    assert town(one).spent == credits(3)  # the strata's own accounts have 2 each
    assert spent(one) == credits(2)


def test_a_batch_is_charged_as_a_whole_or_not_at_all(path):
    one, other = both(path)
    parts = {"": credits(3)}
    batch = [(f'{{"ask":"{name}"}}', name, "n", parts, credits(3), ()) for name in "abc"]
    head = one.head
    with pytest.raises(BudgetSpent, match="town"):
        one.charge_all(batch, analyst="owner")
    assert (one.head, town(one).spent) == (head, Loss(0, 0))
    assert len(other.charge_all(batch[:2], analyst="owner")) == 2
    assert town(one).spent == credits(6)


def test_the_first_table_fixes_the_promise(place):
    publish(place, member=TOWN).close()
    for wrong in (member(cap=7), member(promise='{"epsilon":"2"}')):
        with pytest.raises(Refused, match="another promise by table 'people'"):
            publish(place, name="other", member=wrong)
    with closing(publish(place, name="third")) as alone:  # one that names none pays none
        ask(alone, "a", price=credits(9))
        assert town(alone) is None


def test_a_release_made_elsewhere_is_booked_on_the_population_too(path):
    one, other = both(path, member("1/2"), TOWN)
    with pytest.raises(Refused, match="population 'town' must be said too"):
        one.outside(release(4))
    one.outside(release(4), release(7))
    assert (spent(one), spent(other)) == (credits(4), Loss(0, 0))
    assert (town(one).spent, town(one).exceeded, town(one).left) == (credits(7), ONE, 0)
    with pytest.raises(BudgetSpent, match="town"):
        pay(other, "a")


def test_an_amended_table_pays_the_same_loss(path):
    one, other = both(path)
    pay(one, "a", price=credits(2))
    larger = one.amend(raised())  # a credit is worth half of what it was
    assert town(larger).spent == credits(2)
    assert larger.remaining("owner") == credits(8)
    pay(larger, "b", price=credits(8))
    assert town(other).spent == credits(6)
    for journal in (one, other, larger):
        journal.close()
    facts = {"facts": larger.header.facts, "cap": credits(20)}
    with closing(publish(path, member=member("1/2"), **facts)) as journal:
        assert town(journal).spent == credits(6)


@pytest.mark.parametrize("step", ["admitted", "committed", "anchored"])
def test_a_crash_charges_both_accounts_or_none(place, monkeypatch, step):
    one, other = both(place)

    def dies(here):
        if here == step:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        with pytest.raises(Refused, match="a write failed"):
            pay(one, "a", price=credits(2))
    one.close()
    other.close()
    with closing(publish(place, member=TOWN)) as journal:
        assert spent(journal) == town(journal).spent == credits(0 if step == "admitted" else 2)


def test_a_lost_charge_of_one_table_counts_for_both(path, tmp_path):
    one, other = both(path)
    one.close()
    other.close()
    shutil.copy(path, tmp_path / "backup")
    one, other = both(path)
    receipt = ask(one, "a", price=credits(2)).receipt.to_json()
    one.close()
    other.close()
    shutil.copy(tmp_path / "backup", path)
    assert not recover(path, [receipt]).burnt
    one, other = both(path)
    assert town(other).spent == credits(2)
    one.close()
    other.close()
    shutil.copy(tmp_path / "backup", path)
    assert recover(path).burnt
    with closing(publish(path, member=TOWN)) as journal:
        assert town(journal).spent == credits(6)
        with pytest.raises(Refused):  # a new table cannot start it anew
            pay(publish(path, name="third", member=TOWN), "a")


def test_a_population_whose_events_are_lost_is_not_begun_anew(path, tmp_path, state):
    publish(path).close()
    shutil.copy(path, tmp_path / "backup")
    with closing(publish(path, name="other", member=TOWN)) as journal:
        ask(journal, "a", price=credits(6))
    shutil.copy(tmp_path / "backup", path)
    next(state.glob("ledgers/*/anchor")).unlink()
    assert not recover(path).burnt  # nothing shows the loss but the state directory
    with pytest.raises(Refused, match="'town' is known, and the ledger has lost all its events"):
        publish(path, name="third", member=TOWN)


def test_a_chain_that_breaks_the_rules_is_refused(path):
    one, _ = both(path)
    table = {"kind": "table", "version": "v", "facts": {}, "accounts": [""], "cap": ["9", "0"]}

    def published(**changes):
        return table | {"table": "t", "population": TOWN.to_body() | changes}

    replayed(one)
    charge = {"kind": "charge", "question": "q", "digest": "q", "noise": "n", "key": None}
    dear = charge | {"charges": [[str(7 * CREDIT), "0", "0"]], "share": ["0", "0"]}
    for forged in (
        [dear | {"analyst": "owner"}],
        [{"kind": "outside"} | release(1)(None).to_body("people")],  # nothing for the population
    ):
        with pytest.raises(Refused, match="does not verify"):
            replayed(one, *forged)
    for wrong in (
        published(cap=["9", "0"]),
        published(scale=["0", "1"]),
        published(scale=["1", "1/2"]),
        published(name=""),
    ):
        history = replayed(one)
        with pytest.raises((InvalidQuery, ValueError)):
            history._apply(history.mark.seq + 1, event_from(wrong))


amounts = st.integers(0, 4 * CREDIT)
acts = st.one_of(
    st.tuples(st.just("charge"), st.booleans(), st.sampled_from("NS"), amounts),
    st.tuples(st.just("charge"), st.booleans(), st.sampled_from("NS"), amounts),
    st.tuples(st.just("repeat"), st.booleans()),
    st.tuples(st.just("outside"), st.booleans(), amounts),
    st.tuples(st.just("amend"), st.fractions(Fraction(1, 3), 3, max_denominator=5).filter(bool)),
)


@given(st.lists(acts, max_size=14))
def test_in_every_order_no_answer_passes_the_joint_cap(tmp_path_factory, history):
    place = tmp_path_factory.mktemp("town") / "ledger"
    tables = list(both(place, member(), member("2/3"), accounts=("N", "S"), cap=credits(9)))
    worth, joint, opened = [Fraction(1), Fraction(2, 3)], Fraction(0), list(tables)
    for number, (kind, *rest) in enumerate(history):
        before = town(tables[0])
        with suppress(Refused):
            match kind:
                case "charge":
                    which, account, price = rest
                    loss = Loss(price, 0)
                    pay(tables[which], f"q{number}", charges={account: loss}, share=loss)
                    joint += price * worth[which]
                    assert not price or joint <= 6 * CREDIT
                case "repeat":
                    for entry in list(tables[rest[0]].entries())[:1]:
                        same = {"charges": {"N": credits(99)}, "share": credits(99)}
                        pay(tables[rest[0]], entry.digest, **same)
                        assert town(tables[0]) == before
                case "outside":
                    which, price = rest
                    booked = Loss(price, 0)
                    tables[which].outside(release(booked), release(booked))
                    joint += price
                case "amend":
                    cap = Loss(40 * CREDIT, 0)
                    tables[0] = tables[0].amend(raised(cap=cap, scale=rest[0]))
                    opened.append(tables[0])
                    worth[0] /= rest[0]
        found = town(tables[1])
        assert found.spent.credits >= joint  # never less than was lost, whatever it was in
        assert found.spent.credits <= joint + len(history) * 2
        assert found.spent.credits >= before.spent.credits
    again = replayed(tables[0])
    assert [statement(again, name) for name in ("people", "other")] == [
        table.statement() for table in tables
    ]
    for journal in opened:
        journal.close()
