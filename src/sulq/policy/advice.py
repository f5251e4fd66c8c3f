"""What an owner should know before a table is published: one value for terminal, JSON and wizard.

Much of it is counted from the rows, so it is for the owner's own screen and is kept nowhere: no
schema, wire model, ledger event, log or reply to anybody else holds any of it, and nothing that
happens after publication depends on it. Of an earlier check the state directory keeps what the
policy declared then, which holds no row (docs/guides/check.md).
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from sulq.beliefs.confidence import Worst, worst
from sulq.beliefs.sizing import Sizing, sizing
from sulq.errors import Refused
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.engines.sql.study import ceilings
from sulq.kernel.engines.tally import (
    SMALL,
    CellCounts,
    EventCounts,
    OwnerTally,
    Spelling,
    StudyTally,
    study_tally,
    tally,
)
from sulq.kernel.ledger.inspect import is_published
from sulq.kernel.ledger.state_dir import (
    named,
    private_directory,
    private_path,
    read_private,
    write_private,
)
from sulq.kernel.schema.columns import Category, Column, Flag, Number, as_number
from sulq.kernel.schema.promise import Population, Promise
from sulq.policy.columns import ColumnPolicy
from sulq.policy.identifiers import MANY, id_named, identifier
from sulq.policy.studies import StudyPolicy
from sulq.policy.tables import TablePolicy

WEAK_EPSILON = 5
USEFUL = 0.01
"""A count's bar above this share of the rows is too wide to be of much use."""
USUAL_MAX_ROWS = 4
Mark: TypeAlias = Literal[
    "open", "identifier", "proposed", "unreadable", "outside", "undeclared", "shared"
]
Band: TypeAlias = Literal["at least 99 %", "90 to 99 %", "below 90 %", "no values"]
STAY = "; if they may stay so, write partial = true"
KNOWN = "if everybody may know it, write proposed = false, else write what is public knowledge"

CELLS: dict[Spelling, tuple[str, str]] = {
    "missing mark": (
        "most of the others are a mark for a missing value, such as ? or NA",
        'csv.missing = ["?"]',
    ),
    "blanks": ("most of the others have blanks around them, as after a comma", "csv.trim = true"),
    "capitals": ("most of the others differ from a declared value in capitals only", ""),
    "initials": (
        'most of the others are one letter for a word, or a word for it ("F", "female")',
        "",
    ),
    "day first": (
        "most of the others are dates with the day first, as in 31.05.2016",
        'csv.dates = "%d.%m.%Y"',
    ),
    "decimal comma": ("most of the others have a decimal comma, as in 62,5", 'csv.decimal = ","'),
    "beside": ("most of the others have other signs beside the digits, as in [70-80) or 12 kg", ""),
}
"""What a spelling says of the cells that do not fit, and the rule that reads them in a CSV file."""


