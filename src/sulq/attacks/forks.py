"""Workers made by fork: a generator copied with its state draws the same noise in each.

Two answers with equal noise give their difference exactly.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import warnings
from contextlib import suppress
from fractions import Fraction
from itertools import combinations

import numpy as np

from sulq.attacks.audit import Values, all_credits, values_of
from sulq.attacks.finding import Finding
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import SulqError
from sulq.oracle import Oracle
from sulq.query.expressions import col
from sulq.query.statistics import Statistic, histogram

EQUAL = "share of workers with equal noise"
CELLS = 8
PATIENCE = 20.0
"""Seconds after which a silent worker counts as one that refuses."""


def forks(target: Target, *, workers: int = 4, seed: int = 6) -> Finding:
    """Each worker, and their parent, is asked about its own eight rows; how many pairs drew the
    same noise?"""
    secrets = target.secrets(seed, (workers + 1) * CELLS)
    oracle = target.publish(secrets)
    share = Fraction(1, workers + 1)
    quote = oracle.quote(_question(0), credits=all_credits(oracle, share))
    if not hasattr(os, "fork"):
        return Finding("forked workers", EQUAL, 0.0, 0.0, 0.0, 0, note="there is no fork here")
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
    return Finding("forked workers", EQUAL, reached, bound, 0.0, workers, quote.credits, note)


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
