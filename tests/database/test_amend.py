"""A published table is amended, an analyst revoked, a table closed: what each means for answers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.people import SCHEMA, frame, publish

from sulq import (
    Category,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    col,
    count,
    histogram,
    mean,
)
from sulq.database.amend import changes, keeps, scale
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.pricing import noise_grid

ONCE = Promise(epsilon=1, delta="1e-6", queries=100)
TWICE = Promise(epsilon=2, delta="1e-6", queries=200)
SMOKERS = count(where=col("smoker"))


@pytest.fixture(scope="module")
def data():
    return frame(400)


def columns(**changed):
    """The table's columns, some of them otherwise; None leaves one out."""
    found = {column.name: column for column in SCHEMA.columns} | changed
    return Schema(*(column for column in found.values() if column), strata=["city"])


# --- a larger promise ---------------------------------------------------------------------------


def test_what_is_spent_is_the_same_loss_under_the_larger_promise(data):
    db = publish(data, promise=ONCE)
    db.ask(SMOKERS, credits=30)
    before = db.calibration
    larger = db.amend(promise=TWICE, source=data)
    after = larger.calibration
    spent = larger.statement().spent
    # mu^2 = credits / R stays (G.1): 30 of 100 credits at epsilon 1 are 16.72 of 200 at epsilon 2
    assert spent / after.unit_variance >= 30 / before.unit_variance
    assert float(spent) == pytest.approx(16.7246, abs=1e-4)
    assert larger.remaining == 200 - spent
    assert larger.promise == TWICE
    assert str(larger.statement()).count("epsilon 2, delta 1e-06") == 1


def test_a_stored_answer_stays_and_a_finer_one_pays_what_is_missing(data):
    db = publish(data)
    first = db.ask(SMOKERS, credits=30)
    larger = db.amend(promise=TWICE, source=data)
    again = larger.ask(SMOKERS, credits=16)
    assert (again.value, again.credits) == (first.value, 0)
    finer = larger.ask(SMOKERS, credits=50)
    assert larger.statement().spent == pytest.approx(50, rel=1e-6)
    assert finer.standard_error < first.standard_error


def test_shares_keep_their_worth(data):
    db = publish(data)
    db.grant("ann", 40)
    db.as_analyst("ann").ask(SMOKERS, credits=10)
    larger = db.amend(promise=TWICE, source=data)
    worth = larger.calibration.unit_variance / db.calibration.unit_variance
    assert larger.left_for("ann") == pytest.approx(30 * worth, rel=1e-12)
    assert larger.as_analyst("ann").ask(SMOKERS, credits=5).credits == 0


def test_what_was_opened_before_asks_nothing_more(data):
    db = publish(data)
    plan = db.plan([SMOKERS, mean("age")], credits=10)
    aside = db.reserve(10)
    other = db.as_analyst("ann")
    larger = db.amend(promise=TWICE, source=data)
    for use in (
        lambda: db.ask(SMOKERS),
        lambda: db.quote(SMOKERS),
        lambda: other.ask(SMOKERS),
        lambda: aside.ask(SMOKERS),
        plan.ask,
    ):
        with pytest.raises(Refused):
            use()
    assert larger.statement().spent == 0
    assert larger.remaining == 200


def test_pure_promises_grow_in_epsilon(data):
    db = publish(data, promise=Promise(1))
    db.ask(SMOKERS, credits=40)
    larger = db.amend(promise=Promise(2, queries=100), source=data)
    assert larger.statement().spent == 20  # 0.4 of epsilon: of 1 in 100 credits, of 2 in 100


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        (ONCE, Promise(Fraction(1, 2), "1e-6", 100), "can only be raised"),
        (ONCE, Promise(2, "1e-7", 100), "can only be raised"),
        (ONCE, Promise(2, "1e-6", 99), "can only be raised"),
        (ONCE, Promise(2), "the noise 'gaussian'"),
        (ONCE, Promise(2, "1e-6", 100, neighbours="add-remove"), "the neighbours 'replace'"),
        (Promise(1, "1e-6", 20, "binomial"), Promise(2, "1e-6", 20, "binomial"), "G.1.5"),
    ],
)
def test_a_promise_is_not_made_smaller_nor_another_one(was, now, why):
    with pytest.raises(Refused, match=why):
        changes(SCHEMA, SCHEMA, was, now)


promises = st.builds(
    lambda epsilon, delta, queries: (epsilon, Fraction(1, 10**delta), queries),
    st.fractions(Fraction(1, 10), 4, max_denominator=20),
    st.integers(4, 9),
    st.integers(1, 500),
)


@given(promises, st.fractions(1, 3, max_denominator=7), st.integers(0, 3), st.integers(0, 300))
def test_the_scale_never_makes_a_loss_smaller(start, more, tenfold, further):
    epsilon, delta, queries = start
    grown = min(delta * 10**tenfold, Fraction(1, 100))
    old = calibrate(Promise(epsilon, delta, queries))
    new = calibrate(Promise(epsilon * more, max(delta, grown), queries + further))
    credits, slack = scale(old, new)
    assert credits / new.unit_variance == 1 / old.unit_variance  # the same mu^2, exactly
    assert slack >= 1
    # the old cap fits into the new one, but for the rounding of R to steps of 2^-20
    assert old.credits * credits <= new.credits * (1 + 2 / (2**20 * old.unit_variance))


