"""Every question that binds can be run on every table, and says the same everywhere.

10,000 random expressions on awkward values: DuckDB equals the reference, no value makes a
question fail, one row never moves a sum by more than the question is charged for, and neither
price nor kind of reply knows which of two neighbouring tables it was asked of.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from tests.kernel.engines import reference, tables
from tests.kernel.query.random_questions import Questioner

from sulq.errors import InvalidQuery
from sulq.kernel.engines.engine import open_engine
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import SumQuery, group
from sulq.kernel.schema.bind import BoundQuery, bind

TERMS = 8
QUESTIONS = 1_250  # 8 terms and a condition each: 10,000 expressions and as many conditions


def random_question(asker: Questioner) -> SumQuery:
    random = asker.random
    groups = []
    if random.random() < 0.3:
        for name in random.sample(["city", "code", "smoker", "bit"], random.randint(1, 2)):
            groups.append(group(col(name), other=random.random() < 0.5))
    terms = tuple(asker.number(random.randint(0, 3)) for _ in range(TERMS))
    return SumQuery(terms, asker.condition(2), tuple(groups))


def within_charge(bound: BoundQuery, one: list[int], two: list[int], rows: int) -> bool:
    """The change between neighbours, in units, against the claimed sensitivity."""
    units = [term.unit for term in bound.terms]
    change = [Fraction(a - b) for a, b in zip(one, two, strict=True)]
    scaled = [c / units[i % len(units)] if c else c for i, c in enumerate(change)]
    worst = max((s for s, _ in bound.reach), key=lambda s: s.l2_squared)
    return (
        sum(map(abs, scaled)) <= max(s.l1 for s, _ in bound.reach)
        and sum(x * x for x in scaled) <= worst.l2_squared
    )


@pytest.mark.parametrize(
    ("part", "number"),
    [
        (0, QUESTIONS // 32),
        *(pytest.param(part, QUESTIONS // 4, marks=pytest.mark.slow) for part in range(4)),
    ],
)
def test_ten_thousand_random_expressions(part: int, number: int) -> None:
    random = Random(100 + part)
    asker = Questioner(tables.SCHEMA, random, divide=True)
    content = tables.rows(part, 25)
    changed = [*tables.rows(part + 50, 1), *content[1:]]
    fewer = content[1:]
    here, there, less = (
        open_engine(tables.table(rows), tables.SCHEMA) for rows in (content, changed, fewer)
    )
    done = refused = 0
    while done < number:
        question = random_question(asker)
        try:
            replace = bind(question, tables.SCHEMA, "replace")
            add_remove = bind(question, tables.SCHEMA, "add-remove")
        except InvalidQuery as error:
            refused += 1
            assert "can be 0" in str(error)
            continue
        done += 1
        sums = here.exact_sums(replace.sums)
        assert sums == reference.exact_sums(replace.sums, content)
        assert within_charge(replace, sums, there.exact_sums(replace.sums), len(content))
        assert within_charge(add_remove, sums, less.exact_sums(replace.sums), len(content))
        assert replace.sums == add_remove.sums
    assert refused < number
    for engine in (here, there, less):
        engine.close()
