"""Every answer computed again: does (reply - exact) follow the claimed law? One word leaves.

A test statistic is an exact function of the rows, so nothing but pass or fail is ever said, and
whatever is refused is refused before a row is read. Proof: docs/proofs/replay.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sulq.database.table import Table
from sulq.errors import Refused, SulqError
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.pricing import Price, laws_of, noise_grid, sources_of
from sulq.kernel.engines.engine import open_engine
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.header import Amended
from sulq.kernel.ledger.ledger import ChargeRow, Ledger
from sulq.kernel.ledger.state_dir import named, private_path, read_private, write_private
from sulq.kernel.noise.laws import (
    EXACT_COINS,
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    DividedLaplace,
    Geometric,
    Law,
    NoNoise,
    law_from_json,
)
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import lit
from sulq.kernel.query.sum_query import SumQuery, clip_of
from sulq.kernel.release.release import check_read, check_source
from sulq.kernel.reuse.estimate import LinearEstimate
from sulq.kernel.schema.keys import BoundKeys, Key, bind_keys, unpacked_keys
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.study import schema_from_json

FALSE_ALARM = 1e-9
TESTS = 11  # three on each of two pools, strays, three kinds of coincidence, single chances
PART = FALSE_ALARM / TESTS
SIZES = (0.125, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
PLACES = tuple(sign * far for far in (0.1, 0.2, 0.35, 0.6, 1.0, 2.0) for sign in (-1, 1))
TILTS = (1, 2, 3, 4, 6, 8, 10, 13, 18, 28)
FINE = 1 << 40  # variances from which a step is nothing
CARE = 1e-9  # scores are taken so much wider than computed

Ratios = NDArray[np.float64]
Score = tuple[float, float]
_normal = NormalDist()
_sizes, _places = np.array(SIZES), np.array(PLACES)


class DrawPool:
    """Draws in the order they came: how well other laws explain them, and their scores."""

    def __init__(self) -> None:
        self.scores: list[Score] = []
        self._ratios = np.zeros(len(SIZES) + len(PLACES))

    def add(self, drawn: int, law: Law, scored: Score) -> None:
        self._ratios += log_ratios(drawn, law)
        self.scores.append(scored)

    @property
    def explained(self) -> bool:
        """Whether one of the other laws, weighed equally, explains too much: Ville's bound."""
        most = float(self._ratios.max())
        if not math.isfinite(most):
            return most > 0
        mean = float(np.mean(np.exp(self._ratios - most)))
        return most + math.log(mean) > -math.log(PART)

    @property
    def misshapen(self) -> bool:
        """Dvoretzky-Kiefer-Wolfowitz with Massart's constant, one side at a time."""
        count = len(self.scores)
        if not count:
            return False
        low, high = np.sort(np.array(self.scores), axis=0).T
        steps = np.arange(1, count + 1) / count
        over = float(np.max(steps - _phi(high)))
        under = float(np.max(_phi(low) - steps + 1 / count))
        return 2 * count * max(0.0, over, under) ** 2 > math.log(count * (count + 1) / PART)


