"""Looking before a step that cannot be undone: `sulq check`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sulq.beliefs.sizing import NORMAL_95
from sulq.cli.context import companions, database_of
from sulq.cli.output import key_values, many, number_text, promise_text, show, table
from sulq.database.amend import changes
from sulq.errors import Refused
from sulq.formatting import credits_text
from sulq.kernel.accounting.calibration import Calibration, calibrate
from sulq.kernel.ledger.inspect import Statement, inspect, is_there
from sulq.kernel.ledger.state_dir import location_name
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.study import schema_from_json
from sulq.policy import StudyPolicy, TablePolicy
from sulq.policy.advice import Advice, EventAdvice, RowsKept, StudyAdvice, advise, advise_study
from sulq.server.local_control import serving

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
        show(key_values(self._lines()))
        print()
        show(_columns(advice))
        print()
        if advice.kept is not None:
            show(_kept(advice.kept, self.policy.max_rows))
            print()
        for line in self.prospects():
            print(line) if isinstance(line, str) else show(line)
        for warning in advice.warnings:
            print(f"WARNING: {warning}")
        print()
        print(OWN_EYES)
        self.verdict(self.policy.name, advice.faults)

    def prospects(self) -> list[Any]:
        """The sizing table, and how far off a count is."""
        return [_prospects(self.policy, self._sizes()), *self._counts()]

    def _lines(self) -> list[tuple[str, str]]:
        advice = self.advice
        lines = [("who is protected", advice.protected)]
        lines += [("", advice.joint)] if advice.joint else []
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

    def verdict(self, name: str, faults: Sequence[str]) -> None:
        """The last line: published, ready, or why not."""
        advice = self.advice
        rows = "" if advice.rows is None else f", {advice.rows:,} {advice.whom}"
        if advice.published:
            print(f"{name}: published (ledger {location_name(self.policy.ledger_path)}){rows}")
        elif not faults:
            print(f"{name}: ready to publish{rows}")
        else:
            print(f"{name} is not ready to publish{rows}:")
            for fault in faults:
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


def _kept(kept: RowsKept, own: int) -> Any:
    """How many rows each choice of max_rows lets count."""
    per = f"{kept.persons:,} persons with {kept.rows_per_person:.3g} rows each on average"
    lost = f"; {kept.nobody:,} rows belong to nobody and never count" if kept.nobody else ""
    shares = _shares(kept.shares, own)
    return key_values([("persons", per + lost), ("rows that count, by max_rows", shares)])


def _shares(shares: Mapping[int, float], own: int) -> str:
    return ", ".join(
        f"{most}{' (yours)' if most == own else ''}: {100 * share:.1f} %"
        for most, share in shares.items()
    )


def _prospects(policy: TablePolicy, sizes: tuple[int, ...]) -> Any:
    """The sizing table: this promise, and a tenth and ten times of its credits."""
    heads = ["credits", "standard error", "95 % bar", *(f"mean of 0 to 1, n={n:,}" for n in sizes)]
    lines, promise = [], policy.promise
    for queries in _beside(promise):
        of_a_count = _calibration(promise, queries)
        sigma, bar = of_a_count.unit_standard_deviation, of_a_count.unit_bar
        mark = " (yours)" if queries == promise.credits else ""
        means = [f"± {bar / n:.2g}" if 2 * bar < n else "no use" for n in sizes]
        lines.append([f"{queries:,}{mark}", number_text(sigma), f"± {number_text(bar)}", *means])
    return table(heads, lines)


def _beside(promise: Promise) -> list[int]:
    own = promise.credits
    if promise.noise in ("binomial", "huber"):  # their calibration takes a while
        return [own]
    return sorted({max(1, own // 10), own, own * 10})


def _calibration(promise: Promise, queries: int) -> Calibration:
    """The noise of a plain count at its price, with another number of credits; S4.1, S4.13."""
    return calibrate(
        Promise(promise.epsilon, promise.delta, queries, promise.noise, promise.neighbours)
    )


@dataclass(frozen=True, slots=True)
class StudyReview:
    """The same of a study: its persons first, then each of its tables."""

    advice: StudyAdvice

    @property
    def ready(self) -> bool:
        return self.advice.ready

    @property
    def askable(self) -> bool:
        return not self.advice.policy.unready

    def to_json(self) -> dict[str, Any]:
        bars = Review(self.advice.persons).to_json()["bar_of_a_mean"]
        return {**self.advice.to_json(), "bar_of_a_mean": bars}

    def show(self) -> None:
        """Print what a board understands first, the verdict last."""
        advice, persons = self.advice, Review(self.advice.persons)
        policy = advice.policy
        print(f"{policy.name}: {advice.persons.sentence}")
        print(advice.persons.belief)
        print()
        show(key_values(self._lines()))
        print()
        print(f"{policy.person_table}: one row for each person")
        show(_columns(advice.persons))
        for event in advice.events:
            print()
            _show_events(event)
        print()
        for line in persons.prospects():
            print(line) if isinstance(line, str) else show(line)
        for warning in advice.warnings:
            print(f"WARNING: {warning}")
        print()
        print(OWN_EYES)
        persons.verdict(policy.name, advice.faults)

    def _lines(self) -> list[tuple[str, str]]:
        advice, policy = self.advice, self.advice.policy
        tables = ", ".join(table.name for table in policy.tables)
        lines = [
            ("who is protected", f"one PERSON, with all their rows in {tables} together"),
            *([("", advice.persons.joint)] if advice.persons.joint else []),
            *([("", str(advice.persons.shared))] if advice.persons.shared else []),
            ("public, exact and free for everybody", _public(policy)),
        ]
        counts = advice.counts
        if counts is not None:
            lost = "".join(
                f"; {number:,} rows of {policy.person_table} {why} and never count"
                for number, why in ((counts.repeated, "repeat an id"), (counts.nobody, "have none"))
                if number
            )
            lines.append(("persons", f"{counts.persons:,}{lost}"))
        lines.append(("hidden", ", ".join(advice.persons.hidden) or "nothing"))
        lines.append(("promise", promise_text(policy.promise, policy.unit)))
        return lines


def _public(policy: TablePolicy) -> str:
    return "the number of persons" if policy.promise.neighbours == "replace" else "nothing"


def _show_events(event: EventAdvice) -> None:
    """One event table: whose rows it holds, what max_rows keeps, its columns."""
    found, own = event.counts, event.policy.max_rows
    each = found.rows / max(1, found.persons)
    lost = "".join(
        f"; {number:,} {what} and never count"
        for number, what in (
            (found.orphans, "are of ids that the person table does not have"),
            (found.nobody, "have no id"),
        )
        if number
    )
    lines = [
        (
            "rows",
            f"{found.rows:,} of {found.persons:,} persons: {each:.3g} each on average,"
            f" {found.most:,} at most{lost}",
        ),
        ("rows that count in sums over rows, by max_rows", _shares(event.shares, own)),
        (
            "rows that count in values of a person",
            f"{100 * found.read / max(1, found.rows):.1f} %: up to {event.ceiling:,} of each",
        ),
        ("credits of a plain count of rows", f"{event.columns.price:,}"),
        ("hidden", ", ".join(event.columns.hidden) or "nothing"),
    ]
    print(f"{event.policy.name}: any number of rows for each person")
    show(key_values(lines))
    show(_columns(event.columns))


def review(policy: TablePolicy) -> Review | StudyReview:
    """Advise the owner of a table or a study; reads rows, publishes nothing."""
    if isinstance(policy, StudyPolicy):
        return StudyReview(advise_study(policy))
    return Review(advise(policy))


# Whether a published table is what its policy says: for `sulq check`.


@dataclass(frozen=True, slots=True)
class PolicyDrift:
    """What the ledger says that the policy does not."""

    notes: tuple[str, ...] = ()
    refused: str = ""  # why no question would be answered as things are


def standing(table: TablePolicy) -> PolicyDrift:
    """Compare a policy with the ledger, if the table is published; changes nothing."""
    path = table.ledger_path
    found = inspect(path).statements.get(table.name) if is_there(path) else None
    if found is None or found.withdrawn is not None:
        table.check_grants()
        gone = () if found is None else (f"withdrawn unused ({found.withdrawn})",)
        return PolicyDrift(gone)
    notes = []
    if found.closed is not None:
        notes.append(f"closed for good ({found.closed}): nothing new is answered")
    now = found.versions[-1].budget
    if table.version_budget not in (None, now):
        may = "all that is left" if now is None else credits_text(now)
        notes.append(
            f"version_budget is for the next version of the data; the present one may spend {may}"
        )
    return PolicyDrift(tuple(notes), _differs(table, found) or _closed_to(table))


def _differs(table: TablePolicy, found: Statement) -> str:
    """Schema and promise, where the ledger has others."""
    schema = schema_from_json(json.loads(found.facts["schema"]))
    promise = Promise.from_json(json.loads(found.facts["promise"]))
    refused = ""
    try:
        differ = changes(schema, table.schema(), promise, table.promise)
    except Refused as why:
        if found.unused:
            return (
                "the policy is not what the ledger has: nothing was asked yet, so `sulq amend`"
                " records any change, or write it as it was"
            )
        refused = f"the policy is not what the ledger has, and {why}; write it as it was"
    if refused or not differ:
        return refused
    listed = "; ".join(f"{one.what}: {one.was} there, {one.now} here" for one in differ)
    return (
        f"the policy is not what the ledger has ({listed}): `sulq amend` records it, or write it"
        " as it was"
    )


def _closed_to(table: TablePolicy) -> str:
    """Why the table does not open; a server that holds it has opened it."""
    if serving(table.ledger_path) is not None:
        return ""
    try:
        with companions(table), database_of(table, table.ledger_path):
            return ""
    except Refused as why:
        return str(why)
