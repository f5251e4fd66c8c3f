"""The attacks by name, and the one way to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any

from sulq.attacks.audit import audit, audit_tables
from sulq.attacks.concurrency import forks, races
from sulq.attacks.denials import denials
from sulq.attacks.disclosures import disclosures
from sulq.attacks.pooling import analysts, databases
from sulq.attacks.reconstruction import LINEAR, MEAN, SQUARES, covariances, reconstruction
from sulq.attacks.result import AttackResult
from sulq.attacks.side_channels import support, timing
from sulq.attacks.target import Target
from sulq.attacks.trackers import (
    differencing,
    disguises,
    everybody_differenced,
    membership,
    repeats,
    rewordings,
    tracker,
)
from sulq.errors import EngineFailed, InvalidQuery, SulqError

QUICK, FULL = "quick", "full"
RECONSTRUCTION = "reconstruction"
REFUSED = "refused"
"""The measure of an attack that the rules or the budget stopped before it learned anything."""

Found = AttackResult | Sequence[AttackResult]


@dataclass(frozen=True, slots=True)
class Attack:
    """A name, one line of what it tries, and the attack with little or much effort."""

    name: str
    tries: str
    quick: Callable[[Target], Found]
    full: Callable[[Target], Found]

    def findings(self, target: Target, effort: str) -> list[AttackResult]:
        """What it found; what looks broken is tried again, and counts if it is broken twice.

        Once in a thousand attempts chance alone passes a bound by three standard errors.
        """
        attempt = self.full if effort == FULL else self.quick
        found = self._tried(attempt, target)
        if not any(finding.broken for finding in found):
            return found
        again = self._tried(attempt, target)
        return [_doubly(first, second) for first, second in zip_longest(found, again)]

    def _tried(self, attempt: Callable[[Target], Found], target: Target) -> list[AttackResult]:
        """A refusal is a finding too: it says that this way is closed."""
        try:
            found = attempt(target)
        except EngineFailed:
            raise
        except SulqError as error:
            return [AttackResult(self.name, REFUSED, 0.0, 0.0, 0.0, 0, note=str(error))]
        return [found] if isinstance(found, AttackResult) else list(found)


def _doubly(first: AttackResult | None, second: AttackResult | None) -> AttackResult:
    """The finding that stands after two attempts: broken only if both are."""
    one, other = first or second, second or first
    assert one is not None and other is not None  # noqa: S101
    if not one.broken:
        return one
    if other.broken:
        return replace(other, note=_joined(other.note, "broken twice"))
    passed = f"a first attempt reached {one.reached:.3f}, a second did not pass the bound"
    return replace(other, note=_joined(other.note, passed))


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


SURE = 0.999
"""The confidence of an epsilon proved: with the second attempt, one false alarm in a million."""


def _of(attack: Callable[..., Found], **settings: Any) -> Callable[[Target], Found]:
    return lambda target: attack(target, **settings)


def _fitted(**settings: Any) -> Callable[[Target], Found]:
    """Reconstruction by every method; the linear program on fewer rows, for it takes longest."""

    def attack(target: Target) -> list[AttackResult]:
        return [
            reconstruction(target, SQUARES),
            reconstruction(target, MEAN, both_halves=True),
            reconstruction(target, LINEAR, **settings),
        ]

    return attack


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "differencing",
        "a count of all, minus the count of all but one",
        _of(differencing, people=100),
        _of(differencing, people=400),
    ),
    Attack(
        "tracker",
        "no question about few rows, yet two of them single one out",
        _of(tracker, people=100),
        _of(tracker, people=400),
    ),
    Attack(
        "differencing-all",
        "pairs of rows minus one of each, for everybody at once",
        _of(everybody_differenced),
        _of(everybody_differenced),
    ),
    Attack(
        "repeats",
        "the same question again, until the noise averages out",
        _of(repeats, times=50),
        _of(repeats),
    ),
    Attack(
        "rewordings",
        "the same question in other words, past a store of answers",
        _of(rewordings, times=50),
        _of(rewordings),
    ),
    Attack(
        "disguises",
        "different questions with the same content, behind public signs",
        _of(disguises),
        _of(disguises, times=100),
    ),
    Attack(
        "analysts",
        "analysts who pool what they were told, each for a share",
        _of(analysts, analysts=16, different=True),
        _of(analysts, different=True),
    ),
    Attack(
        "databases",
        "the same people in two databases that do not know of each other",
        _of(databases, databases=2),
        _of(databases, databases=2),
    ),
    Attack(
        RECONSTRUCTION,
        "random sums, then the table that fits them best (Dinur and Nissim)",
        _fitted(questions=200, people=200),
        _fitted(questions=400, people=400),
    ),
    Attack(
        "covariances",
        "covariances of the secret with columns the attacker knows (Huth et al.)",
        _of(covariances),
        _of(covariances, people=1_000),
    ),
    Attack(
        "membership",
        "is a known person in a group of which only sums are told",
        _of(membership),
        _of(membership),
    ),
    Attack(
        "audit",
        "the epsilon that answers really have, proved from thousands of draws",
        _of(audit, confidence=SURE),
        _of(audit, rows=200_000, confidence=SURE),
    ),
    Attack(
        "audit-tables",
        "the same by one count on each of many tables that differ in one row",
        _of(audit_tables, tables=40, confidence=SURE),
        _of(audit_tables, tables=1_000, confidence=SURE),
    ),
    Attack(
        "support",
        "which floats can an answer be: digits that only one value leaves",
        _of(support),
        _of(support, rows=50_000),
    ),
    Attack(
        "timing",
        "does the time of a reply tell one row's secret, or the noise",
        _of(timing, pairs=4, asks=8),
        _of(timing),
    ),
    Attack(
        "forks",
        "do workers made by fork draw the same noise",
        _of(forks),
        _of(forks, workers=16),
    ),
    Attack(
        "races",
        "many at once for the last credits, and one answer asked again",
        _of(races),
        _of(races, rounds=20, threads=16),
    ),
    Attack(
        "denials",
        "do refusals, errors and prices differ with what the rows hold",
        _of(denials),
        _of(denials, bits=2_000),
    ),
    Attack(
        "disclosures",
        "hashes of the rows, cells that come and go, what a replay adds",
        _of(disclosures),
        _of(disclosures, rows=256),
    ),
)

Seen = Callable[[Attack, Sequence[AttackResult]], None]


def chosen(names: Iterable[str] | None = None) -> tuple[Attack, ...]:
    """The attacks of these names, in the suite's order; all without names."""
    if names is None:
        return ATTACKS
    known, wanted = [attack.name for attack in ATTACKS], list(names)
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise InvalidQuery(f"no attack {name!r:.40}; {meant}there are {', '.join(known)}")
    return tuple(attack for attack in ATTACKS if attack.name in wanted)


def run(
    target: Target,
    names: Iterable[str] | None = None,
    effort: str = QUICK,
    seen: Seen | None = None,
) -> list[AttackResult]:
    """Attack the target; `seen` is called as an attack begins, with nothing, and as it ends."""
    if effort not in (QUICK, FULL):
        raise InvalidQuery(f"effort must be {QUICK!r} or {FULL!r}, got {effort!r:.20}")
    found: list[AttackResult] = []
    for attack in chosen(names):
        if seen is not None:
            seen(attack, ())
        findings = attack.findings(target, effort)
        if seen is not None:
            seen(attack, findings)
        found += findings
    return found


def light(finding: AttackResult) -> str:
    """red, amber or green; nothing was tried where all was refused."""
    return finding.light if finding.trials else "none"


def worst_light(findings: Iterable[AttackResult]) -> str:
    """The light of the whole run."""
    shown = {light(finding) for finding in findings}
    return next((colour for colour in ("red", "amber", "green") if colour in shown), "none")
