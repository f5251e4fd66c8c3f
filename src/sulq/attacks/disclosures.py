"""What is shown beside the answers: hashes of the rows, cells that come and go, new draws.

Somebody who knows every row but the last has two candidate tables. Anything shown that is a
function of the rows alone decides between them for nothing.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.answers.statistics import histogram
from sulq.attacks.audit import all_credits, values_of
from sulq.attacks.result import AttackResult
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.errors import Refused, SulqError
from sulq.kernel.query.expressions import col, lit
from sulq.kernel.query.sum_query import SumQuery

HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
SHORTEST = 16
"""Digits of a shortened hash that are still no accident."""
DEEPEST = 8
Extras = Callable[[Oracle], object]


def disclosures(
    target: Target, *, rows: int = 32, seed: int = 10, extras: Extras | None = None
) -> list[AttackResult]:
    """Hashes shown, things that follow the last row, what a replay adds, cells that are hidden."""
    secrets = target.secrets(seed, rows)
    return [
        hashes_shown(target, secrets, extras),
        following_the_last_row(target, secrets, extras),
        replayed(target, secrets),
        hidden_cells(target, secrets),
    ]


def hashes_shown(target: Target, secrets: Bits, extras: Extras | None = None) -> AttackResult:
    """Hashes of the table, as anyone might write it down, that are found in what is shown."""
    text = "\n".join(shown(target.publish(secrets), extras).values()).lower()
    tried = list(hashes(secrets))
    found = [name for name, digits in tried if digits.lower() in text]
    note = f"{len(text):,} characters shown" + (f"; found {found[0]}" if found else "")
    measure = "hashes found"
    return AttackResult("hashes shown", measure, float(len(found)), 0.0, 0.0, len(tried), note=note)


def following_the_last_row(
    target: Target, secrets: Bits, extras: Extras | None = None, times: int = 4
) -> AttackResult:
    """Things shown that are the same each time a table is published and differ with its last row.

    The questions asked leave the last row out; random ids and noise change each time.
    """
    tables = []
    for last in (False, True):
        candidate = secrets.copy()
        candidate[-1] = last
        tables.append([shown(target.publish(candidate), extras) for _ in range(times)])
    constant = [
        {
            place: text
            for place, text in views[0].items()
            if all(v.get(place) == text for v in views)
        }
        for views in tables
    ]
    both = constant[0].keys() & constant[1].keys()
    follow = sorted(place for place in both if constant[0][place] != constant[1][place])
    follow += sorted(tables[0][0].keys() ^ tables[1][0].keys())
    note = f"first: {follow[0]}" if follow else ""
    measure = "facts that follow it"
    trials = len(tables[0][0])
    return AttackResult("the last row", measure, float(len(follow)), 0.0, 0.0, trials, note=note)


def replayed(target: Target, secrets: Bits, times: int = 5) -> AttackResult:
    """Numbers that asking again, with the same key, adds to the first answer."""
    oracle = target.publish(secrets)
    credits = all_credits(oracle, Fraction(1, 2))
    question = SumQuery((lit(1),), col(SECRET))
    answers = [oracle.ask(question, credits=credits, key="replay") for _ in range(times)]
    first = [values_of(answers[0]).tobytes(), repr(answers[0].interval())]
    new = sum(
        [values_of(answer).tobytes(), repr(answer.interval())] != first or answer.credits != 0
        for answer in answers[1:]
    )
    return AttackResult("replay", "answers that differ", float(new), 0.0, 0.0, times - 1)


def hidden_cells(target: Target, secrets: Bits) -> AttackResult:
    """Declared cells that are missing from a histogram because no row, or every row, is there."""
    differ, tried = 0, 0
    for table in (np.zeros_like(secrets), np.ones_like(secrets), secrets):
        oracle = target.publish(table)
        for question, cells in (
            (histogram(SECRET), 2),
            (histogram(ROW, where=col(SECRET), edges=range(len(secrets) + 1)), len(secrets)),
        ):
            try:
                answer = oracle.ask(question, credits=all_credits(oracle, Fraction(1, 2)))
            except Refused:  # a coarse law with fewer credits than a histogram costs
                continue
            differ += np.shape(answer.value) != (cells,) or len(answer.keys) != cells
            tried += 1
    return AttackResult("hidden groups", "cells that come and go", float(differ), 0.0, 0.0, tried)


# --- everything shown -----------------------------------------------------------------------------


def shown(oracle: Oracle, extras: Extras | None = None) -> dict[str, str]:
    """Everything an analyst is shown, as text by place; only questions without the last row."""
    size = oracle.size
    last = 1 if size is None else size - 1
    question = SumQuery((lit(1),), (col(ROW) < last) & col(SECRET))
    credits = all_credits(oracle, Fraction(1, 4))
    quote = oracle.quote(question, credits=credits)
    answer = oracle.ask(question, credits=credits, key="shown")
    try:
        oracle.ask(question, credits=10**12)
        refusal = ""
    except SulqError as problem:
        refusal = str(problem)
    views: dict[str, object] = {
        "schema": oracle.schema,
        "schema text": oracle.schema.to_json(),
        "promise": oracle.promise.to_json(),
        "size": size,
        "remaining": oracle.remaining,
        "oracle": repr(oracle) if " object at 0x" not in repr(oracle) else "",
        "quote": [quote.credits, quote.left_after, quote.note, repr(quote)],
        "answer": [answer.kind, answer.keys, answer.note, answer.credits, repr(answer)],
        "values": values_of(answer).tolist(),
        "receipt": answer.receipt,
        "refusal": refusal,
        "extras": extras(oracle) if extras else None,
    }
    return dict(_leaves("", views, 0))


def _leaves(place: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    if depth > DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{place}/{key}", part, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _leaves(f"{place}/{field.name}", getattr(value, field.name), depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for number, part in enumerate(value):
            yield from _leaves(f"{place}/{number}", part, depth + 1)
    else:
        yield place, value.hex() if isinstance(value, bytes) else str(value)


def hashes(secrets: Bits) -> Iterator[tuple[str, str]]:
    """Hashes of a table under common serialisations, whole and shortened, in hex and base64."""
    for written, data in serialised(secrets):
        for name in HASHES:
            digest = hashlib.new(name, data, usedforsecurity=False).digest()
            yield f"{name} of {written}", digest.hex()[:SHORTEST]
            yield f"{name} of {written}, base64", base64.b64encode(digest).decode()[:SHORTEST]
        digest = hashlib.blake2b(data, digest_size=32).digest()
        yield f"blake2b-256 of {written}", digest.hex()[:SHORTEST]
        for name, check in (("crc32", binascii.crc32(data)), ("adler32", zlib.adler32(data))):
            yield f"{name} of {written}", f"{name}:{check:08x}"


def serialised(secrets: Bits) -> Iterator[tuple[str, bytes]]:
    """The table as bytes, the ways people write tables."""
    rows = list(enumerate(secrets.tolist()))
    records = [{ROW: row, SECRET: bit} for row, bit in rows]
    yield "bits", secrets.tobytes()
    yield "packed bits", np.packbits(secrets).tobytes()
    yield "0s and 1s", "".join(str(int(bit)) for bit in secrets).encode()
    yield "numbers and bits", np.arange(len(secrets)).tobytes() + secrets.tobytes()
    yield "repr", repr(secrets.tolist()).encode()
    yield "last row", repr(rows[-1]).encode()
    yield "json", json.dumps(records).encode()
    yield "compact json", json.dumps(records, separators=(",", ":")).encode()
    columns = {ROW: [row for row, _ in rows], SECRET: secrets.tolist()}
    yield "json columns", json.dumps(columns).encode()
    for name, spell in (("True", str), ("true", lambda bit: str(bit).lower()), ("1", int)):
        for end in ("\n", "\r\n"):
            for header in (True, False):
                text = io.StringIO()
                writer = csv.writer(text, lineterminator=end)
                writer.writerows([(ROW, SECRET)] * header + [(row, spell(b)) for row, b in rows])
                yield f"csv ({name}, {end!r}, header {header})", text.getvalue().encode()
