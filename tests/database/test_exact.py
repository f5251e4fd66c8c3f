"""Exact release through a database: declared, certified, labelled, paid for by later answers."""

from __future__ import annotations

import shutil
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sulq import (
    Category,
    Database,
    Flag,
    Number,
    Promise,
    Schema,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.errors import BudgetSpent, InvalidQuery, Refused, UnsafeExactly
from sulq.exact import Assumptions
from sulq.kernel.ledger.recovery import recover

N = 100_000
SCHEMA = Schema(
    Flag("ill"),
    Flag("smoker"),
    Number("visits", 0, 5, step=1),
    Number("pay", 0, 100_000),
    Category("city", ["Oslo", "Paris"], public=True),
    Category("name"),
)
LEAST = {"ill": 0.15, "smoker": 0.2, "visits": 0.1}
GIVEN = Assumptions(1, 1e-6, known_rows=100, least=LEAST)
PROMISE = Promise(1, 1e-6, queries=100)


def people(rows: int = N, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "ill": rng.random(rows) < 0.2,
            "smoker": rng.random(rows) < 0.3,
            "visits": rng.integers(0, 6, rows),
            "pay": rng.uniform(0, 100_000, rows),
            "city": np.where(rng.random(rows) < 0.5, "Oslo", "Paris"),
            "name": [f"person {i}" for i in range(rows)],
        }
    )


def published(frame=None, *, promise=PROMISE, ledger=":memory:", given=GIVEN, **more):
    frame = people() if frame is None else frame
    return Database.open(frame, SCHEMA, promise, ledger, exactly=given, **more, publish=True)


ILL = count(where=col("ill"))
ILL_SMOKERS = count(where=col("ill") & col("smoker"))


def test_a_certified_batch_is_exact_and_labelled():
    frame = people()
    db = published(frame)
    ill, visits = db.ask_exactly([ILL, total("visits")])
    assert ill.value == frame.ill.sum()
    assert visits.value == frame.visits.sum()
    assert ill.interval() == (ill.value, ill.value)
    assert ill.guarantee == "noiseless, under assumptions"
    assert "noiseless, under assumptions" in ill.receipt.body["noise"]
    assert "provided rows are independent" in ill.explain()
    assert "differential" not in ill.explain()
    assert ill.credits == 0


def test_off_by_default():
    db = published(given=None)
    with pytest.raises(UnsafeExactly, match="exactly="):
        db.ask_exactly([ILL])


def test_repeats_and_consequences_are_free_and_choices_after_seeing_are_refused():
    frame = people()
    db = published(frame)
    db.ask_exactly([ILL, ILL_SMOKERS])
    again = db.ask_exactly([ILL])[0]
    assert again.value == frame.ill.sum()
    others = ~col("smoker") | col("smoker").is_null()
    not_smoking = db.ask_exactly([count(where=col("ill") & others)])
    assert not_smoking[0].value == (frame.ill & ~frame.smoker).sum()
    assert not_smoking[0].guarantee == "noiseless, under assumptions"
    with pytest.raises(UnsafeExactly, match="chosen after seeing"):
        db.ask_exactly([total("visits")])
    assert db.statement().statement.released == 2


def test_every_later_noisy_answer_pays_by_the_factor():
    db = published()
    assert db.remaining == 100
    db.ask_exactly([ILL])  # r = 2
    assert db.remaining == 25
    noisy = db.ask(ILL)
    assert noisy.guarantee == "calibrated noise, under assumptions"
    assert noisy.promise is None
    pure = published(promise=Promise(1, queries=100))
    pure.ask_exactly([ILL])
    assert pure.remaining == 50


def test_a_batch_that_no_longer_fits_is_refused_and_nothing_changes():
    db = published()
    db.declare_exactly([ILL])
    for visits in range(1, 6):
        db.ask(count(where=col("visits") == visits), credits=6)
    with pytest.raises(BudgetSpent, match="multiplies"):
        db.ask_exactly([ILL])
    assert db.remaining == 70
    assert "worst-case" not in str(db.statement())


def test_nothing_is_declared_after_a_noisy_answer():
    db = published()
    db.ask(ILL)
    with pytest.raises(Refused, match="chosen after seeing"):
        db.ask_exactly([ILL])


