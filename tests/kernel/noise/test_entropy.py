from __future__ import annotations

import os
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from scipy.stats import binom

import sulq.kernel.noise
from sulq.kernel.noise import entropy
from sulq.kernel.noise.entropy import LazyUniform, OsBits
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.noise.sampler import draw
from sulq.kernel.noise.vector_sampler import exp_bounds

WIDE = DiscreteGaussian(Fraction(2**80))


def test_bits_are_the_systems_bits_in_order_and_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[bytes] = []

    def urandom(size: int) -> bytes:
        served.append(bytes((len(served) * 7 + i * 37 + i // 5) % 256 for i in range(size)))
        return served[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    source = OsBits()
    pieces = [source.bits(count) for count in (1, 7, 0, 13, 64, 3)]
    value = int.from_bytes(served[0], "little")
    for piece, count in zip(pieces, (1, 7, 0, 13, 64, 3), strict=True):
        assert piece == value & ((1 << count) - 1)
        value >>= count
    assert len(served) == 1
    assert source.bits(1000) == int.from_bytes(served[1], "little") & ((1 << 1000) - 1)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6])
def test_below_is_uniform(bound: int) -> None:
    """Exact binomial test per value, false alarm 1e-6 in all."""
    n, source = 20000, OsBits()
    counts = Counter(source.below(bound) for _ in range(n))
    assert set(counts) == set(range(bound))
    for seen in counts.values():
        rare = min(binom.cdf(seen, n, 1 / bound), binom.sf(seen - 1, n, 1 / bound))
        assert rare > 1e-6 / (2 * bound)


def test_lazy_uniform_draws_bits_only_while_undecided() -> None:
    class Scripted(OsBits):
        __slots__ = ("asked",)

        def __init__(self) -> None:
            super().__init__()
            self.asked = 0

        def bits(self, count: int) -> int:
            self.asked += count
            return (1 << count) - 1

    def half(bits: int) -> tuple[int, int]:
        return 1 << (bits - 1), 1 << (bits - 1)

    def about_half(bits: int) -> tuple[int, int]:
        return (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1

    source = Scripted()
    assert LazyUniform(source, 0b011, 3).below(half)
    assert not LazyUniform(source, 0b100, 3).below(half)
    assert source.asked == 0
    undecided = LazyUniform(source, 0b100, 3)
    assert not undecided.below(about_half)
    assert source.asked == undecided.known - 3 == 64
    assert undecided.prefix >> 64 == 0b100


def test_lazy_uniform_decides_with_the_right_probability() -> None:
    """P(U < e^-1) from 2-bit prefixes, which leave it open one time in four; false alarm 1e-6."""
    n, source = 20000, OsBits()

    def bounds(bits: int) -> tuple[int, int]:
        return exp_bounds(Fraction(1), bits)

    wins = sum(LazyUniform(source, source.bits(2), 2).below(bounds) for _ in range(n))
    assert min(binom.cdf(wins, n, 0.36787944117), binom.sf(wins - 1, n, 0.36787944117)) > 5e-7


def test_forked_children_and_their_parent_share_no_draw() -> None:
    draw(WIDE, 5)
    pipes = []
    for _ in range(2):
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside NumPy's threads
            child = os.fork()
        if child == 0:
            values = [draw(WIDE, 1)[0] for _ in range(50)] + draw(WIDE, 50)
            os.write(writer, " ".join(map(str, values)).encode())
            os._exit(0)
        os.close(writer)
        pipes.append((child, reader))
    groups = [[draw(WIDE, 1)[0] for _ in range(50)] + draw(WIDE, 50)]
    for child, reader in pipes:
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as stream:
            groups.append([int(text) for text in stream.read().split()])
    values = [value for group in groups for value in group]
    assert len(values) == 300
    # 300 draws at sigma = 2^40 collide by chance with probability below 2e-8
    assert len(set(values)) == 300


def test_threads_share_no_draw() -> None:
    with ThreadPoolExecutor(8) as pool:
        groups = pool.map(lambda _: [draw(WIDE, 1)[0] for _ in range(40)], range(8))
    values = [value for group in groups for value in group]
    assert len(set(values)) == 320


def test_laws_are_tested_on_the_systems_own_bits() -> None:
    """Other tests of the gate draw the same bits each time; see tests/conftest.py."""
    assert entropy.os is os


def test_nothing_in_the_package_can_be_seeded() -> None:
    for path in Path(sulq.kernel.noise.__file__).parent.glob("*.py"):
        text = path.read_text()
        for word in ("np.random", "import random", "seed:", "seed=", "default_rng", "secrets"):
            assert word not in text, (path.name, word)
