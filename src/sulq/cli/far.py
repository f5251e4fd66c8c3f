"""`--url`: a table behind a server, where a table of the policy would stand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.cli.opening import asked_of, companions, named, opened, quoting
from sulq.cli.screen import at_the_end, credits_text, facts, show, show_json, table
from sulq.errors import InvalidQuery
from sulq.ledger.inspection import is_published
from sulq.policy import TablePolicy

if TYPE_CHECKING:
    from sulq.client import Remote
    from sulq.client.values import ExactQuote as FarExactQuote
    from sulq.database import Database
    from sulq.database.analyst import Analyst
    from sulq.database.exactly import ExactQuote
    from sulq.schema.columns import Schema


@dataclass(frozen=True, slots=True)
class FarTable:
    """What commands want to know of a table; the server decides about everything else."""

    remote: Remote
    exact: object = True

    @property
    def name(self) -> str:
        return self.remote.table

    @property
    def unit(self) -> str:
        return self.remote.schema.unit

    def schema(self) -> Schema:
        return self.remote.schema


Source = TablePolicy | FarTable


def far_table(url: str, token_file: Path | None, ca: Path | None = None) -> FarTable:
    """Connected until the command ends."""
    from sulq.client import connect

    token = None
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            raise InvalidQuery(f"--token-file: {token_file} cannot be read") from None
    if ca is not None and not ca.is_file():
        raise InvalidQuery(f"--ca (or SULQ_CA): there is no file {ca}")
    remote = connect(url, token=token, verify=True if ca is None else ca)
    at_the_end.callback(remote.close)
    return FarTable(remote)


def source_of(
    policy: Path,
    words: Sequence[str],
    url: str | None,
    token_file: Path | None,
    ca: Path | None = None,
    here: Callable[[Path, Sequence[str]], tuple[TablePolicy, list[str]]] = asked_of,
) -> tuple[Source, list[str]]:
    """The table of a question, here or there, and the words after its name.

    `here`: how the words name a table of the policy.
    """
    if url is None:
        return here(policy, words)
    found = far_table(url, token_file, ca)
    return found, list(words[1:] if words[:1] == [found.name] else words)


def source_named(
    policy: Path,
    name: str | None,
    url: str | None,
    token_file: Path | None,
    ca: Path | None = None,
) -> Source:
    """The table called `name`, or that of the address."""
    if url is None:
        return named(policy, name)
    found = far_table(url, token_file, ca)
    if name not in (None, found.name):
        raise InvalidQuery(f"the address is that of {found.name!r}, got {name!r:.60}; say one")
    return found


@contextmanager
def asker(
    source: Source, analyst: str | None, *, prices: bool = False
) -> Iterator[Database | Analyst | Remote]:
    """What questions are put to; for `prices` alone the table need not be published."""
    if isinstance(source, FarTable):
        if analyst is not None:
            raise InvalidQuery("over --url the token says who asks; leave --as out")
        yield source.remote
        return
    with companions(source), quoting(source) if prices else opened(source) as database:
        yield database if analyst is None else database.as_analyst(analyst)


def is_out(source: Source) -> bool:
    """True if the table is published; a server serves no other."""
    return isinstance(source, FarTable) or is_published(source.ledger_path, source.name)


def not_out(source: Source) -> list[tuple[str, str]]:
    """The line that marks the price of a table that is not published."""
    return (
        [] if is_out(source) else [("not published", f"`sulq publish {source.name}` comes first")]
    )


def quoted_exactly(source: Source, asked: object) -> ExactQuote | FarExactQuote:
    """What an exact answer would be and do."""
    if isinstance(source, FarTable):
        return source.remote.quote_exactly(asked)
    with quoting(source) as database:
        return database.quote_exactly(asked)


def show_far_ledger(source: FarTable, last: int, as_json: bool) -> None:
    """The statement, and the last events that this token may see."""
    said = source.remote.statement()
    after = max(0, said.seq - max(0, last))
    lines = list(itertools.islice(source.remote.entries(after), last)) if last else []
    if as_json:
        show_json(
            {
                "table": said.table,
                "credits": said.credits,
                "spent": said.spent,
                "left": said.left,
                "mine": said.mine,
                "guarantee": said.guarantee,
                "questions": said.questions,
                "head": said.head,
                "public_key": said.public_key,
                "last": lines,
            }
        )
        return
    for line in str(said).split("\n"):
        print(line)
    whose = "not granted" if said.text else "left for you"  # who reads all holds no share
    show(facts([(whose, credits_text(said.mine)), ("head", said.head)]))
    if lines:
        print()
        show(table(("event", "kind", "analyst", "credits"), [_line(line) for line in lines]))


def _line(line: dict[str, Any]) -> tuple[str, ...]:
    told = (line.get("seq"), line.get("kind"), line.get("analyst"), line.get("credits"))
    return tuple("" if one is None else f"{one:g}" if isinstance(one, float) else str(one)
                 for one in told)  # fmt: skip