def band(part: int, whole: int) -> Band:
    """How large a part is; the three bands are all that is told of a column's values."""
    if whole == 0:
        return "no values"
    if 100 * part >= 99 * whole:
        return "at least 99 %"
    return "90 to 99 %" if 10 * part >= 9 * whole else "below 90 %"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a table is not ready to publish, and what its owner can do."""

    mark: Mark
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class ColumnAdvice:
    """One declared column; counts and bands are None until its declaration is complete."""

    name: str
    declared: str
    public: bool
    there: int | None = None
    readable: int | None = None
    readable_band: Band | None = None
    within_band: Band | None = None
    small: tuple[int, int] | None = None
    """Of a public column: its cells, and those with fewer than SMALL rows."""
    faults: tuple[Fault, ...] = ()

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(fault.mark for fault in self.faults)


@dataclass(frozen=True, slots=True)
class RowsKept:
    """A person table: how many persons, and the share of rows that each `max_rows` keeps."""

    persons: int
    rows_per_person: float
    nobody: int
    shares: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Advice:
    """A table that may be published, and what its owner should know."""

    policy: TablePolicy
    published: bool
    columns: tuple[ColumnAdvice, ...]
    hidden: tuple[str, ...]
    repeats: Mapping[str, float]
    """Id-like columns whose values repeat, with the rows for each value: one may be the unit."""
    together: tuple[int, int] | None
    """Cells of all public columns crossed, and those with fewer than SMALL rows."""
    kept: RowsKept | None
    rows: int | None
    """Rows, or persons; None where their number is private (add-remove)."""
    sizes: Sizing | None
    fewer: int | None
    """Credits that a table too small for its promise can bear; None where the promise is fine."""

    # --- in the words of the owner ---

    @property
    def belief(self) -> Worst:
        """What the promise lets anyone believe about one row or person. S4.1"""
        return worst(self.policy.promise)

    @property
    def sentence(self) -> str:
        """What a board understands; `belief` says it in full, with its chances."""
        belief = self.belief
        return f"{100 * belief.prior:.3g} % becomes at most {belief.near_percent} %"

    @property
    def protected(self) -> str:
        policy = self.policy
        if policy.unit == "row":
            return "one ROW: a person with several rows is not protected as a person"
        most = "1 row counts" if policy.max_rows == 1 else f"{policy.max_rows} rows count"
        return f"one PERSON: everybody with a value of {policy.unit}; of each person at most {most}"

    @property
    def joint(self) -> str:
        """What all tables of the population together promise a person; nothing without one."""
        population = self.policy.population
        if population is None or self.shared is not None:
            return ""
        epsilon = f"{float(population.promise.epsilon):g}"
        return f"all tables of population {population.name} together: epsilon {epsilon}"

    @property
    def proposals(self) -> tuple[str, ...]:
        """Which column may tell people apart."""
        return tuple(
            f"{name} repeats, about {rows:.2g} rows for each value: if it tells people apart, write"
            f' unit = {{column = "{name}", max_rows = {USUAL_MAX_ROWS}}}'
            for name, rows in self.repeats.items()
        )

    @property
    def public(self) -> tuple[str, ...]:
        """What everybody sees exactly, without spending anything."""
        said = []
        for column in self.columns:
            if column.public:
                small = "" if column.small is None else f": {_small(*column.small)}"
                said.append(f"{column.name}{small}")
        if self.together is not None and len(said) > 1:
            said.append(f"all of them crossed: {_small(*self.together)}")
        return tuple(said)

    @property
    def idle(self) -> tuple[str, ...]:
        """Columns that say `public = true` on a table of persons, where it has no effect."""
        if self.policy.unit == "row":
            return ()
        return tuple(one.name for one in self.policy.columns if one.facts.get("public"))

    @property
    def shared(self) -> Fault | None:
        """What people lose who are in several tables of the policy; None where that was said."""
        policy = self.policy
        if policy.population is not None:
            return self._disjoint(policy.population)
        if policy.apart:
            return None
        others: dict[str, Fraction] = {}
        for other in policy.beside:
            if other.population is not None:
                others[f"population {other.population.name}"] = other.population.promise.epsilon
            elif not other.apart:
                others[other.name] = other.promise.epsilon
        if not others:
            return None
        total = float(policy.promise.epsilon + sum(others.values()))
        both = f"people in {policy.name} and in {', '.join(others)} lose epsilon {total:g} in all"
        remedy = "name a population, or if nobody is in both, write apart = true"
        return Fault("shared", both, remedy)

    def _disjoint(self, population: Population) -> Fault | None:
        """A population that is none: it lives in one ledger and has one promise.

        docs/proofs/ledger.md, section 15.
        """
        policy = self.policy
        for other in policy.beside:
            if other.population is None or other.population.name != population.name:
                continue
            name = f"population {population.name}"
            if other.ledger_path != policy.ledger_path:
                both = f"{policy.name} and {other.name} name {name} in two ledgers"
                why = f"{both}, each counts for itself, and people in both lose the sum"
                return Fault("shared", why, "write the same ledger in both")
            if other.population != population:
                why = f"{policy.name} and {other.name} promise {name} different things"
                return Fault("shared", why, "write the same population line in both")
        return None

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the table is not ready to publish, each with its remedy; empty if it is."""
        if self.published:
            return ()
        return (*self.column_faults, *([] if self.shared is None else [str(self.shared)]))

    @property
    def column_faults(self) -> tuple[str, ...]:
        return tuple(f"{column.name} {fault}" for column in self.columns for fault in column.faults)

    @property
    def ready(self) -> bool:
        return not self.faults

    # --- the promise in numbers ---

    @property
    def whom(self) -> str:
        """What is protected and counted."""
        return "rows" if self.policy.unit == "row" else "persons"

    @property
    def price(self) -> int:
        """Credits of a plain count: one person moves it by max_rows. S4.1, S4.13"""
        return self.policy.max_rows ** (1 if self.policy.promise.noise == "laplace" else 2)

    @property
    def counts(self) -> int:
        """How many plain counts the whole budget buys."""
        return self.policy.promise.credits // self.price

    @property
    def sigma(self) -> float:
        """Standard deviation of a plain count at its price."""
        return calibrate(self.policy.promise).unit_standard_deviation

    @property
    def bar(self) -> float:
        """The half-width that 95 of 100 plain counts keep."""
        return calibrate(self.policy.promise).unit_bar

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the promise itself says little, or is more than the table can bear."""
        promise, said = self.policy.promise, []
        if promise.epsilon > WEAK_EPSILON:
            said.append(
                f"epsilon is {float(promise.epsilon):g}: little is promised above"
                f" {WEAK_EPSILON}; 1 is a usual choice"
            )
        if self.idle:
            names = ", ".join(self.idle)
            said.append(f"public = true of {names} has no effect: of persons nothing is public")
        if self.rows and promise.delta * self.rows > 1:
            said.append(
                f"delta is {float(promise.delta):g}, above 1 / {self.rows:,} {self.whom}: even"
                " showing somebody's data whole would keep such a promise; take far less, for"
                " instance 1e-6"
            )
        if self.fewer is not None and self.sizes is not None:
            said.append(self._too_small(self.sizes, self.fewer))
        return tuple(said)

    def _too_small(self, sizes: Sizing, fewer: int) -> str:
        whom, counts = self.whom, fewer // self.price
        if counts == 0:
            or_else = "" if self.policy.max_rows == 1 else ", or take a smaller max_rows"
            return (
                f"{sizes.rows:,} {whom} are too few for this promise: even a single count would be"
                f" off by more than 1 % of all {whom}. Publish more {whom}{or_else}"
            )
        many = "1 count" if counts == 1 else f"{counts:,} counts"
        each = "" if self.price == 1 else f", which is {many} at {self.price} credits"
        return (
            f"{sizes.rows:,} {whom} are few for so large a budget: a count may be off by"
            f" {sizes.bar / sizes.rows:.3g} of all {whom}. Promise fewer credits"
            f" (credits = {fewer:,}{each}), not less privacy"
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as data. For the owner: it holds counts of rows."""
        belief, kept, sizes = self.belief, self.kept, self.sizes
        return {
            "table": self.policy.name,
            "ready": self.ready,
            "published": self.published,
            "faults": list(self.faults),
            "belief": {**asdict(belief), "sentence": self.sentence, "text": str(belief)},
            "protected": self.protected,
            "joint": self.joint,
            "unit": self.policy.unit,
            "proposals": list(self.proposals),
            "public": list(self.public),
            "hidden": list(self.hidden),
            "columns": [{**asdict(one), "marks": one.marks} for one in self.columns],
            "persons": kept
            and {
                "persons": kept.persons,
                "rows_per_person": kept.rows_per_person,
                "rows_of_nobody": kept.nobody,
                "share_of_rows_kept": {str(most): part for most, part in kept.shares.items()},
            },
            "shared_people": self.shared and str(self.shared),
            "warnings": list(self.warnings),
            "not_askable_yet": self.policy.unready,
            "askable": [column.name for column in self.policy.columns if not column.lacks],
            "promise": self.policy.promise.to_json(),
            "rows": self.rows,
            "credits_of_a_count": self.price,
            "counts": self.counts,
            "sigma_of_a_count": self.sigma,
            "bar_of_a_count": self.bar,
            "sampling_error": sizes and sizes.sampling_error,
            "noise_below_sampling_error": sizes and sizes.noise_is_smaller,
            "noise_below_sampling_error_when_rare": sizes and sizes.noise_is_smaller_when_rare,
            "as_good_as_a_random_subset_of": sizes and sizes.subset,
            "too_small": self.fewer is not None,
            "suggested_credits": self.fewer,
            "suggested_queries": self.fewer,  # its older name
        }


