"""One stored answer computed again from the rows, by the rule of its kind.

A check is made without data and may refuse; `run` reads rows and tells only a `Conformity`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sulq.accounting.pricing import Price, laws_of, noise_grid
from sulq.database.keys import _unpacked
from sulq.derivation.estimates import Derivation, sources_of
from sulq.errors import Refused, SulqError
from sulq.ledger.entries import Entry
from sulq.noise.conformity import Conformity, at_least, score_from
from sulq.noise.distributions import Law, NoNoise, law_from_json
from sulq.noise.one_sided import Geometric
from sulq.query import canonical
from sulq.query.sum_query import SumQuery
from sulq.schema.keys import BoundKeys, bind_keys

if TYPE_CHECKING:
    from sulq.database.database import Database

NEAR = 1e-6
"""Of a standard error: so much may weights that were found in floats differ between machines."""


@dataclass(frozen=True, slots=True)
class Check:
    """How one answer is tested; `drawn` if there is noise in it whose law can be tested."""

    drawn: bool
    run: Callable[[Conformity], None]


def check_of(database: Database, entry: Entry) -> Check:
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


def _check_of(database: Database, entry: Entry) -> Check:
    values = entry.values or ()
    form = json.loads(entry.question)
    if database.ledger._table.at(entry.seq).release:
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
        derived = database._recall.named(bound, entry.noise)
        if derived is None:
            raise Refused(f"entry {entry.seq} was derived from answers that are gone")
        return Check(False, lambda found: _derived(found, database, values, derived))
    laws = Price(laws_of(entry.noise), (), tree=bound.tree).coordinates(bound.cells)
    read = database.engine.prepare(bound.sums)
    return _drawn(values, laws, lambda: bound.lifted(read()))


def _check_same(text: str, entry: Entry) -> None:
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


def _released(database: Database, entry: Entry, form: Any) -> Check:
    """Without noise, or with the little that the certificate asks for. S1.15"""
    bound = database._exactly._bind(SumQuery.from_json(form), asked_before=True)
    _check_same(bound.text, entry)
    values = entry.values or ()
    law = law_from_json(json.loads(entry.noise)["law"])
    return _drawn(values, [law] * len(values), database.engine.prepare(bound.sums))


def _derived(
    found: Conformity, database: Database, values: Sequence[int], derived: Derivation
) -> None:
    """Arithmetic on stored answers, done again."""
    again = derived.values(database._recall.public_sums(derived.public))
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


def _chosen(database: Database, entry: Entry, form: Any) -> Check:
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


def _keys(database: Database, entry: Entry, form: Any) -> Check:
    """The total has plain noise; that of a key which is shown is large enough to show it. M.1"""
    where = canonical.from_json(form["rows"])
    bound = bind_keys(
        form["keys"],
        where,
        form["most"],
        database.schema,
        database.promise.neighbours,
        noise_grid(database.calibration),
        asked_before=True,
    )
    _check_same(bound.text, entry)
    law_form, limit = json.loads(entry.noise)
    law, threshold = law_from_json(law_form), int(limit["threshold"])
    read = database.engine.prepare_keys(bound.program)
    total, shown = _unpacked(entry.values or (0,))

    def run(found: Conformity) -> None:
        noisy, exact, rows, occur = dict(shown), dict[str, int](), 0, 0
        for batch in read():
            for text, count in batch:
                rows, occur = rows + count, occur + 1
                if text in noisy:
                    exact[text] = count
        found.add([total - rows * bound.fine_unit], [law])
        _shown(found, bound, law, threshold, noisy, exact, occur)

    return Check(True, run)


def _shown(
    found: Conformity,
    bound: BoundKeys,
    law: Law,
    threshold: int,
    noisy: dict[str, int],
    exact: dict[str, int],
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
