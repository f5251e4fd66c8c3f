"""Charging, settling, repeating, sharing."""

from __future__ import annotations

import gc
import json
import time

import pytest
from tests.kernel.ledger.publishing import ONE, PROMISE, ask, credits, pay, publish, spent
from tests.waiting import calls

from sulq.errors import BudgetSpent, InvalidQuery, NotPublished, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger import file
from sulq.kernel.ledger.header import TableHeader

ZERO = Loss(0, 0)


def test_a_charge_is_spent_before_there_is_an_answer(journal):
    entry = pay(journal, "q")
    assert not entry.answered
    assert entry.charged == {"": ONE}
    assert spent(journal) == ONE
    assert journal.statement().entries == 1


def test_an_answer_survives_reopening_bit_for_bit(place):
    with_values = (0, -(2**70), 2**64 + 1)
    journal = publish(place)
    first = ask(journal, "q", values=with_values)
    journal.close()
    again = pay(publish(place), "q")
    assert again.answered
    assert again.values == with_values
    assert again.receipt == first.receipt
    assert again.charged == {}


def test_spending_stops_exactly_at_the_cap(journal):
    for number in range(10):
        ask(journal, f"q{number}")
    with pytest.raises(BudgetSpent, match="costs 1 credit, 0 are left"):
        pay(journal, "one more")
    assert spent(journal) == credits(10)
    assert journal.remaining("owner") == ZERO
    assert ask(journal, "q3").answered


def test_all_accounts_pay_or_none(place):
    journal = publish(place, accounts=("city=Oslo", "city=Paris"))
    pay(journal, "a", charges={"city=Oslo": credits(8)}, share=credits(8))
    with pytest.raises(BudgetSpent, match="city=Oslo"):
        pay(journal, "b", charges={"city=Oslo": credits(3), "city=Paris": credits(3)})
    assert journal.remaining("owner", ["city=Paris"]) == credits(10)
    assert journal.remaining("owner", ["city=Oslo"]) == credits(2)
    assert journal.remaining("owner") == credits(2)
    worst, best = journal.statement().accounts
    assert (worst.name, worst.spent, best.spent) == ("city=Oslo", credits(8), ZERO)


def test_a_free_question_is_recorded(journal):
    entry = ask(journal, "public size", price=ZERO)
    assert entry.charged == {"": ZERO}
    assert [found.digest for found in journal.entries()] == ["public size"]


def test_a_settled_answer_never_changes(journal):
    entry = pay(journal, "q")
    assert journal.settle(entry, [1]).values == (1,)
    assert journal.settle(entry, [2]).values == (1,)
    assert pay(journal, "q").values == (1,)


@pytest.mark.parametrize("value", [1.5, "7", None])
def test_only_integers_are_stored(journal, value):
    with pytest.raises(TypeError):
        journal.settle(pay(journal, "q"), [value])


def test_an_entry_of_another_table_cannot_be_settled(place):
    people, firms = publish(place), publish(place, name="firms")
    entry = pay(people, "q")
    with pytest.raises(Refused, match="not open"):
        firms.settle(entry, [1])
    ask(firms, "q")
    assert spent(people) == spent(firms) == ONE


# -- repeats --------------------------------------------------------------------------------------


def test_a_repeat_costs_the_lifetime_budget_nothing(journal):
    ask(journal, "q", values=(5,))
    repeat = pay(journal, "q")
    assert (repeat.answered, repeat.values, repeat.charged, repeat.share_charged) == (
        True,
        (5,),
        {},
        ZERO,
    )
    assert spent(journal) == ONE


def test_other_noise_is_another_question(journal):
    ask(journal, "q", noise="fine")
    ask(journal, "q", noise="coarse")
    assert spent(journal) == credits(2)
    assert journal.snapshot(digest="q").stored == ("fine", "coarse")
    assert journal.snapshot(digest="r").stored == ()


def test_an_unanswered_charge_is_recomputed_free(journal):
    pay(journal, "q")
    again = pay(journal, "q")
    assert not again.answered
    assert again.charged == {}
    assert journal.settle(again, [3]).values == (3,)
    assert spent(journal) == ONE