def _small(cells: int, few: int) -> str:
    what = "1 cell" if cells == 1 else f"{cells:,} cells"
    return f"{what}, {few:,} of them with fewer than {SMALL} rows" if few else what


# --- advising -----------------------------------------------------------------------------------


def advise(policy: TablePolicy, *, within: str | None = None) -> Advice:
    """Look at a table that may be published. Reads rows; publishes nothing.

    `within`: the study whose table it is, and under whose name it is published.
    """
    complete = [column for column in policy.columns if not column.lacks]
    columns = [column.column() for column in complete]
    if not policy.unready:
        policy.schema()  # what the columns are refused for together
    found = tally(policy.rows, columns, policy.unit, policy.max_rows, id_named)
    published = is_published(policy.ledger_path, within or policy.name)
    before = {} if published else _remembered(policy)
    declared = {column.name: column for column in columns}
    advised = tuple(_advised(one, declared.get(one.name), found, before) for one in policy.columns)
    if policy.unit != "row":  # docs/proofs/sensitivity.md, section 6: nothing is public
        advised = tuple(replace(one, public=False, small=None) for one in advised)
    if not published:
        _remember(policy, complete, before)
    rows = _size(policy, found)
    sizes = None
    if rows is not None and rows > 1:
        sizes = sizing(policy.promise, rows)
    known = {column.name for column in policy.columns}
    return Advice(
        policy=policy,
        published=published,
        columns=advised,
        hidden=tuple(name for name in found.names if name not in known),
        repeats=_repeating(policy, found),
        together=found.together,
        kept=_kept(found),
        rows=rows,
        sizes=sizes,
        fewer=_fewer(policy.promise, sizes),
    )


