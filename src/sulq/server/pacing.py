"""Replies on a clock: when one leaves is decided by public facts alone. S4.5

Public are the bound on the rows, the number of columns and the question's program. A machine's
speed is measured once, on rows that were made up. Proof: docs/proofs/timing.md.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from sulq.answers.statistics import count, histogram
from sulq.database import Database
from sulq.database.delay import delayed, draw_delay
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.mechanisms import Delay, delay_for
from sulq.kernel.query.expressions import col
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.study import Study, rows_of, values_in
from sulq.kernel.schema.vector_program import BlockSums
from sulq.server.errors import HttpProblem
from sulq.server.limits import Settings
from sulq.server.scheduling import PreciseTimer, SingleFlight

SHORTEST = 0.1
"""Seconds of the shortest tick: a durable write, a thread's turn and a small table fit in."""
MARGIN = 4.0
"""A tick is so many times what its question takes on this machine at leisure."""
GUARD = 0.002
"""What is done later than this before its tick takes the next one: it could be seen to hurry."""
LEAD = 0.4
"""Of a tick: an answer is stored so long before its reply leaves."""
LATE = 0.1
"""Of a tick: what begins later than its turn by more is counted from a later tick."""
GROUPED = 16
"""Steps of a row that is joined and grouped by person, for one of a row that is only added up.
Measured by `make bench`, studies: 2 to 13, most where events are joined and counted by groups."""
SORTED = 4
"""The same for a value that sorts rows of two tables: up to 41 steps were measured in all."""
LIGHT = 8
"""Parts of the program that a tick is long enough for."""
MADE_UP = 200_000
CELLS = 500
FEWEST_TURNS, MOST_TURNS = 4, 16
LONGEST_MEASURING = 0.5
"""Seconds: each of three works is measured so often, or so long, and its best turn counts."""
LEAST_STEP = 5e-10
"""Seconds that a row's step is taken to need at least: what is too short to measure here."""


class Wide(NamedTuple):
    """A question that handles so many numbers, by public facts: keys may be as many as rows."""

    bound: BoundQuery
    numbers: int

    @property
    def digest(self) -> str:
        return self.bound.digest


Paced = BoundQuery | Wide


def today() -> date:
    """Return the day by UTC."""
    return datetime.now(UTC).date()


class Pace(Protocol):
    """The clock that replies of one table leave by. Each table has one."""

    overruns: int
    """Replies that missed their tick. For the owner only: it is a fact about running times."""

    @property
    def missed(self) -> Mapping[date, int]:
        """The same by the day (UTC) on which they left; a monitor is told of days that are over."""

    def ticks(self, *asked: Paced | None) -> int:
        """Return the ticks of a reply to these questions, from public facts; of a refusal 1."""

    def load(self, *asked: Paced) -> float:
        """Return the seconds for which these questions keep their lane, from public facts."""

    def start(self, planned: float) -> float:
        """Return the moment from which the time of work that begins now is counted."""

    def execution(self, digests: frozenset[str]) -> AbstractContextManager[None]:
        """Run around the answering of these questions."""

    def hold(self, begun: float, ticks: int) -> None:
        """Block until an answer to what has `begun` then (monotonic) may be stored: others read the
        ledger, and its order must tell no more than the reply."""

    async def leave(self, begun: float, ticks: int) -> None:
        """Return when a reply may leave."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Seconds of this machine, on made-up rows: a question, a row's step, a coordinate."""

    question: float
    step: float
    coordinate: float

    @classmethod
    @lru_cache(maxsize=2)
    def measured(cls, individual: bool = False) -> Machine:
        """Three questions to a made-up table, through the whole flow; never the real one.

        With individual accounting a row that takes part takes longer: then all of them do.
        """
        schema = Schema(Number("a", 0, CELLS, step=1), Number("b", 0, 1))
        rows = np.arange(MADE_UP) * 7_919
        made = {"a": rows % CELLS, "b": rows % 1_000 / 1_000}
        few = {name: values[:CELLS] for name, values in made.items()}
        promise = Promise(1, "1e-6", 1_000, neighbours="add-remove" if individual else "replace")
        small = count(where=col("a") < (CELLS if individual else 7))
        named = (schema, promise, ":memory:")
        with (
            Database.open(few, *named, name="few", individual=individual) as short,
            Database.open(made, *named, name="many", individual=individual) as long,
        ):
            question = _seconds(lambda turn: short.ask(small, credits=1 + turn / 8))
            many = _seconds(lambda turn: long.ask(small, credits=1 + turn / 8))
            wide = _seconds(
                lambda turn: short.ask(histogram("a", edges=range(CELLS + 1)), credits=2 + turn / 8)
            )
            steps = MADE_UP * weight(long.bind(small), schema)
        return cls(
            question,
            max((many - question) / steps, LEAST_STEP),
            max((wide - question) / CELLS, LEAST_STEP),
        )

    def seconds(self, steps: int, coordinates: int) -> float:
        """A question of so many steps over all rows, and so many coordinates."""
        return self.question + steps * self.step + coordinates * self.coordinate


