"""Secure addition: what leaves an owner is a share of the noisy sum, under masks that cancel. V.4

Nobody learns anything before the shares of all owners are added, and then only the noisy total.
Values only: an owner makes its share in `database.sharing`. Proof: docs/proofs/federation.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from nacl.bindings import crypto_scalarmult
from nacl.exceptions import CryptoError

from sulq.answers.oracle import Quote
from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, DividedLaplace, Law, NoNoise

MODULUS = 1 << 256
"""Shares are added modulo this."""
FARTHEST = 1 << 216
"""No total with its noise is as far from 0: what is, are masks that did not cancel."""
MOST_OWNERS = 1000
FIELD = 2**255 - 19
_KEY = re.compile(r"[0-9a-f]{64}")
_JOINT = re.compile(r"[A-Za-z0-9._~-]{8,128}")


@dataclass(frozen=True, slots=True)
class Partners:
    """The other owners by their public keys, and how many of all may pool what they know.

    An owner gets the keys from the other owners, never from whoever asks. `colluding` is the most
    owners whose knowledge may reach whoever sees a total: an owner who looks at one counts.
    """

    keys: tuple[str, ...]
    colluding: int

    def __init__(self, keys: Iterable[str], colluding: int) -> None:
        listed = list(keys) if isinstance(keys, Iterable) and not isinstance(keys, str) else [keys]
        object.__setattr__(self, "keys", tuple(sorted(check_key(key) for key in listed)))
        object.__setattr__(self, "colluding", colluding)
        if len(set(self.keys)) < len(self.keys):
            raise InvalidQuery("one key is there twice: every partner has a key of its own")
        if not 1 <= len(self.keys) < MOST_OWNERS:
            raise InvalidQuery(
                f"secure addition takes 2 to {MOST_OWNERS} owners, got {len(self.keys)} keys of"
                " others"
            )
        check_colluding(colluding, self.owners)

    @property
    def owners(self) -> int:
        """How many owners there are: the partners, and the one who has them."""
        return len(self.keys) + 1

    @property
    def parts(self) -> int:
        """So many shares of noise are one draw of the calibrated law: k - t. V.4"""
        return self.owners - self.colluding


@dataclass(frozen=True, slots=True)
class Joint:
    """What the owners must agree on, as one of them has it: who takes part, and the noise."""

    owner: str  # the key of who says so
    owners: tuple[str, ...]  # everybody's, sorted
    colluding: int
    laws: tuple[Law, ...]  # the calibrated noise, of which each owner draws a share
    steps: tuple[tuple[Fraction, Fraction], ...]  # of each sum: its step and its middle

    @property
    def agreed(self) -> tuple[object, ...]:
        """What must be the same for all of them."""
        return self.owners, self.colluding, self.laws, self.steps

    @property
    def whole(self) -> tuple[Law, ...]:
        """The noise of the total."""
        parts = len(self.owners) - self.colluding
        return tuple(total_law(law, len(self.owners), parts) for law in self.laws)


@dataclass(frozen=True, slots=True, eq=False)
class ShareQuote:
    """What a share would cost, and how exact the total would be; free."""

    quote: Quote
    joint: Joint


@dataclass(frozen=True, slots=True, eq=False)
class SumShare:
    """Masked integers: alone they are uniform, whatever the rows. Charged."""

    values: tuple[int, ...]
    joint: Joint
    credits: Fraction
    receipt: Any


def check_key(key: object) -> str:
    """A partner's public key in hexadecimal digits; one that no secret key has is refused."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidQuery(
            f"a partner's key is 64 hexadecimal digits, as `share_key` says it, got {key!r:.80}"
        )
    point = bytes.fromhex(key)
    try:
        crypto_scalarmult(bytes([64]) * 32, point)  # of a point of low order it is 0, and refused
        usable = int.from_bytes(point, "little") < FIELD
    except CryptoError:
        usable = False
    if not usable:
        raise InvalidQuery(f"{key} is no public key: masks made with it could be guessed")
    return key


def check_colluding(colluding: object, owners: int) -> None:
    """0 to k - 2: with k - 1 every owner would have to draw the whole noise."""
    if isinstance(colluding, bool) or not isinstance(colluding, int) or colluding < 0:
        raise InvalidQuery(f"colluding is a number of owners from 0 on, got {colluding!r:.40}")
    if colluding >= owners - 1:
        raise InvalidQuery(
            f"of {owners} owners {colluding} may collude: then each of them must draw the whole"
            " noise by itself, as `split_rows` without secure=True has it, and adding securely"
            f" gains nothing; state at most {owners - 2}, or use that"
        )


def check_joint(joint: object) -> str:
    """The name of one joint sum, new for each."""
    if not isinstance(joint, str) or not _JOINT.fullmatch(joint):
        raise InvalidQuery(
            "a joint sum is named by 8 to 128 letters, digits or ._~-, new for each question, got"
            f" {joint!r:.80}"
        )
    return joint


def joint_of(key: str) -> str:
    """The name that a key stands for: itself, or one made of whatever text it is."""
    if not isinstance(key, str) or not key:
        raise InvalidQuery(f"a key is a text, got {key!r:.60}")
    if _JOINT.fullmatch(key):
        return key
    return "key-" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def share_law(law: Law, parts: int) -> Law:
    """What each owner draws: `parts` of these are the calibrated noise. V.4"""
    match law:
        case NoNoise():
            return law
        case DiscreteLaplace(scale=scale):
            return DividedLaplace(scale, Fraction(1, parts))
        case DiscreteGaussian(sigma_squared=size):
            return DiscreteGaussian(size / parts)
    raise InvalidQuery("secure addition divides gaussian and laplace noise only")


def total_law(law: Law, owners: int, parts: int) -> Law:
    """The law of all owners' shares together: k/(k - t) draws."""
    match law:
        case DiscreteLaplace(scale=scale) if owners != parts:
            return DividedLaplace(scale, Fraction(owners, parts))
        case DiscreteGaussian(sigma_squared=size):
            return DiscreteGaussian(size * Fraction(owners, parts))
    return law


def totals(shares: Sequence[Sequence[int]]) -> list[int] | None:
    """The sums of all shares, with their sign; None if masks are left in them."""
    found = [sum(each) % MODULUS for each in zip(*shares, strict=True)]
    signed = [total - MODULUS if total >= MODULUS // 2 else total for total in found]
    return signed if all(abs(total) < FARTHEST for total in signed) else None
