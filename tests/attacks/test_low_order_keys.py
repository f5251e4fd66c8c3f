"""Keys and signatures of low order: nothing that is not signed passes for a receipt."""

from __future__ import annotations

from sulq.kernel.ledger.signing import is_signed

LOW = [
    "00" * 32,
    "01" + "00" * 31,
    "01" + "00" * 30 + "80",
    "ec" + "ff" * 30 + "7f",
    "ed" + "ff" * 30 + "7f",
    "ee" + "ff" * 30 + "7f",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
]
"""Points of order 1, 2, 4 and 8, and spellings of them that are not the shortest."""


def test_a_low_order_key_signs_nothing() -> None:
    """With s = 0 and such a key, S B = R + h A holds for one message in eight."""
    signatures = [bytes.fromhex(point) + bytes(32) for point in LOW]
    messages = [b"receipt %d" % number for number in range(24)]
    for key in LOW:
        assert not [
            (key, message)
            for signature in signatures
            for message in messages
            if is_signed(message, signature, key)
        ]
