from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish

from sulq.errors import Refused
from sulq.kernel.ledger.signing import canonical, verify_receipt

OFFLINE = """
import sys
from nacl.signing import VerifyKey
import json
text, public = sys.argv[1:]
found = json.loads(text)
body = json.dumps(found["receipt"], sort_keys=True, separators=(",", ":")).encode()
VerifyKey(bytes.fromhex(public)).verify(body, bytes.fromhex(found["signature"]))
"""


def test_a_receipt_says_what_was_charged_and_released(place):
    journal = publish(place)
    entry = ask(journal, "q", values=(3, -4))
    assert entry.receipt is not None
    body = entry.receipt.body
    assert body["seq"] == entry.seq
    assert body["question"] == '{"ask":"q"}'
    assert (body["analyst"], body["noise"], body["neighbours"]) == ("owner", "n", "replace")
    assert body["charges"] == [[str(ONE.credits), "0", "0"]]
    assert body["version"] == journal.header.version
    assert body["ledger"] == journal.statement().ledger
    assert not {"values", "value", "draw", "fingerprint"} & set(body)


def test_a_receipt_verifies_without_ledger_and_without_this_package(journal):
    entry = ask(journal, "q")
    text = entry.receipt.to_json()
    verify_receipt(text, journal.public_key)
    command = [sys.executable, "-c", OFFLINE, text, journal.public_key]
    subprocess.run(command, check=True)


def test_the_same_entry_has_the_same_receipt_every_time(place):
    journal = publish(place)
    entry = ask(journal, "q")
    assert journal.receipt(entry.seq) == entry.receipt
    journal.close()
    assert publish(place).receipt(entry.seq).to_json() == entry.receipt.to_json()


def test_every_changed_field_is_noticed(journal):
    text = ask(journal, "q").receipt.to_json()
    found = json.loads(text)
    for name, value in found["receipt"].items():
        changed = json.loads(text)
        changed["receipt"][name] = value + 1 if isinstance(value, int) else [value]
        with pytest.raises(Refused, match=r"does not verify|not a receipt"):
            verify_receipt(canonical(changed), journal.public_key)
    changed = json.loads(text)
    changed["signature"] = "00" + changed["signature"][2:]
    with pytest.raises(Refused, match="does not verify"):
        verify_receipt(canonical(changed), journal.public_key)


def test_another_ledger_s_key_does_not_verify(journal):
    text = ask(journal, "q").receipt.to_json()
    with pytest.raises(Refused, match="does not verify"):
        verify_receipt(text, publish(":memory:").public_key)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "7", '{"receipt":{},"signature":"x"}', "[" * 9999]
)
def test_what_is_no_receipt_is_refused(text):
    with pytest.raises(Refused, match="not a receipt"):
        verify_receipt(text, "00" * 32)


def test_an_unanswered_entry_has_no_receipt(journal):
    with pytest.raises(Refused, match="no receipt"):
        journal.receipt(pay(journal, "q").seq)
    with pytest.raises(Refused, match="no receipt"):
        journal.receipt(99)


def test_a_repeat_has_a_receipt_of_its_own(journal):
    journal.grant("ann", credits(2))
    first = ask(journal, "q")
    again = pay(journal, "q", analyst="ann")
    body = again.receipt.body
    assert (body["analyst"], body["origin"], body["charges"]) == ("ann", first.seq, [])
    assert body["answer_hash"] == first.receipt.body["answer_hash"]
    assert journal.receipt(again.seq) == again.receipt


def test_a_receipt_has_one_spelling(journal):
    """What a reader sees must be what was signed: no second field, no rest, no not-a-number."""
    text = ask(journal, "q").receipt.to_json()
    verify_receipt(f"{text}\n", journal.public_key)
    start = '{"receipt":{"format":"sulq receipt 1"'
    for changed in (
        text.replace('"analyst":"owner"', '"analyst":"mallory","analyst":"owner"'),
        text[:-1] + ',"credits":"999"}',
        text.replace('"seq":', '"seq": '),
        text.replace('"seq":', '"x":NaN,"seq":'),
        start + ',"x":NaN},"signature":"00"}',
        start + ',"x":' + "[" * 900 + "]" * 900 + '},"signature":"00"}',
        start + ',"x":' + "9" * 5000 + '},"signature":"00"}',
        '{"receipt":[],"signature":"00"}',
        "null",
        "",
    ):
        with pytest.raises(Refused, match="not a receipt"):
            verify_receipt(changed, journal.public_key)
