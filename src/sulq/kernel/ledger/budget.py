"""The rules of spending: lifetime caps, analysts' shares inside them; admit, or raise.

For every account a and each of credits and delta, always

    spent[a] + sum over analysts of (granted - spent share)
             + what is left of the owner's reservations <= cap                     G.1.2, G.2, S4.17

so what was granted or reserved is there when it is asked for, and no order of questions passes
the cap. An analyst's reservations lie inside the analyst's share.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.accounts import (
    NOTHING,
    WHOLE,
    AccountCharge,
    Reservation,
    SpentTotals,
    VersionBudget,
    in_credits,
    minus_clamped,
    rounded_up,
)
from sulq.kernel.ledger.header import Ended, PopulationAccount, PopulationMembership
from sulq.kernel.schema.columns import EVERYONE

OWNER = "owner"


@dataclass(slots=True)
class AnalystShare:
    """An analyst's own limit. `granted` is None for the owner, whom only the accounts limit."""

    granted: Loss | None
    spent: Loss = NOTHING
    held: Loss = NOTHING  # in open reservations
    revoked: Ended | None = None  # then nothing is for this analyst until a new grant

    @property
    def left(self) -> Loss:
        """What is granted and not yet spent: kept for this analyst, held or not."""
        return NOTHING if self.granted is None else minus_clamped(self.granted, self.spent)

    @property
    def free(self) -> Loss:
        """What can be spent without a reservation."""
        return minus_clamped(self.left, self.held)


@dataclass(frozen=True, slots=True)
class Spending:
    """All that one question takes, and from whom: `Budgets.admit` returns it, `spend` books it."""

    analyst: str
    parts: tuple[AccountCharge, ...]
    share: Loss
    reservation: int | None
    limited: bool  # what is kept for this spender pays; False: only the accounts limit the owner
    population: Loss


