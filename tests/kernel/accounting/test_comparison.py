"""`explain_noise`: every published amount of noise, with the verdict it deserves."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.beliefs.comparison import NoiseRow, explain_noise, published


def rows(*arguments: object) -> dict[str, NoiseRow]:
    return {row.name: row for row in explain_noise(*arguments)}  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_table_of_a_hundred_questions() -> None:
    table = rows(1, 1e-6, 100)
    golden = {  # S4.1, S0.5, S0.3, S4.13, S4.15
        "Blum et al. 2005, Theorem 1, as printed": 2763.1021115928547,
        "Theorem 1, repaired by its own proof": 2862.2286663543987,
        "zCDP, simple conversion": 2862.2286663543987,
        "zCDP, tight conversion": 2052.88474496844,
        "Gaussian, exact tail": 2358.44424515199,
        "analytic Gaussian": 1784.7911717923732,
        "binomial, 7140 coins": 1785.0,
        "Dwork's ln^6 n coins, n = 1000000": 695347078.8096775 / 4,
        "Laplace, pure": 20000.0,
    }
    assert golden.keys() <= table.keys()
    for name, variance in golden.items():
        assert table[name].variance == pytest.approx(variance, rel=1e-6), name
    assert table["Laplace, exact account"].variance == pytest.approx(3442.535256501629, rel=1e-3)
    stitched = table["Gaussian stitched to Laplace"]
    assert stitched.variance == pytest.approx(1784.1109216424932, rel=1e-3)
    assert "7.115" in stitched.guarantees
    assert table["analytic Gaussian"].standard_deviation == pytest.approx(42.2468, rel=1e-5)
    assert sum("used" in row.verdict for row in table.values()) == 4


@pytest.mark.parametrize(
    ("epsilon", "delta", "verdict"),
    [
        (20, "1e-6", "invalid here: the tail is 0.000398"),
        (4, "0.1", "invalid here: the tail is 0.112"),
        (1, "1e-6", "holds here for two-point beliefs, though its proof does not give it"),
        (30, "1e-6", "holds here for two-point beliefs, though its proof does not give it"),
    ],
)
def test_the_printed_theorem_is_called_invalid_exactly_where_its_tail_is_too_large(
    epsilon: int, delta: str, verdict: str
) -> None:
    printed, *_ = published(Fraction(epsilon), Fraction(delta), 1, 1000)
    assert printed.verdict == verdict


def test_without_delta_only_pure_noise_is_left() -> None:
    (row,) = explain_noise(1, 0, 10)
    assert row.variance == 200  # S4.13
