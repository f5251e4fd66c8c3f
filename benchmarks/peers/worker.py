"""Runs in a peer's environment: `python worker.py <peer> <task>`, told by JSON on stdin.

A peer is a file beside this one with a class `Peer(path)`: `count(at, epsilon, delta)`,
`mean(at, epsilon, delta)` and `groups(at, epsilon, delta)` over the rows with age >= at, each at
that guarantee, and `many(ats, epsilon, delta)`, which yields counts, all of them together at it.
Standard library only: a peer's environment has what the peer needs.
"""

import importlib
import json
import os
import sys
import time
import warnings

KINDS = ("count", "mean", "groups")


def cold(module, told):
    """Everything from the import on: one count."""
    peer = module.Peer(told["path"])
    return {"answer": float(peer.count(told["ats"][0], told["epsilon"], told["delta"]))}


def single(module, told):
    """One question of each kind with the whole guarantee, over and over: how far from the truth."""
    peer = module.Peer(told["path"])
    found = {}
    for kind in KINDS:
        errors, begun = [], time.perf_counter()
        for number in range(told["repeats"]):
            place = number % len(told["ats"])
            answer = getattr(peer, kind)(told["ats"][place], told["epsilon"], told["delta"])
            wanted = told["truth"][kind][place]
            pairs = zip(answer, wanted, strict=True) if kind == "groups" else [(answer, wanted)]
            errors += [float(given) - true for given, true in pairs]
            if number >= 2 and time.perf_counter() - begun > told["seconds"]:
                break
        found[kind] = {"rmse": root_mean_square(errors), "draws": len(errors)}
    return found


def many(module, told):
    """All questions one after the other at one guarantee, as far as the time allows."""
    peer = module.Peer(told["path"])
    peer.count(told["ats"][0], told["epsilon"], told["delta"])
    errors, begun = [], time.perf_counter()
    for at, answer in enumerate(peer.many(told["ats"], told["epsilon"], told["delta"])):
        errors.append(float(answer) - told["truth"]["count"][at])
        if len(errors) >= 10 and time.perf_counter() - begun > told["seconds"] * 3:
            break
    took = time.perf_counter() - begun
    return {
        "asked": len(errors),
        "seconds": took / len(errors),
        "rmse": root_mean_square(errors),
    }


def root_mean_square(errors):
    return (sum(error * error for error in errors) / len(errors)) ** 0.5


def main():
    name, task = sys.argv[1:]
    warnings.simplefilter("ignore")
    told = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")  # peers may write to stdout
    os.dup2(2, 1)
    found = {"cold": cold, "single": single, "many": many}[task](
        importlib.import_module(name), told
    )
    out.write(json.dumps(found))
    out.flush()
    os._exit(0)  # no peer's clean-up is timed


if __name__ == "__main__":
    main()
