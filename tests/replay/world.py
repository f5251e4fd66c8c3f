"""A world in which chance is frozen: the same bits, salts, keys and time, and the same releases.

The sampler is the one place that draws. Here it hands out draws that see the sum they are added to.
In the first world they note it. In the world of a neighbouring table they give back what the first
one released, and note how far the sum has moved. Whatever an analyst can see must then be equal,
byte by byte and with nothing masked, and how far the sums moved must be paid for.

Only public names are touched: `sampler.draw`, the bits of `entropy`, `secrets`, and the clock.
"""

from __future__ import annotations

import logging
import random
import re
import secrets
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nacl.public import PrivateKey
from nacl.signing import SigningKey

from sulq.errors import SulqError
from sulq.kernel.noise import entropy, sampler
from sulq.kernel.noise.laws import (
    DiscreteGaussian,
    DiscreteLaplace,
    DividedLaplace,
    Geometric,
    NoNoise,
)
from sulq.sql.evaluate.result import Result
from sulq.wire.convert import sql_reply

NOW = 1_800_000_000
STEP = 1 << 24
"""Places for the draws of one step."""
DRAW = sampler.draw
RNG = np.random.default_rng
MASKED = re.compile(
    r" at 0x[0-9a-f]+|\b\d\d:\d\d:\d\d\b|(?<=sulq_uptime_seconds )\d+|(?<=127\.0\.0\.1:)\d+"
)
"""Where a function lies in memory, what a server's own clock says, and its port."""


class Divergence(AssertionError):
    """An analyst can tell two neighbouring tables apart by more than was paid for."""


class Drawn(int):
    """A draw that sees the sum it is added to."""

    tape: Tape
    place: int
    __array_ufunc__ = None  # numbers of NumPy leave the addition to us

    def __radd__(self, total: int) -> int:
        return self.tape.released(self, int(total))

    __add__ = __radd__

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


