"""S4.10, ID3 (Lemma 4 corrected): the sign, the tolerance, and a bound that noise keeps to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sulq.learn.tree import entropy


def conditional(table):
    """|T| H(class | attribute) of attribute values x classes, in nats."""
    return float(entropy(np.asarray(table, float)).sum())


def test_the_sum_of_the_lemma_is_minus_the_entropy():
    """(a): sum tau_jk log(tau_jk / tau_j) = -|T| H, so it is maximised."""
    table = np.array([[30.0, 10.0], [5.0, 55.0]])
    assert conditional(table) == pytest.approx(39.70356477, abs=5e-9)
    literal = float((table * np.log(table / table.sum(axis=1, keepdims=True))).sum())
    assert literal == pytest.approx(-conditional(table))


def test_the_papers_tolerance_fails_too_often():
    """(d): noise of variance R exceeds sqrt(R ln 1/delta) far more often than delta."""
    log = math.log(1e6)
    assert math.erfc(math.sqrt(log / 2)) == pytest.approx(2.016645e-04, rel=1e-6)
    assert math.erfc(math.sqrt(log)) == pytest.approx(1.468054e-07, rel=1e-6)


def test_a_skipped_term_is_not_small():
    """(e): a cell of |T|/gamma rows adds up to (ln gamma)/gamma |T|, not |T|/gamma."""
    assert math.log(40) / 40 == pytest.approx(0.09222198635, abs=5e-11)
    skipped = -(1 / 40) * math.log(1 / 40)
    assert skipped == pytest.approx(math.log(40) / 40) and skipped > 3 / 40


def bound(cells, rows, sure, keep):
    """|noisy V - V| <= t^2 [E (1 + L) + (th + E) max(1, ln(|T| / (th + E)))]."""
    logs = max(1.0, math.log((rows + sure) / (keep - sure)))
    return cells * (sure * (1 + logs) + (keep + sure) * max(1.0, math.log(rows / (keep + sure))))


def noisy_value(table, deviation, keep, random):
    """sum tau log(tau_jk / tau_j) from noisy counts: small ones left out, none above its margin."""
    noisy = table + random.normal(0, deviation, table.shape)
    margin = noisy.sum(axis=1, keepdims=True)
    used = (noisy > keep) & (margin > keep)
    cut = np.minimum(noisy, margin)
    logs = np.log(np.where(used, cut, 1.0) / np.where(used, margin, 1.0))
    return float((np.where(used, cut, 0.0) * logs).sum())


@pytest.mark.parametrize("size", [2, 4])
def test_the_corrected_bound_holds_and_says_something(size):
    """All M counts within E but for beta; margins, sums of t counts, are given t^2 for t.

    The claim holds with probability 1 - beta a table: 200 tables at beta = 5e-9 give a false alarm
    with probability 1e-6.
    """
    random = np.random.default_rng(11)
    rows, deviation, beta = 1_000_000, 30.0, 5e-9
    counts = size**2 + size
    sure = deviation * math.sqrt(size) * math.sqrt(2 * math.log(2 * counts / beta))
    keep = 2 * sure
    allowed = bound(size**2, rows, sure, keep)
    assert allowed < 0.35 * rows * math.log(size)  # not vacuous: below the largest entropy there is
    worst = 0.0
    for _ in range(200):
        shares = random.dirichlet(np.full(size**2, 0.4)).reshape(size, size)
        table = np.round(shares * rows)
        exact = -conditional(table)
        worst = max(worst, abs(noisy_value(table, deviation, keep, random) - exact))
    assert worst <= allowed
    assert worst > allowed / 1_000
    # the loss of choosing by noisy values is at most twice the bound, per row
    assert 2 * allowed / rows < math.log(size)