def _seconds(
    work: Callable[[int], object], clock: Callable[[], float] = time.perf_counter
) -> float:
    """The best of many turns: what the machine can do, not what else it had to do."""
    found: list[float] = []
    begun = clock()
    for turn in range(MOST_TURNS):
        start = clock()
        if turn >= FEWEST_TURNS and start - begun > LONGEST_MEASURING:
            break
        work(turn)
        found.append(clock() - start)
    return min(found)


def weight(asked: Paced, schema: Schema) -> int:
    """Return the steps of work for one row: columns that may be read, and nodes of the program."""
    sums = asked.bound.sums if isinstance(asked, Wide) else asked.sums
    inner = math.prod(sums.shape) + sums.width if isinstance(sums, BlockSums) else 0
    if isinstance(schema, Study):  # whichever of its tables are read
        columns = len(schema.columns) + sum(len(table.columns) for table in schema.tables)
        values = values_in(rows_of(schema, sums), sums)
        held = sum(
            (1 if one.limit is None else SORTED) * (columns + _parts((*one.reads, one.limit)))
            for one in values
        )
        return GROUPED * (columns + _parts(sums) + inner + held)
    return len(schema.columns) + _parts(sums) + inner


def coordinates(asked: Paced) -> int:
    """Return how many numbers are drawn for, stored and sent."""
    if isinstance(asked, Wide):
        return asked.numbers
    return asked.width


def _parts(node: object) -> int:
    """Count the nodes of a program; a list of values is one."""
    if isinstance(node, tuple):
        return sum(map(_parts, node))
    names = getattr(type(node), "__match_args__", ())
    return 1 + sum(_parts(getattr(node, name)) for name in names) if names else 0


def public_rows(database: Database) -> int:
    """A bound on the rows that everybody may know: n under replace, else what is declared."""
    schema, size = database.schema, database.size
    if isinstance(schema, Study):  # of all its tables, as declared: no person's rows show
        return schema.rows_bound(size)
    return schema.at_most if size is None else size * schema.max_rows


class Clock:
    """Whole ticks from the turn: neither a row, nor the noise, nor a stored answer shows."""

    def __init__(
        self,
        tick: float,
        work: Callable[[Paced], float],
        request: float = 0.0,
        departures: PreciseTimer | None = None,
    ) -> None:
        """`work`: ticks that a question needs, from public facts; `request`: what is around it."""
        self.tick, self.overruns, self._work, self._request = tick, 0, work, request
        self.missed: Counter[date] = Counter()
        self._counting, self._departures = threading.Lock(), departures or PreciseTimer()

    @classmethod
    def of(
        cls,
        database: Database,
        *,
        tick: float | None = None,
        machine: Machine | None = None,
        departures: PreciseTimer | None = None,
    ) -> Clock:
        """The clock of a table; fixed from here on.

        A tick is the margin times a light question, rounded up to 1, 2 or 5 times a power of ten;
        or the owner's own choice, in seconds, for such a question.
        """
        schema, rows = database.schema, public_rows(database)
        known = machine or Machine.measured(database.has_balances)
        light = known.seconds(rows * (len(schema.columns) + LIGHT), 1)
        usual = rounded(max(SHORTEST, MARGIN * light))

        def work(bound: Paced) -> float:
            return MARGIN * known.seconds(rows * weight(bound, schema), coordinates(bound)) / usual

        return cls(tick or usual, work, MARGIN * known.question / usual, departures)

    def ticks(self, *asked: Paced | None) -> int:
        """Their work one after the other, in whole ticks."""
        return max(1, math.ceil(sum(self._work(bound) for bound in asked if bound is not None)))

    def load(self, *asked: Paced) -> float:
        """What their work and the request take of the time until answers are stored."""
        work = self._request + sum(self._work(bound) for bound in asked)
        return (1 - LEAD) * self.tick * work

    def start(self, planned: float) -> float:
        late = (self._departures.now() - planned) / self.tick
        return planned + max(0, math.ceil(late - LATE)) * self.tick

    def departure(self, begun: float, ticks: int, now: float) -> float:
        """The moment `ticks` after the turn, or the first whole tick that is not too near."""
        needed = math.ceil((now + GUARD - begun) / self.tick)
        return begun + max(ticks, needed) * self.tick

    def execution(self, digests: frozenset[str]) -> AbstractContextManager[None]:
        return nullcontext()

    def hold(self, begun: float, ticks: int) -> None:
        lead = LEAD * self.tick
        moment = self.departure(begun, ticks, self._departures.now() + lead) - lead
        self._departures.block(moment)

    async def leave(self, begun: float, ticks: int) -> None:
        moment = self.departure(begun, ticks, self._departures.now())
        if moment > begun + (ticks + 0.5) * self.tick:
            with self._counting:
                self.overruns += 1
                self.missed[today()] += 1
        await self._departures.until(moment)


