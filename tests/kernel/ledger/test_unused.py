"""Before anything was asked a table may be repaired or withdrawn; after it, never."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.ledger.publishing import ONE, PROMISE, ask, credits, line, pay, publish, raised
from tests.kernel.ledger.test_changes import replayed
from tests.kernel.ledger.test_outside import release
from tests.kernel.ledger.test_population import member

from sulq.errors import NotPublished, Refused
from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.ledger import events, failpoints
from sulq.kernel.ledger.header import TableHeader
from sulq.kernel.ledger.inspect import inspect, is_published
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.ledger.register import told_of

OTHER = {"schema": '{"unit":"person"}', "promise": '{"epsilon":"1/2","neighbours":"replace"}'}


def other(journal: Ledger, **changes) -> TableHeader:
    """Everything a repair may change."""
    wanted = {"facts": OTHER, "accounts": ("a", "b"), "cap": credits(7)}
    return replace(journal.header, **(wanted | changes))


def again(place, **changes):
    """The repaired table, opened as it is now."""
    return publish(place, **({"facts": OTHER, "accounts": ("a", "b"), "cap": credits(7)} | changes))


def reserved(journal):
    journal.reserve("owner", ONE).close()


USES = {
    "a charge": lambda journal: pay(journal, "a"),
    "an answer": lambda journal: ask(journal, "a"),
    "a free public answer": lambda journal: ask(journal, "a", price=credits(0)),
    "a batch": lambda journal: journal.charge_all([], analyst="owner", key="k"),
    "a reservation that has ended": reserved,
    "a release made elsewhere": lambda journal: journal.outside(release(1)),
    "a declaration": lambda journal: journal.declare([["q"]], 2, "terms"),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_undone_after_a_use(place, use):
    with closing(publish(place, fingerprint="data")) as journal:
        USES[use](journal)
        assert not journal.unused
        with pytest.raises(Refused, match="was used"):
            journal.repair(other(journal))
        with pytest.raises(Refused, match="was used"):
            journal.withdraw("sorry")
        assert journal.statement().withdrawn is None
        pay(journal, "b")  # it goes on


def test_a_repair_changes_everything_and_ends_every_share(place):
    first = publish(place, fingerprint="data")
    first.grant("ann", credits(3))
    fixed = first.repair(other(first), "wrong unit")
    with pytest.raises(Refused, match="amended since it was opened"):
        pay(first, "a")
    first.close()
    with closing(fixed):
        found = fixed.statement()
        assert (found.cap, len(found.accounts), found.facts) == (credits(7), 2, OTHER)
        assert (found.amended[0].reason, found.amended[0].cap) == ("wrong unit", credits(10))
        assert line(fixed, "ann").revoked.reason == "wrong unit" and found.granted_left == credits(
            0
        )
        with pytest.raises(Refused, match="was revoked"):
            pay(fixed, "a", analyst="ann")
        fixed.grant("ann", credits(7))
        ask(fixed, "a", analyst="ann")
        assert not fixed.unused
    with pytest.raises(Refused, match="other"):
        publish(place, fingerprint="data")
    again(place, fingerprint="data").close()
    assert inspect(place).statements["people"].spent == ONE


def test_a_withdrawn_table_is_not_published_and_its_data_is_free(place, tmp_path):
    first = publish(place, fingerprint="data")
    first.grant("ann", credits(3))
    assert first.withdraw("too soon", "row").reason == "too soon"
    for late in (pay, ask):
        with pytest.raises(Refused, match="was withdrawn"):
            late(first, "a")
    assert first.withdraw("twice").reason == "too soon"
    first.close()
    assert not is_published(place, "people")
    assert inspect(place).statements["people"].withdrawn.reason == "too soon"
    with pytest.raises(NotPublished):
        publish(place, fingerprint="data", publish=False)
    with closing(publish(tmp_path / "elsewhere", fingerprint="data", name="folk")) as elsewhere:
        ask(elsewhere, "a")
    with pytest.raises(Refused, match="registered with another ledger"):
        publish(place, fingerprint="data")
    assert told_of("data") == "row"


def test_what_is_public_stays_so_if_somebody_had_a_share_before_the_last_event(place):
    """Not as it was when whoever withdraws has looked."""
    with closing(publish(place, fingerprint="data")) as journal:
        other_view = Ledger.attach(place, "people", wait=0)
        journal.withdraw("nobody looked", "row")
        other_view.close()
    assert told_of("data") is None
    with closing(publish(place, fingerprint="data")) as journal:
        seen = []

        def check(shown):
            seen.append(shown)
            raise Refused("the number was public")

        journal.grant("ann", ONE)
        with pytest.raises(Refused, match="was public"):
            journal.repair(other(journal), "r", check)
        assert seen == [True] and journal.header.facts != OTHER
        journal.withdraw("ann looked", "row")
    assert told_of("data") == "row"


def test_the_name_may_be_published_again_with_other_data(place):
    old = publish(place, fingerprint="old")
    old.withdraw()
    with closing(publish(place, fingerprint="new")) as journal:
        with pytest.raises(Refused):  # of the table that had this name
            pay(old, "a")
        assert (journal.unused, len(journal.statement().analysts)) == (True, 1)
        ask(journal, "a")
        with pytest.raises(Refused, match="was used"):
            journal.withdraw()
    old.close()
    with pytest.raises(Refused, match="is not what was published"):
        publish(place, fingerprint="other")
    publish(place, fingerprint="new", publish=False).close()


def test_a_journal_of_an_earlier_table_never_speaks_for_the_next(place):
    """Each life has generations of its own, also where facts and data are the same."""
    first = publish(place, fingerprint="data")
    first.withdraw()
    late = Ledger.attach(place, "people", wait=0)
    second = publish(place, fingerprint="data")
    for journal in (first, late):
        with pytest.raises(Refused):
            pay(journal, "a")
        with pytest.raises(Refused):
            journal.withdraw("not mine")
        journal.close()
    assert second.statement().withdrawn is None
    ask(second, "a")
    second.close()


def test_all_versions_of_the_data_are_freed(place, tmp_path):
    journal = publish(place, fingerprint="winter")
    larger = journal.grow({"schema": "{}", "promise": PROMISE}, "spring")
    larger.withdraw()
    larger.close()
    journal.close()
    for season in ("winter", "spring"):
        publish(tmp_path / season, fingerprint=season).close()


def test_after_a_loss_of_events_nothing_is_undone(place, state):
    publish(place, fingerprint="data").close()
    next(state.glob("ledgers/*/anchor")).unlink()
    recover(place)
    with closing(publish(place, fingerprint="data")) as journal:
        with pytest.raises(Refused, match="was used"):
            journal.withdraw()
        with pytest.raises(Refused, match="was used"):
            journal.repair(other(journal))


def test_a_rollback_over_a_withdrawal_gives_no_second_budget(path, tmp_path):
    """The data went elsewhere and was spent there: the old ledger opens it no more."""
    journal = publish(path, fingerprint="data")
    journal.close()
    shutil.copy(path, tmp_path / "backup")
    with closing(Ledger.attach(path, "people", wait=0)) as journal:
        journal.withdraw("moved")
    with closing(publish(tmp_path / "new", fingerprint="data")) as journal:
        ask(journal, "a", price=credits(10))
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(Refused, match=r"rolled back|registered"):
        publish(path, fingerprint="data")
    recover(path)
    assert inspect(path).statements["people"].spent == credits(10)
    with pytest.raises(Refused, match="registered with another ledger"):
        publish(path, fingerprint="data")


def test_what_was_published_again_and_lost_is_not_published_a_third_time(path, tmp_path):
    with closing(publish(path, fingerprint="data")) as journal:
        journal.withdraw()
    shutil.copy(path, tmp_path / "backup")
    with closing(publish(path, fingerprint="data")) as journal:
        ask(journal, "a", price=credits(10))
    shutil.copy(tmp_path / "backup", path)
    recover(path)
    with pytest.raises(Refused, match="events were lost since"):
        publish(path, fingerprint="data")
    with closing(Ledger.attach(path, "people", wait=0)) as journal:
        journal.withdraw()  # frees nothing
    with pytest.raises(Refused, match="registered with another ledger"):
        publish(tmp_path / "elsewhere", fingerprint="data")


STEPS = ["admitted", "committed", "anchored", "withdrawn", "repaired"]


@pytest.mark.parametrize("step", STEPS[:4])
def test_a_crash_leaves_a_table_published_or_withdrawn(place, tmp_path, monkeypatch, step):
    journal = publish(place, fingerprint="data")

    def dies(here):
        if here == step:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        with pytest.raises((OSError, Refused)):
            journal.withdraw("r")
    journal.close()
    done = step != "admitted"
    assert is_published(place, "people") != done
    with pytest.raises(Refused, match="registered with another ledger"):  # never free too soon
        publish(tmp_path / "elsewhere", fingerprint="data")
    with closing(Ledger.attach(place, "people", wait=0)) as journal:  # the same command again
        journal.withdraw("again")
    assert inspect(place).statements["people"].withdrawn.reason == ("r" if done else "again")
    publish(tmp_path / "elsewhere", fingerprint="data").close()


@pytest.mark.parametrize("step", [*STEPS[:3], "repaired"])
def test_a_crash_leaves_a_table_as_it_was_or_repaired(place, monkeypatch, step):
    journal = publish(place, fingerprint="data")
    journal.grant("ann", credits(3))

    def dies(here):
        if here == step:
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        with pytest.raises((OSError, Refused)):
            journal.repair(other(journal), "r")
    journal.close()
    done = step != "admitted"
    with closing((again if done else publish)(place, fingerprint="data")) as journal:
        assert (line(journal, "ann").revoked is not None) == done
    with pytest.raises(Refused, match="other"):
        (publish if done else again)(place, fingerprint="data")


def test_a_chain_that_undoes_a_use_does_not_verify(journal):
    ask(journal, "a")
    for forged in (
        events.WithdrawEvent("people", "r").to_body(),
        other(journal).to_body() | {"kind": "repair", "reason": "r"},
    ):
        with pytest.raises(Refused, match="does not verify"):
            replayed(journal, forged)


@pytest.mark.parametrize(
    "forged",
    [
        events.CloseEvent("people", "").to_body(),
        events.WithdrawEvent("people", "r").to_body(),
        events.GrantEvent("people", "ann", ONE).to_body(),
        events.ReserveEvent("people", "owner", ONE).to_body(),
    ],
)
def test_a_chain_that_goes_on_after_a_withdrawal_does_not_verify(journal, forged):
    journal.withdraw()
    with pytest.raises(Refused, match="does not verify"):
        replayed(journal, forged)


# -- killed, raced, in any order -----------------------------------------------------------------


@pytest.mark.parametrize("step", ["committed", "anchored", "withdrawn"])
def test_killed_while_it_withdraws(path, tmp_path, step):
    """kill -9 between the steps: the data is free only when the event is durable."""
    publish(path, fingerprint="data").close()
    if (child := os.fork()) == 0:
        failpoints.on_step = lambda here: (
            os.kill(os.getpid(), signal.SIGKILL) if here == step else None
        )
        Ledger.attach(path, "people", wait=0).withdraw("r")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not is_published(path, "people")
    with pytest.raises(Refused, match="registered with another ledger"):
        publish(tmp_path / "elsewhere", fingerprint="data")
    with closing(Ledger.attach(path, "people", wait=5)) as journal:
        journal.withdraw()
    publish(tmp_path / "elsewhere", fingerprint="data").close()


def test_killed_while_it_is_repaired(path):
    publish(path, fingerprint="data").close()
    if (child := os.fork()) == 0:
        journal = Ledger.attach(path, "people", wait=0)
        failpoints.on_step = lambda here: os.kill(os.getpid(), signal.SIGKILL)
        journal.repair(other(journal), "r")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    publish(path, fingerprint="data", wait=5.0).close()  # before: nothing was durable


def test_a_charge_and_a_withdrawal_race_on_two_replicas(replicas):
    """Whoever has the turn first decides: never a withdrawn table with a charge."""
    outcomes = set()
    for turn in range(4):
        one, two = (replica.open(name=f"t{turn}") for replica in replicas)
        done = []

        def act(work, done=done):
            try:
                work()
                done.append(work)
            except Refused:
                pass

        acts = [partial(pay, two, "a"), partial(one.withdraw, "r")]
        if turn < 2:  # in order; then at once
            for work in acts[:: 1 if turn else -1]:
                act(work)
        else:
            threads = [threading.Thread(target=act, args=(work,)) for work in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = inspect(replicas[0].address).statements[f"t{turn}"]
        assert len(done) == 1 and (found.entries == 1) != (found.withdrawn is not None)
        outcomes.add(found.entries)
        for journal in (one, two):
            journal.close()
    assert outcomes == {0, 1}


def test_a_replica_that_had_the_table_open_goes_by_the_repair(replicas):
    one, two = (replica.open() for replica in replicas)
    one.repair(other(one), "r").close()
    for late in (pay, ask):
        with pytest.raises(Refused, match="amended since it was opened"):
            late(two, "a")
    one.close()
    two.close()


ACTS = st.sampled_from(
    ["charge", "free", "grant", "reserve", "repair", "amend", "withdraw", "publish", "reopen"]
)


@settings(max_examples=16)
@given(acts=st.lists(ACTS, min_size=1, max_size=14))
def test_in_any_order_no_charge_is_ever_undone(acts, tmp_path_factory):
    """A model of two ledgers and one table's data: what was charged stays, and binds the data."""
    home = tmp_path_factory.mktemp("model")
    before = os.environ["SULQ_STATE"]
    os.environ["SULQ_STATE"] = str(home / "state")
    try:
        place, spent_there, changed = home / "a", 0, 0
        journal = publish(place, fingerprint="data")
        for number, act in enumerate(acts):
            used = spent_there > 0 or bool(changed)
            match act:
                case "charge" | "free" if journal is not None:
                    price = credits(int(act == "charge"))
                    pay(journal, f"q{number}", price=price)
                    spent_there += price.credits
                    changed += 1
                case "grant" if journal is not None:
                    journal.grant("ann", Loss(1, 0))
                case "reserve" if journal is not None:
                    journal.reserve("owner", Loss(1, 0)).close()
                    changed += 1
                case "repair" | "withdraw" if journal is not None:
                    undo = (
                        partial(journal.repair, replace(journal.header, cap=credits(50 + number)))
                        if act == "repair"
                        else journal.withdraw
                    )
                    if used:
                        with pytest.raises(Refused, match="was used"):
                            undo()
                        continue
                    found = undo()
                    journal.close()
                    journal = found if act == "repair" else None
                case "amend" if journal is not None:
                    cap = journal.header.cap.credits // CREDIT + 1
                    larger = journal.amend(raised(cap, "1", facts=dict(journal.header.facts)))
                    journal.close()
                    journal = larger
                case "publish":
                    other_place = home / "b" if place == home / "a" else home / "a"
                    if journal is not None:
                        with pytest.raises(Refused, match=r"registered|is not published"):
                            publish(other_place, fingerprint="data", publish=not used)
                        continue
                    place, spent_there, changed = other_place, 0, 0
                    journal = publish(place, fingerprint="data", name=f"people{number}")
                case "reopen" if journal is not None:
                    header = journal.header
                    journal.close()
                    journal = publish(
                        place,
                        fingerprint="data",
                        publish=False,
                        name=header.name,
                        facts=header.facts,
                        cap=header.cap,
                    )
            if journal is not None:
                assert journal.statement().spent.credits == spent_there
        if journal is not None:
            journal.close()
    finally:
        os.environ["SULQ_STATE"] = before


