"""Menus: the whole delta of every path is divided, not only its tail. S1.14"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from tests.exact.small_tables import apart

from sulq import Category, Flag, InvalidQuery, Schema, UnsafeExactly, col, count
from sulq.exact.certificate import certify
from sulq.exact.domain import Assumptions, Domain
from sulq.exact.release import certify_menu
from sulq.kernel.schema.bind import NoiseGrid, bind

SCHEMA = Schema(Flag("ill"), Flag("smoker"), Category("city", ["Oslo", "Paris"], public=True))
LEAST = {"ill": Fraction(1, 20), "smoker": Fraction(1, 20)}
ILL, SMOKER, BOTH = col("ill"), col("smoker"), col("ill") & col("smoker")


def path(*conditions):
    programs = [bind(count(where=where), SCHEMA, grid=NoiseGrid(0)).sums for where in conditions]
    return Domain.of(programs, SCHEMA, LEAST)


def sizes(domain, rows):
    return [rows // len(list(domain.classes()))] * len(list(domain.classes()))


def test_every_path_is_certified_with_its_share():
    paths = [path(ILL, SMOKER), path(ILL, BOTH), path(ILL, ILL & (col("city") == "Oslo"))]
    rows = [sizes(domain, 100_000) for domain in paths]
    menu = certify_menu(paths, rows, Assumptions(1, "3e-6", 0, LEAST))
    assert len(menu.paths) == 3
    assert all(one.delta == Fraction("1e-6") and one.reached <= 1e-6 for one in menu.paths)
    assert menu.reached <= menu.delta
    assert menu.factor == max(one.factor for one in menu.paths) >= 2
    assert menu.guarantee == "noiseless, under assumptions"


@pytest.mark.slow
def test_a_path_that_only_passes_alone_spoils_the_menu():
    domain = path(ILL)
    rows = next(
        n for n in range(500, 4_000) if _passes(domain, [n], Assumptions(1, "1e-6", 0, LEAST))
    )
    with pytest.raises(UnsafeExactly, match="path 1 of 2 of the menu"):
        certify_menu([domain, path(SMOKER)], [[rows]] * 2, Assumptions(1, "1e-6", 0, LEAST))


def _passes(domain, rows, assumptions):
    try:
        certify(domain, rows, assumptions)
    except UnsafeExactly:
        return False
    return True


def test_a_menu_needs_sizes_for_every_path():
    with pytest.raises(InvalidQuery, match="menu needs paths"):
        certify_menu([path(ILL)], [], Assumptions(1, "1e-6", 0, LEAST))


# --- S1.14's example: five rows of four cells, enumerated ----------------------------------------

CHANCES = (0.29, 0.30, 0.26, 0.15)
FIRST, A, B = (0, 1, 0, 1), (1, 1, 1, 0), (1, 0, 0, 0)


def transcript(target, asked):
    """The law of everything said when the target is in this cell."""
    law: dict[tuple[int, ...], float] = {}
    for cells in product(range(4), repeat=5):
        chance = 1.0
        for cell in cells:
            chance *= CHANCES[cell]
        rows = (*cells, target)
        first = sum(FIRST[cell] for cell in rows)
        said = (first, *(sum(g[cell] for cell in rows) for g in asked(first)))
        law[said] = law.get(said, 0.0) + chance
    return law


@pytest.mark.parametrize(
    ("asked", "golden"),
    [
        (lambda first: [A], 0.1685224979),
        (lambda first: [B], 0.1417081019),
        (lambda first: [B] if first == 1 else [A], 0.1831778419),
        (lambda first: [A, B], 0.2160583114),
    ],
)
def test_picking_a_path_by_its_first_answer_costs_more_than_any_path(asked, golden):
    assert apart(transcript(2, asked), transcript(1, asked), 1.0) == pytest.approx(golden, abs=1e-9)


def test_the_deltas_of_the_paths_add_up():
    """What `certify_menu` rests on, for every way to pick a path by the first answer."""
    bound = sum(
        apart(transcript(2, lambda _, g=g: [g]), transcript(1, lambda _, g=g: [g]), 1.0)
        for g in (A, B)
    )
    for picks in product((A, B), repeat=7):
        said = [transcript(t, lambda first, picks=picks: [picks[first]]) for t in (2, 1)]
        assert apart(*said, 1.0) <= bound + 1e-12