class Conformity:
    """Takes residuals in the order they were drawn; says at the end whether they can be so."""

    def __init__(self) -> None:
        self._all, self._first = DrawPool(), DrawPool()  # the second has one draw of each question
        self._broken = False
        self._chances = 0
        self._between, self._within, self._none = Coincidences(), Coincidences(), Coincidences()
        self._seen_one: set[int] = set()
        self._seen_two: set[tuple[int, int]] = set()

    def add(self, residuals: Sequence[int], laws: Sequence[Law]) -> None:
        """One question's residuals; none of the laws is without noise."""
        for place, (drawn, law) in enumerate(zip(residuals, laws, strict=True)):
            scored = score(drawn, law)
            self._all.add(drawn, law, scored)
            self._stray(scored)
            if place == 0:
                self._first.add(drawn, law, scored)
        tops = [law.log_pmf(0) for law in laws]
        self._none.saw(not any(residuals), math.exp(sum(tops)))
        self._compare(residuals, tops)
        seen: set[int] = set()
        for drawn, top in zip(residuals, tops, strict=True):
            if seen:
                self._within.saw(drawn in seen, len(seen) * math.exp(top))
            seen.add(drawn)

    def _compare(self, residuals: Sequence[int], tops: Sequence[float]) -> None:
        """The same draw for two questions; of wide ones the first two numbers tell."""
        if len(residuals) == 1:
            one = residuals[0]
            self._between.saw(one in self._seen_one, len(self._seen_one) * math.exp(tops[0]))
            self._seen_one.add(one)
            return
        two = (residuals[0], residuals[1])
        known = two in self._seen_two
        self._between.saw(known, len(self._seen_two) * math.exp(tops[0] + tops[1]))
        self._seen_two.add(two)

    def add_scores(self, scores: Sequence[Score]) -> None:
        """Scores that are standard normal, given all before them, if all is well."""
        for scored in scores:
            self._all.scores.append(scored)
            self._stray(scored)

    def _stray(self, scored: Score) -> None:
        """A score far out; the i-th may be out with chance PART / (i (i + 1))."""
        near, place = max(scored[0], -scored[1], 0.0), len(self._all.scores)
        self._broken |= math.erfc(near / math.sqrt(2)) * place * (place + 1) < PART

    def add_chance(self, chance: float) -> None:
        """Something happened that had at most this chance."""
        self._chances += 1
        self._broken |= chance * self._chances * (self._chances + 1) < PART

    def add_fault(self) -> None:
        """Something that cannot be."""
        self._broken = True

    @property
    def failed(self) -> bool:
        # every part is looked at, whatever another one says
        found = [self._broken]
        found += [met.too_many for met in (self._between, self._within, self._none)]
        for pool in (self._all, self._first):
            found += [pool.explained, pool.misshapen]
        return any(found)


class Coincidences:
    """Equal draws, counted against how likely they were: a supermartingale, and Ville's bound."""

    def __init__(self) -> None:
        self._met, self._expected = 0, 0.0

    def saw(self, equal: bool, chance: float) -> None:
        self._met += equal
        self._expected += min(1.0, chance)

    @property
    def too_many(self) -> bool:
        most = math.log(len(TILTS) / PART)
        return any(t * self._met - math.expm1(t) * self._expected > most for t in TILTS)


def log_ratios(drawn: int, law: Law) -> Ratios:
    """log P'(drawn) - log P(drawn) for laws P' of other sizes, then of other places."""
    match law:
        case DiscreteGaussian(sigma_squared=v) if v >= FINE:
            z = drawn / math.sqrt(v)
            sized = z * z / 2 * (1 - _sizes**-2) - np.log(_sizes)
            return np.concatenate([sized, _places * z - _places**2 / 2])
        case DiscreteLaplace(scale=b) if b * b >= FINE:
            far = drawn / float(b)
            sized = abs(far) * (1 - 1 / _sizes) - np.log(_sizes)
            return np.concatenate([sized, abs(far) - np.abs(far - _places * math.sqrt(2))])
    return _coarse_ratios(drawn, law)


@lru_cache(maxsize=1 << 14)
def _coarse_ratios(drawn: int, law: Law) -> Ratios:
    own = law.log_pmf(drawn)
    if own == -math.inf:
        return np.full(len(SIZES) + len(PLACES), math.inf)
    deviation = law.standard_deviation()
    sized = [resized(law, size).log_pmf(drawn) - own for size in SIZES]
    shifts = [round(place * deviation) for place in PLACES]
    placed = [law.log_pmf(drawn - shift) - own for shift in shifts]
    return np.array(sized + placed)


@lru_cache(maxsize=1 << 10)
def resized(law: Law, size: float) -> Law:
    """A law of the same form with so many times its spread, or one near it."""
    times = Fraction(size)
    match law:
        case DiscreteGaussian(sigma_squared=v):
            return DiscreteGaussian(v * times**2)
        case DiscreteLaplace(scale=b):
            return DiscreteLaplace(b * times)
        case DividedLaplace(scale=b, shape=shape):
            return DividedLaplace(b * times, shape)
        case DiscreteHuber(spread=spread, knee=knee):
            return DiscreteHuber(spread * times, knee * times)
        case CentredBinomial(coins=coins):
            return DiscreteGaussian(times**2 * coins / 4)
        case NoNoise():
            return law


