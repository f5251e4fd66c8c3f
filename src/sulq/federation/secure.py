"""Rows with several owners who add securely: one noise of the right size, drawn in shares. V.4

Each owner charges the whole question and sends its share under masks; only the total can be read.
Proof: docs/proofs/federation.md, section 3.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from sulq.answers.oracle import Answer, Oracle, Quote
from sulq.answers.statistics import forecast
from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.federation.rows import Receipts, RowSplit, at_once
from sulq.shares import Joint, ShareQuote, SumShare, joint_of, totals


def split_rows(*owners: Oracle, secure: bool = False) -> RowSplit:
    """One Oracle over tables with the same columns and the same promise.

    `secure`: the owners add their sums up under masks, so that the total has one noise for all.
    They must have named each other as partners first (`Database.set_partners`).
    """
    return SecureRowSplit(owners) if secure else RowSplit(owners)


class SecureRowSplit(RowSplit):
    """An Oracle. What one owner sends is of no use without the shares of all others."""

    def __init__(self, owners: Sequence[Oracle]) -> None:
        super().__init__(owners)
        for place, owner in enumerate(owners, 1):
            if not hasattr(owner, "share"):
                raise InvalidQuery(f"owner {place} cannot give shares: {type(owner).__name__}")

    def quote(self, query: object, *, rows: int | None = None, **terms: Any) -> Quote:
        """What each owner charges, and the bar of the total; free."""
        terms["rows"] = rows
        _, agreed = self._agreed(query, self._quotes(query, None, **terms), rows)
        given = self._quotes(query, self._joint(query, agreed), **terms)  # known: paid, or not
        return self._agreed(query, given, rows)[0]

    def ask(self, query: object, *, key: str | None = None, **terms: Any) -> Answer:
        """Ask every owner for its share and add up. Priced and agreed on everywhere first.

        `key` names the joint sum. Unsaid, the same question with the same noise and the same owners
        is the same sum: its stored total, and free for who has paid for it, in any session.
        """
        joint = None if key is None else joint_of(key)
        given = self._quotes(query, joint, **terms)
        quote, agreed = self._agreed(query, given, terms.get("rows"))
        if joint is None:
            joint = self._joint(query, agreed)
            if not all(each.quote.affordable for each in given):  # unless it is paid
                given = self._quotes(query, joint, **terms)
                quote, agreed = self._agreed(query, given, terms.get("rows"))
        shares = self._charged(
            quote,
            [each.quote for each in given],
            lambda owner: owner.share(query, joint=joint, **terms),
            joint,
            key is not None,
        )
        bound = self._bound(query)
        found = None
        if all(_fits(share, agreed, bound.width) for share in shares):
            found = totals([share.values for share in shares])
        if found is None:
            raise SulqError(
                "the owners' shares do not belong together, so there is no total; what they charged"
                f" stands: ask again with key={joint!r}, and tell the owners"
            )
        size = self.size
        return Answer.of(
            bound,
            found,
            agreed.whole,
            most=None if size is None else size * self.schema.max_rows,
            credits=max(share.credits for share in shares),
            receipt=Receipts(tuple(share.receipt for share in shares)),
            promise=self.promise,
        )

    def __repr__(self) -> str:
        return f"<SecureRowSplit of {len(self.owners)} owners, {self.promise}>"

    # --- agreeing -------------------------------------------------------------------------------

    def _joint(self, query: object, agreed: Joint) -> str:
        """The name of the sum, by all that the owners must agree on: so that a repeat is one, and
        after a change of rows or partners it is another."""
        steps = [[str(step), str(middle)] for step, middle in agreed.steps]
        noise = [law.to_json() for law in agreed.laws]
        form = [self._bound(query).text, agreed.owners, agreed.colluding, noise, steps]
        return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()[:32]

    def _quotes(self, query: object, joint: str | None, **terms: Any) -> list[ShareQuote]:
        owners: Any = self.owners
        return at_once(lambda owner: owner.quote_share(query, joint=joint, **terms), owners)

    def _agreed(
        self, query: object, given: Sequence[ShareQuote], rows: int | None
    ) -> tuple[Quote, Joint]:
        """The quote of the total; `Refused`, free, if the owners' masks would not cancel."""
        first, bound = given[0].joint, self._bound(query)
        here = [each.joint.owner for each in given]
        for place, each in enumerate(given, 1):
            if each.joint.owners != first.owners or each.joint.colluding != first.colluding:
                raise Refused(
                    f"owner {place} names other partners, or another number that may collude, than"
                    " the first: the owners must agree with each other; nothing was asked"
                )
            if each.joint.agreed != first.agreed:
                raise Refused(
                    f"owner {place} quotes noise of another size, or another grid, than the first;"
                    " say credits=, or ask through split_rows without secure=True"
                )
        if sorted(here) != list(first.owners):
            raise Refused(
                f"the owners add up with {len(first.owners)} of them, by their keys, and these are"
                " not those: ask all of them, each once, and with the keys that they have now;"
                " nothing was asked"
            )
        steps = tuple((term.fine_step, term.middle) for term in bound.terms)
        if steps != first.steps or len(first.laws) != len(bound.terms):
            raise Refused("the owners quoted another question; nothing was asked")
        quotes = [each.quote for each in given]
        return Quote(
            max(quote.credits for quote in quotes),
            min(quote.left_after for quote in quotes),
            forecast(bound, first.whole, rows, self.size),
            all(quote.repeat for quote in quotes),
            quotes[0].notes,
        ), first


def _fits(share: object, agreed: Joint, width: int) -> bool:
    return (
        isinstance(share, SumShare)
        and share.joint.agreed == agreed.agreed
        and len(share.values) == width
        and all(type(value) is int for value in share.values)
    )
