"""Many at once: more credits released than there are, or a fresh answer that nobody paid for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

from sulq.attacks.audit import all_credits, values_of
from sulq.attacks.finding import Finding
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import Refused
from sulq.oracle import Answer, Oracle
from sulq.query.expressions import col, lit
from sulq.query.sum_query import SumQuery

THREADS = 8
LAST = 4
"""Questions that what is left would pay for, once most of it is spent."""


def races(target: Target, *, rounds: int = 3, threads: int = THREADS) -> list[Finding]:
    """A race for the last credits, and one question asked again and again."""
    return [overspending(target, rounds=rounds, threads=threads), repeating(target)]


def overspending(target: Target, *, rounds: int = 3, threads: int = THREADS) -> Finding:
    """The most credits that were released from one table, all answers together."""
    most, over = Fraction(0), 0
    for number in range(rounds):
        oracle = target.publish(target.secrets(100 + number, 1 + LAST * threads))
        spent = _raced(oracle, threads)
        over += spent > target.promise.credits
        most = max(most, spent)
    return Finding(
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


def repeating(target: Target, *, times: int = 4, seed: int = 8) -> Finding:
    """Free answers that differ from the paid one: in turn, with a key, and all at once."""
    oracle = target.publish(target.secrets(seed, 8))
    asked, fresh, paid = 0, 0, Fraction(0)
    for row, (key, at_once) in enumerate(((None, False), ("again", False), ("at once", True))):
        answers = _repeated(oracle, _of_row(row), key, Fraction(1, 3 - row), times, at_once)
        bought = {values_of(answer).tobytes() for answer in answers if answer.credits}
        fresh += sum(values_of(answer).tobytes() not in bought for answer in answers)
        paid += sum((answer.credits for answer in answers), Fraction(0))
        asked += len(answers)
    return Finding("asked again", "fresh answers for free", float(fresh), 0.0, 0.0, asked, paid)


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