def test_two_who_compute_at_once_get_the_same_values(journal):
    first, second = pay(journal, "q"), pay(journal, "q")
    assert journal.settle(second, [2]).values == (2,)
    assert journal.settle(first, [1]).values == (2,)


def test_an_analyst_pays_from_her_share_once(journal):
    journal.grant("ann", credits(3))
    ask(journal, "q")
    assert not journal.paid("ann", "q", "n")
    first = pay(journal, "q", analyst="ann")
    assert (first.share_charged, first.charged, first.answered) == (ONE, {}, True)
    assert journal.paid("ann", "q", "n")
    assert pay(journal, "q", analyst="ann").share_charged == ZERO
    assert journal.remaining("ann") == credits(2)
    assert spent(journal) == ONE


def test_the_owner_never_pays_for_a_repeat(journal):
    journal.grant("ann", credits(3))
    ask(journal, "q", analyst="ann")
    assert journal.paid("owner", "q", "n")
    assert pay(journal, "q").share_charged == ZERO


def test_a_repeat_that_the_share_cannot_pay_is_refused(journal):
    journal.grant("ann", credits(1))
    ask(journal, "dear", price=credits(2))
    with pytest.raises(BudgetSpent, match="ann's share"):
        pay(journal, "dear", analyst="ann", price=credits(2))


def test_a_repeat_tells_nobody_who_asked_first(journal):
    journal.grant("ann", credits(2))
    journal.grant("bob", credits(2))
    ask(journal, "q", analyst="ann")
    receipt = pay(journal, "q", analyst="bob").receipt
    assert receipt is not None
    assert "ann" not in receipt.to_json()


def test_the_same_digest_for_another_text_is_refused(journal):
    ask(journal, "q")
    with pytest.raises(Refused, match="same digest"):
        pay(journal, "q", question="something else")


# -- grants ---------------------------------------------------------------------------------------


def test_without_a_grant_nobody_but_the_owner_asks(journal):
    with pytest.raises(Refused, match=r"no grant.*sulq grant ann"):
        pay(journal, "q", analyst="ann")
    assert journal.remaining("ann") == ZERO


def test_grants_never_exceed_what_is_left(journal):
    pay(journal, "q", price=credits(2))
    journal.grant("ann", credits(5))
    with pytest.raises(Refused, match="3 are left neither spent nor granted"):
        journal.grant("bob", credits(4))
    assert journal.grant("bob", credits(3)).granted == credits(3)


def test_the_owner_cannot_spend_what_is_granted(journal):
    journal.grant("ann", credits(9))
    assert journal.remaining("owner") == ONE
    with pytest.raises(BudgetSpent, match="kept for them"):
        pay(journal, "q", price=credits(2))
    for number in range(9):
        ask(journal, f"q{number}", analyst="ann")
    with pytest.raises(BudgetSpent):
        pay(journal, "q9", analyst="ann")
    ask(journal, "q9")


def test_grants_survive_reopening(place):
    journal = publish(place)
    journal.grant("ann", credits(4))
    ask(journal, "q", analyst="ann")
    before = journal.statement()
    journal.close()
    after = publish(place)
    assert after.statement() == before
    assert after.remaining("ann") == credits(3)
    assert after.remaining("owner") == credits(6)


@pytest.mark.parametrize("analyst", ["owner", ""])
def test_some_names_cannot_be_granted(journal, analyst):
    with pytest.raises(Refused):
        journal.grant(analyst, ONE)


# -- idempotency keys -----------------------------------------------------------------------------


def test_a_key_returns_the_same_answer_free(journal):
    first = ask(journal, "q", key="k", values=(9,))
    again = pay(journal, "q", key="k")
    assert (again.seq, again.values, again.charged) == (first.seq, (9,), {})
    assert spent(journal) == ONE


@pytest.mark.parametrize("change", [{"digest": "r"}, {"noise": "other"}, {"question": "other"}])
def test_a_key_stands_for_one_question(journal, change):
    ask(journal, "q", key="k")
    with pytest.raises(Refused):
        pay(journal, "q", key="k", **change)
    assert spent(journal) == ONE


