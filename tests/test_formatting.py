"""One rule for numbers on a screen: digits end where the noise begins, rounded safely."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.beliefs.confidence import belief_up
from sulq.formatting import (
    about,
    bar_text,
    credits_left,
    credits_text,
    credits_word,
    decimal_left,
    decimal_text,
    left_text,
    price_text,
    value_with_bar,
)


@pytest.mark.parametrize(
    ("value", "bar", "text", "range_text"),
    [
        (8.94, 1.13, "8.9 ± 1.2", "7.7 to 10.1"),
        (8.94, 261.86, "9 ± 262", "−253 to 271"),
        (-41.2, 261.86, "−41 ± 262", "−303 to 221"),
        (12_408.4, 9.99, "12,408 ± 10", "12,398 to 12,418"),
        (0.5, 0.0995, "0.50 ± 0.10", "0.40 to 0.60"),
        (0.123456, 0.0101, "0.123 ± 0.011", "0.112 to 0.134"),
        (1_234_567.0, 10.0, "1,234,567 ± 10", "1,234,557 to 1,234,577"),
        (-0.004, 1.0, "0.0 ± 1.0", "−1.0 to 1.0"),
    ],
)
def test_value_and_bar(value: float, bar: float, text: str, range_text: str) -> None:
    shown = value_with_bar(value, bar)
    assert str(shown) == text
    assert shown.range == range_text


def test_a_public_number_has_no_bar_and_an_unknown_one_no_reading() -> None:
    assert str(value_with_bar(80_000, 0)) == "80,000"
    assert not value_with_bar(80_000, 0).bar
    assert str(value_with_bar(math.nan, 1)) == "no reading"
    assert value_with_bar(112, 262).weak and not value_with_bar(263, 262).weak


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_the_shown_range_is_the_shown_value_and_the_shown_bar(value: float, bar: float) -> None:
    shown = value_with_bar(value, bar)
    assert shown.half >= bar * (1 - 1e-8)
    assert shown.half <= max(bar * 1.11, bar + 1)
    digits = 10.0**-shown.places
    assert abs(shown.number - value) <= digits / 2 * (1 + 1e-6) + 2 * math.ulp(value)
    assert len(bar_text(bar).replace(",", "").replace(".", "").lstrip("0")) >= 2


@given(st.fractions(0, 10_000))
def test_prices_round_up_and_what_is_left_rounds_down(credits: Fraction) -> None:
    def number(text: str) -> float:
        return 0.5 if text == "½" else float(text.replace(",", ""))

    assert number(price_text(credits)) >= float(credits) * (1 - 1e-12)
    assert number(left_text(credits)) <= float(credits) * (1 + 1e-12)


@given(st.fractions(min_value=0, max_value=10**9))
def test_decimals_of_what_is_paid_round_up_and_of_what_is_left_down(credits: Fraction) -> None:
    paid, left = (Fraction(f(credits).replace(",", "")) for f in (decimal_text, decimal_left))
    assert left <= credits <= paid
    assert paid - left <= max(Fraction(1, 10_000), credits / 50)


def test_credits_with_their_word() -> None:
    assert credits_text(Fraction(3858, 3125)) == "1.2346 credits"
    assert credits_left(Fraction(3858, 3125)) == "1.2345 credits"
    assert credits_text(Fraction(1)) == credits_left(Fraction(1)) == "1 credit"
    assert credits_text(Fraction(0)) == "0 credits"
    assert credits_left(Fraction(2_469_131, 2)) == "1,234,565.5 credits"
    assert decimal_left(Fraction(1, 3000)) == "0.000333"


def test_credits_in_words() -> None:
    assert credits_word(Fraction(1)) == "1 credit"
    assert credits_word(Fraction(2)) == "2 credits"
    assert credits_word(Fraction(1, 2)) == "½ credit"
    assert credits_word(Fraction(0)) == "0 credits"
    assert price_text(Fraction(27_4275, 10_000)) == "27.5"
    assert left_text(Fraction(27_4275, 10_000)) == "27.4"
    assert price_text(Fraction(171_01, 100)) == "172"


def test_about_and_beliefs() -> None:
    assert about(14_237.0, 262.0) == "14,200"
    assert about(0.1234, 0.021) == "0.12"
    assert belief_up(0.6444) == 65
    assert belief_up(0.65) == 65
    assert belief_up(0.9999) == 100
