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
from sulq.schema.columns import Schema
from sulq.schema.population import Population

FACT = "population"


def member_of(
    population: Population | None,
    calibration: Calibration,
    schema: Schema,
    *,
    individual: bool,
    exactly: bool,
) -> tuple[Member | None, dict[str, str]]:
    """What the ledger is told of a table's population; or why it can have none."""
    if population is None:
        return None, {}
    if not isinstance(population, Population):
        raise InvalidQuery("population wants a Population(name, promise)")
    if exactly:
        raise InvalidQuery(
            "exact release does not add up over tables: leave the population out, or it"
        )
    if individual and not population.persons:
        raise InvalidQuery(
            "balances of people do not add up with one account for everybody: declare the"
            " population with persons = true, leave it out, or individual accounting"
        )
    population.check_table(calibration.promise)
    if population.persons:
        promise = calibration.promise
        population.check_persons(promise, schema.unit, schema.max_rows, individual)
    terms = calibrate(population.promise)
    credits, delta = scale(calibration, terms)  # as an amendment from one promise to the other
    member = Member(
        population.name,
        facts_text(population.promise.to_json()),
        Loss.cap(terms.credits, terms.slack_cap),
        credits,
        max(Fraction(1), delta),
        population.persons,
    )
    return member, {FACT: facts_text(population.to_json())}


def population_of(facts: Mapping[str, str]) -> Population | None:
    """The population that a ledger's facts name."""
    return Population.from_json(json.loads(facts[FACT])) if FACT in facts else None
