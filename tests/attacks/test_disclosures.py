"""Nothing shown is a function of the rows alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.attacks.broken import AnsweredTwice, HashShown, Textbook, broken
from tests.attacks.sandbox import honest

from sulq.answers.oracle import Answer
from sulq.attacks.disclosures import disclosures, hashes, hidden_cells, replayed, serialised, shown
from sulq.attacks.target import Bits
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.promise import Promise

PROMISE = Promise(1, queries=100)


def statement(oracle: Any) -> Any:
    """What the owner and the auditor see besides."""
    return oracle.statement()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "promise",
    [
        PROMISE,
        Promise(1, "1e-6", queries=100),
        Promise(1, "1e-6", queries=100, noise="huber"),
        Promise(1, "1e-6", queries=10, neighbours="add-remove"),
    ],
    ids=str,
)
def test_the_database_discloses_nothing(promise: Promise) -> None:
    findings = disclosures(honest(promise), extras=statement)
    assert len(findings) == 4
    for finding in findings:
        assert finding.reached == 0, finding
        assert finding.trials > 0


def test_what_is_shown_includes_receipt_statement_and_refusal() -> None:
    oracle = honest(PROMISE).publish(honest(PROMISE).secrets(1, 32))
    places = shown(oracle, statement)
    for place in ("/receipt/signature", "/receipt/body/answer_hash", "/refusal", "/size"):
        assert places[place], place
    assert any("statement/head" in place for place in places)
    assert any("public_key" in place for place in places)


def sha256_of_csv(secrets: Bits) -> str:
    lines = ["row,secret", *(f"{row},{bit}" for row, bit in enumerate(secrets.tolist()))]
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


def keyed_hash(secrets: Bits) -> str:
    """A hash that no list of guesses holds, but the same each time."""
    return hashlib.blake2b(secrets.tobytes(), key=b"not random", digest_size=20).hexdigest()


class PlainHash(HashShown):
    fingerprint = staticmethod(sha256_of_csv)


class ShortHash(HashShown):
    fingerprint = staticmethod(lambda secrets: hashlib.md5(secrets.tobytes()).hexdigest()[:20])


class KeyedHash(HashShown):
    fingerprint = staticmethod(keyed_hash)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [PlainHash, ShortHash, KeyedHash])
def test_a_fingerprint_of_the_rows_is_caught(kind: type[HashShown]) -> None:
    found, follows, _, _ = disclosures(broken(kind, PROMISE))
    assert follows.broken
    assert "receipt" in follows.note
    assert found.broken is (kind is not KeyedHash)


def test_a_replay_with_new_noise_is_caught() -> None:
    target = broken(AnsweredTwice, PROMISE)
    assert replayed(target, target.secrets(1, 8)).reached == 4


class OnlyFullCells(Textbook):
    """Leaves out cells without rows, as GROUP BY does."""

    def answer(self, bound: BoundQuery, due: Fraction) -> Answer:
        answer = super().answer(bound, due)
        held = np.array(self.database.engine.prepare(bound.sums)()) > 0
        if len(held) == 1:
            return answer
        value = np.asarray(answer.value)[held]
        return replace(answer, reading=replace(answer.reading, value=value))


def test_cells_that_come_and_go_are_caught() -> None:
    target = broken(OnlyFullCells, PROMISE)
    assert hidden_cells(target, target.secrets(1, 32)).broken


def test_hashes_are_many_and_follow_the_last_row() -> None:
    secrets = np.array([True, False, True])
    names = [name for name, _ in hashes(secrets)]
    assert len(set(names)) == len(names) > 300
    other = secrets.copy()
    other[-1] = False
    same = dict(serialised(secrets)).items() & dict(serialised(other)).items()
    assert not same
