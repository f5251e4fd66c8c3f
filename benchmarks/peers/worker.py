"""Runs in a peer's environment: `python worker.py <peer> <task>`, told by JSON on stdin.

A peer is a file beside this one with a class `Peer(path)`: `count(at, epsilon, delta)`,
`mean(at, epsilon, delta)` and `groups(at, epsilon, delta)` over the rows with age >= at, each at
that guarantee, and `many(ats, epsilon, delta)`, which yields counts, all of them together at it.
Standard library only: a peer's environment has what the peer needs.
"""

import importlib
import json
import os
import statistics
import sys
import time
import warnings

KINDS = ("count", "mean", "groups")


def cold(module, told):
    """Everything from the import on: one count."""
    peer = module.Peer(told["path"])
    return {"answer": float(peer.count(told["ats"][0], told["epsilon"], told["delta"]))}


def many(module, told):
    """All questions one after the other at one guarantee, as far as the time allows.

    The guarantee is divided by all of them, whether or not there is time to ask them: what is left
    unasked takes as long as a middle one that was asked.
    """
    peer = module.Peer(told["path"])
    peer.count(told["ats"][0], told["epsilon"], told["delta"])
    times, begun = [], time.perf_counter()
    last = begun
    for _ in peer.many(told["ats"], told["epsilon"], told["delta"]):
        now = time.perf_counter()
        times.append(now - last)
        last = now
        if len(times) >= 3 and now - begun - times[0] > 3 * told["seconds"]:
            break
    warm = statistics.median(times[1:])  # the first has the calibration
    unasked = len(told["ats"]) - len(times)
    return {"asked": len(times), "warm": warm, "seconds": sum(times) + unasked * warm}


def errors(module, told):
    """How far from the truth: one question of a kind with the whole guarantee, over and over, and
    counts of which all together have it, each with a 200th of it."""
    peer = module.Peer(told["path"])
    found = {}
    for kind in KINDS:
        off, begun = [], time.perf_counter()
        for number in range(told["repeats"]):
            place = number % len(told["ats"])
            answer = getattr(peer, kind)(told["ats"][place], told["epsilon"], told["delta"])
            wanted = told["truth"][kind][place]
            pairs = zip(answer, wanted, strict=True) if kind == "groups" else [(answer, wanted)]
            off += [float(given) - true for given, true in pairs]
            if number >= 2 and time.perf_counter() - begun > told["seconds"]:
                break
        found[kind] = size(off)
    off, begun = [], time.perf_counter()
    answers = peer.many(told["ats"], told["epsilon"], told["delta"])
    for answer, true in zip(answers, told["truth"]["count"], strict=True):
        off.append(float(answer) - true)
        if len(off) == 1:
            begun = time.perf_counter()  # the first has the calibration
        elif time.perf_counter() - begun > told["seconds"]:
            break
    return found | {"many": size(off)}


def size(off):
    """Root mean square, its standard error as of Laplace noise, and of how many.

    Squares of Laplace noise have variance 5 mean^2, the most of all laws used here; few draws
    would not tell it themselves.
    """
    root = statistics.fmean(one * one for one in off) ** 0.5
    return {"rmse": root, "error": root * (5 / 4 / len(off)) ** 0.5, "draws": len(off)}


def main():
    name, task = sys.argv[1:]
    warnings.simplefilter("ignore")
    told = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")  # peers may write to stdout
    os.dup2(2, 1)
    found = {"cold": cold, "many": many, "errors": errors}[task](
        importlib.import_module(name), told
    )
    out.write(json.dumps(found))
    out.flush()
    os._exit(0)  # no peer's clean-up is timed


if __name__ == "__main__":
    main()
