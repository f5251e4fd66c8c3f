"""Noisy choices through the database: names in order, and the price of each choice."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pandas as pd
import pytest
from tests.people import frame, publish

import sulq.kernel.release.release
from sulq import (
    BudgetSpent,
    Category,
    Database,
    InvalidQuery,
    Number,
    Promise,
    Schema,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.answers.statistics import count_persons
from sulq.database import top as choice
from sulq.kernel.noise.laws import Geometric
from sulq.kernel.release.release import chosen

LOUD = Promise(epsilon=400, queries=100)
TOWNS = {"Bergen": 100, "Oslo": 700, "Paris": 400, "Rome": 50}


def towns(promise: Promise = LOUD, **schema: Any) -> Database:
    data = pd.DataFrame(
        {
            "town": [town for town, rows in TOWNS.items() for _ in range(rows)],
            "age": [20 if town == "Oslo" else 90 for town, n in TOWNS.items() for _ in range(n)],
            "who": range(sum(TOWNS.values())),
        }
    )
    columns = (Category("town", list(TOWNS)), Number("age", 0, 100, step=1))
    return Database.open(data, Schema(*columns, **schema), promise, ":memory:")


def test_the_largest_come_first() -> None:
    with towns() as db:
        found = db.top("town", k=4, credits=20)
        assert found.keys == ("Oslo", "Paris", "Bergen", "Rome")
        assert found.slack < 50
        assert db.top("town", by=total("age"), credits=20).keys == ("Paris",)
        assert db.top("town", by=count(where=col("age") > 50), k=2, credits=20).keys == (
            "Paris",
            "Bergen",
        )


def test_bins_are_ranked_too() -> None:
    with towns() as db:
        assert db.top("age", edges=[0, 50, 80, 101], credits=20).keys == ((0, 50),)


def test_price_repeat_and_receipt() -> None:
    with towns() as db:
        found = db.top("town", k=3)
        assert (found.credits, db.remaining) == (3, 97)
        again = db.top("town", k=3)
        assert (again.credits, again.keys, db.remaining) == (0, found.keys, 97)
        assert again.receipt.seq == found.receipt.seq
        assert db.top("town", k=2).credits == 2
        db.grant("Ann", 5)
        ann = db.as_analyst("Ann")
        assert ann.top("town", k=3).credits == 3  # stored, but new to Ann
        assert ann.remaining == 2
        with pytest.raises(BudgetSpent):
            ann.top("town", k=4)


@pytest.mark.parametrize(
    ("neighbours", "factor"), [("replace", 2), ("add-remove", 1)], ids=["replace", "add-remove"]
)
def test_noise_is_twice_as_wide_where_a_row_may_move(neighbours: str, factor: int) -> None:
    """M.3: 2 D/eps, D/eps where all scores move the same way."""
    with towns(Promise(1, queries=100, neighbours=neighbours)) as db:
        laws = _laws(db, "town", k=2, credits=10)
        assert laws == Geometric(factor * 2**30 / Fraction(5, 100))


def test_public_cells_do_not_move() -> None:
    """The city is public: one row changes the score of its own city alone."""
    with publish(promise=Promise(1, queries=100)) as db:
        law = _laws(db, "city", by=count(where=col("smoker")), credits=10)
        assert law == Geometric(2**30 / Fraction(1, 10))
        spent = {a.name: a.spent.credits_fraction for a in db.ledger.statement().accounts}
        assert spent["city=Oslo"] == spent["city=Paris"] == 10
        assert spent["city=*"] == 0


def test_signed_sums_go_both_ways_when_persons_have_several_rows() -> None:
    for term, factor in ((col("age"), 1), (col("age") - 50, 2)):
        promise = Promise(1, queries=100, neighbours="add-remove")
        with towns(promise, unit="who", max_rows=2) as db:
            law = _laws(db, "town", by=total(term), credits=10)
            bound = db.bind(histogram("town"))
            assert bound.reach[0][0].coordinates == 2
            unit = db.bind(total(term), fine=True).terms[0].fine_unit
            assert law == Geometric(factor * 2 * unit / Fraction(1, 10))


def _laws(db: Database, *asked: Any, **terms: Any) -> Geometric:
    """The law a choice was drawn from."""
    seen: list[Geometric] = []

    def draw(laws: list[Geometric]) -> list[int]:
        seen.extend(laws)
        return [0] * len(laws)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sulq.kernel.release.release, "draw_noise", draw)
        db.top(*asked, **terms)
    assert len(set(seen)) == 1
    return seen[0]


def test_a_choice_is_the_first_largest_of_noisy_sums() -> None:
    """All small sums with all small noises, against the rule that the proof is about."""
    for sums in product(range(3), repeat=3):
        for noise in product(range(3), repeat=3):
            first, second = chosen(sums, [*noise, *noise[:2]], 2)
            noisy = [a + b for a, b in zip(sums, noise, strict=True)]
            assert all(
                noisy[first] > value if place < first else noisy[first] >= value
                for place, value in enumerate(noisy)
            )
            left = [place for place in range(3) if place != first]
            fresh = [sums[place] + noise[at] for at, place in enumerate(left)]
            assert second == left[fresh.index(max(fresh))]


def test_gaussian_promises_pay_each_choice_by_itself() -> None:
    """k choices at credits/k each: mu^2 adds. M.4, G.1"""
    with towns(Promise(1, "1e-6", 100)) as db:
        law = _laws(db, "town", k=4, credits=100)
        assert float(2 * 2**30 / law.scale) == pytest.approx(0.189 / 2, abs=5e-4)
        assert db.remaining == 0


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 5}, "from 1 to 4 cells"),
        ({"k": True}, "k must be"),
        ({"by": mean("age")}, "one count"),
        ({"by": histogram("age", edges=[0, 50, 100])}, "one count"),
        ({"by": "age"}, "want a question"),
        ({"by": count_persons()}, "sum per person"),
        ({"credits": -1}, "credits"),
        ({"edges": [0, 1]}, "leave edges out"),
    ],
    ids=str,
)
def test_refusals_are_free(terms: dict[str, Any], said: str) -> None:
    with towns() as db:
        with pytest.raises(InvalidQuery, match=said):
            db.top("town", **terms)
        assert db.remaining == 100


def test_public_sums_need_no_choice() -> None:
    with publish() as db, pytest.raises(InvalidQuery, match="exact and free"):
        db.top("city")


def test_open_text_has_no_cells() -> None:
    data = frame().assign(note="x")
    with (
        publish(data, schema=Schema(Category("note")), promise=LOUD) as db,
        pytest.raises(InvalidQuery, match="open text"),
    ):
        db.top("note")


def test_what_is_shown() -> None:
    with towns() as db:
        assert repr(db.top("town", k=2, credits=4)) == "<Top ['Oslo', 'Paris'] of town, 4 credits>"


def test_a_choice_that_was_paid_for_is_told_again_whatever_may_be_drawn_today(monkeypatch):
    with towns() as db:
        first = db.top("town", k=1)
        monkeypatch.setattr(choice, "MOST_DRAWS", 0)
        assert db.top("town", k=1).keys == first.keys
        with pytest.raises(InvalidQuery, match="drawn at once"):
            db.top("town", k=2)
