"""Many at once: the cap is reached exactly and never passed."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.ledger.budget import Budgets
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.recovery import recover

THREADS = 64


def together(act):
    """Run act(0), act(1), ... in threads that start at once."""
    gate, problems = threading.Barrier(THREADS), []

    def work(number):
        gate.wait()
        try:
            act(number)
        except BaseException as problem:  # noqa: BLE001 - reported by the main thread
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


@pytest.mark.parametrize("repetition", range(5))
def test_64_threads_spend_exactly_the_cap(path, repetition):
    journal = publish(path, cap=credits(40))
    released = []

    def act(me):
        for turn in range(4):
            price = credits(3 - me % 3)
            with suppress(BudgetSpent):
                released.append(ask(journal, f"{me}-{turn}", price=price).charged[""].credits)
        try:  # the cheapest question of all takes what is left
            while True:
                released.append(ask(journal, f"{me}-{len(released)}-rest").charged[""].credits)
        except BudgetSpent:
            pass

    together(act)
    assert sum(released) == 40 * CREDIT
    assert spent(journal) == credits(40)
    journal.close()
    assert spent(publish(path, cap=credits(40))) == credits(40)


def test_without_the_check_the_cap_is_passed(path, monkeypatch):
    """The control: the race is real, only `admit` stops it."""
    monkeypatch.setattr(Budgets, "admit", lambda *_: None)
    journal = publish(path, cap=credits(40))
    together(lambda me: ask(journal, f"q{me}"))
    assert spent(journal) == credits(THREADS)
    journal.close()
    with pytest.raises(Refused, match="does not verify"):
        publish(path, cap=credits(40))


def test_64_threads_with_one_question_are_charged_once_and_see_one_answer(path):
    journal, seen = publish(path), []
    together(lambda me: seen.append(ask(journal, "q", values=(me,)).values))
    assert len(set(seen)) == 1
    assert spent(journal) == ONE


def test_64_threads_with_one_key_are_charged_once(path):
    journal, seen = publish(path), []

    def act(me):
        try:
            seen.append(ask(journal, "q", values=(me,), key="k").values)
        except Refused as refusal:
            assert "attempts" in str(refusal)

    together(act)
    assert len(set(seen)) == 1
    assert spent(journal) == ONE


def test_shares_hold_under_racing_analysts(path):
    journal = publish(path, cap=Loss(40 * CREDIT, 0))
    for name, share in (("ann", 15), ("bob", 10)):
        journal.grant(name, credits(share))
    paid = {"ann": 0, "bob": 0, "owner": 0}

    def act(me):
        who = ("ann", "bob", "owner")[me % 3]
        for turn in range(3):
            try:
                ask(journal, f"{me}-{turn}", analyst=who)
                paid[who] += 1
            except BudgetSpent:
                pass

    together(act)
    assert paid == {"ann": 15, "bob": 10, "owner": 15}


@pytest.mark.parametrize("repetition", range(3))
def test_reservations_hold_under_racing_threads(path, repetition):
    """What one has set aside is there to the last credit, whatever the others take."""
    journal = publish(path, cap=credits(40))
    journal.grant("ann", credits(12))
    paid = []

    def act(me):
        who, width = ("owner", "ann")[me % 2], 1 + me % 3
        try:
            aside = journal.reserve(who, credits(width))
        except BudgetSpent:
            with suppress(BudgetSpent):  # all is set aside or spent just now, or this fits
                ask(journal, f"{me}", analyst=who)
                paid.append(1)
            return
        for turn in range(width - me % 2):
            ask(aside, f"{me}-{turn}", analyst=who)  # never refused
            paid.append(1)
        if me % 5:
            aside.close()

    together(act)
    gc.collect()
    pay(journal, "last", price=credits(0))  # in turn after what nobody holds any more
    statement = journal.statement()
    assert statement.spent == credits(len(paid))
    assert statement.spent.within(credits(40))
    kept = statement.granted_left
    assert journal.remaining("owner") + statement.spent + kept == credits(40)
    journal.close()
    assert spent(publish(path, cap=credits(40))) == credits(len(paid))


def start(*arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, "."])}
    script = str(Path(__file__).with_name("contender.py"))
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )


@pytest.mark.slow
def test_8_processes_hold_the_ledger_one_at_a_time(path, tmp_path):
    log = tmp_path / "log"
    processes = [start(path, log, f"p{number}") for number in range(8)]
    for process in processes:
        _, talk = process.communicate()
        assert process.returncode == 0, talk
    lines = [line.split() for line in log.read_text().splitlines()]
    moves = [line for line in lines if line[0] in ("in", "out")]
    assert len(moves) == 2 * 8 * 3
    for entered, left in zip(moves[::2], moves[1::2], strict=True):
        assert (entered[0], left) == ("in", ["out", entered[1]])
    journal = publish(path, cap=credits(40))
    assert sum(line[0] == "released" for line in lines) == 40
    assert spent(journal) == credits(40)


def test_a_second_process_is_refused_and_told_who_holds_it(path):
    holder = (
        "import sys; from tests.kernel.ledger.publishing import *; journal = publish(sys.argv[1]); "
        "print(flush=True); input()"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, "."])}
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=Path(__file__).parents[2],
    ) as process:
        process.stdout.readline()
        with pytest.raises(Refused, match=rf"people\.ledger is held by process {process.pid}"):
            publish(path, wait=0.1)
        process.kill()
    pay(publish(path, wait=5.0), "q")


def test_a_copy_of_a_ledger_in_use_is_refused(path, tmp_path):
    """Two copies share one id: only one of them can be the ledger."""
    journal = publish(path)
    journal.close()
    copy = tmp_path / "copy.ledger"
    copy.write_bytes(path.read_bytes())
    journal = publish(path)
    with pytest.raises(Refused, match="held by process"):
        publish(copy)
    pay(journal, "q")
    journal.close()
    with pytest.raises(Refused, match="rolled back"):
        publish(copy)


OTHER = """
import sys
from tests.kernel.ledger.publishing import ask, publish
from sulq.errors import Refused
try:
    print("released", ask(publish(sys.argv[1]), "b").seq)