@dataclass(slots=True)
class Budgets:
    """What one table has spent and may spend."""

    names: Sequence[str]
    cap: Loss
    credits: SpentTotals = field(init=False)
    delta: SpentTotals = field(init=False)
    shares: dict[str, AnalystShare] = field(init=False)
    reserved: Loss = NOTHING  # kept: granted and not spent, and in the owner's reservations
    reservations: dict[int, Reservation] = field(default_factory=dict)  # those that are open
    divisor: int = 1
    member: PopulationMembership | None = None
    pool: PopulationAccount | None = (
        None  # the account of its population, which other tables pay too
    )
    ceiling: Loss = field(init=False)  # the cap, or what releases made elsewhere drove it to
    version: VersionBudget = WHOLE  # of the present version of the data

    def __post_init__(self) -> None:
        self.ceiling = self.cap
        self.credits, self.delta = SpentTotals(len(self.names)), SpentTotals(len(self.names))
        self.shares = {OWNER: AnalystShare(None)}

    def copy(self) -> Budgets:
        """Return a copy on which several questions can be tried out together."""
        twin = replace(self)
        twin.ceiling = self.ceiling
        twin.pool = None if self.pool is None else replace(self.pool)
        twin.credits, twin.delta = self.credits.copy(), self.delta.copy()
        twin.shares = {name: replace(own) for name, own in self.shares.items()}
        twin.reservations = {seq: replace(found) for seq, found in self.reservations.items()}
        return twin

    def plan(
        self,
        analyst: str,
        parts: Collection[AccountCharge],
        share: Loss,
        reservation: int | None = None,
    ) -> Spending:
        """Say what a question takes from whom; `LookupError` if there is no such share or
        reservation. Checks no limit, and changes nothing."""
        own = self.shares[analyst]
        held = None if reservation is None else self.reservations[reservation]
        due = NOTHING if self.member is None else self.member.due(parts)
        limited = held is not None or own.granted is not None
        return Spending(analyst, tuple(parts), share, reservation, limited, due)

    def admit(
        self,
        analyst: str,
        parts: Collection[AccountCharge],
        share: Loss,
        reservation: int | None = None,
    ) -> Spending:
        """Return what `spend` is to book, or raise `Refused` or `BudgetSpent` unless all of it
        fits; changes nothing."""
        limit = self._limit(self.known(analyst), analyst, reservation)
        plan = self.plan(analyst, parts, share, reservation)
        if limit is not None and not share.within(limit):
            raise self._short(analyst, share, limit, reservation)
        if self.pool is not None:
            self.pool.admit(plan.population)
        kept = self.reserved if limit is None else minus_clamped(self.reserved, share)
        aside = self._aside(share.credits if reservation is not None else 0)
        for part in parts:
            self.version.admit(self.credits.worst(part), part.loss.credits, aside)
            due = (
                (self.credits, part.loss.credits, self.cap.credits - kept.credits),
                (self.delta, part.loss.delta, self.cap.delta - kept.delta),
            )
            for totals, amount, most in due:
                # A free question is always admitted: it moves no account nearer to its cap.
                if amount and totals.worst(part) + amount > most:
                    raise self._overdrawn(totals, part, kept)
        return plan

    def spend(self, plan: Spending) -> None:
        """Book what was admitted; at replay, what an event says was."""
        own, share = self.shares[plan.analyst], plan.share
        if plan.reservation is not None:
            self.reservations[plan.reservation].pay(plan.analyst, share)
            own.held = minus_clamped(own.held, share)
        if self.pool is not None:
            self.pool.spend(plan.population)
        for part in plan.parts:
            self.credits.add(part, part.loss.credits)
            self.delta.add(part, part.loss.delta)
        own.spent += share
        if plan.limited:
            self.reserved = minus_clamped(self.reserved, share)

    def known(self, analyst: str) -> AnalystShare:
        """Return the share of an analyst who may ask; `Refused` for anybody else."""
        own = self.shares.get(analyst)
        if own is None:
            raise Refused(
                f"{analyst!r} has no grant on this table; the owner can give one "
                f"(`sulq grant {analyst}`)"
            )
        if own.revoked is not None:
            raise Refused(
                f"{analyst!r} was revoked on this table ({own.revoked}); the owner can grant anew "
                f"(`sulq grant {analyst}`)"
            )
        return own

    def _aside(self, own: int) -> int:
        """Return the credits in open reservations, but for what the asker takes out of one."""
        return sum(found.left.credits for found in self.reservations.values()) - own

    def _limit(self, own: AnalystShare, analyst: str, reservation: int | None) -> Loss | None:
        """What is kept for this spender; None for the owner, whom only the accounts limit."""
        if reservation is None:
            return None if own.granted is None else own.free
        found = self.reservations.get(reservation)
        if found is None or found.analyst != analyst:
            raise ended()
        return found.left

    @staticmethod
    def _short(analyst: str, share: Loss, limit: Loss, reservation: int | None) -> BudgetSpent:
        if reservation is not None:
            return BudgetSpent(
                f"{_price(share, limit)} of what was reserved; ask a cheaper question, or outside"
                " the reservation"
            )
        return BudgetSpent(
            f"{_price(share, limit)} of {analyst}'s share; ask a cheaper "
            "question or ask the owner for a larger grant"
        )

    def _overdrawn(self, totals: SpentTotals, part: AccountCharge, kept: Loss) -> BudgetSpent:
        """Name the account that has least left."""
        account = max(part.accounts(), key=totals.__getitem__)
        left = minus_clamped(self.cap, self.spent(account) + kept)
        name = self.names[account]
        where = "" if name in ("", EVERYONE) else f" for the rows with {name}, which this touches"
        if kept != NOTHING:
            where += " (what is granted to analysts or reserved is kept for them)"
        return BudgetSpent(
            f"{_price(part.loss, left)} of the lifetime budget{where}; ask a "
            "cheaper question, or repeat an old one, which is free"
        )

    def admit_reservation(self, analyst: str, wanted: Loss) -> Loss:
        """What may be set aside: the credits, and of delta what there is, at most as wanted."""
        self.known(analyst)
        left = self.remaining(analyst)
        if wanted.credits > left.credits:
            raise BudgetSpent(
                f"{in_credits(wanted.credits, up=True)} credits cannot be reserved, "
                f"{in_credits(left.credits)} are left; reserve less"
            )
        return Loss(wanted.credits, min(wanted.delta, left.delta))

    def reserve(
        self, seq: int, analyst: str, amount: Loss, at: int, replica: int | None = None
    ) -> None:
        own = self.shares[analyst]
        self.reservations[seq] = Reservation(seq, analyst, amount, at, replica=replica)
        own.held += amount
        if own.granted is None:
            self.reserved += amount

    def give_back(self, seq: int) -> None:
        """End a reservation; what it has left is free again."""
        found = self.reservations.pop(seq)
        own = self.shares[found.analyst]
        own.held = minus_clamped(own.held, found.left)
        if own.granted is None:
            self.reserved = minus_clamped(self.reserved, found.left)

    def admit_grant(self, analyst: str, amount: Loss) -> None:
        """Grants come out of what is neither spent nor kept in the worst account."""
        if analyst == OWNER:
            raise Refused("the owner needs no grant: only the lifetime budget limits the owner")
        if not analyst:
            raise Refused("a grant needs the analyst's name, got an empty one")
        left = self._lifetime(OWNER)  # a grant outlives the present version
        if amount.credits > left.credits or amount.delta > left.delta:
            raise Refused(
                f"{_price(amount, left)} neither spent nor granted, nor reserved; grant less"
            )

    def grant(self, analyst: str, amount: Loss) -> AnalystShare:
        own = self.shares.setdefault(analyst, AnalystShare(NOTHING))
        own.granted, own.revoked = (own.granted or NOTHING) + amount, None
        self.reserved += amount
        return own

    def revoke(self, analyst: str, ended: Ended) -> None:
        """Return what is unspent to what nobody was granted; what is spent stays."""
        own = self.shares[analyst]
        for seq in [seq for seq, held in self.reservations.items() if held.analyst == analyst]:
            self.give_back(seq)
        self.reserved = minus_clamped(self.reserved, own.left)
        own.granted, own.revoked = own.spent, ended

    def admit_amend(self, cap: Loss, credits: Fraction, delta: Fraction) -> None:
        """Refuse a cap that is smaller than what is spent and kept, in its own currency."""
        after = self.copy()
        after.amend(cap, credits, delta)
        if not after.held.within(cap):
            wanted, most = in_credits(after.held.credits, up=True), in_credits(cap.credits)
            raise Refused(
                f"{wanted} credits are spent or granted, counted as the new promise counts them,"
                f" and it has {most} (or too little delta); promise more, or revoke grants first"
            )

    def amend(self, cap: Loss, credits: Fraction, delta: Fraction) -> None:
        """Another cap in another currency. Spending rounds up, what analysts have left down. G.1

        Reservations end. Shares of delta stay as they are: they only keep analysts apart.
        """
        self.void()
        if self.member is not None:  # the population's own currency stays
            self.member = replace(self.member, credits=self.member.credits / credits)
        self.credits.scale(credits)
        self.delta.scale(delta)
        self.version = self.version.scaled(credits)
        self.cap, self.reserved, self.ceiling = cap, NOTHING, cap
        for own in self.shares.values():
            left = Loss(own.left.credits * credits // 1, own.left.delta)
            own.spent = Loss(
                rounded_up(own.spent.credits * credits), rounded_up(own.spent.delta * delta)
            )
            if own.granted is not None:
                own.granted = own.spent + left
                self.reserved += left

    @property
    def held(self) -> Loss:
        """Spent by the worst account, or kept for somebody."""
        kept = self.reserved
        return Loss(self.credits.most + kept.credits, self.delta.most + kept.delta)

    def remaining(
        self,
        analyst: str,
        accounts: Collection[int] | None = None,
        reservation: int | None = None,
    ) -> Loss:
        """The most one question on `accounts` (None: all) may cost: the least of share, accounts
        and what the present version may spend."""
        found = self._lifetime(analyst, accounts, reservation)
        held = None if reservation is None else self.reservations.get(reservation)
        aside = self._aside(0 if held is None else held.left.credits)
        spent = (
            self.credits.most
            if accounts is None
            else max((self.credits[number] for number in accounts), default=0)
        )
        left = self.version.left(spent, aside)
        return found if left is None else Loss(min(found.credits, left), found.delta)

    def _lifetime(
        self,
        analyst: str,
        accounts: Collection[int] | None = None,
        reservation: int | None = None,
    ) -> Loss:
        own = self.shares.get(analyst)
        if own is None:
            return NOTHING
        limit = self._limit(own, analyst, reservation)
        if accounts is None:
            spent = Loss(self.credits.most, self.delta.most)
        else:
            spent = Loss(
                max((self.credits[number] for number in accounts), default=0),
                max((self.delta[number] for number in accounts), default=0),
            )
        free = minus_clamped(self.cap, spent + minus_clamped(self.reserved, limit or NOTHING))
        if self.pool is not None and self.member is not None:
            shared = self.member.worth(self.pool.left)
            free = Loss(min(free.credits, shared.credits), min(free.delta, shared.delta))
        if limit is None:
            return free
        return Loss(min(free.credits, limit.credits), min(free.delta, limit.delta))

    @property
    def granted_left(self) -> Loss:
        """Granted and not yet spent, by all analysts."""
        return sum((own.left for own in self.shares.values()), NOTHING)

    def spent(self, number: int) -> Loss:
        return Loss(self.credits[number], self.delta[number])

    @property
    def untouched(self) -> bool:
        """True if no account has paid anything yet."""
        return self.credits.most == self.delta.most == 0

    def admit_divided(self, divisor: int) -> None:
        """A release under assumptions: what is spent and granted must fit the smaller caps. M.9"""
        held = self.credits.most + self.reserved.credits
        if held * divisor > self.cap.credits * self.divisor:
            raise BudgetSpent(
                f"this multiplies what noisy answers cost by {divisor}; {in_credits(held, up=True)}"
                f" credits are spent or granted and {in_credits(self.cap.credits)} is the cap:"
                " release before noisy questions are asked, or not at all"
            )

    def divide(self, divisor: int) -> None:
        """Every cap is divided, once: what was spent and will be spent counts that much more. M.9

        The cap on delta stays: it pays for the distance of samplers from their ideal laws, which
        is the same however many rows change (TB.8).
        """
        if self.divisor == 1:
            self.cap = self.ceiling = Loss(self.cap.credits // divisor, self.cap.delta)
            self.divisor = divisor

    def spend_outside(self, loss: Loss) -> None:
        """Charge every account, beyond the cap too: it has happened."""
        everybody = AccountCharge(loss, ((0, len(self.names) - 1),))
        self.credits.add(everybody, loss.credits)
        self.delta.add(everybody, loss.delta)
        self.version = self.version.moved(loss.credits)
        held, top = self.held, self.ceiling
        self.ceiling = Loss(max(held.credits, top.credits), max(held.delta, top.delta))

    def level(self) -> None:
        """Every account has lost as much as the worst: among new rows somebody may have another
        stratum than before, and brings the past along. G.2.3"""
        self.credits.fill(self.credits.most)
        self.delta.fill(self.delta.most)

    def begin(self, allowed: int | None) -> None:
        """Begin a new version of the data: nothing comes back."""
        self.version = VersionBudget(self.credits.most, allowed)

    def void(self) -> None:
        """End every reservation."""
        for seq in list(self.reservations):
            self.give_back(seq)

    def burn(self) -> None:
        """Count everything as spent, every grant too: what was lost could be that much."""
        self.credits.fill(self.cap.credits)
        self.delta.fill(self.cap.delta)
        self.void()
        for own in self.shares.values():
            if own.granted is not None:
                own.spent = own.granted
        self.reserved = NOTHING


def ended() -> Refused:
    return Refused(
        "this reservation has ended and what it had left went back; ask outside it, or reserve anew"
    )


def _price(wanted: Loss, left: Loss) -> str:
    """Wanted is rounded up and left down: the text never looks affordable when it is not."""
    if wanted.credits > left.credits:
        cost = in_credits(wanted.credits, up=True)
        unit = "credit" if cost == "1" else "credits"
        return f"this costs {cost} {unit}, {in_credits(left.credits)} are left"
    return (
        f"this costs an extra delta of {wanted.delta / 2**128:.3g}, "
        f"{left.delta / 2**128:.3g} is left"
    )