# --- columns ------------------------------------------------------------------------------------


def test_a_hidden_column_can_be_declared_and_earlier_answers_stay(data):
    db = publish(data)
    first = db.ask(SMOKERS, credits=30)
    wider = db.amend(columns(secret=Number("secret", 0, 10**9)), source=data, reason="needed")
    assert (wider.ask(SMOKERS, credits=30).value, wider.statement().spent) == (first.value, 30)
    assert wider.ask(mean("secret"), credits=10).credits == 10
    assert wider.statement().statement.amended[0].reason == "needed"


def test_answers_under_other_bounds_are_never_repeated(data):
    db = publish(data)
    old = [db.ask(mean("age"), credits=10), db.ask(SMOKERS, credits=10, key="k")]
    tight = db.amend(columns(age=Number("age", 0, 60, step=1)), source=data)
    assert tight.statement().spent == 20
    assert not tight.quote(mean("age"), credits=10).repeat
    new = tight.ask(mean("age"), credits=10)
    assert (new.credits, new.receipt.seq > old[0].receipt.seq) == (10, True)
    assert new.value <= 60
    with pytest.raises(Refused, match="before the table was amended"):
        tight.ask(SMOKERS, credits=10, key="k")
    assert tight.ask(SMOKERS, credits=10).credits == 10
    assert tight.receipt(old[0].receipt.seq) == old[0].receipt
    assert tight.statement().spent == 40


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"age": Number("age", 0, 120, step=1, public=True)}, "would be given away"),
        ({"blood": Category("blood", ["A", "B", "0"], public=True)}, "would be given away"),
        ({"city": Category("city", ["Oslo", "Paris"])}, "lose their past|strata must name"),
        ({"city": Category("city", ["Oslo"], public=True)}, "account with a past"),
        ({"age": Number("age", 0, 121, step=1)}, "is no part of it"),
        ({"age": Number("age", -1, 120, step=1)}, "is no part of it"),
        ({"age": Number("age", 0, 120)}, "kind and step"),
        ({"age": Flag("age")}, "kind and step"),
        ({"blood": Category("blood", ["A", "B", "0", "AB"])}, "is no part of it"),
        ({"blood": Category("blood")}, "is no part of it"),
        ({"smoker": None}, "stays declared"),
    ],
)
def test_what_is_private_stays_and_no_bound_grows(changed, why):
    with pytest.raises((Refused, InvalidQuery), match=why):
        changes(SCHEMA, columns(**changed), ONCE, ONCE)


def test_a_new_public_column_needs_the_old_strata(data):
    public = Category("secret_kind", ["x"], public=True)
    with pytest.raises(Refused, match=r"account with a past.*strata = \['city'\]"):
        changes(SCHEMA, Schema(*SCHEMA.columns, public), ONCE, ONCE)
    assert changes(SCHEMA, columns(more=public), ONCE, ONCE)[0].now == "public, x"


def test_person_tables_take_fewer_rows_each(data):
    old = Schema(Number("age", 0, 120), unit="secret", max_rows=4)
    fewer = Schema(Number("age", 0, 120), unit="secret", max_rows=2)
    assert [change.now for change in changes(old, fewer, ONCE, ONCE)] == ["2"]
    for wrong in (Schema(Number("age", 0, 120)), Schema(*old.columns, unit="secret", max_rows=5)):
        with pytest.raises(Refused, match="cannot be amended"):
            changes(old, wrong, ONCE, ONCE)
    db = publish(data, old)
    assert db.amend(fewer, source=data).schema.max_rows == 2


def test_answers_are_kept_only_on_the_same_grids():
    one, two = calibrate(ONCE), calibrate(Promise(8, "1e-9", 100))
    assert keeps(SCHEMA, SCHEMA, one, one)
    assert keeps(SCHEMA, columns(more=Flag("more")), one, one)
    assert not keeps(SCHEMA, SCHEMA.on_grid(25), one, one)
    assert not keeps(SCHEMA, columns(age=Number("age", 0, 60, step=1)), one, one)
    assert noise_grid(one) != noise_grid(two)
    assert not keeps(SCHEMA, SCHEMA, one, two)


def test_an_amendment_needs_the_same_rows(data):
    db = publish(data)
    with pytest.raises(InvalidQuery, match="give it again"):
        db.amend(promise=TWICE)
    with pytest.raises(Refused, match="other rows"):
        db.amend(promise=TWICE, source=frame(400, seed=8))
    with pytest.raises(Refused, match="nothing to amend"):
        db.amend(source=data)
    with pytest.raises(InvalidQuery, match="a Schema and a Promise"):
        db.amend("schema", source=data)
    assert db.ask(SMOKERS).credits > 0  # a refusal leaves the table as it was


