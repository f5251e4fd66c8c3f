"""Looking before a step that cannot be undone: `sulq check` and `sulq recover`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from sulq.accounting.calibration import calibrate
from sulq.accounting.sizing import NORMAL_95
from sulq.cli.screen import (
    credits_text,
    facts,
    many,
    number_text,
    promise_text,
    show,
    show_json,
    table,
    talk,
)
from sulq.demo import own_state
from sulq.errors import InvalidQuery, Refused
from sulq.ledger.book import Files
from sulq.ledger.inspection import Inspection, copy_ledger, inspect
from sulq.ledger.places import is_shared, place_name
from sulq.ledger.recovery import Recovery, recover
from sulq.policy import TablePolicy
from sulq.policy.advice import Advice, Kept, advise
from sulq.schema.promise import Promise
from sulq.server.grants import end_tokens

SIZES = (10_000, 100_000, 1_000_000)
OWN_EYES = "what is said of rows above was counted from them: it is for your eyes only"


@dataclass(frozen=True, slots=True)
class Review:
    """What `sulq check` and `sulq publish` show of a table: its advice on a terminal."""

    advice: Advice

    @property
    def policy(self) -> TablePolicy:
        return self.advice.policy

    @property
    def ready(self) -> bool:
        return self.advice.ready

    @property
    def askable(self) -> bool:
        """Whether every column is declared: then the table opens, ready or not."""
        return not self.policy.unready

    def to_json(self) -> dict[str, Any]:
        means = {str(n): self.advice.bar / n for n in self._sizes()}
        return {**self.advice.to_json(), "bar_of_a_mean": means}

    def _sizes(self) -> tuple[int, ...]:
        return (self.advice.rows,) if self.advice.rows else SIZES

    def show(self) -> None:
        """Print what a board understands first, the verdict last."""
        advice = self.advice
        unless = "; unless sums are released exactly" if self.policy.exact else ""
        print(f"{self.policy.name}: {advice.sentence}")
        print(f"{advice.belief}{unless}")
        print()
        show(facts(self._lines()))
        print()
        show(_columns(advice))
        print()
        if advice.kept is not None:
            show(_kept(advice.kept, self.policy.max_rows))
            print()
        show(_prospects(self.policy, self._sizes()))
        for line in self._counts():
            print(line)
        for warning in advice.warnings:
            print(f"WARNING: {warning}")
        print()
        print(OWN_EYES)
        self._verdict()

    def _lines(self) -> list[tuple[str, str]]:
        advice = self.advice
        lines = [("who is protected", advice.protected)]
        lines += [("", proposal) for proposal in advice.proposals]
        if advice.shared:
            lines.append(("", str(advice.shared)))
        public = advice.public or ("nothing",)
        lines += [("public, exact and free for everybody", public[0])]
        lines += [("", more) for more in public[1:]]
        lines.append(("hidden", ", ".join(advice.hidden) or "nothing"))
        lines.append(("promise", promise_text(self.policy.promise, self.policy.unit)))
        return lines

    def _counts(self) -> list[str]:
        """How far off a count is, beside what chance alone would do."""
        advice, most = self.advice, self.policy.max_rows
        bar, budget = number_text(advice.bar), self.policy.promise.credits
        said = [
            f"a count will be off by up to ± {bar} in 95 of 100 cases; the budget of {budget:,}"
            f" credits buys {many(advice.counts, 'such count')}"
        ]
        if most > 1:
            power = "max_rows" if advice.price == most else "max_rows^2"
            said[0] += f", for {advice.price:,} credits each ({power}), as a person has {most} rows"
        sizes = advice.sizes
        if sizes is None:
            return [*said, f"how many {advice.whom} there are is private here (add-remove)"]
        chance = NORMAL_95 * sizes.sampling_error
        beside = "less" if sizes.noise_is_smaller else "MORE"
        rare = NORMAL_95 * sizes.sampling_error_rare
        more = "less" if sizes.noise_is_smaller_when_rare else "MORE"
        safe = "" if advice.warnings else ", and here everybody is protected"
        return [
            *said,
            f"that is {beside} than chance alone would give for these {sizes.rows:,} {advice.whom}"
            f" if half of them match (± {number_text(chance)}), and {more} if 1 in 100 match"
            f" (± {number_text(rare)})",
            f"as good as an exact answer from a random subset of {sizes.subset:,} of the"
            f" {sizes.rows:,} {advice.whom}{safe}",
        ]

    def _verdict(self) -> None:
        advice, name = self.advice, self.policy.name
        rows = "" if advice.rows is None else f", {advice.rows:,} {advice.whom}"
        if advice.published:
            print(f"{name}: published (ledger {place_name(self.policy.ledger_path)}){rows}")
        elif advice.ready:
            print(f"{name}: ready to publish{rows}")
        else:
            print(f"{name} is not ready to publish{rows}:")
            for fault in advice.faults:
                print(f"  {fault}")


def _columns(advice: Advice) -> Any:
    """One line for each column: what its cells are like, in a count and two bands."""
    lines = []
    for column in advice.columns:
        readable = "" if column.readable is None else f"{column.readable:,}"
        there = "" if column.there is None else f"{column.there:,}"
        mark = ", ".join(column.marks) or "ok"
        bands = (column.readable_band or "", column.within_band or "")
        lines.append([column.name, column.declared, there, readable, *bands, mark])
    heads = ("column", "declared", "values", "readable", "readable", "inside or declared", "")
    drawn = table(heads, lines)
    for place in (1, 4, 5, 6):
        drawn.columns[place].justify = "left"
    return drawn


def _kept(kept: Kept, own: int) -> Any:
    """How many rows each choice of max_rows lets count."""
    per = f"{kept.persons:,} persons with {kept.rows_per_person:.3g} rows each on average"
    lost = f"; {kept.nobody:,} rows belong to nobody and never count" if kept.nobody else ""
    shares = ", ".join(
        f"{most}{' (yours)' if most == own else ''}: {100 * share:.1f} %"
        for most, share in kept.shares.items()
    )
    return facts([("persons", per + lost), ("rows that count, by max_rows", shares)])


def _prospects(policy: TablePolicy, sizes: tuple[int, ...]) -> Any:
    """The sizing table: this promise, and a tenth and ten times of its credits."""
    heads = ["credits", "standard error", "95 % bar", *(f"mean of 0 to 1, n={n:,}" for n in sizes)]
    lines, promise = [], policy.promise
    for queries in _beside(promise):
        sigma = _sigma(promise, queries)
        bar = NORMAL_95 * sigma
        mark = " (yours)" if queries == promise.credits else ""
        means = [f"± {bar / n:.2g}" if 2 * bar < n else "no use" for n in sizes]
        lines.append([f"{queries:,}{mark}", number_text(sigma), f"± {number_text(bar)}", *means])
    return table(heads, lines)


def _beside(promise: Promise) -> list[int]:
    own = promise.credits
    if promise.noise in ("binomial", "huber"):  # their calibration takes a while
        return [own]
    return sorted({max(1, own // 10), own, own * 10})


def _sigma(promise: Promise, queries: int) -> float:
    """sigma of a plain count at its price; S4.1, S4.13."""
    other = Promise(promise.epsilon, promise.delta, queries, promise.noise, promise.neighbours)
    return calibrate(other).unit_standard_deviation


def review(policy: TablePolicy) -> Review:
    """Advise the owner of a table; reads rows, publishes nothing."""
    return Review(advise(policy))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A recovery, or what one would do."""

    table: str
    found: Recovery
    anchor_missing: bool
    receipts: int
    before: Fraction
    after: Fraction
    cap: Fraction

    @property
    def whole(self) -> bool:
        found = self.found
        return not (found.lost or found.burnt or found.new_key or self.anchor_missing)

    def to_json(self, dry_run: bool) -> dict[str, Any]:
        return {
            **asdict(self.found),
            "table": self.table,
            "dry_run": dry_run,
            "anchor_missing": self.anchor_missing,
            "spent_before": self.before,
            "spent_after": self.after,
        }

    def sayings(self) -> list[str]:
        """What happened, in plain words; true of a dry run too."""
        said = []
        if self.found.burnt:
            said.append("the price of some lost event is unknown: the whole budget is spent")
            if self.receipts:
                said.append(
                    "the receipts do not account for every lost event, so none is booked singly"
                )
        if self.anchor_missing:
            said.append(
                "the anchor was missing: a loss can neither be shown nor excluded; collect receipts"
            )
        return said or (["the ledger was whole; nothing was lost"] if self.whole else [])

    def lines(self) -> list[tuple[str, str]]:
        found = self.found
        booked = "none: everything is" if found.burnt else number_text(found.proved)
        spent = f"{credits_text(self.before)} before, {credits_text(self.after)} after"
        return [
            ("ledger", found.ledger),
            ("lost events", number_text(found.lost)),
            ("charges booked from receipts", booked),
            ("spent", f"{spent}, of {credits_text(self.cap)}"),
            ("everything spent", "yes" if found.burnt else "no"),
            ("new signing key", "yes" if found.new_key else "no"),
        ]


