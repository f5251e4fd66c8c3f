"""An owner's share in a joint sum. V.4

The masks hang on a secret that two owners have in common, and on everything that they must agree
on: the question, the noise, the name of the joint sum, who takes part. Whoever asks brings none of
that secret. Proof: docs/proofs/federation.md, section 3.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

from nacl.public import Box, PrivateKey, PublicKey

from sulq.answers.oracle import Quote
from sulq.answers.statistics import forecast
from sulq.database.table import Table, paid_by
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.pricing import Price, divided
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.ledger.signing import secret_at
from sulq.kernel.ledger.state_dir import named, passing_key, private_directory
from sulq.kernel.query.sum_query import FORMAT, digest_of
from sulq.kernel.release.release import MaskedSums
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.study import refuse_study
from sulq.shares import MODULUS, Joint, Partners, ShareQuote, SumShare, check_joint, share_law

PURPOSE = b"sulq secure addition 1\x00"
WORD = 32
"""Bytes of a mask: as many as the modulus has."""
Credits = Fraction | int | float


class Sharing:
    """One table's part in joint sums: its secret key, and its partners as its owner names them."""

    def __init__(self, table: Table) -> None:
        self.table, self._passing = table, bytes.fromhex(passing_key())
        self._partners: Partners | None = None

    @property
    def secret(self) -> PrivateKey:
        """For these rows, these facts and this life of the ledger: after growth, an amendment or a
        recovery it is another one, so that no mask is ever used for a second draw."""
        ledger = self.table.ledger
        header = ledger.header
        if ledger.replica is not None:
            raise Refused(
                "secure addition needs a ledger of its own, a file: replicas that share one would"
                " each have their own key"
            )
        about = f"{header.name}.{header.version}.{ledger.generation}.{ledger.last_lost}"
        if not ledger.durable:
            own = hashlib.blake2b(about.encode(), key=self._passing, digest_size=WORD)
            return PrivateKey(own.digest())
        place = private_directory("ledgers", ledger.ledger_id) / f"sharing-{named(about)}"
        return PrivateKey(secret_at(place))

    @property
    def key(self) -> str:
        """What the partners are given."""
        return self.secret.public_key.encode().hex()

    def join(self, partners: Partners | None) -> None:
        """Add with these owners from now on; None: with nobody."""
        if partners is not None:
            if not isinstance(partners, Partners):
                raise InvalidQuery(f"give Partners(...), got {type(partners).__name__}")
            if self.key in partners.keys:
                raise InvalidQuery(
                    "the table's own key is among the partners'; name the others only"
                )
        self._partners = partners

    def partners(self, analyst: str) -> Partners:
        """Those named, if there are any, for somebody who may learn the total."""
        found = self._partners
        if found is None:
            raise Refused(
                "this table's owner has named no partners for secure addition (`set_partners`); ask"
                " for the answer itself"
            )
        if self.key in found.keys:
            raise Refused("the table's own key is among its partners'; its owner must set it right")
        if analyst == OWNER and not found.colluding:
            raise Refused(
                "with colluding=0 no owner may learn a total, since its own share of the noise can"
                " be taken off; let an analyst with a grant ask, or have the owners state 1"
            )
        return found


def ask_share(
    sharing: Sharing,
    query: object,
    *,
    joint: str,
    within: float | None = None,
    confidence: float = 0.95,
    credits: Credits | None = None,
    rows: int | None = None,
    analyst: str = OWNER,
) -> SumShare:
    """This owner's masked share of one joint sum; charged as the whole question is.

    `joint` names the sum. Asked again under it the same share comes back, free; another question
    under it is refused.
    """
    bound, cost, agreed = _priced(sharing, query, within, confidence, credits, rows, analyst)
    database = sharing.table
    text, noise = _text(bound, agreed, check_joint(joint)), _noise_text(cost)
    masks = _masks(sharing.secret, agreed, text, bound.width)
    due = PricedRequest(text, digest_of(text), noise, database.charges(cost), cost.share)
    masked = MaskedSums(bound, cost, due, masks, MODULUS)
    entry = database.release_one(masked, analyst, joint)
    assert entry.values is not None  # noqa: S101
    return SumShare(entry.values, agreed, paid_by(entry), entry.receipt)