class Delayed:
    """The papers' random delay after the work, charged for beside the answer. S4.5

    The work's time is rounded up to the grid on which the delay is drawn. Refusals and stored
    answers are delayed alike, for nothing: their time depends on no row.
    """

    overruns = 0

    @property
    def missed(self) -> Mapping[date, int]:
        return {}

    def __init__(self, delay: Delay, departures: PreciseTimer | None = None) -> None:
        self.delay, self._departures = delay, departures or PreciseTimer()
        self._drawn: set[float] = set()
        self._failed: set[str] = set()
        self._executions = SingleFlight()

    def ticks(self, *asked: Paced | None) -> int:
        return 1

    def load(self, *asked: Paced) -> float:
        return 0.0

    def start(self, planned: float) -> float:
        return planned

    @contextmanager
    def execution(self, digests: frozenset[str]) -> Iterator[None]:
        """One delay for each charge: the same question meanwhile gets the stored answer, and what
        has failed after it was charged is not read again."""
        with self._executions.alone(digests):
            if self._failed & digests:
                raise Refused(
                    "this failed before, and the time of one reply was paid for: a second one would"
                    " tell it again; ask another question, or have the table served on a clock"
                )
            try:
                yield
            except HttpProblem as problem:
                if problem.status >= 500:
                    self._failed |= digests
                raise
            except Exception:
                self._failed |= digests
                raise

    def hold(self, begun: float, ticks: int) -> None:
        """The delay is drawn here, once for each reading of rows; the reply leaves when the answer
        is stored."""
        self._departures.block(self._moment(begun))
        self._drawn.add(begun)

    async def leave(self, begun: float, ticks: int) -> None:
        if begun in self._drawn:
            self._drawn.discard(begun)
        else:
            await self._departures.until(self._moment(begun))

    def _moment(self, begun: float) -> float:
        step = float(self.delay.step)
        done = math.ceil((self._departures.now() - begun) / step) * step
        return begun + done + draw_delay(self.delay)


class Unpaced:
    """Replies leave when they are ready: for an owner alone with the table, and for tests."""

    overruns = 0

    @property
    def missed(self) -> Mapping[date, int]:
        return {}

    def ticks(self, *asked: Paced | None) -> int:
        return 1

    def load(self, *asked: Paced) -> float:
        return 0.0

    def start(self, planned: float) -> float:
        return planned

    def execution(self, digests: frozenset[str]) -> AbstractContextManager[None]:
        return nullcontext()

    def hold(self, begun: float, ticks: int) -> None:
        """At once."""

    async def leave(self, begun: float, ticks: int) -> None:
        """At once."""


def pace_of(database: Database, settings: Settings) -> Pace:
    """The pace that the operator chose for a table."""
    if not settings.pacing:
        return Unpaced()
    if settings.delay is None:
        return Clock.of(database)
    delay = delay_for(database.calibration, _seconds_of(settings.delay))
    if database.calibration.timing != delay.loss:
        raise Refused("this table does not charge for delayed replies: serve `delayed(table)`")
    return Delayed(delay)


def check_lasting(clock: Pace, asked: Wide, settings: Settings) -> None:
    """Refuse, free, what would be held too long, or whose time no delay is long enough for."""
    if isinstance(clock, Delayed):
        raise InvalidQuery(
            "this server hides running times behind a random delay, made for what one row adds to a"
            " sum; one more key may make a table of keys grow, which takes longer: have the values"
            " declared and ask for a histogram, or have the table served on a clock"
        )
    if isinstance(clock, Clock) and clock.ticks(asked) * clock.tick > settings.most_seconds:
        raise InvalidQuery(
            f"every row may have a key of its own, so this reply would be held for more than"
            f" {settings.most_seconds:g} seconds lest its time tells how many there are; ask on the"
            " owner's machine, or have the values declared (or at_most, the bound on rows)"
        )


def charging_for_time(database: Database, settings: Settings) -> Database:
    """The table as it is served: where replies are randomly delayed, their time costs too."""
    if not settings.pacing or settings.delay is None:
        return database
    return delayed(database, delay_for(database.calibration, _seconds_of(settings.delay)))


def _seconds_of(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidQuery(f"got a delay of {text!r:.40}, wanted seconds such as 0.001") from None


def rounded(seconds: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten: a coarse fact about the machine."""
    power = 10.0 ** math.floor(math.log10(seconds) + 1e-9)
    step = next(step for step in (1, 2, 5, 10) if seconds <= step * power * (1 + 1e-9))
    return float(f"{step * power:.6g}")