# -- populations ---------------------------------------------------------------------------------


def test_an_unused_table_leaves_its_population_as_it_found_it(place):
    with (
        closing(publish(place, name="a", member=member())) as one,
        closing(publish(place, name="b", member=member())) as two,
    ):
        ask(one, "a")
        before = one.statement().population.spent
        two.withdraw()
        after = one.statement().population
        assert (after.spent, after.tables) == (before, ("a",))
        with pytest.raises(Refused, match="was used"):
            one.withdraw()


def test_who_names_a_population_next_says_what_it_is(place):
    small, large = member(), replace(member(), cap=credits(99))
    with closing(publish(place, name="a", member=small)) as one:
        with pytest.raises(Refused, match="another promise"):
            publish(place, name="b", member=large)
        fixed = one.repair(other(one, member=large), "larger")
        assert fixed.statement().population.cap == credits(99)
        fixed.withdraw()
        fixed.close()
    with closing(publish(place, name="b", member=small)) as two:
        assert two.statement().population.tables == ("b",)
        ask(two, "a")
    with pytest.raises(Refused, match="another promise"):
        publish(place, name="c", member=large)


def test_a_spent_population_is_not_promised_anew(place):
    with (
        closing(publish(place, name="a", member=member())) as one,
        closing(publish(place, name="b", member=member())) as two,
    ):
        ask(one, "a")
        with pytest.raises(Refused, match="another promise"):
            two.repair(other(two, member=replace(member(), cap=credits(99))))
        with pytest.raises(Refused, match="does not verify"):
            replayed(
                two,
                other(two, member=replace(member(), cap=credits(99))).to_body()
                | {"kind": "repair", "reason": ""},
            )


def test_an_ordinary_amendment_is_no_use(place):
    with closing(publish(place, fingerprint="data")) as journal:
        larger = journal.amend(raised())
        assert larger.unused
        larger.withdraw()
        larger.close()


def test_the_console_tells_both_events_in_words():
    from tests.people import frame
    from tests.people import publish as open_people

    from sulq import Promise
    from sulq.server.console.history import CHANGES, change_text, history

    db = open_people().amend(promise=Promise("1/2", "1e-6", 50), source=frame(), reason="weaker")
    told, _ = history(db)
    assert "repair" in CHANGES and "withdraw" in CHANGES
    assert [change_text(one, "") for one in told if one.kind == "repair"] == [
        "Changed before anything was asked, 50 credits in all; all shares ended"
    ]
    assert [one.reason for one in told if one.kind == "repair"] == ["weaker"]
