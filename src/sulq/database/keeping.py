"""Alerts that outlive their process: the level in the state directory, firings in the ledger. M.2

A firing is an event of the ledger before its verdict is told, so that neither a crash nor an old
copy of the state directory brings one back. Proof: docs/proofs/alerts.md, section 4.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.accounting.losses import Loss
from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.ledger.state import named, private_directory, private_path, read_private, write_private
from sulq.query.sum_query import digest_of

if TYPE_CHECKING:
    from sulq.database.database import Database


WRITTEN = {"analyst", "below", "firings", "key", "level", "noise", "question", "seq", "text"}
MOST_KEPT = 200
"""Alerts of one analyst; who arms one more loses those that have fired."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """The file of one alert, and the ledger that counts its firings."""

    database: Database
    path: Path

    @property
    def form(self) -> dict[str, Any]:
        found = read_private(self.path)
        if found is None:
            raise Refused("there is no such alert here; arm a new one")
        try:
            form: dict[str, Any] = json.loads(found)
        except ValueError:
            form = {}
        if not isinstance(form, dict) or not form.keys() >= WRITTEN:
            raise Refused("the file of this alert is damaged; arm a new one")
        return form

    @property
    def owner(self) -> str | None:
        """Who armed it; nobody, of a damaged file: the others are not to suffer from it."""
        with suppress(Refused):
            return str(self.form["analyst"])
        return None

    def write(self, form: dict[str, Any]) -> None:
        write_private(self.path, json.dumps(form).encode(), replace=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One comparison at a time, in whatever process of this machine."""
        lock = self.path.with_suffix(".lock")
        lock.touch(0o600)
        with lock.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextmanager
    def unless_refused(self) -> Iterator[None]:
        """Around the charge of a new alert: refused, it leaves no file behind."""
        try:
            yield
        except SulqError as error:
            if self.form["seq"] is None and not vars(error).get("charged_unknown"):
                self.path.unlink(missing_ok=True)
            raise

    def fired(self) -> int:
        """How often it has fired, by the ledger; as often as it may, if the ledger was recovered
        since it was armed: firings may be among what was lost."""
        form = self.form
        if form["seq"] is not None and self.database.ledger.recovered_since(form["seq"]):
            return int(form["firings"])
        paid, analyst, noise = self.database.ledger.paid, form["analyst"], form["noise"]
        times = range(1, form["firings"] + 1)  # written in this order, so without gaps
        return next(
            (t - 1 for t in times if not paid(analyst, digest_of(_firing(form, t)), noise)),
            form["firings"],
        )

    def fired_under(self, key: str | None) -> bool:
        """Whether it has fired for this very request, whose verdict may have been lost."""
        form = self.form
        known = self.database.ledger.keyed(form["analyst"], key)
        times = range(1, form["firings"] + 1)
        return known is not None and known[0] in {digest_of(_firing(form, t)) for t in times}

    def fire(self, time: int, key: str | None) -> None:
        """Durable before the verdict is told; it costs nothing, the arming has paid."""
        form = self.form
        text = _firing(form, time)
        ledger = self.database.ledger
        entry = ledger.charge(
            question=text,
            digest=digest_of(text),
            noise=form["noise"],
            charges={},
            share=Loss.zero(),
            analyst=form["analyst"],
            key=key,
        )
        ledger.settle(entry, ())

    def below(self, digest: str) -> None:
        form = self.form
        self.write({**form, "below": [*form["below"], digest]})


def _firing(form: dict[str, Any], time: int) -> str:
    """An event's text: the alert's own, and which of its firings it is."""
    known = {**json.loads(form["text"]), "fired": time}
    return json.dumps(known, ensure_ascii=False, separators=(",", ":"))


def facts_of(database: Database) -> str:
    """The rows and the facts that an alert was armed on: with others it is over."""
    return f"{database.ledger.header.version}.{database.ledger._generation}"


def keeper_for(database: Database, arming: str, analyst: str) -> Keeper:
    """A place for a new alert."""
    if database.ledger._book.file is None:
        raise InvalidQuery(
            "a ledger in memory ends with its process, and its alerts with it; leave keep out"
        )
    if len(kept(database, analyst)) >= MOST_KEPT:
        for spent in [one for one in kept(database, analyst) if one.fired() >= one.form["firings"]]:
            spent.path.unlink(missing_ok=True)
        if len(kept(database, analyst)) >= MOST_KEPT:
            raise Refused(f"{MOST_KEPT} alerts of yours are armed; let some fire first")
    return Keeper(database, private_directory("alerts", named(facts_of(database))) / arming)


def kept(database: Database, analyst: str) -> list[Keeper]:
    """What this analyst has armed on this table here, in order; also what was never paid for."""
    directory = private_path("alerts", named(facts_of(database)))
    files = directory.iterdir() if directory.is_dir() else ()
    found = [Keeper(database, path) for path in sorted(files) if "." not in path.name]
    mine = [keeper for keeper in found if keeper.owner == analyst]
    return sorted(mine, key=lambda keeper: keeper.form["seq"] or 0)
