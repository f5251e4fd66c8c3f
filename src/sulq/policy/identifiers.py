"""Which columns tell people apart: by name, in any case style, and by how many values differ.

`id_named` reads a name alone. `identifier` combines it with two counts of the column's values,
which come from rows: its verdict is for the owner's eyes, and nothing that an analyst sees may
depend on it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

MANY = 100
"""An id-named column with at most this many distinct values is a code, as admission_type_id is."""
FEW = 30
"""Fewer values than this are often all different, whatever they are."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NUMBERS = {"id", "ids", "idx", "key", "nbr", "nr", "no", "num", "number", "nummer", "numero"}
"""Last words of patient_id, patient_nbr, account_no; `id` counts wherever it stands."""
_ALWAYS = _listed(
    """
    id ids uuid guid pk rowid rownum rownames ssn mrn nin nhs npi bsn ahv tin ein vin iban
    imei imsi msisdn passport email emails mail phone phones telephone tel telefon mobile
    fax address addresses adresse addr street strasse surname firstname lastname fullname
    forename username nickname login vorname nachname prenom fingerprint licence license
    plate identifier pseudonym token
    """
)
_PEOPLE = _listed(
    """
    patient person customer client member user employee student subject participant
    respondent individual citizen resident owner holder contact guardian mother father
    spouse partner physician doctor household account
    """
)
"""A column called just this holds whom it names; `patient name` is a name, `city name` is not."""
_NAMED = _PEOPLE | _listed(
    "full first last middle given family maiden birth nick display legal real sur fore"
)
_THINGS = _PEOPLE | _listed(
    """
    row record case order encounter visit appointment stay admission transaction session
    device policy claim invoice card national health insurance tax security file entry
    sample specimen line
    """
)
_PERSONAL = {"ssn", "mrn", "nin", "nhs", "bsn", "ahv", "passport", "email", "mail", "username"}
_SHARED = _listed(
    """
    name names nom surname firstname lastname fullname forename vorname nachname prenom
    nickname address addresses adresse addr street strasse phone phones telephone tel
    telefon mobile fax
    """
)
"""Two people may have the same."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_NUMBERED = "(id|uuid|guid|nbr|nr|no|num|number|nummer|key)"
_JOINED = re.compile(rf"(id|{'|'.join(sorted(_THINGS))}){_NUMBERED}|\w+nummer")
"""Words written as one: patientid, IDNUM, Kundennummer."""


def id_named(name: str) -> bool:
    """Return whether a column's name is that of an identifier or of a person's own details.

    True for `PatientId`, `patient_nbr`, `mrn`, `e-mail`, `full_name`, `row_number`; also for
    `admission_type_id`, a code: the caller looks whether it has many distinct values.
    """
    words = _words(name)
    if not words:
        return False
    *before, last = words
    if not _ALWAYS.isdisjoint(words) or any(_JOINED.fullmatch(word) for word in words):
        return True
    if last in ("name", "names", "nom"):
        return not before or not _NAMED.isdisjoint(before)
    if last in _NUMBERS:
        return bool(before) or last == "key"
    if last == "index":
        return not _THINGS.isdisjoint(before) or not before
    return not before and last in _PEOPLE


def _words(name: str) -> list[str]:
    """The words of a name, in lower case and without accents or digits."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(mark for mark in plain if not unicodedata.combining(mark))
    return [word.lower() for word in _WORD.findall(plain)]


def tells_people(name: str) -> int:
    """Return how surely values of an id-named column stand for people: 2, 1, or 0 for not at all.

    A patient's number does; an order's number tells orders apart; two people may share a name, an
    address or a telephone.
    """
    words = _words(name)
    if _SHARED.intersection(words):
        return 0
    person = _PEOPLE | _PERSONAL
    named = any(word in person or any(map(word.startswith, _PEOPLE)) for word in words)
    return 2 if named else int(id_named(name))


Kind = Literal["text", "whole", "other"]
"""What a column holds: only text and whole numbers are told by distinctness."""


def identifier(
    name: str, kind: Kind, distinct: int, values: int
) -> Literal["by name", "by values"] | None:
    """Return how a column shows itself as an identifier, or None.

    `values` counts those that are not missing, `distinct` the different ones among them.
    """
    if distinct > MANY and id_named(name):
        return "by name"
    if kind != "other" and distinct >= FEW and 10 * distinct > 9 * values:
        return "by values"
    return None
