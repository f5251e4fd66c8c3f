"""What else bears on a table's promise: releases made elsewhere, other tables about the same
people, versions of the data, and people's own balances."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from sulq.account import Account, joint_exceeded, joint_promise
from sulq.beliefs.confidence import USUAL_PRIOR, Worst, belief_up, moved, usual, worst, worst_so_far
from sulq.database import Database
from sulq.errors import Refused
from sulq.formatting import left_text, ordinal, price_text, spelled
from sulq.kernel.ledger.inspect import Statement
from sulq.kernel.schema.promise import Promise
from sulq.server.auth.tokens import Role
from sulq.server.console.charts import gauge
from sulq.server.console.history import when_text
from sulq.server.service.session import TableSession


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Rises of confidence in nats; `chance` is how often they may be passed, at most. TB.2"""

    end: float
    so_far: float
    chance: float

    def after(self, prior: float = USUAL_PRIOR) -> str:
        return f"{belief_up(moved(prior, self.end))} %"

    def now(self, prior: float = USUAL_PRIOR) -> str:
        return f"{belief_up(moved(prior, self.so_far))} %"

    def epsilons(self) -> tuple[str, str]:
        """(so far, at the end), rounded up."""
        return _up(self.so_far), _up(self.end)


def beliefs(promise: Promise, spent: Fraction) -> Beliefs:
    """At epsilon and its tail (TB.2); where that is not rare, at delta, where it is wider."""
    found = usual(promise)
    end, chance = found.change, found.except_for
    if not spent:
        return Beliefs(end, 0.0, chance)
    so_far = worst_so_far(promise, spent, except_for=chance or None).change
    return Beliefs(end, min(so_far, end), chance)


def becomes(found: Worst) -> str:
    """ "40 % becomes at most 65 %, except with a chance below 1 in 4,500, and at most ..."."""
    return f"{100 * found.prior:.3g} % becomes at most {found.limits}"


def _up(rise: float) -> str:
    return f"{-(-round(rise * 1000, 6) // 10) / 100:g}"


# What the promise lets anyone believe, at the end and so far, at one chance of being passed.


BEYOND = "Releases made elsewhere went beyond the promise."
ASSUMED = "Sums were released without their usual noise."


@dataclass(frozen=True, slots=True)
class VersionRow:
    number: str
    since: str
    why: str
    spent: str
    budget: str
    newcomers: str


@dataclass(frozen=True, slots=True)
class JointView:
    """The account of a population: everybody may know of it, owner and auditor see it."""

    name: str
    promise: str
    said: str
    gauge: Markup | None
    beyond: str


@dataclass(frozen=True, slots=True)
class RelatedRelease:
    broken: tuple[str, str]
    """What holds in place of the promise: a clause and a sentence; empty where it is kept."""
    elsewhere: tuple[tuple[str, str, str, str], ...]
    """Releases made elsewhere: (why, credits, day, number)."""
    joint: JointView | None
    versions: tuple[VersionRow, ...]
    people: tuple[tuple[str, str, Markup], ...]
    """The owner's alone: (share of the own balance, how many, a bar)."""
    individual: bool


def standing(session: TableSession) -> RelatedRelease:
    """As the API shows it: events of releases and versions to everybody, accounts of a population
    to owner and auditor, balances to the owner."""
    database = session.database
    account = database.statement()
    found = account.statement
    return RelatedRelease(
        broken=broken(account),
        elsewhere=tuple(
            (
                one.reason,
                price_text(one.loss.credits_fraction),
                when_text(one.at, clock=False),
                ordinal(one.seq),
            )
            for one in reversed(found.outside)
        ),
        joint=joint_view(found, full=session.caller.role != Role.ANALYST),
        versions=_versions(found),
        people=_people(database) if session.caller.role == Role.OWNER else (),
        individual=database.has_balances,
    )


def broken(account: Account) -> tuple[str, str]:
    """Two texts of a note: empty where the promise is kept."""
    if account.as_promised:
        return "", ""
    beyond = account.exceeded
    if beyond is None:
        return ASSUMED, " ".join(account.guarantee.split())
    return BEYOND, (
        f"Promised was epsilon {float(account.promise.epsilon):g}; with everything this table has"
        f" answered it is now {beyond}."
        " No new question is answered."
    )


def joint_view(found: Statement, *, full: bool) -> JointView | None:
    line = found.population
    if line is None:
        return None
    promise = (
        f"Whoever is in several tables of {line.name} is promised this of all of them together:"
        f" {becomes(worst(joint_promise(line)))}."
    )
    if not full:
        return JointView(name=line.name, promise=promise, said="", gauge=None, beyond="")
    whole, beyond = line.cap.credits_fraction, joint_exceeded(line)
    left, tables = left_text(line.left), _listed(line.tables)
    if line.persons:  # nobody knows what is left of them
        said = (
            f"Each person has one balance of {left_text(whole)} credits for {tables}; it is secret"
        )
        return JointView(name=line.name, promise=promise, said=said, gauge=None, beyond="")
    said = f"{left} of {left_text(whole)} joint credits left for {tables}"
    return JointView(
        name=line.name,
        promise=promise,
        said=said,
        gauge=gauge(line.left, whole, said),
        beyond="" if beyond is None else f"{BEYOND} Together it is now {beyond}.",
    )


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _versions(found: Statement) -> tuple[VersionRow, ...]:
    """The newest first; none for one alone that may spend everything."""
    if len(found.versions) == 1 and found.versions[0].budget is None:
        return ()
    begun = [(0, "as published"), *((one.at, one.reason) for one in found.grown)]
    lines = [
        VersionRow(
            number=str(number),
            since=when_text(at, clock=False),
            why=why,
            spent=price_text(line.spent),
            budget="what is left" if line.budget is None else left_text(line.budget),
            newcomers=price_text(line.newcomers),
        )
        for number, (line, (at, why)) in enumerate(zip(found.versions, begun, strict=True), 1)
    ]
    return tuple(reversed(lines))


def _people(database: Database) -> tuple[tuple[str, str, Markup], ...]:
    """An exact function of the rows, with no noise: for the owner's eyes alone. V.2"""
    if not database.has_balances:
        return ()
    try:
        found = database.spent_by_people()
    except Refused:
        return ()
    most = Fraction(max(*found, 1))
    return tuple(
        (
            f"{10 * bar} to {10 * (bar + 1)} %",
            spelled(many, 0),
            gauge(Fraction(many), most, f"{spelled(many, 0)} people", plain=True),
        )
        for bar, many in enumerate(found)
    )
