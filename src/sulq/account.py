"""What a table has spent and has left, and what is promised to its people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

from sulq.answers.oracle import Credits
from sulq.beliefs.confidence import Worst, worst, worst_so_far
from sulq.exact.terms import MAYBE_RELEASED, UNTIL_RELEASED, ExactTerms, promised
from sulq.formatting import decimal_left, decimal_text
from sulq.kernel.accounting.calibration import Meaning, calibrate
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.outside import OutsideTotal, total
from sulq.kernel.ledger.header import Outside, taken_by
from sulq.kernel.ledger.inspect import PopulationLine, Statement
from sulq.kernel.schema.promise import Promise

BURNT = "events were lost, so everything counts as spent; a larger promise may have been among them"
JOINTLY_BEYOND = "it was exceeded by releases made elsewhere; with what all its tables answered:"
BEYOND = "it was exceeded by releases made elsewhere; with everything the table has answered:"
INDIVIDUALLY = (
    "each of its people has a balance of their own, secret, and here counts as if it were spent;"
    " no question is refused for it, and what is left is for analysts' shares"
)


@dataclass(frozen=True, slots=True)
class Account:
    """What is spent and left, and what the promise means."""

    statement: Statement
    meaning: Meaning
    promise: Promise

    @property
    def spent(self) -> Fraction:
        """Credits of the account that lost most."""
        return Credits(self.statement.spent.credits_fraction)

    @property
    def left(self) -> Fraction:
        return Credits(self.statement.left)

    @property
    def exceeded(self) -> OutsideTotal | None:
        """What holds where releases made elsewhere went beyond the promise; None if it is kept."""
        return exceeded(self.statement, self.promise)

    @property
    def assumed(self) -> ExactTerms | None:
        """On what terms sums were released without their usual noise; None if none were."""
        return released_terms(self.statement)

    @property
    def as_promised(self) -> bool:
        """True if the promise is what holds: nothing was released exactly, nothing exceeded it."""
        released = self.assumed is not None or self.statement.maybe_released
        return not released and not self.statement.exceeded.credits

    @property
    def guarantee(self) -> str:
        """What holds for every row after everything this table has released and may release."""
        assumed = self.assumed
        if assumed is not None:
            return promised(self.promise, assumed)
        if self.statement.maybe_released:
            return MAYBE_RELEASED
        beyond = self.exceeded
        if beyond is not None:
            return f"promise: {self.promise}\n{BEYOND} {beyond}"
        warned = f"\n{UNTIL_RELEASED}" if may_release(self.statement) else ""
        return f"promise: {self.promise}{warned}"

    def __str__(self) -> str:
        most = self.statement.accounts[0].name
        where = "" if len(self.statement.accounts) == 1 else f" (the most, by {most})"
        cap = decimal_text(self.statement.cap.credits_fraction)
        lines = [
            f"{decimal_text(self.spent)} of {cap} credits spent{where},"
            f" {decimal_left(self.left)} left",
            self.guarantee,
        ]
        if self.as_promised:
            told = float(self.statement.taken.delta)
            tail = (self.meaning.tail_any_belief or self.meaning.tail) + told
            unless = " (unless sums are released exactly)" if may_release(self.statement) else ""
            lines += [
                f"tail: Pr[an adversary's confidence moves by more than epsilon] <= {tail:.3g}",
                f"so: {told_too(worst(self.promise), self.statement)}{unless}",
                f"so far: {told_too(worst_so_far(self.promise, self.spent), self.statement)}",
            ]
        if self.statement.individual:
            lines.append(INDIVIDUALLY)
        if (line := self.statement.population) is not None:
            lines += joint_lines(line)
        for one in self.statement.outside:
            lines.append(f"{decimal_text(one.loss.credits_fraction)} credits outside: {one}")
        if self.statement.closed is not None:
            lines.append(f"closed for good, {self.statement.closed}")
        if self.statement.withdrawn is not None:
            lines.append(f"withdrawn before anything was asked, {self.statement.withdrawn}")
        if self.statement.amended:
            times = len(self.statement.amended)
            often = "once" if times == 1 else f"{times} times"
            lines.append(f"amended {often}; this is what holds now")
        lines += version_lines(self.statement)
        if self.statement.burnt:
            lines.append(BURNT)
        for aside in self.statement.reservations:
            amount = decimal_text(aside.amount.credits_fraction)
            left = decimal_left(aside.left.credits_fraction)
            lines.append(f"{amount} credits reserved, {left} left, by {aside.analyst}")
        lines.append(
            f"{self.statement.entries} questions charged, {self.statement.answered} answered"
        )
        return "\n".join(lines)


def version_lines(statement: Statement) -> list[str]:
    """What the versions of the data have spent, and what that is for a person; none for one alone
    that may spend everything."""
    lines, now = [], statement.versions[-1]
    number = len(statement.versions)
    if number > 1:
        spent = ", ".join(
            f"{decimal_text(one.spent)} on version {at}"
            for at, one in enumerate(statement.versions, 1)
        )
        apart = f", {decimal_text(now.outside)} of them released elsewhere" if now.outside else ""
        lines += [
            f"version {number} of the data; what was spent on earlier ones stays spent",
            f"a person's loss adds over the versions they are in: {spent}; who came with version"
            f" {number} has lost at most {decimal_text(now.newcomers)} of the credits{apart}",
        ]
    if now.budget is not None:
        lines.append(
            f"this version may spend {decimal_text(now.budget)} credits of the lifetime budget and"
            f" has spent {decimal_text(now.spent)}"
        )
    return lines


def joint_lines(line: PopulationLine) -> list[str]:
    """What is promised to a population, and what is left of it."""
    spent, cap = (decimal_text(x.credits_fraction) for x in (line.spent, line.cap))
    if line.persons:
        return [
            f"population {line.name} ({', '.join(line.tables)}): each person has one balance of"
            f" {cap} credits for all of them, secret, and here counts as if it were spent",
            f"joint promise: {joint_promise(line)}",
        ]
    lines = [
        f"population {line.name} ({', '.join(line.tables)}): {spent} of its {cap} credits spent,"
        f" {decimal_left(line.left)} left for all of them",
        f"joint promise: {joint_promise(line)}",
    ]
    beyond = joint_exceeded(line)
    return lines if beyond is None else [*lines, f"{JOINTLY_BEYOND} {beyond}"]


def exceeded(statement: Statement, promise: Promise) -> OutsideTotal | None:
    """As `Account.exceeded`."""
    if not statement.exceeded.credits:
        return None
    return _total(promise, statement.spent, statement.outside)


def joint_exceeded(line: PopulationLine) -> OutsideTotal | None:
    """The same for a population; None if its promise is kept."""
    return _total(joint_promise(line), line.spent, line.outside) if line.exceeded.credits else None


def joint_promise(line: PopulationLine) -> Promise:
    """In the words of persons: one may be a row of one table, and several rows of another."""
    return Promise.from_json(json.loads(line.promise)).about("person")


def _total(promise: Promise, spent: Loss, outside: tuple[Outside, ...]) -> OutsideTotal:
    """What was lost is what is spent, less what only stands for a part taken out of the promise."""
    stands = sum(one.stands for one in outside)
    stated = [one for one in outside if one.epsilon and not one.taken.epsilon]
    paid = Loss(sum(one.loss.credits - one.stands for one in stated), 0)
    epsilon = sum((one.epsilon or Fraction(0) for one in stated), Fraction(0))
    lost = Loss(max(0, spent.credits - stands), 0).credits_fraction
    pure = (epsilon, paid.credits_fraction)
    return total(calibrate(promise), lost, taken_by(outside), pure)


def told_too(found: Worst, statement: Statement) -> Worst:
    """A belief may also be passed where a release made elsewhere told everything."""
    return found.told(float(statement.taken.delta))


def may_release(statement: Statement) -> bool:
    """True if the owner has turned exact release on."""
    return "assumptions" in statement.facts


def released_terms(statement: Statement) -> ExactTerms | None:
    """On what terms a table released sums without their usual noise; None if it did not."""
    return ExactTerms.from_text(statement.terms) if statement.terms else None