def test_a_menu_allows_one_batch(tmp_path):
    frame = people()
    ledger = tmp_path / "people.ledger"
    db = published(frame, ledger=ledger)
    db.declare_exactly([ILL, total("visits")], [ILL, ILL_SMOKERS])
    db.ask(count(where=col("visits") > 2))
    assert db.ask_exactly([ILL_SMOKERS])[0].value == (frame.ill & frame.smoker).sum()
    with pytest.raises(UnsafeExactly):
        db.ask_exactly([total("visits")])
    db.close()
    db = published(frame, ledger=ledger)
    assert db.ask_exactly([ILL])[0].value == frame.ill.sum()
    with pytest.raises(UnsafeExactly):
        db.ask_exactly([total("visits")])
    with pytest.raises(Refused, match="already"):
        db.declare_exactly([total("visits")])
    db.close()
    with pytest.raises(Refused, match="published with other assumptions"):
        published(frame, ledger=ledger, given=Assumptions(1, 1e-6, 0, LEAST))


def test_the_statement_drops_the_worst_case_promise():
    db = published()
    assert "promise: " in str(db.statement())
    db.ask_exactly([ILL])
    said = str(db.statement())
    assert "no worst-case promise is left" in said
    assert "e^2 and 2e-06" in said
    assert "ill 0.15" in said
    assert "100 other rows" in said


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "batch",
    [
        [count(where=col("name") == "person 7")],  # nobody else can be that
        [ILL, count(where=col("ill") & (col("name") != "person 7"))],  # all, and all but one
        [
            count(where=(col("visits") >= 3)),
            count(where=(col("visits") >= 3) & (col("name") != "x")),
        ],
        [total("pay")],  # spells out low digits
        [count(where=col("pay") > 50)],
        [count(where=col("name").like("p%"))],
    ],
)
def test_what_singles_out_or_spells_out_is_refused_alike_on_neighbours(batch):
    """The refusal is the same whatever the rows are: it reads none of them."""
    said = []
    for frame in (people(seed=1), people(seed=2)):
        with pytest.raises(UnsafeExactly) as refusal:
            published(frame).ask_exactly(batch)
        said.append(str(refusal.value))
    assert said[0] == said[1]


def test_too_few_rows_are_topped_up_with_less_than_plain_noise():
    frame = people(600)
    given = Assumptions(1, 1e-6, known_rows=0, least={"ill": 0.05})
    db = published(frame, given=given)
    found = db.ask_exactly([ILL])[0]
    assert found.guarantee == "a little noise, under assumptions"
    assert 0 < found.standard_error < 0.85 * 4.2247  # plain noise: 1 / mu(1, 1e-6)
    assert db.ask_exactly([ILL])[0].value == found.value
    assert abs(found.value - frame.ill.sum()) < 12 * found.standard_error
    with pytest.raises(UnsafeExactly, match="declared questions themselves"):
        db.ask_exactly([count(where=~col("ill") | col("ill").is_null())])


def test_public_columns_make_classes():
    frame = people()
    db = published(frame)
    oslo, paris = db.ask_exactly(
        [count(where=col("ill") & (col("city") == city)) for city in ("Oslo", "Paris")]
    )
    assert oslo.value == (frame.ill & (frame.city == "Oslo")).sum()
    assert paris.value == (frame.ill & (frame.city == "Paris")).sum()
    with pytest.raises(UnsafeExactly):  # those of no city: public, but not their illness
        db.ask_exactly([ILL])
    either = count(where=col("ill") & col("city").isin(["Oslo", "Paris"]))
    assert db.ask_exactly([either])[0].value == frame.ill.sum()


def test_a_histogram_is_a_batch():
    """Where a missing value, which nothing else hides, is where those with no visit are."""
    frame = people()
    found = published(frame).ask_exactly(histogram("visits", edges=[1, 3, 5]))[0]
    few = frame.visits.isin([1, 2]).sum()
    assert found.value.tolist() == [few, (frame.visits > 2).sum()]
    everybody = published(frame).ask_exactly(histogram("ill"))[0]
    assert everybody.guarantee == "a little noise, under assumptions"
    assert everybody.standard_error.max() < 4.2247 * 2**0.5  # plain noise hides both cells