@lru_cache(maxsize=1 << 14)
def score(drawn: int, law: Law) -> Score:
    """An interval that holds z for some u = Phi(z) between P(N < drawn) and P(N <= drawn)."""
    if isinstance(law, DiscreteGaussian) and law.sigma_squared >= FINE:
        spread = math.sqrt(law.sigma_squared)
        middle = drawn / spread
        return _wider(middle - 1 / spread, middle + 1 / spread, CARE)
    care = CARE
    if isinstance(law, CentredBinomial):
        care += 1 / law.coins  # beyond 2^12 coins the tail is a bound, z^2 / (3 coins) too large
    return _wider(_below(drawn - 1, law), _below(drawn, law), care)


def score_from(drawn: int, least: int, law: Law) -> Score:
    """As `score`, for a draw that is only seen if it is at least `least`."""
    whole = at_least(least, law)
    low, high = at_least(drawn, law) / whole, at_least(drawn + 1, law) / whole
    return _wider(-_quantile(low), -_quantile(high), 1e-6)


def at_least(value: int, law: Law) -> float:
    """P(N >= value)."""
    return noise_tail(value - 1, law) / 2 if value > 0 else 1 - noise_tail(-value, law) / 2


def noise_tail(far: int, law: Law) -> float:
    """P(|N| > far); many coins are added up once."""
    if isinstance(law, CentredBinomial) and law.coins <= EXACT_COINS and far >= 0:
        tails = _coin_tails(law.coins)
        return tails[far] if far < len(tails) else 0.0
    return law.tail(far)


@lru_cache(maxsize=16)
def _coin_tails(coins: int) -> list[float]:
    half, whole = coins // 2, 1 << coins
    outside = accumulate(math.comb(coins, half + k) for k in range(half, 0, -1))
    return [2 * beyond / whole for beyond in outside][::-1]


def _below(value: int, law: Law) -> float:
    """z with Phi(z) = P(N <= value), by the smaller of the two tails."""
    if value < 0:
        return _quantile(noise_tail(-value - 1, law) / 2)
    return -_quantile(noise_tail(value, law) / 2)


def _quantile(chance: float) -> float:
    if chance <= 0:
        return -math.inf
    return math.inf if chance >= 1 else _normal.inv_cdf(chance)


def _wider(low: float, high: float, care: float) -> Score:
    return low - care * (1 + abs(low)), high + care * (1 + abs(high))


