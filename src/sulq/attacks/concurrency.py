"""Attacks by several workers at once: forked processes with equal noise, and racing threads.

A generator that a fork copies with its state draws the same noise in each process; two answers
with equal noise give their difference exactly. Threads race to overspend,
or to ask one thing twice.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from itertools import combinations

import numpy as np

from sulq.answers.oracle import Answer, Oracle
from sulq.answers.statistics import histogram
from sulq.attacks.audit import Values, all_credits, values_of
from sulq.attacks.result import AttackResult
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import Refused, SulqError
from sulq.kernel.query.expressions import col, lit
from sulq.kernel.query.sum_query import Statistic, SumQuery

EQUAL = "share of workers with equal noise"
CELLS = 8
PATIENCE = 20.0
"""Seconds after which a silent worker counts as one that refuses."""


def forks(target: Target, *, workers: int = 4, seed: int = 6) -> AttackResult:
    """Each worker, and their parent, is asked about its own eight rows; how many pairs drew the
    same noise?"""
    secrets = target.secrets(seed, (workers + 1) * CELLS)
    oracle = target.publish(secrets)
    share = Fraction(1, workers + 1)
    quote = oracle.quote(_question(0), credits=all_credits(oracle, share))
    if not hasattr(os, "fork"):
        return AttackResult("forked workers", EQUAL, 0.0, 0.0, 0.0, 0, note="there is no fork here")
    noises = []
    for worker in range(workers):
        said = _in_child(oracle, _question(worker), share)
        if said is not None:
            noises.append(said - secrets[worker * CELLS : (worker + 1) * CELLS])
    refused = workers - len(noises)
    # the parent comes last: it has the state they started from, and can answer, or all is spent
    said = values_of(oracle.ask(_question(workers), credits=all_credits(oracle, share)))
    noises.append(said - secrets[workers * CELLS :])
    pairs = list(combinations(noises, 2))
    equal = sum(bool(np.array_equal(one, other)) for one, other in pairs)
    # eight draws of spread s on the integers agree with chance (2 s sqrt(pi))^-8 at most
    spread = float(np.max(quote.standard_error)) if quote.standard_error is not None else 0.0
    bound = min(1.0, 0.2821 / spread) ** CELLS if spread else 0.0
    note = f"{refused} of {workers} workers refused to answer" if refused else ""
    reached = equal / len(pairs) if pairs else 0.0
    return AttackResult("forked workers", EQUAL, reached, bound, 0.0, workers, quote.credits, note)


def _question(worker: int) -> Statistic:
    end = (worker + 1) * CELLS
    inside = col(SECRET) & (col(ROW) < end)  # the last cell has its upper edge too
    return histogram(ROW, where=inside, edges=range(end - CELLS, end + 1))


def _in_child(oracle: Oracle, question: Statistic, share: Fraction) -> Values | None:
    """What a forked child is answered; None if it is refused or never answers."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: that is the attack
        child = os.fork()
    if child == 0:
        _answer_and_end(oracle, question, share, writing)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], PATIENCE)
        text = b""
        while ready and (part := os.read(reading, 65_536)):
            text += part
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    values = json.loads(text) if text else None
    return None if values is None else np.array(values, dtype=np.float64)


def _answer_and_end(oracle: Oracle, question: Statistic, share: Fraction, writing: int) -> None:
    """In the child: no tidying up, for the tables and files are the parent's."""
    gc.disable()  # finalizers of the parent's connections do not survive a fork
    try:
        said: list[float] | None
        try:
            answer = oracle.ask(question, credits=all_credits(oracle, share))
            said = values_of(answer).tolist()
        except SulqError:
            said = None
        os.write(writing, json.dumps(said).encode())
    finally:
        os._exit(0)


# Many at once: more credits released than there are, or a fresh answer that nobody paid for.


THREADS = 8
LAST = 4
"""Questions that what is left would pay for, once most of it is spent."""


def races(target: Target, *, rounds: int = 3, threads: int = THREADS) -> list[AttackResult]:
    """A race for the last credits, and one question asked again and again."""
    return [overspending(target, rounds=rounds, threads=threads), repeating(target)]


def overspending(target: Target, *, rounds: int = 3, threads: int = THREADS) -> AttackResult:
    """The most credits that were released from one table, all answers together."""
    most, over = Fraction(0), 0
    for number in range(rounds):
        oracle = target.publish(target.secrets(100 + number, 1 + LAST * threads))
        spent = _raced(oracle, threads)
        over += spent > target.promise.credits
        most = max(most, spent)
    return AttackResult(
        "race for the last credits",
        "credits released",
        float(most),
        float(target.promise.credits),
        0.0,
        rounds * (1 + LAST * threads),
        most,
        f"the promise was overspent in {over} of {rounds} rounds",
    )


def _raced(oracle: Oracle, threads: int) -> Fraction:
    """Half of the credits for one answer; then all threads at once ask for an eighth each."""
    half, eighth = (all_credits(oracle, Fraction(1, parts)) for parts in (2, 2 * LAST))
    released = [oracle.ask(_of_row(0), credits=half).credits]

    def spend(me: int) -> None:
        for turn in range(LAST):
            with suppress(Refused):
                answer = oracle.ask(_of_row(1 + me * LAST + turn), credits=eighth)
                released.append(answer.credits)

    together(spend, threads)
    return sum(released, Fraction(0))


def repeating(target: Target, *, times: int = 4, seed: int = 8) -> AttackResult:
    """Free answers that differ from the paid one: in turn, with a key, and all at once."""
    oracle = target.publish(target.secrets(seed, 8))
    asked, fresh, paid = 0, 0, Fraction(0)
    for row, (key, at_once) in enumerate(((None, False), ("again", False), ("at once", True))):
        answers = _repeated(oracle, _of_row(row), key, Fraction(1, 3 - row), times, at_once)
        bought = {values_of(answer).tobytes() for answer in answers if answer.credits}
        fresh += sum(values_of(answer).tobytes() not in bought for answer in answers)
        paid += sum((answer.credits for answer in answers), Fraction(0))
        asked += len(answers)
    return AttackResult(
        "asked again", "fresh answers for free", float(fresh), 0.0, 0.0, asked, paid
    )


def _repeated(
    oracle: Oracle, question: SumQuery, key: str | None, share: Fraction, times: int, at_once: bool
) -> list[Answer]:
    credits = all_credits(oracle, share)
    answers: list[Answer] = []

    def ask(_: int) -> None:
        with suppress(Refused):  # the same key, still being answered
            answers.append(oracle.ask(question, credits=credits, key=key))

    if at_once:
        together(ask, times)
    else:
        for turn in range(times):
            ask(turn)
    return answers


def together(act: Callable[[int], None], threads: int) -> None:
    """act(0), act(1), ... in threads that start at one moment."""
    gate = threading.Barrier(threads)

    def work(number: int) -> None:
        gate.wait()
        act(number)

    started = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def _of_row(row: int) -> SumQuery:
    return SumQuery((lit(1),), (col(ROW) == row) & col(SECRET))