def _size(policy: TablePolicy, found: OwnerTally) -> int | None:
    if policy.promise.neighbours != "replace":
        return None
    return found.rows if found.persons is None else found.persons.persons


def _fewer(promise: Promise, sizes: Sizing | None) -> int | None:
    """Return how many credits a small table can bear; None where the promise is fine.

    A count's error at its own price grows as sqrt(T) (Gaussian) or T (Laplace): S4.1, S4.13.
    """
    if sizes is None or sizes.bar <= USEFUL * sizes.rows:
        return None
    power = 1 if promise.noise == "laplace" else 2
    return math.floor(promise.credits * (USEFUL * sizes.rows / sizes.bar) ** power)


def _repeating(policy: TablePolicy, found: OwnerTally) -> dict[str, float]:
    """Id-like columns whose values repeat, where nobody is protected as a person yet."""
    if policy.unit != "row":
        return {}
    return {
        name: cells.there / cells.distinct
        for name, cells in found.cells.items()
        if id_named(name) and cells.distinct and MANY < cells.distinct < cells.there
    }


def _kept(found: OwnerTally) -> RowsKept | None:
    persons = found.persons
    if persons is None:
        return None
    rows = max(1, persons.rows)
    shares = {most: number / rows for most, number in persons.kept.items()}
    return RowsKept(persons.persons, rows / max(1, persons.persons), persons.nobody, shares)


def _advised(
    policy: ColumnPolicy, column: Column | None, found: OwnerTally, before: Mapping[str, str]
) -> ColumnAdvice:
    cells = found.cells.get(policy.name)
    plain = ColumnAdvice(
        policy.name,
        _declared(policy, column),
        bool(policy.facts.get("public")),
        faults=tuple(_faults(policy, column, cells, before)),
    )
    if cells is None or cells.readable is None or cells.fitting is None:
        return plain
    return replace(
        plain,
        there=cells.there,
        readable=cells.readable,
        readable_band=band(cells.readable, cells.there),
        within_band=band(cells.fitting, cells.there),
        small=cells.small,
    )


def _declared(policy: ColumnPolicy, column: Column | None) -> str:
    match column:
        case Number(low=low, high=high):
            what = "number" if column.kind == "number" else column.kind
            return f"{what} {_bound(low)} to {_bound(high)}"
        case Category(values=None):
            return "open whole numbers" if column.whole else "open text"
        case Category(values=values):
            return f"{len(values or ())} values"
        case Flag():
            return "yes or no"
    return policy.kind


def _bound(value: object) -> str:
    return f"{float(value):g}" if isinstance(value, Fraction) else str(value)


