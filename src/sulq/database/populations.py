"""How a table pays for its population: what its losses are in the population's currency."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction

from sulq.accounting.calibration import Calibration, calibrate
from sulq.accounting.losses import Loss
from sulq.database.amendments import scale
from sulq.database.facts import facts_text
from sulq.errors import InvalidQuery
from sulq.ledger.population import Member
from sulq.schema.population import Population

FACT = "population"


def member_of(
    population: Population | None, calibration: Calibration, *, alone: bool
) -> tuple[Member | None, dict[str, str]]:
    """What the ledger is told of a table's population; `alone`: a table that can have none."""
    if population is None:
        return None, {}
    if not isinstance(population, Population):
        raise InvalidQuery("population wants a Population(name, promise)")
    if alone:
        raise InvalidQuery(
            "exact release and individual accounting do not add up over tables: leave the"
            " population out, or them"
        )
    population.check_table(calibration.promise)
    terms = calibrate(population.promise)
    credits, delta = scale(calibration, terms)  # as an amendment from one promise to the other
    member = Member(
        population.name,
        facts_text(population.promise.to_json()),
        Loss.cap(terms.credits, terms.slack_cap),
        credits,
        max(Fraction(1), delta),
    )
    return member, {FACT: facts_text(population.to_json())}


def population_of(facts: Mapping[str, str]) -> Population | None:
    """The population that a ledger's facts name."""
    return Population.from_json(json.loads(facts[FACT])) if FACT in facts else None
