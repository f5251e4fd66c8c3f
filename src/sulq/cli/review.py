"""Looking before a step that cannot be undone: `sulq check` and `sulq recover`."""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from sulq.accounting.calibration import calibrate
from sulq.accounting.confidence import Worst, worst
from sulq.accounting.sizing import NORMAL_95, Sizing, equal_subset, sizing
from sulq.cli.screen import (
    credits_text,
    facts,
    number_text,
    promise_text,
    show,
    show_json,
    table,
    talk,
)
from sulq.demo import own_state
from sulq.engines.engine import open_engine
from sulq.errors import InvalidQuery, Refused
from sulq.ledger.book import Files
from sulq.ledger.inspection import Inspection, copy_ledger, inspect, is_published
from sulq.ledger.places import is_shared, place_name
from sulq.ledger.recovery import Recovery, recover
from sulq.policy import TablePolicy
from sulq.policy.survey import Survey
from sulq.schema.promise import Promise
from sulq.server.grants import end_tokens

SIZES = (10_000, 100_000, 1_000_000)
WEAK_EPSILON = 5
USEFUL = 0.01
"""A count's bar above this share of the rows is too wide to be of much use."""


@dataclass(frozen=True, slots=True)
class Review:
    """A table's policy, looked at closely."""

    policy: TablePolicy
    rows: int | None
    sigma: float
    sizes: Sizing | None
    fewer: int | None

    @property
    def ready(self) -> bool:
        return not self.policy.unready

    @property
    def bar(self) -> float:
        return NORMAL_95 * self.sigma

    @property
    def persons(self) -> bool:
        return self.policy.unit != "row"

    @property
    def whom(self) -> str:
        """What is protected and counted."""
        return "persons" if self.persons else "rows"

    @property
    def count_price(self) -> int:
        """Credits of a plain count at unit noise: it moves by max_rows. S4.1, S4.13"""
        return self.policy.max_rows ** (1 if self.policy.promise.noise == "laplace" else 2)

    @property
    def belief(self) -> Worst:
        """What the promise lets anyone believe about one of them. S4.1"""
        return worst(self.policy.promise)

    @property
    def weak(self) -> list[str]:
        """Why the promise itself says little."""
        promise, said = self.policy.promise, []
        if promise.epsilon > WEAK_EPSILON:
            said.append(
                f"WARNING: epsilon is {float(promise.epsilon):g}: little is promised above"
                f" {WEAK_EPSILON}; 1 is a usual choice"
            )
        if self.rows and promise.delta * self.rows > 1:
            said.append(
                f"WARNING: delta is {float(promise.delta):g}, above 1 / {self.rows:,} {self.whom}:"
                " even showing somebody's data whole would keep such a promise; take far less,"
                " for instance 1e-6"
            )
        return said

    def to_json(self) -> dict[str, Any]:
        sizes = self.sizes
        return {
            "table": self.policy.name,
            "unit": self.policy.unit,
            "warnings": self.weak,
            "credits_of_a_count": self.count_price,
            "ready": self.ready,
            "not_askable_yet": self.policy.unready,
            "askable": [column.name for column in self.policy.columns if not column.lacks],
            "promise": self.policy.promise.to_json(),
            "belief": {**asdict(self.belief), "text": str(self.belief)},
            "rows": self.rows,
            "sigma_of_a_count": self.sigma,
            "bar_of_a_count": self.bar,
            "bar_of_a_mean": {str(n): self.bar / n for n in self._sizes()},
            "sampling_error": sizes and sizes.sampling_error,
            "noise_below_sampling_error": sizes and sizes.noise_is_smaller,
            "noise_below_sampling_error_when_rare": sizes and sizes.noise_is_smaller_when_rare,
            "as_good_as_a_random_subset_of": sizes and sizes.subset,
            "too_small": self.fewer is not None,
            "suggested_queries": self.fewer,
        }

    def _sizes(self) -> tuple[int, ...]:
        return (self.rows,) if self.rows else SIZES

    def show(self) -> None:
        if self.policy.unready:
            print(f"{self.policy.name} is not ready to publish:")
            for name, why in self.policy.unready.items():
                print(f"  {name} {why}")
            print()
        rows = "" if self.rows is None else f", {self.rows:,} {self.whom}"
        verdict = "ready to publish" if self.ready else "not ready"
        if is_published(self.policy.ledger_path, self.policy.name):
            verdict = f"published (ledger {place_name(self.policy.ledger_path)})"
        print(f"{self.policy.name}: {verdict}{rows}")
        print(f"promise: {promise_text(self.policy.promise, self.policy.unit)}")
        print()
        show(_prospects(self.policy, self._sizes()))
        print()
        for line in self._sayings():
            print(line)

    def _sayings(self) -> list[str]:
        unless = "; unless sums are released exactly" if self.policy.exact else ""
        return [*self._price(), *self._compared(), f"{self.belief}{unless}", *self.weak]

    def _price(self) -> list[str]:
        most, price = self.policy.max_rows, self.count_price
        if most == 1:
            return []
        power = "max_rows" if price == most else "max_rows^2"
        budget = self.policy.promise.credits
        return [
            f"a person has up to {most} rows, so a plain count costs {price:,} credits ({power})"
            f" and is then known to ± {number_text(self.bar / most)}: {budget:,} credits are"
            f" {budget // price:,} such counts; bars above are of counts for 1 credit"
        ]

    def _compared(self) -> list[str]:
        if self.sizes is None:
            if self.policy.promise.neighbours == "replace":
                return [f"the number of {self.whom} is read when nothing is missing"]
            return [
                f"how many {self.whom} there are is private here (add-remove), so it is not read"
            ]
        sizes, whom = self.sizes, self.whom
        beside = "below" if sizes.noise_is_smaller else "ABOVE"
        rare = "below" if sizes.noise_is_smaller_when_rare else "ABOVE"
        protected = "" if self.weak else ", and here everybody is protected"
        said = [
            f"a count: noise of {number_text(sizes.standard_error)} is {beside} the sampling error"
            f" of {number_text(sizes.sampling_error)} that these {sizes.rows:,} {whom} have anyway"
            f" (half of them match); {rare} it if 1 in 100 match"
            f" ({number_text(sizes.sampling_error_rare)})",
            f"as good as an exact answer from a random subset of {sizes.subset:,} of the"
            f" {sizes.rows:,} {whom}{protected}",
        ]
        if self.fewer is not None:
            said.append(self._warning(sizes, self.fewer))
        return said

    def _warning(self, sizes: Sizing, fewer: int) -> str:
        whom = self.whom
        if fewer == 0:
            return (
                f"WARNING: {sizes.rows:,} {whom} are too few for this promise: even a single"
                f" question would have a bar above 1% of all {whom}. Publish more {whom}"
            )
        return (
            f"WARNING: {sizes.rows:,} {whom} are few for so many questions: a bar of"
            f" ± {number_text(sizes.bar)} is {sizes.bar / sizes.rows:.3g} of all {whom}."
            f" Promise fewer questions (queries = {fewer:,}), not less privacy"
        )