except Refused as refusal:
    print(refusal)
"""


def test_reading_the_file_in_its_own_process_lets_nobody_in(path, state, tmp_path):
    """Closing a handle of the file ends SQLite's locks; a copy of the state knows no holder."""
    journal = publish(path)
    ask(journal, "a")
    shutil.copytree(state, tmp_path / "copied")
    path.read_bytes()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SULQ_STATE": str(tmp_path / "copied"),
    }
    command = [sys.executable, "-c", OTHER, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "held by another process" in run.stdout
    ask(journal, "c")
    journal.close()
    assert spent(publish(path)) == credits(2)


def test_another_name_of_an_open_ledger_is_the_same_ledger(path, tmp_path):
    journal = publish(path)
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "soft").symlink_to(path)
    for name in ("hard", "soft"):
        other = publish(tmp_path / name)
        ask(other, name)
        assert inspect(tmp_path / name).anchored
        with pytest.raises(Refused, match="open in this process"):
            recover(tmp_path / name)
        other.close()
    assert spent(journal) == credits(2)


def test_a_ledger_replaced_while_open_is_refused(path, tmp_path):
    journal = publish(path)
    shutil.copy(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    with pytest.raises(Refused, match="replaced while it is open"):
        publish(path)
    journal.close()


def test_an_open_ledger_keeps_its_state_directory(path, tmp_path, monkeypatch):
    """Else the same data could be published again, as another table."""
    journal = publish(path, fingerprint="f")
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "other"))
    with pytest.raises(Refused, match="state directory"):
        publish(path, name="two", fingerprint="f")
    journal.close()


@pytest.mark.parametrize("repetition", range(10))
def test_two_data_sets_never_open_as_one_table(path, repetition):
    """Whoever is second is refused, at whatever moment."""
    out, gate = [], threading.Barrier(2)

    def act(data):
        gate.wait()
        with suppress(Refused):
            out.append(publish(path, fingerprint=data, wait=5.0))

    threads = [threading.Thread(target=act, args=(data,)) for data in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(out) == 1
    out[0].close()