def test_keys_are_per_analyst_and_per_table(place):
    people, firms = publish(place), publish(place, name="firms")
    people.grant("ann", credits(2))
    ask(people, "q", key="k")
    ask(people, "r", key="k", analyst="ann")
    ask(firms, "s", key="k")
    assert spent(people) == credits(2)


@pytest.mark.parametrize("reopen", [False, True])
def test_an_unanswered_key_may_be_tried_three_times_across_restarts(place, reopen):
    journal = publish(place)
    pay(journal, "q", key="k")
    for _ in range(2):
        if reopen:
            journal.close()
            journal = publish(place)
        assert not pay(journal, "q", key="k").answered
    with pytest.raises(Refused, match="3 attempts"):
        pay(journal, "q", key="k")
    assert ask(journal, "q", key="another").charged == {}
    assert pay(journal, "q", key="k").answered
    assert spent(journal) == ONE


def test_a_key_used_for_a_repeat_is_taken_too(journal):
    ask(journal, "q")
    ask(journal, "q", key="k")
    with pytest.raises(Refused, match="another question"):
        pay(journal, "r", key="k")


# -- publication ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"facts": {"schema": "[]", "promise": PROMISE}}, "schema"),
        ({"facts": {"schema": "{}", "promise": PROMISE, "grid": "24"}}, "grid"),
        ({"accounts": ("", "x")}, "accounts"),
        ({"cap": credits(11)}, "cap"),
    ],
)
def test_reopening_with_other_facts_is_refused_by_name(place, change, named):
    publish(place).close()
    with pytest.raises(Refused, match=f"other {named}"):
        publish(place, **change)
    publish(place).close()


def test_the_version_is_random_and_kept(place, tmp_path):
    journal = publish(place)
    version = journal.header.version
    journal.close()
    assert publish(place).header.version == version
    assert publish(tmp_path / "other").header.version != version


@pytest.mark.parametrize("accounts", [(), tuple(map(str, range(4097))), ("a", "a")])
def test_accounts_are_one_to_4096_different_names(path, accounts):
    with pytest.raises(InvalidQuery):
        publish(path, accounts=accounts)
    assert not path.exists()


def test_without_publish_nothing_is_made(path, state_directory):
    with pytest.raises(NotPublished, match="'people' is not published"):
        publish(path, publish=False, fingerprint="data")
    assert not path.exists() and not list(state_directory.rglob("*"))
    publish(path).close()
    before = sorted(state_directory.rglob("*")), path.read_bytes()
    with pytest.raises(NotPublished, match=r"'firms'.*publish=True"):
        publish(path, name="firms", publish=False, fingerprint="data")
    assert (sorted(state_directory.rglob("*")), path.read_bytes()) == before


def test_a_publication_that_was_killed_is_not_published(path):
    """With key, anchor and an empty chain there, the table waits for its owner."""
    file.open_ledger_file(path, 0.0, True).leave(wait=True)
    with pytest.raises(NotPublished):
        publish(path, publish=False)
    publish(path).close()
    publish(path, publish=False).close()


def test_a_file_that_is_no_ledger_is_refused(path):
    path.write_bytes(b"PAR1" * 500)
    with pytest.raises(Refused, match="does not verify"):
        publish(path)


def test_a_newer_format_is_refused(path, monkeypatch):
    monkeypatch.setattr("sulq.kernel.ledger.stores.sqlite.FORMAT", 3)
    publish(path).close()
    monkeypatch.undo()
    with pytest.raises(Refused, match="format 3, this sulq reads 2"):
        publish(path)


def test_4096_accounts_are_charged_quickly_and_written_briefly(place):
    names = tuple(f"cell {number}" for number in range(4096))
    journal = publish(place, accounts=names, cap=credits(10**6))
    for number in range(49):
        ask(journal, f"q{number}")
    assert calls(lambda: ask(journal, "q49")) < 20 * 4096  # half of it: 10 for each account
    rows = journal._book.read(lambda: list(journal._book.rows()))
    assert max(len(row.body) for row in rows if '"charge"' in row.body) < 400
    assert spent(journal) == credits(50)