def _prospects(policy: TablePolicy, sizes: tuple[int, ...]) -> Any:
    """The sizing table: this promise, and a tenth and ten times of its questions."""
    heads = [
        "questions",
        "sigma of a count",
        "95% bar",
        *(f"mean of [0,1], n={n:,}" for n in sizes),
    ]
    lines, promise = [], policy.promise
    for queries in _beside(promise):
        sigma = _sigma(promise, queries) * policy.max_rows
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
    """sigma of a unit question; S4.1, S4.13."""
    other = Promise(promise.epsilon, promise.delta, queries, promise.noise, promise.neighbours)
    return calibrate(other).unit_standard_deviation


def review(policy: TablePolicy) -> Review:
    """Look at a policy; under replace also at the number of rows, which is public."""
    schema = policy.schema() if not policy.unready else None
    rows = None
    if policy.promise.neighbours == "replace":
        if schema is not None:
            engine = open_engine(policy.rows, schema)  # also: types fit the declaration
            rows = engine.size()
            engine.close()
        elif policy.unit == "row" and "://" not in policy.source:
            survey = Survey(policy.source_path)
            rows = survey.rows()
            survey.close()
    elif schema is not None:
        open_engine(policy.rows, schema).close()
    sizes = sizing(policy.promise, rows) if rows and rows > 1 else None
    if sizes is not None and policy.max_rows > 1:  # a person moves a count by up to max_rows
        error = sizes.standard_error * policy.max_rows
        subset = equal_subset(sizes.rows, error**2)
        sizes = replace(sizes, standard_error=error, bar=NORMAL_95 * error, subset=subset)
    sigma = calibrate(policy.promise).unit_standard_deviation * policy.max_rows
    return Review(policy, rows, sigma, sizes, _fewer(policy.promise, sizes))


def _fewer(promise: Promise, sizes: Sizing | None) -> int | None:
    """How many questions a small table can bear (0: none); None where the promise is fine.

    sigma grows as sqrt(T) (Gaussian) or T (Laplace): S4.1, S4.13.
    """
    if sizes is None or sizes.bar <= USEFUL * sizes.rows:
        return None
    power = 1 if promise.noise == "laplace" else 2
    shrink = (USEFUL * sizes.rows / sizes.bar) ** power
    return math.floor(promise.credits * shrink)


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
