"""An exported chain is judged by the key one has from elsewhere, not by the keys it names."""

from __future__ import annotations

import json

import pytest
from tests.people import publish

from sulq import Refused, col, count
from sulq.kernel.ledger import events
from sulq.kernel.ledger.export import GENUINE, NOT_SIGNED, export, read_chain
from sulq.kernel.ledger.inspect import verified_rows
from sulq.kernel.ledger.signing import (
    ChainHead,
    canonical,
    fingerprint,
    link,
    new_key,
    sign_head,
    sign_receipt,
)


@pytest.fixture
def history(tmp_path):
    """A ledger with one answer, its rows, and the receipt."""
    path = tmp_path / "people.ledger"
    with publish(ledger=path, name="people") as database:
        answer = database.ask(count(where=col("age") >= 65))
        key = database.ledger.public_key
    return verified_rows(path), answer.receipt, key


def _forged(lines, receipt):
    """Events that somebody without the signing key adds, and a receipt for them."""
    mine, ledger = new_key(None), json.loads(lines[0])["ledger"]
    last, out = json.loads(lines[-1]), list(lines)
    at = [last["seq"], bytes.fromhex(last["hash"])]

    def add(body, noisy=None):
        text = canonical(body)
        at[:] = at[0] + 1, link(at[1], text)
        line = {"seq": at[0], "hash": at[1].hex(), "body": text}
        line["seal"] = sign_head(ledger, mine, ChainHead(*at)).hex()
        out.append(canonical(line if noisy is None else {**line, "noisy": noisy}))

    add(events.RecoverEvent(mine.public, False, True, (), {}).to_body())
    add(events.GrantEvent("people", "eve", _nothing()).to_body())
    body = {**receipt.body, "answer": at[0], "answer_link": at[1].hex()}
    return out, sign_receipt({**body, "answer_hash": fingerprint("9")}, mine).to_json(), mine.public


def _nothing():
    from sulq.kernel.accounting.loss import Loss

    return Loss.zero()


@pytest.mark.parametrize("redact", [False, True])
def test_added_events_under_another_key_are_not_believed(history, redact):
    rows, receipt, genuine = history
    lines = list(export(rows, table="people", redact=redact, analyst="owner"))
    assert read_chain(lines, genuine).judge(receipt.to_json())[0] == GENUINE
    out, forged, other = _forged(lines, receipt)
    with pytest.raises(Refused, match="another key than the one given"):
        read_chain(out, genuine)
    chain = read_chain(lines, genuine)
    assert chain.public_keys == (genuine,)
    assert chain.judge(forged)[0] == NOT_SIGNED
    assert other not in chain.public_keys


def test_bodies_cannot_be_tried_out_against_their_hash(history):
    """Two ledgers with the same events in the same second have nothing in common."""
    rows, _, _ = history
    salts = [json.loads(row.body).get("salt") for row in rows[1:]]
    assert all(isinstance(salt, str) and len(salt) == 32 for salt in salts)
    assert len(set(salts)) == len(salts)