@dataclass
class Tape:
    """What was drawn in a world: laws, the sums they were added to, and what was released."""

    first: Tape | None = None
    laws: dict[int, Any] = field(default_factory=dict)
    sums: dict[int, int] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)
    quiet: bool = False
    """Draws of 0: then a verdict that looks at the exact sum shows."""
    coarse: int = 0
    """Of `keys`, where a world may have other keys than the first: a count becomes the nearest
    multiple of so many spreads; one within a spread of a count of the first becomes what that
    did, for the count may lie where rounding turns. So that there is one such count only, counts
    of the first within two spreads become the same."""
    near: dict[tuple[int, Fraction], dict[int, int]] = field(default_factory=dict)
    """By step and spread of the noise: numbers that were rounded, and what they became."""
    next: int = 0
    """The place of the next draw. Every step begins at places of its own, with bits of its own, so
    that what one step draws does not move the draws of the next."""
    bits: tuple[random.Random, ...] = ()

    def begin(self) -> int:
        """Go to the places of the next step; the first of them."""
        self.next = (self.next // STEP + 1) * STEP
        for number, each in enumerate(self.bits):
            each.seed(f"{number} {self.next}")
        return self.next

    def between(self, start: int, end: int) -> list[int]:
        """The places that were drawn at, from `start` on and before `end`."""
        return [place for place in self.laws if start <= place < end]

    def draw(self, law: Any, count: int) -> list[int]:
        found = []
        for value in [0] * count if self.quiet else DRAW(law, count):
            drawn = Drawn(value)
            drawn.tape, drawn.place = self, self.next
            self.laws[self.next] = law
            self.next += 1
            found.append(drawn)
        return found  # type: ignore[return-value]

    def released(self, drawn: Drawn, total: int) -> int:
        place = drawn.place
        self.sums[place] = total
        if self.coarse:
            told = self.rounded(place // STEP, total, law_size(self.laws[place]))
        elif self.first is None:
            told = total + int.__index__(drawn)
        else:
            told = self.first.told.get(place, total + int.__index__(drawn))
        self.told[place] = told
        return told

    def rounded(self, step: int, total: int, spread: Fraction) -> int:
        place = step, spread
        own = self.near.setdefault(place, {})
        known, reach = (own, 2) if self.first is None else (self.first.near.get(place, {}), 1)
        nearest = min(known, key=lambda count: abs(count - total), default=None)
        if nearest is not None and abs(nearest - total) <= reach * spread:
            own[total] = known[nearest]
        else:
            width = max(1, round(self.coarse * spread))
            own[total] = (total + width // 2) // width * width
        return own[total]


def law_size(law: Any) -> Fraction:
    if isinstance(law, DiscreteGaussian):
        return Fraction(round(float(law.sigma_squared) ** 0.5 * 2**10), 2**10)
    return Fraction(law.scale)


@dataclass
class World:
    """One table, lived through: every line that somebody could see, in order."""

    tape: Tape
    lines: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    def see(self, *seen: object) -> None:
        self.lines.extend(MASKED.sub("", str(one)) for one in seen)

    def step(self, act: Callable[[], Any], judge: Any = None, coarse: int = 0) -> Any:
        """Do something, and see what it gives or how it fails."""
        with self.stepping(coarse) as step:
            found = None
            try:
                found = act()
                self.see(*shown(found))
            except Divergence:
                raise
            except SulqError as error:
                self.see(*complaint(error))
            except Exception as error:
                told = f"not one of our errors: {type(error).__name__}: {error}"
                raise Divergence(told) from error
        step.judge = judge
        return found

    @contextmanager
    def stepping(self, coarse: int = 0) -> Iterator[Step]:
        """What is drawn meanwhile belongs to one step."""
        self.tape.coarse = coarse
        step = Step(self.tape.begin(), coarse)
        self.steps.append(step)
        yield step
        step.end = self.tape.next
        self.tape.coarse = 0


@dataclass
class Step:
    """One thing that was done: the places of its draws, and how its shift is judged."""

    start: int
    coarse: int = 0
    end: int = 0
    judge: Any = None


def complaint(error: BaseException) -> Iterator[str]:
    """Its kind, its words, and those of whatever it was raised from."""
    while error is not None:
        yield f"{type(error).__name__}: {error} {sorted(map(str, vars(error).items()))}"
        yield f"{len(traceback.format_exception_only(error))} lines"
        error = error.__cause__ or error.__context__  # type: ignore[assignment]


def shown(found: Any) -> Iterator[str]:
    """All that a reply says."""
    if found is None or isinstance(found, str | int | float | Fraction | bool):
        yield repr(found)
        return
    if isinstance(found, list | tuple):
        for one in found:
            yield from shown(one)
        return
    if isinstance(found, Result):
        yield str(found)
        yield sql_reply(found).model_dump_json()
        return
    yield repr(found)
    yield str(found)
    for name in SHOWN:
        value = getattr(found, name, None)
        if value is not None:
            said = value() if callable(value) else value
            yield f"{name}: {said.to_json() if hasattr(said, 'to_json') else said!r}"


SHOWN = (
    *("value", "values", "standard_error", "interval", "keys", "note", "notes", "credits"),
    *("explain", "receipt", "sources", "repeat", "left_after", "columns", "rows", "to_csv"),
    *("threshold", "held_back", "left", "terms", "guarantee", "number", "question", "chosen"),
)


@contextmanager
def frozen(first: World | None = None, seed: int = 5) -> Iterator[World]:
    """A world of its own: nothing but the rows can differ between two of them."""
    tape = Tape(first.tape if first else None)
    world = World(tape)
    bits, salts = random.Random(seed), random.Random(seed + 1)
    tape.bits = (bits, salts)
    handler = logging.Handler()
    handler.emit = lambda record: world.logged.append(record.getMessage())  # type: ignore[method-assign]
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        (Path(folder) / "state").mkdir(0o700)
        patch.setenv("SULQ_STATE", str(Path(folder) / "state"))
        patch.setattr(entropy, "os", SimpleNamespace(urandom=bits.randbytes))
        patch.setattr(secrets, "token_bytes", lambda size=32: salts.randbytes(size))
        patch.setattr(secrets, "randbits", salts.getrandbits)
        patch.setattr(secrets, "randbelow", salts.randrange)
        for made in (SigningKey, PrivateKey):
            patch.setattr(made, "generate", lambda made=made: made(salts.randbytes(32)))
        patch.setattr(np.random, "default_rng", lambda seed=None: RNG(7 if seed is None else seed))
        patch.setattr(time, "time", lambda: float(NOW))
        patch.setattr(sampler, "draw", tape.draw)
        root = logging.getLogger()
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.INFO)
        try:
            yield world
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
            world.see(*(f"log {line}" for line in world.logged))
            world.see(*(f"warning {one.message}" for one in warned if "sulq" in one.filename))


def same(first: World, second: World, about: str) -> int:
    """Compare everything that was seen, and what the sums moved by. The number of steps."""
    for place, (one, other) in enumerate(zip(first.lines, second.lines, strict=False)):
        if one != other:
            here = next(
                (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0
            )
            around = slice(max(0, here - 150), here + 150)
            raise Divergence(f"{about}: line {place} is\n  {one[around]}\nand\n  {other[around]}")
    if len(first.lines) != len(second.lines):
        raise Divergence(f"{about}: {len(first.lines)} lines and {len(second.lines)}")
    for step, other in zip(first.steps, second.steps, strict=True):
        if step.coarse:
            continue
        places = first.tape.between(step.start, step.end)
        if places != second.tape.between(other.start, other.end):
            raise Divergence(f"{about}: another number of draws")
        if any(first.tape.laws[place] != second.tape.laws[place] for place in places):
            raise Divergence(f"{about}: noise of another law")
        if any(place not in first.tape.sums for place in places):
            raise Divergence(f"{about}: noise was drawn, and nothing was released")
        if step.judge is not None:
            step.judge.check(first.tape, second.tape, places, about)
    return len(first.steps)


# --- what a shift costs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Paid:
    """The credits that a step took, in a promise's own currency."""

    credits: Fraction
    calibration: Any
    kind: str = "sums"
    times: int = 1

    def check(self, one: Tape, two: Tape, places: Sequence[int], about: str) -> None:
        moved = [(one.laws[at], two.sums.get(at, 0) - one.sums.get(at, 0)) for at in places]
        if any(shift and isinstance(law, NoNoise) for law, shift in moved):
            raise Divergence(f"{about}: a public sum has moved")
        if self.kind == "sums":
            lost: Fraction = sum((self.cost(law, shift) for law, shift in moved), Fraction(0))
            allowed = self.credits
        else:
            from sulq.kernel.accounting.mechanisms import epsilon_for

            lost, allowed = self.pure(moved), Fraction(0)
            if self.credits:
                allowed = epsilon_for(self.credits / self.times, self.calibration)
        if lost > allowed:
            raise Divergence(f"{about}: rows moved by {float(lost):.9g}, {float(allowed):.9g} paid")

    def cost(self, law: Any, shift: int) -> Fraction:
        """Credits that hide this shift under this law: the price of docs/proofs/pricing.md."""
        if not shift:
            return Fraction(0)
        match law:
            case DiscreteGaussian():
                unit: Fraction = self.calibration.unit_variance
                return Fraction(shift * shift) / law.sigma_squared * unit
            case DiscreteLaplace():
                return abs(shift) / law.scale * Fraction(self.calibration.unit_scale)
            case DividedLaplace():
                return abs(shift) / law.scale * Fraction(self.calibration.unit_scale)
        if abs(shift) > 1:  # coins and the stitched law: whole credits, a step each
            raise Divergence(f"a sum moved by {shift} steps under {law}")
        return Fraction(1)

    def pure(self, moved: list[tuple[Any, int]]) -> Fraction:
        """Of a choice: the width of the shifts over the scale. Of a comparison: M.2."""
        shifts = [shift for _, shift in moved] or [0]
        law = moved[0][0] if moved else None
        if isinstance(law, Geometric):
            return (max(shifts) - min(shifts)) / Fraction(law.scale)
        return max(map(abs, shifts)) / Fraction(law.scale) if law else Fraction(0)