def test_closing_twice_is_fine_and_use_afterwards_is_refused(place):
    journal = publish(place)
    journal.close()
    journal.close()
    for use in (lambda: pay(journal, "q"), journal.statement, lambda: journal.remaining("owner")):
        with pytest.raises(Refused, match="closed"):
            use()


def test_a_forgotten_journal_lets_its_file_go(place):
    journal = publish(place)
    ask(journal, "q")
    assert file.opened(place) is not None
    del journal
    gc.collect()
    assert spent(publish(place, wait=5.0)) == ONE


def test_two_views_of_one_table_share_one_budget(place):
    one, two = publish(place), publish(place)
    pay(one, "q", price=credits(6))
    with pytest.raises(BudgetSpent):
        pay(two, "r", price=credits(6))
    one.close()
    ask(two, "s")


def test_entries_list_what_was_charged(place):
    journal = publish(place)
    journal.grant("ann", credits(5))
    ask(journal, "q", values=(4,), key="k")
    pay(journal, "r", analyst="ann")
    pay(journal, "q", analyst="ann")
    journal.close()
    journal = publish(place)
    found = list(journal.entries())
    assert [(e.analyst, e.digest, e.key, e.answered, e.values) for e in found] == [
        ("owner", "q", "k", True, (4,)),
        ("ann", "r", None, False, None),
        ("ann", "q", None, True, (4,)),
    ]
    assert [e.charged for e in found] == [{"": ONE}, {"": ONE}, {}]
    assert len(list(journal.entries("ann", after=found[1].seq))) == 1


def test_no_rule_reads_the_clock(place, monkeypatch):
    """Ten years back or forth between any two calls: the same answers, prices and refusals."""
    clock = iter(range(10**12))
    now = time.time()
    jumps = (now + (-1) ** n * 10 * 365 * 86400 for n in clock)
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    journal = publish(place)
    for number in range(10):
        ask(journal, f"q{number}", key=str(number))
    journal.close()
    journal = publish(place)
    assert pay(journal, "q1", key="1").answered
    with pytest.raises(BudgetSpent):
        pay(journal, "r")


def test_the_ledger_holds_no_fingerprint_and_the_state_is_private(path, state):
    publish(path, fingerprint="content-hash-of-all-rows").close()
    assert b"content-hash" not in path.read_bytes()
    kept = [found for found in state.rglob("*") if found.is_file()]
    assert {oct(found.stat().st_mode & 0o777) for found in kept} == {"0o600"}
    assert {found.parent.stat().st_mode & 0o777 for found in kept} == {0o700}


def test_header_reads_back(place):
    header = publish(place).header
    assert TableHeader.from_body(json.loads(json.dumps(header.to_body()))) == header
    assert header.neighbours == "replace"


def test_a_snapshot_says_all_of_one_question_in_one_read(journal, monkeypatch):
    journal.grant("ann", credits(2))
    ask(journal, "q", noise="fine", key="k")
    ask(journal, "q", noise="coarse", analyst="ann")
    reads = []
    usual = type(journal._book).read
    monkeypatch.setattr(
        type(journal._book), "read", lambda book, work: reads.append(1) or usual(book, work)
    )
    mine, hers = journal.snapshot(key="k", digest="q"), journal.snapshot("ann", digest="q")
    assert len(reads) == 2
    assert mine.stored == hers.stored == ("fine", "coarse")
    assert (mine.paid, hers.paid) == ({"fine", "coarse"}, {"coarse"})
    assert (mine.keyed, hers.keyed, mine.planned) == (("q", "fine"), None, None)
    assert mine.head == journal.head
    assert mine.closed is mine.declaration is None
    assert not mine.recovered
    assert journal.snapshot(digest="r").stored == ()


def test_a_snapshot_of_a_closed_table_has_what_each_was_given(journal):
    journal.grant("ann", credits(2))
    ask(journal, "q", noise="fine")
    ask(journal, "q", noise="coarse", analyst="ann")
    pay(journal, "q", noise="open")
    before = journal.snapshot("ann", digest="q")
    journal.close_for_good("done")
    assert journal.snapshot(digest="q").paid == {"fine"}
    assert journal.snapshot("ann", digest="q").paid == {"coarse"}
    assert journal.snapshot().closed == journal.closed
    assert before.closed is None  # it stays as it was