def test_means_follow_from_totals():
    frame = people()
    found = published(frame).ask_exactly([mean("visits", where=col("ill"))])[0]
    assert found.value == pytest.approx(frame.visits[frame.ill].mean())


def test_only_rows_replaced_and_scalable_noise():
    for promise in (
        Promise(1, 1e-6, queries=100, neighbours="add-remove"),
        Promise(1, 1e-6, queries=100, noise="binomial"),
    ):
        with pytest.raises(InvalidQuery, match="exact release"):
            published(promise=promise)
    with pytest.raises(InvalidQuery, match="Assumptions"):
        published(given=0.05)
    with pytest.raises(InvalidQuery, match="salary"):
        published(given=Assumptions(1, 1e-6, 0, {"salary": 0.1}))


def test_analysts_share_one_menu():
    frame = people()
    db = published(frame)
    db.grant("ann", 10)
    db.grant("bob", 10)
    with pytest.raises(UnsafeExactly, match="declared nothing"):
        db.as_analyst("ann").ask_exactly([ILL])
    db.declare_exactly([ILL])
    ann, bob = db.as_analyst("ann"), db.as_analyst("bob")
    assert ann.ask_exactly([ILL])[0].value == frame.ill.sum()
    assert bob.ask_exactly([ILL])[0].receipt.body["analyst"] == "bob"
    with pytest.raises(Refused, match="no grant"):
        db.as_analyst("eve").ask_exactly([ILL])