def _phi(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([math.erfc(-z / math.sqrt(2)) / 2 for z in scores])


# One stored answer computed again from the rows, by the rule of its kind.
#
# A check is made without data and may refuse; `run` reads rows and tells only a `Conformity`.


NEAR = 1e-6
"""Of a standard error: so much may weights that were found in floats differ between machines."""


@dataclass(frozen=True, slots=True)
class Check:
    """How one answer is tested; `drawn` if there is noise in it whose law can be tested."""

    drawn: bool
    run: Callable[[Conformity], None]


def check_of(database: Table, entry: Charge) -> Check:
    """The test of one entry; reads no row. What this version cannot read is refused."""
    try:
        return _check_of(database, entry)
    except Refused:
        raise
    except (SulqError, LookupError, TypeError, ValueError) as problem:
        raise Refused(
            f"entry {entry.seq} cannot be asked again as it was ({type(problem).__name__}): the"
            " table's public facts have changed since; nothing was replayed"
        ) from None


def _check_of(database: Table, entry: Charge) -> Check:
    values = entry.values or ()
    form = json.loads(entry.question)
    record = database.ledger.record_at(entry.seq)
    if record is not None and record.release:
        return _released(database, entry, form)
    if "alert" in form:  # its draws are secret and stored nowhere
        return Check(False, lambda found: _same(found, values, ()))
    if "share" in form:  # masked: its noise is a part of one that several owners draw
        return Check(False, lambda found: None)
    if "keys" in form:
        return _keys(database, entry, form)
    if "top" in form:
        return _chosen(database, entry, form)
    bound = database.bind(SumQuery.from_json(form), asked_before=True)
    _check_same(bound.text, entry)
    if sources_of(entry.noise) is not None:
        derived = database.reuse.named(bound, entry.noise)
        if derived is None:
            raise Refused(f"entry {entry.seq} was derived from answers that are gone")
        return Check(False, lambda found: _derived(found, database, values, derived))
    laws = Price(laws_of(entry.noise), (), tree=bound.tree).coordinates(bound.cells)
    read = database.engine.prepare(bound.sums)
    return _drawn(values, laws, lambda: bound.lifted(read()))


def _check_same(text: str, entry: Charge) -> None:
    if text != entry.question:
        raise ValueError("another question")


def _drawn(values: Sequence[int], laws: Sequence[Law], exact: Callable[[], Sequence[int]]) -> Check:
    """Residuals against their laws; a sum without noise must be as it is."""
    noisy = [place for place, law in enumerate(laws) if not isinstance(law, NoNoise)]

    def run(found: Conformity) -> None:
        sums = exact()
        if not len(sums) == len(laws) == len(values):
            found.add_fault()
            return
        residuals = [value - total for value, total in zip(values, sums, strict=True)]
        if any(residuals[place] for place in set(range(len(laws))).difference(noisy)):
            found.add_fault()
        if noisy:
            found.add([residuals[place] for place in noisy], [laws[place] for place in noisy])

    return Check(bool(noisy), run)


def _released(database: Table, entry: Charge, form: Any) -> Check:
    """Without noise, or with the little that the certificate asks for. S1.15"""
    bound = database.exact.bind(SumQuery.from_json(form), asked_before=True)
    _check_same(bound.text, entry)
    values = entry.values or ()
    law = law_from_json(json.loads(entry.noise)["law"])
    return _drawn(values, [law] * len(values), database.engine.prepare(bound.sums))


def _derived(
    found: Conformity, database: Table, values: Sequence[int], derived: LinearEstimate
) -> None:
    """Arithmetic on stored answers, done again."""
    again = derived.values(database.reuse.public_sums(derived.public))
    if len(again) != len(values):
        found.add_fault()
        return
    for place, (old, new) in enumerate(zip(values, again, strict=True)):
        near = 0.0 if derived.exact else 1 + NEAR * math.sqrt(derived.variance(place))
        if abs(old - new) > near:
            found.add_fault()


def _same(found: Conformity, values: Sequence[int], wanted: Sequence[int]) -> None:
    if tuple(values) != tuple(wanted):
        found.add_fault()


def _chosen(database: Table, entry: Charge, form: Any) -> Check:
    """A cell chosen at a distance from the largest had at least that much noise. M.3"""
    bound = database.bind(SumQuery.from_json(form["of"]), fine=True, asked_before=True)
    scale = json.loads(entry.noise)[0]["scale"]
    law, values = Geometric(Fraction(scale)), entry.values or ()
    read = database.engine.prepare(bound.sums)

    def run(found: Conformity) -> None:
        sums = bound.lifted(read())
        left = set(range(len(sums)))
        for cell in values:
            if cell not in left:
                found.add_fault()
                return
            behind = max(sums[other] for other in left) - sums[cell]
            found.add_chance(min(1.0, len(left) * law.at_least(behind)))
            left.remove(cell)

    return Check(False, run)


def _keys(database: Table, entry: Charge, form: Any) -> Check:
    """The total has plain noise; a key which is shown enough of it to be shown. M.1, P.4"""
    where = canonical.from_json(form["rows"])
    bound = bind_keys(
        form["keys"],
        where,
        form["most"],
        database.schema,
        database.promise.neighbours,
        noise_grid(database.calibration),
        _figures(form),
        asked_before=True,
    )
    _check_same(bound.text, entry)
    law_form, limit, *more = json.loads(entry.noise)
    law, threshold = law_from_json(law_form), int(limit["threshold"])
    of_total, *of_sums = [law_from_json(each) for each in more] or [law]
    read = database.engine.prepare_keys(bound.program)
    total, shown = unpacked_keys(entry.values or (0,), bound)

    def run(found: Conformity) -> None:
        noisy = {one.key: one.noisy for one in shown}
        exact, sums, rows, occur = dict[Key, int](), dict[Key, Sequence[int]](), 0, 0
        for batch in read():
            for key, count, own in batch:
                rows, occur = rows + count, occur + 1
                if key in noisy:
                    exact[key], sums[key] = count, own
        found.add([total - rows * bound.fine_unit], [of_total])
        _shown(found, bound, law, threshold, noisy, exact, occur)
        for one in shown if sums.keys() == noisy.keys() else ():
            _summed(found, bound, one.sums, sums[one.key], of_sums)

    return Check(True, run)


def _summed(
    found: Conformity,
    bound: BoundKeys,
    noisy: Sequence[int],
    exact: Sequence[int],
    laws: Sequence[Law],
) -> None:
    """The sums of a key that is shown; one that no row can move has no noise."""
    told = zip(noisy, exact, bound.terms, laws, strict=True)
    residuals = [(value - own * term.lift, law) for value, own, term, law in told]
    if any(value for value, law in residuals if isinstance(law, NoNoise)):
        found.add_fault()
    drawn = [(value, law) for value, law in residuals if not isinstance(law, NoNoise)]
    if drawn:
        values, own_laws = zip(*drawn, strict=True)
        found.add(values, own_laws)


def _figures(form: Mapping[str, Any]) -> list[SumQuery]:
    """Figures that ask for the stored sums, and for persons where these were counted."""
    counted = [SumQuery((lit(1),), clip=clip_of((0, 1)))] if "of" in form else []
    return counted + [SumQuery((canonical.from_json(term),)) for term in form.get("sums", ())]


def _shown(
    found: Conformity,
    bound: BoundKeys,
    law: Law,
    threshold: int,
    noisy: Mapping[Key, int],
    exact: Mapping[Key, int],
    occur: int,
) -> None:
    if exact.keys() != noisy.keys() or any(value < threshold for value in noisy.values()):
        found.add_fault()
        return
    for text, value in noisy.items():
        count = exact[text] * bound.fine_unit
        if len(noisy) < bound.most:  # all that reached the threshold: a law cut off below
            found.add_scores([score_from(value - count, threshold - count, law)])
        else:  # the largest of those: far out is still far out
            found.add_chance(min(1.0, 2 * occur * at_least(abs(value - count), law)))


# A table as it was before an amendment: the same rows, under the facts that held then.


class Until:
    """A ledger in which what was answered before an event still stands."""

    def __init__(self, ledger: Ledger, seq: int) -> None:
        self._ledger, self._seq = ledger, seq

    def charges_between(self, after: int, until: int) -> Iterator[ChargeRow]:
        for row in self._ledger.charges_between(after, until):
            yield row._replace(record=row.record._replace(found=row.seq < self._seq))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


def database_before(database: Table, before: Amended, engines: ExitStack) -> Table:
    """For binding and reading alone; its engine is closed with `engines`."""
    if database.source is None:
        raise Refused(
            "this table was amended, and its rows came from a frame: open it from its file, so that"
            " they can be read as they were declared before"
        )
    schema = schema_from_json(json.loads(before.facts["schema"]))
    promise = Promise.from_json(json.loads(before.facts["promise"]))
    engine = open_engine(database.source, schema)
    engines.callback(engine.close)
    if engine.fingerprint() != database.engine.fingerprint():
        raise Refused("the source has other rows than were published; restore it, then replay")
    found = database.with_(
        schema=schema, promise=promise, engine=engine, calibration=calibrate(promise)
    )
    found.reuse.ledger = cast("Ledger", Until(database.ledger, before.seq))
    return found


# Do residuals follow the laws that are claimed for them? One bit, wrong with chance 1e-9 at most.
#
# Likelihood ratios against laws of another size or place, the empirical distribution, strays, and
# equal draws. The 1e-9 holds for the whole life of a table, however often and whenever it is
# tested. Nothing but `failed` may leave. Proof: docs/proofs/replay.md.


FEWEST = 200
"""Drawn questions; with fewer the word would say more of each of them."""
EVERY = 100
"""New drawn questions before the rows are looked at again; until then the last word stands."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Replay:
    """The word, and how many drawn questions it speaks of. For the owner's eyes."""

    passed: bool
    questions: int

    @property
    def word(self) -> str:
        return "pass" if self.passed else "fail"


SPREAD = 2.33
"""Standard deviations to the bad side: what is said to be seen is seen 99 times of 100."""


def smallest_shortfall(questions: int, noise: str) -> float | None:
    """The least part by which the noise of all answers may be too small, and a replay says *fail*.

    A function of the number of questions alone, so it may be told. One draw of each question is
    counted; under an alternative of `size` times the spread, noise of `left` times the spread adds
    on average left^2 (1 - size^-2) / 2 - ln size nats (Gaussian; coarse laws are near it), or
    left (1 - 1/size) - ln size (Laplace). None: not even noise of a tenth would be seen.
    """
    needed = -math.log(PART) + math.log(len(SIZES) + len(PLACES))
    for hundredths in range(1, 91):
        left = 1 - hundredths / 100
        for size in SIZES:
            slope = 1 - 1 / size if noise == "laplace" else (1 - size**-2) / 2
            spread = left if noise == "laplace" else math.sqrt(2) * left**2
            mean = left * slope if noise == "laplace" else left**2 * slope
            gained = questions * (mean - math.log(size))
            if gained - SPREAD * abs(slope) * spread * math.sqrt(questions) >= needed:
                return hundredths / 100
    return None


def replay(database: Table, progress: Progress | None = None) -> Replay:
    """Test every stored answer; `Refused`, before a row is read, if that cannot be done fairly.

    `progress` is told how many questions are done, and of how many.
    """
    with ExitStack() as engines:
        return _replayed(database, list(_checks(database, engines)), progress)


def _replayed(database: Table, checks: list[Check], progress: Progress | None) -> Replay:
    drawn = sum(check.drawn for check in checks)
    if drawn < FEWEST:
        raise Refused(
            f"a replay wants {FEWEST} questions answered with noise, and this table has {drawn};"
            " with fewer, the word would tell too much of each: come back later"
        )
    known = last_replay(database)
    if known is not None and drawn < known.questions + EVERY:
        return known
    found = Replay(_passed(database, checks, progress), drawn)
    if (place := _place(database)) is not None:
        form = {"passed": found.passed, "questions": found.questions}
        write_private(place, json.dumps(form).encode(), replace=True)
    return found


def last_replay(database: Table) -> Replay | None:
    """The word that was found last; None if there was no replay yet."""
    place = _place(database)
    return None if place is None else _read(place)


def noted_replay(ledger: str, table: str) -> Replay | None:
    """As `last_replay`, where the table is not open: by its ledger's id."""
    return _read(_noted(ledger, table))


def _read(place: Path) -> Replay | None:
    content = read_private(place)
    if content is None:
        return None
    try:
        form: Any = json.loads(content)
        return Replay(bool(form["passed"]), int(form["questions"]))
    except (LookupError, TypeError, ValueError):
        raise Refused(f"the state file {place} is damaged; remove it, then replay anew") from None


def _place(database: Table) -> Path | None:
    """In the state directory, never beside the ledger; a ledger in memory has none."""
    ledger = database.ledger
    return _noted(ledger.ledger_id, ledger.header.name) if ledger.durable else None


def _noted(ledger: str, table: str) -> Path:
    return private_path("ledgers", ledger, f"replay-{named(table)}")


def _checks(database: Table, engines: ExitStack) -> Iterator[Check]:
    """One for each answer that is stored, in the order of the charges; reads no row."""
    ledger = database.ledger
    version, amended = ledger.header.version, ledger.amended
    past: dict[int, Table] = {}
    outgrown = {before.version for before in ledger.grown}
    for entry in _origins(database):
        assert entry.receipt is not None  # noqa: S101
        if entry.receipt.body["version"] in outgrown:
            continue  # the rows it was given on are not at hand
        if entry.receipt.body["version"] != version:
            raise Refused(
                f"the answer of entry {entry.seq} was given on another version of the data than"
                " the one at hand; open the table as it was then, and replay that"
            )
        record = ledger.record_at(entry.seq)
        assert record is not None  # noqa: S101
        if record.lost:
            raise Refused(
                "answers of this ledger were given up at a recovery, and what cannot be vouched"
                " for cannot be tested; a replay needs a ledger that was never forged"
            )
        asked = database
        if record.old:  # the question means something else today
            before = next(change for change in amended if change.seq > entry.seq)
            if before.seq not in past:
                past[before.seq] = database_before(database, before, engines)
            asked = past[before.seq]
        yield check_of(asked, entry)


def _origins(database: Table) -> Iterator[Charge]:
    """Every answer once: as it was first charged."""
    for entry in database.ledger.entries():
        if entry.receipt is not None and entry.receipt.body["origin"] == entry.seq:
            yield entry


def _passed(database: Table, checks: list[Check], progress: Progress | None) -> bool:
    found = Conformity()
    check_source(database.engine)
    for done, check in enumerate(checks, start=1):  # to the end, whatever was found
        check.run(found)
        if progress is not None:
            progress(done, len(checks))
    check_read(database.engine)
    return not found.failed
