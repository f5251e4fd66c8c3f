"""Keys and signatures of low order: nothing that is not signed passes for a receipt."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess

import nacl.bindings as sodium
import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

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


def signed_by_mixed(torsion: bytes, message: bytes, secret: bytes) -> tuple[str, bytes]:
    """A key a B + T, and s = r + h a: good where h T is nothing, for one message in eight."""
    sound = sodium.crypto_scalarmult_ed25519_base_noclamp(secret)
    key = sodium.crypto_core_ed25519_add(sound, torsion)
    nonce = sodium.crypto_core_ed25519_scalar_reduce(hashlib.sha512(message + secret).digest())
    point = sodium.crypto_scalarmult_ed25519_base_noclamp(nonce)
    h = sodium.crypto_core_ed25519_scalar_reduce(hashlib.sha512(point + key + message).digest())
    s = sodium.crypto_core_ed25519_scalar_add(
        nonce, sodium.crypto_core_ed25519_scalar_mul(h, secret)
    )
    return key.hex(), point + s


def test_a_key_of_mixed_order_signs_nothing() -> None:
    """The library takes such signatures now and then (CVE-2025-69277 is about the check of points);
    other libraries take all or none of them, so a receipt would be genuine for some readers."""
    secret = sodium.crypto_core_ed25519_scalar_reduce(hashlib.sha512(b"a secret").digest())
    taken = 0
    for torsion in map(bytes.fromhex, LOW[-4:]):
        for number in range(40):
            message = b"receipt %d" % number
            key, signature = signed_by_mixed(torsion, message, secret)
            try:
                VerifyKey(bytes.fromhex(key)).verify(message, signature)
                taken += 1
            except BadSignatureError:
                pass
            assert not is_signed(message, signature, key)
    assert taken > 4  # so the check of the group is what refuses them


@pytest.mark.parametrize("flip", [0, 31, 32, 63])
def test_a_sound_key_signs_what_it_signed(flip: int) -> None:
    key = SigningKey.generate()
    signature = bytearray(key.sign(b"receipt").signature)
    assert is_signed(b"receipt", bytes(signature), bytes(key.verify_key).hex())
    signature[flip] ^= 1
    assert not is_signed(b"receipt", bytes(signature), bytes(key.verify_key).hex())


OTHER = """
const crypto = require("crypto");
const head = Buffer.from("302a300506032b6570032100", "hex");
const told = JSON.parse(require("fs").readFileSync(0)).map(([key, message, signature]) => {
  try {
    const der = Buffer.concat([head, Buffer.from(key, "hex")]);
    const read = crypto.createPublicKey({ key: der, format: "der", type: "spki" });
    return crypto.verify(null, Buffer.from(message, "hex"), read, Buffer.from(signature, "hex"));
  } catch (error) { return false; }
});
console.log(JSON.stringify(told));
"""
"""OpenSSL's verdicts, by way of Node."""


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this system")
def test_a_second_library_takes_whatever_is_taken_here() -> None:
    """Of sound keys the same verdicts, one bit wrong or none; of others nothing more than there."""
    rng, cases = random.Random(17), list[tuple[str, bytes, bytes]]()
    for number in range(120):
        key, message = SigningKey(rng.randbytes(32)), b"receipt %d" % number
        signature = bytearray(key.sign(message).signature)
        if number % 3:
            signature[rng.randrange(64)] ^= 1 << rng.randrange(8)
        cases.append((bytes(key.verify_key).hex(), message, bytes(signature)))
        if number % 10 == 0:  # s + the order of the group: another spelling of the same number
            order = 2**252 + 27742317777372353535851937790883648493
            more = int.from_bytes(signature[32:], "little") + order
            again = bytes(signature[:32]) + more.to_bytes(32, "little")
            cases.append((bytes(key.verify_key).hex(), message, again))
    sound = len(cases)
    secret = sodium.crypto_core_ed25519_scalar_reduce(hashlib.sha512(b"a secret").digest())
    for place in LOW:
        cases += [
            (place, b"x%d" % n, bytes.fromhex(at) + bytes(32)) for n in range(8) for at in LOW
        ]
    for torsion in map(bytes.fromhex, LOW[-4:]):
        for number in range(20):
            key_, signature_ = signed_by_mixed(torsion, b"%d" % number, secret)
            cases.append((key_, b"%d" % number, signature_))
    asked = [(key, message.hex(), signature.hex()) for key, message, signature in cases]
    said = subprocess.run(
        ["node", "-e", OTHER], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    theirs = json.loads(said.stdout)
    ours = [is_signed(message, signature, key) for key, message, signature in cases]
    assert ours[:sound] == theirs[:sound] and any(ours) and not all(ours[:sound])
    assert not any(ours[sound:])
    assert all(there for here, there in zip(ours, theirs, strict=True) if here)