def _faults(
    policy: ColumnPolicy, column: Column | None, cells: CellCounts | None, before: Mapping[str, str]
) -> Iterator[Fault]:
    """Everything that keeps a column from being published."""
    if policy.lacks:
        why, _, remedy = policy.lacks.partition(": ")
        yield Fault("open", why, remedy)
    if cells is None:
        return
    told = None
    if not isinstance(column, Flag) and not policy.facts.get("identifier_ok"):
        told = identifier(policy.name, cells.holds, cells.distinct or 0, cells.there)
    if told is not None:
        why = "by its name" if told == "by name" else "since almost every value is different"
        unit = " make it the unit," if told == "by name" else ""
        yield Fault(
            "identifier",
            f"looks like an identifier, {why}",
            f"remove its line to hide it,{unit} or write identifier_ok = true if everybody may ask"
            " about single values",
        )
    if column is None or cells.readable is None or cells.fitting is None:
        return
    if "proposed" not in policy.facts:
        if isinstance(column, Number) and _are_ends(column, cells.ends):
            yield Fault("proposed", "has bounds that are the data's own ends", KNOWN)
        elif before.get(policy.name, _text(policy)) != _text(policy):
            what = "bounds" if policy.kind == "number" else "values"
            said = f"has {what} that were changed after a check read the rows"
            yield Fault("proposed", said, KNOWN)
    if not policy.facts.get("partial"):
        yield from _poor(column, cells)


def _poor(column: Column, cells: CellCounts) -> Iterator[Fault]:
    """Less than 90 % of a column's values are readable, or within its declaration."""
    there, readable, fitting = cells.there, cells.readable or 0, cells.fitting or 0
    if band(readable, there) == "below 90 %":
        match column:
            case Number(kind="number"):
                wanted = "a number"
            case Number():
                wanted = "a date or time"
            case Flag():
                wanted = "yes or no"
            case _:
                wanted = "a whole number"
        why = f"has fewer than 90 % of its values readable as {wanted}"
        yield _misspelt("unreadable", why, cells, there - readable)
    elif band(fitting, there) == "below 90 %":
        if isinstance(column, Number):
            why = (
                "has fewer than 90 % of its values inside the bounds, and the others are moved to"
                " them; perhaps they are in another unit"
            )
            yield Fault("outside", why, f"declare what is possible{STAY}")
        else:
            why = "has fewer than 90 % of its values declared, and the others count as missing"
            yield _misspelt("undeclared", why, cells, there - fitting)


def _misspelt(mark: Mark, why: str, cells: CellCounts, unfit: int) -> Fault:
    """With the spelling that at least half of the cells have that do not fit."""
    likely = max(cells.spelled, key=lambda one: cells.spelled[one], default=None)
    if likely is None or 2 * cells.spelled[likely] < unfit:
        return Fault(mark, why, f"declare it as the file has it{STAY}")
    said, rule = CELLS[likely]
    remedy = f"of a CSV file say {rule}" if rule else "declare them as the file spells them"
    return Fault(mark, f"{why}; {said}", f"{remedy}{STAY}")


def _are_ends(column: Number, ends: tuple[bool, bool]) -> bool:
    """Whether bounds look as if they were read off the data: both are its ends, or one is that
    nobody would choose. 0 to 1 is everybody's."""
    if column.range == (Fraction(0), Fraction(1)):
        return False
    bounds = (column.low, column.high)
    return all(ends) or any(
        end and not _is_round(bound) for end, bound in zip(ends, bounds, strict=True)
    )


def _is_round(bound: object) -> bool:
    """Up to two digits and zeros; the first or last day of a year."""
    if isinstance(bound, datetime.date):
        return (bound.month, bound.day) in ((1, 1), (12, 31))
    value = abs(as_number(bound, "bound"))
    while value and value.denominator > 1:
        value *= 10
        if value > 10**40:
            return False
    return len(str(value.numerator).rstrip("0")) <= 2