def test_racing_analysts_never_release_two_batches_of_a_menu():
    db = published()
    db.declare_exactly([ILL], [total("visits")])
    got: list[str] = []

    def race(question, name):
        try:
            db.ask_exactly([question])
            got.append(name)
        except Refused:
            pass

    threads = [
        threading.Thread(target=race, args=(question, name))
        for question, name in [(ILL, "ill"), (total("visits"), "visits")] * 8
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == 1
    assert db.statement().statement.released == 1


def test_a_public_question_needs_no_release():
    frame = people()
    db = published(frame)
    found = db.ask_exactly([count(where=col("city") == "Oslo")])[0]
    assert found.value == (frame.city == "Oslo").sum()
    assert db.remaining == 100
    assert db.statement().statement.released == 0


def test_the_price_of_the_whole_stays_inside_the_cap():
    """r^2 times all that is spent is at most the promise's credits, whatever the order. M.9"""
    db = published()
    db.declare_exactly([ILL, ILL_SMOKERS])
    db.ask(count(where=col("visits") == 1), credits=3)
    db.ask_exactly([ILL])
    with pytest.raises(BudgetSpent):
        while True:
            db.ask(count(where=col("visits") == 2), credits=db.remaining + Fraction(1, 10**6))
    db.ask(count(where=col("visits") == 3), credits=db.remaining)
    found = db.statement()
    assert found.statement.divisor * found.spent <= 100
    assert found.left == 0


def test_what_follows_from_public_sizes_alone_is_exact_and_free():
    """A condition over private columns that always holds."""
    db = published(people(5_000), given=Assumptions(1, 1e-6, 0, {"ill": 0.1}))
    always = count(where=col("ill").is_null() | ~col("ill").is_null())
    db.declare_exactly(ILL)
    everybody = db.ask_exactly(always)[0]
    assert (everybody.value, everybody.credits) == (5_000, 0)
    assert "public sizes alone" in everybody.note
    assert db.remaining == 100
    assert db.statement().statement.released == 0


def test_nothing_of_public_sizes_is_told_before_a_use_of_the_table(tmp_path):
    """It may be withdrawn until then, and published anew with that column private."""
    given = Assumptions(1, 1e-6, 0, {"ill": 0.1})
    db = published(people(5_000), ledger=tmp_path / "ledger", given=given, name="people")
    db.grant("ann", 5)
    always = count(where=(col("city") == "Oslo") & (col("ill").is_null() | ~col("ill").is_null()))
    for verb in (db.quote_exactly, db.ask_exactly):
        with pytest.raises(UnsafeExactly, match="has declared nothing"):
            verb([ILL, always], analyst="ann")
    assert db.ledger.unused
    db.declare_exactly([count(where=col("ill") & (col("city") == "Oslo"))])
    assert db.ask_exactly(always, analyst="ann")[0].standard_error == 0
    with pytest.raises(Refused, match="was used"):
        db.withdraw()
    db.close()


def test_a_refused_batch_declares_nothing():
    """Also where a little noise would be needed and more than the declared is asked."""
    db = published(people(600), given=Assumptions(1, 1e-6, 0, {"ill": 0.05}))
    mixed = [ILL, count(where=~col("ill") | col("ill").is_null())]
    quote = db.quote_exactly(ILL)
    assert quote.guarantee == "a little noise, under assumptions"
    assert db.declaration is None
    with pytest.raises(UnsafeExactly):
        db.ask_exactly([*mixed, total("pay")])
    assert db.declaration is None
    public = count(where=col("city") == "Oslo")
    found = db.ask_exactly([ILL, public])
    assert found[0].guarantee == "a little noise, under assumptions"
    assert found[1].standard_error == 0


def test_a_quote_says_what_a_release_would_do():
    db = published()
    quote = db.quote_exactly([ILL])
    assert (quote.divisor, quote.left, quote.left_after) == (4, 100, 25)
    assert "no worst-case promise is left" in str(quote)
    assert db.remaining == 100
    db.ask_exactly([ILL])
    again = db.quote_exactly([ILL])
    assert (again.divisor, again.left, again.left_after) == (1, 25, 25)


def test_each_batch_of_a_menu_counts_noisy_deltas_once():
    db = published()
    db.declare_exactly([[ILL, ILL_SMOKERS], [ILL, count(where=col("smoker"))]])
    assert len(db.declaration) == 2
    db.ask_exactly(ILL)
    assert "e^2 and 3e-06" in str(db.statement())


def test_before_a_release_the_promise_is_said_to_end_with_one():
    db = published()
    assert "with the first exact answer this promise ends" in str(db.statement())
    assert "unless sums are released exactly" in str(db.statement())
    assert "with the first exact answer" in db.ask(ILL).explain()
    assert "first exact answer" not in str(published(given=None).statement())


def test_values_lie_on_the_lattice_that_is_summed():
    schema = Schema(Number("x", 0.5, 1.5, step=1))
    frame = pd.DataFrame({"x": [1.0] * 100})
    with pytest.raises(InvalidQuery, match="multiples of 1"):
        Database.open(
            frame, schema, PROMISE, ":memory:", exactly=Assumptions(1, 1e-6, 0, {"x": 0.3})
        )


def test_after_a_lost_release_no_promise_is_stated(tmp_path):
    frame, ledger = people(2_000), tmp_path / "people.ledger"
    given = Assumptions(1, 1e-6, 0, {"ill": 0.2})
    published(frame, ledger=ledger, given=given).close()
    shutil.copy(ledger, tmp_path / "backup")
    db = published(frame, ledger=ledger, given=given)
    db.ask_exactly(ILL)
    db.close()
    shutil.copy(tmp_path / "backup", ledger)
    recover(ledger)
    db = published(frame, ledger=ledger, given=given)
    assert "may have been released" in str(db.statement())
    assert "believed" not in str(db.statement())
    with pytest.raises(UnsafeExactly, match="closed"):
        db.ask_exactly(ILL)
    db.close()


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_all_and_all_but_one_by_name_are_never_told_without_noise(public, delta):
    """The introduction of Blum et al.: "and is not named Y". S1.15"""
    names = [f"p{i}" for i in range(20)]
    rich = np.random.default_rng(0).random(400) < 0.4
    frame = pd.DataFrame({"name": ["Joe", *(names * 20)[1:]], "rich": rich})
    schema = Schema(Category("name", [*names, "Joe"], public=public), Flag("rich"))
    least = {"rich": 0.05} if public else {"rich": 0.05, "name": 0.001}
    given = Assumptions(1, delta, 0, least)
    asked = [count(where=col("rich")), count(where=col("rich") & (col("name") != "Joe"))]
    with Database.open(frame, schema, PROMISE, ":memory:", exactly=given) as db:
        if public and delta == 1e-2:
            told = db.ask_exactly(asked)
            assert {one.guarantee for one in told} == {"a little noise, under assumptions"}
            assert all(one.standard_error > 1 for one in told)
        else:
            with pytest.raises(UnsafeExactly):
                db.ask_exactly(asked)