def run_recovery(
    policy: TablePolicy, receipts: list[str], *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Try it on a copy, ask, do it."""
    expected = _tried(policy, receipts)
    if dry_run:
        _tell(expected, dry_run=True, as_json=as_json)
        return
    if not expected.whole and not yes:
        _confirm(expected)
    _tell(_recovered(policy, policy.ledger_path, receipts), dry_run=False, as_json=as_json)
    if ended := end_tokens(_seen(policy.ledger_path, policy.name).ledger):
        what = "1 token" if ended == 1 else f"{ended} tokens"
        talk(f"ended: {what} for this ledger's tables; `sulq grant` gives new ones")


def _tell(outcome: Outcome, *, dry_run: bool, as_json: bool) -> None:
    if dry_run:
        talk("dry run: nothing was changed; this is what `sulq recover` would do")
    for line in outcome.sayings():
        talk(line)
    if as_json:
        show_json(outcome.to_json(dry_run))
    else:
        show(facts(outcome.lines()))


def _confirm(expected: Outcome) -> None:
    what = f"{credits_text(expected.after)} of {credits_text(expected.cap)} will count as spent"
    if not sys.stdin.isatty():
        raise InvalidQuery(
            f"a recovery cannot be undone, and {what}: look with --dry-run, then add --yes;"
            " nothing was changed"
        )
    for line in expected.sayings():
        talk(line)
    typer.confirm(f"A recovery cannot be undone, and {what}. Go on?", abort=True, err=True)


def _tried(policy: TablePolicy, receipts: list[str]) -> Outcome:
    """On a private copy. The signing key does not leave its place: the copy links to it."""
    files = Files(_seen(policy.ledger_path, policy.name).ledger)
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        home = Path(private)
        copy_ledger(policy.ledger_path, home / "ledger")
        copies = home / "state" / "ledgers" / files.key.parent.name
        copies.mkdir(parents=True, mode=0o700)
        if files.key.exists():
            (copies / "key").symlink_to(files.key.absolute())
        if files.anchor.exists():
            shutil.copyfile(files.anchor, copies / "anchor")
        with own_state(home):
            return _recovered(policy, home / "ledger", receipts)


def _recovered(policy: TablePolicy, path: Path | str, receipts: list[str]) -> Outcome:
    before = _seen(path, policy.name)
    found = recover(path, receipts, shared=is_shared(policy.ledger_path))
    after = _seen(path, policy.name)
    return Outcome(
        policy.name,
        found,
        before.anchor is None,
        len(receipts),
        before.statements[policy.name].spent.credits_fraction,
        after.statements[policy.name].spent.credits_fraction,
        after.statements[policy.name].cap.credits_fraction,
    )


def _seen(path: Path | str, name: str) -> Inspection:
    found = inspect(path)
    if name not in found.statements:
        raise Refused(f"the ledger has no table {name!r}; it has {list(found.statements)}")
    return found