# --- a study --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventAdvice:
    """One event table of a study: its columns, and whose rows it holds."""

    columns: Advice
    counts: EventCounts
    ceiling: int
    """How many rows of a person are read: its ceiling, or its part of at_most."""

    @property
    def policy(self) -> TablePolicy:
        return self.columns.policy

    @property
    def shares(self) -> dict[int, float]:
        """The share of persons' rows that count in sums over rows, by max_rows."""
        rows = max(1, self.counts.rows)
        return {most: number / rows for most, number in self.counts.kept.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the owner's rows no question will see."""
        name, found, said = self.policy.name, self.counts, []
        if found.rows == 0:
            said.append(
                f"{name}: no row is of a person of the study; are its ids written as there?"
            )
        elif 10 * found.orphans > found.rows:
            said.append(
                f"{name}: {found.orphans:,} rows are of ids that the person table does not have,"
                " and count nowhere; are the ids written alike?"
            )
        if found.read < found.rows:
            said.append(
                f"{name}: {found.rows - found.read:,} rows lie beyond the first {self.ceiling:,} of"
                " their person and are never read: raise its ceiling or at_most"
            )
        return tuple(said)

    def to_json(self) -> dict[str, Any]:
        """For the owner: counts of rows."""
        return {
            "columns": self.columns.to_json()["columns"],
            "hidden": list(self.columns.hidden),
            **{key: value for key, value in asdict(self.counts).items() if key != "kept"},
            "ceiling": self.ceiling,
            "share_of_rows_kept": {str(most): part for most, part in self.shares.items()},
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class StudyAdvice:
    """A study that may be published, and what its owner should know."""

    policy: StudyPolicy
    persons: Advice
    """Of the person table, with the promise of the study."""
    counts: StudyTally | None
    """None while a column lacks something."""
    events: tuple[EventAdvice, ...]
    open: tuple[str, ...] = ()
    """Why columns of event tables are not askable yet."""

    @property
    def published(self) -> bool:
        return self.persons.published

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the study is not ready to publish, each with its remedy; empty if it is."""
        if self.published:
            return ()
        table = self.policy.person_table
        parts = [(table, self.persons), *((one.policy.name, one.columns) for one in self.events)]
        found = [f"{name}.{fault}" for name, advice in parts for fault in advice.column_faults]
        shared = self.persons.shared
        return (*found, *self.open, *([] if shared is None else [str(shared)]))

    @property
    def ready(self) -> bool:
        return not self.faults

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.persons.warnings, *(said for one in self.events for said in one.warnings))

    def to_json(self) -> dict[str, Any]:
        """All of it as data. For the owner: it holds counts of rows."""
        counts = self.counts
        return {
            **self.persons.to_json(),
            "table": self.policy.name,
            "ready": self.ready,
            "faults": list(self.faults),
            "warnings": list(self.warnings),
            "not_askable_yet": self.policy.unready,
            "person_table": self.policy.person_table,
            "persons": counts
            and {
                "persons": counts.persons,
                "rows_repeated": counts.repeated,
                "rows_of_nobody": counts.nobody,
            },
            "events": {one.policy.name: one.to_json() for one in self.events},
        }


def advise_study(policy: StudyPolicy) -> StudyAdvice:
    """Look at a study that may be published. Reads rows; publishes nothing."""
    persons = advise(policy.alone)
    if policy.unready:
        lacking = {
            f"{table.name}.{name}": why
            for table in policy.events
            for name, why in table.unready.items()
        }
        told = tuple(f"{name} {why}" for name, why in lacking.items())
        return StudyAdvice(policy, persons, None, (), told)
    study = policy.schema()
    public = policy.promise.neighbours == "replace"

    def limits(found: int) -> dict[str, tuple[int, int]]:
        each = ceilings(study, found, public)
        return {table.name: (each[table.name], table.max_rows) for table in study.tables}

    counts = study_tally({one.name: (one.rows, one.unit) for one in policy.tables}, limits)
    each = limits(counts.persons)
    events = tuple(
        EventAdvice(advise(one, within=policy.name), counts.events[one.name], each[one.name][0])
        for one in policy.events
    )
    return StudyAdvice(policy, persons, counts, events)


# --- what an earlier check looked at -------------------------------------------------------------


def _text(policy: ColumnPolicy) -> str:
    """Bounds or values as one text; nothing of other kinds can be read off the data."""
    given = policy.facts[policy.kind]
    if policy.kind not in ("number", "category"):
        return ""
    listed: Sequence[object] = sorted(map(str, given)) if policy.kind == "category" else given
    return json.dumps([policy.kind, [str(one) for one in listed]])


def _place(policy: TablePolicy) -> str:
    return f"{named(f'{policy.home.absolute()}|{policy.source}')}.json"


def _remembered(policy: TablePolicy) -> dict[str, str]:
    """What columns declared when rows were first read for their owner."""
    with suppress(Refused, ValueError):
        held = read_private(private_path("checks", _place(policy)))
        if held is not None:
            return {str(name): str(text) for name, text in dict(json.loads(held)).items()}
    return {}


def _remember(
    policy: TablePolicy, columns: Sequence[ColumnPolicy], before: Mapping[str, str]
) -> None:
    after = {column.name: _text(column) for column in columns} | dict(before)
    if after != before:
        with suppress(Refused):  # a state directory that cannot be written
            path = private_directory("checks") / _place(policy)
            write_private(path, json.dumps(after).encode(), replace=True)