def quote_share(
    sharing: Sharing,
    query: object,
    *,
    joint: str | None = None,
    within: float | None = None,
    confidence: float = 0.95,
    credits: Credits | None = None,
    rows: int | None = None,
    analyst: str = OWNER,
) -> ShareQuote:
    """What a share costs, and the bar of the total; free, and no row is read."""
    bound, cost, agreed = _priced(sharing, query, within, confidence, credits, rows, analyst)
    database = sharing.table
    database.check_readable(bound)  # what ask would refuse, a quote refuses too
    repeat = False
    if joint is not None:
        text = _text(bound, agreed, check_joint(joint))
        repeat = database.ledger.paid(analyst, digest_of(text), _noise_text(cost))
    due = Fraction(0) if repeat else cost.share.credits_fraction
    touched = None if repeat else list(database.charges(cost)) or None
    left = database.ledger.remaining(analyst, touched).credits_fraction
    bar = forecast(bound, agreed.whole, rows, database.size)
    return ShareQuote(Quote(due, left - due, bar, repeat, bound.notes), agreed)


def _priced(
    sharing: Sharing,
    query: object,
    within: float | None,
    confidence: float,
    credits: Credits | None,
    rows: int | None,
    analyst: str,
) -> tuple[BoundQuery, Price, Joint]:
    """The question, the price with each owner's part of the noise, and what must be agreed on."""
    database = sharing.table
    database.reader.check_covered("secure addition")
    if database.exact.assumptions is not None:
        raise Refused("a table with exact release takes no part in secure addition; ask it alone")
    partners = sharing.partners(analyst)
    own = sharing.key
    everybody = tuple(sorted((*partners.keys, own)))
    bound = database.bind(query)  # query and schema only; may refuse, free

    refuse_study(database.schema, "a share of a joint sum")

    def joint(cost: Price) -> Joint:
        steps = tuple((term.fine_step, term.middle) for term in bound.terms)
        return Joint(own, everybody, partners.colluding, cost.laws, steps)

    wanted = database.price(
        bound, within, confidence, credits, rows, lambda cost: joint(cost).whole
    )  # no data
    laws = tuple(share_law(law, partners.parts) for law in wanted.laws)
    return bound, divided(bound, database.calibration, wanted, laws), joint(wanted)


def _text(bound: BoundQuery, agreed: Joint, joint: str) -> str:
    """All that the owners must agree on: the same text for each of them, and in the ledger."""
    form = {
        "sulq": FORMAT,
        "share": json.loads(bound.text),
        "joint": joint,
        "owners": agreed.owners,
        "colluding": agreed.colluding,
        "noise": [law.to_json() for law in agreed.laws],
        "steps": [[str(step), str(middle)] for step, middle in agreed.steps],
        "width": bound.width,
    }
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def _noise_text(cost: Price) -> str:
    """Unlike the noise of an answer: what is stored is masked, and nothing follows from it."""
    form = {"share": [law.to_json() for law in cost.laws]}
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def _masks(secret: PrivateKey, agreed: Joint, text: str, width: int) -> list[int]:
    """For each sum the masks that this owner has with all others; over all owners they are 0."""
    found = [0] * width
    for other in agreed.owners:
        if other == agreed.owner:
            continue
        sign = 1 if agreed.owner < other else -1
        for place, mask in enumerate(_stream(secret, agreed.owner, other, text, width)):
            found[place] += sign * mask
    return found


def _stream(secret: PrivateKey, owner: str, other: str, text: str, width: int) -> list[int]:
    """The masks of two owners for one text: the same for both, to others uniform numbers."""
    shared = Box(secret, PublicKey(bytes.fromhex(other))).shared_key()
    pair = bytes.fromhex("".join(sorted((owner, other))))
    seed = PURPOSE + shared + pair + bytes.fromhex(digest_of(text))
    words = hashlib.shake_256(seed).digest(WORD * width)
    starts = range(0, len(words), WORD)
    return [int.from_bytes(words[start : start + WORD], "little") for start in starts]