def test_a_file_is_read_again_and_the_amended_facts_open_it(data, tmp_path):
    source, ledger = tmp_path / "people.parquet", tmp_path / "people.ledger"
    data.to_parquet(source)
    with publish(source, ledger=ledger) as db:
        db.ask(SMOKERS, credits=30)
        with db.amend(promise=TWICE) as larger:
            larger.ask(mean("age"), credits=20)
    with pytest.raises(Refused, match="open it as it was amended"):
        publish(source, ledger=ledger)
    with publish(source, promise=TWICE, ledger=ledger) as again:
        assert float(again.statement().spent) == pytest.approx(36.7246, abs=1e-4)


def test_answers_under_other_bounds_take_no_part_in_later_ones(data, tmp_path):
    """Not even after the table is opened again, when the whole ledger is read."""
    source, ledger = tmp_path / "people.parquet", tmp_path / "people.ledger"
    data.to_parquet(source)
    tighter = columns(age=Number("age", 0, 60, step=1))
    with publish(source, ledger=ledger) as db:
        old = db.ask(SMOKERS, credits=10).receipt
        with db.amend(tighter) as tight:
            new = tight.ask(SMOKERS, credits=10).receipt
    assert (old.body["digest"], old.body["noise"]) == (new.body["digest"], new.body["noise"])
    with publish(source, tighter, ledger=ledger) as again:
        finer = again.ask(SMOKERS, credits=30)
        assert finer.sources == (new.seq, finer.receipt.seq)
        assert float(again.statement().spent) == pytest.approx(40)


# --- revoke and close ---------------------------------------------------------------------------


def test_a_revoked_analyst_hears_nothing_more(data):
    db = publish(data)
    db.grant("ann", 40)
    ann = db.as_analyst("ann")
    ann.ask(SMOKERS, credits=10, key="k")
    alert = ann.alert(SMOKERS, above=10**6, credits=5)
    assert alert.check() is False
    db.revoke("ann", "left")
    for use in (
        lambda: ann.ask(SMOKERS, credits=10),
        lambda: ann.ask(SMOKERS, credits=10, key="k"),
        lambda: ann.ask(mean("age")),
        lambda: ann.plan([SMOKERS]).ask(),
        lambda: alert.check(count(where=~col("smoker"))),
        lambda: ann.top("blood"),
    ):
        with pytest.raises(Refused, match="was revoked on this table"):
            use()
    assert (db.remaining, ann.remaining) == (85, 0)
    db.grant("ann", 10)
    assert ann.ask(SMOKERS, credits=10).credits == 0
    assert ann.remaining == 10


def test_a_closed_table_repeats_also_what_is_known_better_by_now(data):
    db = publish(data)
    of_a = count(where=col("blood") == "A")
    told = db.ask(of_a, credits=10)
    db.ask(histogram("blood"), credits=20)
    db.close_for_good()
    again = db.ask(of_a, credits=10)
    assert (again.value, again.credits) == (told.value, 0)
    quote = db.quote(of_a, credits=10)
    assert (quote.credits, quote.repeat) == (0, True)


def test_a_closed_table_repeats_what_was_paid_for(data):
    db = publish(data)
    db.grant("ann", 40)
    ann = db.as_analyst("ann")
    told = [
        db.ask(histogram("blood"), credits=10),
        db.ask(SMOKERS, credits=10),
        db.ask(SMOKERS, credits=20),  # topped up
        ann.ask(mean("age"), credits=10),
        db.ask(count(where=col("city") == "Oslo")),  # public: free
    ]
    top = db.top("blood", credits=5)
    alert = db.alert(SMOKERS, above=10**6, credits=5)
    aside = db.reserve(5)
    db.close_for_good("end of study")
    again = [
        db.ask(histogram("blood"), credits=10),
        db.ask(SMOKERS, credits=10),
        db.ask(SMOKERS, credits=20),
        ann.ask(mean("age"), credits=10),
        db.ask(count(where=col("city") == "Oslo")),
    ]
    assert [one.credits for one in again] == [0] * 5
    for before, after in zip(told, again, strict=True):
        assert str(after.value) in {str(one.value) for one in (before, told[2])}
    assert db.top("blood", credits=5).keys == top.keys
    assert db.plan([SMOKERS], credits=20).ask()[0].value == told[2].value
    for use in (
        lambda: db.ask(count(where=col("blood") == "A"), credits=5),  # would follow for nothing
        lambda: db.ask(mean("age"), credits=10),  # a colleague's
        lambda: db.ask(SMOKERS, credits=60),
        lambda: db.quote(mean("income")),
        lambda: db.ask(count(where=col("city") == "Paris")),
        lambda: ann.ask(SMOKERS),
        lambda: db.grant("bob", 1),
        lambda: db.reserve(1),
        alert.check,
        lambda: db.amend(promise=TWICE, source=data),
    ):
        with pytest.raises(Refused, match="closed for good"):
            use()
    with pytest.raises(Refused, match="reservation has ended"):
        aside.ask(SMOKERS)
    assert db.remaining == 0
    assert db.statement().left == 0
    assert "end of study" in str(db.statement())
