"""What commands share: their options, and the way from a policy or an address to a table."""

from __future__ import annotations

import functools
import inspect as signatures
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from sulq.cli.output import (
    POLICY,
    Json,
    Policy,
    exit_stack,
    guarded,
    key_values,
    many,
    print_note,
    show,
    show_json,
    table,
)
from sulq.cli.question_text import FORMS, SYNONYMS, check_terms, credits_of, spelled
from sulq.database import Database
from sulq.database.publish import Options, open_table
from sulq.errors import InvalidQuery, Refused, UnsafeExactly
from sulq.exact import Assumptions
from sulq.formatting import credits_left
from sulq.kernel.ledger.file import MEMORY, missing
from sulq.kernel.ledger.inspect import inspect, is_lost, is_published, is_there
from sulq.kernel.ledger.state_dir import location_name
from sulq.kernel.ledger.transactions import not_published
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise
from sulq.policy import TablePolicy, read_policy

if TYPE_CHECKING:
    from sulq.client import Remote
    from sulq.client.values import RemoteExactQuote
    from sulq.database.database import Analyst
    from sulq.database.exact import ExactQuote
    from sulq.kernel.ledger.signing import Receipt

Result = TypeVar("Result")

TableName = Annotated[str | None, typer.Argument(metavar="[TABLE]", show_default=False)]
Where = Annotated[str | None, typer.Option(help='Which rows: "age >= 65 AND smoker".')]
Within = Annotated[float | None, typer.Option(help="Wanted half-width of the error bar.")]
Confidence = Annotated[float, typer.Option(help="Of error bars.")]
Credits = Annotated[str | None, typer.Option(help="How much to spend instead of the plain price.")]
Rows = Annotated[int | None, typer.Option(help="How many rows you expect to match.")]
Name = Annotated[str | None, typer.Option("--as", metavar="ANALYST", help="Ask in this name.")]
Key = Annotated[str | None, typer.Option(help="Idempotency key: a retry is free.")]
Url = Annotated[
    str | None,
    typer.Option(
        envvar="SULQ_URL", help="Ask the table at this address instead: https://host/people."
    ),
]
TokenFile = Annotated[
    Path | None, typer.Option(help="With --url: the file of your token; else SULQ_TOKEN.")
]
Ca = Annotated[
    Path | None,
    typer.Option(envvar="SULQ_CA", help="With --url: the server's own certificate authority."),
]
Receipts = Annotated[Path | None, typer.Option(help="Append the signed receipt to this file.")]

# From a policy file to an open table.


def chosen(policy: Path, words: Sequence[str]) -> tuple[TablePolicy, list[str]]:
    """The table that the words begin with, or the only one there is; and the words after it."""
    tables = read_policy(policy)
    if words and words[0] in tables:
        return tables[words[0]], list(words[1:])
    if len(tables) == 1:
        return next(iter(tables.values())), list(words)
    got = f", and {words[0]!r:.40} is none of them" if words else ""
    raise InvalidQuery(f"say which table first: {policy} declares {', '.join(sorted(tables))}{got}")


def asked_of(policy: Path, words: Sequence[str]) -> tuple[TablePolicy, list[str]]:
    """As `chosen`, for a question: a first word that is no statistic was meant as a table."""
    tables = read_policy(policy)
    statistics = FORMS.keys() | SYNONYMS.keys()
    if words and words[0] not in tables and words[0].casefold() not in statistics:
        near = get_close_matches(words[0], tables, 1)
        if near or len(tables) > 1 or (len(words) > 1 and words[1] in statistics):
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise InvalidQuery(f"no table {words[0]!r:.40}; {meant}the policy has {sorted(tables)}")
    return chosen(policy, words)


def named(policy: Path, name: str | None) -> TablePolicy:
    """The table called `name`; without a name, the only one."""
    table, rest = chosen(policy, [] if name is None else [name])
    if rest:
        raise InvalidQuery(f"no table {rest[0]!r} in {policy}; it declares {table.name!r}")
    return table


def several(policy: Path, name: str | None) -> list[TablePolicy]:
    """The table called `name`; without a name, all tables of the policy."""
    return list(read_policy(policy).values()) if name is None else [named(policy, name)]


@contextmanager
def opened(table: TablePolicy, *, publish: bool = False) -> Iterator[Database]:
    """The table on its ledger; `NotPublished` if the ledger does not have it, unless told to
    publish it. Grants of the policy are given once."""
    path = table.ledger_path
    if is_lost(path):
        raise missing(location_name(path), table.name)
    if not publish and str(path) != MEMORY and not is_published(path, table.name):
        raise not_published(table.name, location_name(path))  # before the rows are opened
    menu = _menu(table)
    with database_of(table, path, publish=publish) as database:
        if menu and database.declaration is None and database.ledger.closed is None:
            _declare(database, menu)
        now = database.statement().statement
        known = {line.name for line in now.analysts}  # who was revoked stays so
        for analyst, credits in table.grants.items():
            if analyst not in known and now.closed is None:
                database.grant(analyst, credits)
        yield database


def try_out(table: TablePolicy) -> None:
    """Raise what publishing the table would be refused for; publishes nothing."""
    table.check_grants()
    with database_of(table, MEMORY) as trial:
        if menu := _menu(table):
            trial.declare_exactly(*menu)


@contextmanager
def companions(table: TablePolicy) -> Iterator[None]:
    """The tables whose people pay from the same balances, open meanwhile: those with charges."""
    with ExitStack() as stack:
        if table.companions and is_there(table.ledger_path):
            known = inspect(table.ledger_path).statements
            for other in table.companions:
                if other.name in known and known[other.name].entries:
                    stack.enter_context(database_of(other, other.ledger_path))
        yield


def database_of(
    table: TablePolicy,
    ledger: Path | str,
    schema: Schema | None = None,
    promise: Promise | None = None,
    *,
    grown_from: bool | str = False,
    publish: bool = False,
) -> Database:
    """The table on that ledger, by the policy unless told otherwise; nothing is granted."""
    found = Database.open(
        table.rows,
        schema or table.schema(),
        promise or table.promise,
        ledger,
        name=table.name,
        exactly=_assumptions(table),
        population=table.population,
        individual=table.individual,
        grown_from=grown_from,
        version_budget=table.version_budget,
        publish=publish,
        receipts=None if ledger == ":memory:" else table.receipts_path,
        vault=False if ledger == ":memory:" else table.vault,
    )
    try:
        found.set_partners(table.partners)
    except BaseException:
        found.close()
        raise
    return found


def repair(table: TablePolicy, reason: str) -> None:
    """Let a table that was never used go by the policy as it is; `Refused` if it was used."""
    found = open_table(
        table.rows,
        table.schema(),
        table.promise,
        table.ledger_path,
        table.name,
        Options(
            _assumptions(table),
            table.individual,
            table.population,
            version_budget=table.version_budget,
            receipts=table.receipts_path,
            vault=table.vault,
            repaired=reason,
        ),
    )
    found.ledger.close()
    found.engine.close()


def _assumptions(table: TablePolicy) -> Assumptions | None:
    facts = table.exact
    if facts is None:
        return None
    return Assumptions(facts.epsilon, facts.delta, facts.known_rows, facts.least)


def exact_outlook(table: TablePolicy) -> dict[str, object]:
    """What the policy's assumptions and menu for exact release amount to; publishes nothing."""
    if table.exact is None:
        return {"on": False}
    menu = _menu(table)
    try:
        if is_published(table.ledger_path, table.name):
            with opened(table) as database:
                said = _exactly_said(database, menu)
        else:
            with database_of(table, MEMORY) as trial:
                if menu:
                    trial.declare_exactly(*menu)
                said = _exactly_said(trial, menu)
    except UnsafeExactly as refusal:
        return {"on": True, "certified": False, "text": f"not certified: {refusal}"}
    return {"on": True, "certified": bool(menu) or None, "text": said}


def _exactly_said(database: Database, menu: list[list[Statistic]]) -> str:
    found = database.statement()
    if found.statement.released:
        return found.guarantee.replace("\n", " ")
    if not menu:
        return "on, and nothing is declared: the owner's first exact batch declares itself"
    quote = database.quote_exactly(menu[0])
    return f"{quote}. Any analyst with a grant may ask for it. {quote.terms}"


def _declare(database: Database, menu: list[list[Statistic]]) -> None:
    try:
        print_note(f"declared for exact release: {database.declare_exactly(*menu)}")
    except Refused as error:  # the table itself stays open
        print_note(f"note: the menu of exact questions was not declared: {error}")


def _menu(table: TablePolicy) -> list[list[Statistic]]:
    """The batches that the policy declares for exact release."""
    if table.exact is None:
        return []
    return [[spelled(text, table.schema()) for text in batch] for batch in table.exact.menu]


@contextmanager
def quoting(table: TablePolicy) -> Iterator[Database]:
    """The table for questions about prices; one that is not published is tried in memory."""
    if is_published(table.ledger_path, table.name):
        with opened(table) as database:
            yield database
        return
    try:
        found = database_of(table, MEMORY)
    except Refused as error:
        raise Refused(
            f"{error}; this data was published with another ledger than"
            f" {location_name(table.ledger_path)}"
        ) from None
    with found as database:
        database.durable = True  # prices as on the ledger that it will have
        print_note(
            f"{table.name} is not published: this is what its policy would cost; nothing can be"
            f" asked before `sulq publish {table.name}`"
        )
        if menu := _menu(table):
            database.declare_exactly(*menu)
        yield database


# `--url`: a table behind a server, where a table of the policy would stand.


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """What commands want to know of a table; the server decides about everything else."""

    remote: Remote
    exact: object = True

    @property
    def name(self) -> str:
        return self.remote.name

    @property
    def unit(self) -> str:
        return self.remote.schema.unit

    def schema(self) -> Schema:
        return self.remote.schema


Source = TablePolicy | RemoteSource


@dataclass(frozen=True, slots=True)
class Session:
    """The options that commands about a table share, as one invocation gave them."""

    analyst: Name = None
    url: Url = None
    token_file: TokenFile = None
    ca: Ca = None
    policy: Policy = POLICY
    as_json: Json = False

    def source(self, name: str | None = None) -> Source:
        """Return the table called `name`, or that of the address."""
        if self.url is None:
            return named(self.policy, name)
        found = self._connect(self.url)
        if name not in (None, found.name):
            raise InvalidQuery(f"the address is that of {found.name!r}, got {name!r:.60}; say one")
        return found

    def source_of(
        self,
        words: Sequence[str],
        here: Callable[[Path, Sequence[str]], tuple[TablePolicy, list[str]]] = asked_of,
    ) -> tuple[Source, list[str]]:
        """Return the table that the words begin with, and the words after its name.

        `here`: how the words name a table of the policy.
        """
        if self.url is None:
            return here(self.policy, words)
        found = self._connect(self.url)
        return found, list(words[1:] if words[:1] == [found.name] else words)

    @contextmanager
    def oracle(
        self, source: Source, *, prices: bool = False
    ) -> Iterator[Database | Analyst | Remote]:
        """Open what questions are put to; for `prices` alone the table need not be published."""
        if isinstance(source, RemoteSource):
            if self.analyst is not None:
                raise InvalidQuery("over --url the token says who asks; leave --as out")
            yield source.remote
            return
        with companions(source), quoting(source) if prices else opened(source) as database:
            yield database if self.analyst is None else database.as_analyst(self.analyst)

    def _connect(self, url: str) -> RemoteSource:
        """Connect until the command ends."""
        from sulq.client import connect

        token = None
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="utf-8", errors="replace").strip()
            except OSError:
                raise InvalidQuery(f"--token-file: {self.token_file} cannot be read") from None
        if self.ca is not None and not self.ca.is_file():
            raise InvalidQuery(f"--ca (or SULQ_CA): there is no file {self.ca}")
        remote = connect(url, token=token, verify=True if self.ca is None else self.ca)
        exit_stack.callback(remote.close)
        return RemoteSource(remote)


LocalSession = Annotated[Session, ("policy", "as_json")]
"""A session of a command that is for the owner, on the machine of the ledger."""
OwnerSession = Annotated[Session, ("analyst", "policy", "as_json")]
"""The same, for a command that spends in somebody's name."""
ReadSession = Annotated[Session, ("url", "token_file", "ca", "policy", "as_json")]
"""A session of a command that asks nothing."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How exact an answer shall be, or what it may cost. Wrong terms raise `InvalidQuery`."""

    within: Within = None
    confidence: Confidence = 0.95
    credits: Credits = None
    rows: Rows = None

    def __post_init__(self) -> None:
        check_terms(self.within, self.confidence, self.credits, self.rows)

    def arguments(self) -> dict[str, Any]:
        """The terms as `Database.quote` takes them."""
        return {
            "within": self.within,
            "confidence": self.confidence,
            "credits": credits_of(self.credits),
            "rows": self.rows,
        }


def command(function: Callable[..., Result]) -> Callable[..., Result]:
    """Make a command of a function: its errors become exit codes (`guarded`), and a parameter
    that is a dataclass becomes one option for each field; `Annotated` may name some of them."""
    hints = get_type_hints(function, include_extras=True)
    given = signatures.signature(function).parameters
    shared = {field.name for field in fields(Session)}
    made: dict[str, tuple[type, list[str]]] = {}
    flat: list[signatures.Parameter] = []
    options: list[signatures.Parameter] = []
    for name, parameter in given.items():
        hint = hints[name]
        kind, *chosen = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if not is_dataclass(kind) or not isinstance(kind, type):
            flat.append(parameter.replace(annotation=hint))
            continue
        types = get_type_hints(kind, include_extras=True)
        taken = [field for field in fields(kind) if not chosen or field.name in chosen[0]]
        made[name] = kind, [field.name for field in taken]
        options += [
            signatures.Parameter(
                field.name,
                signatures.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=types[field.name],
            )
            for field in taken
        ]

    @functools.wraps(function)
    def run(**values: Any) -> Result:
        for name, (kind, taken) in made.items():
            values[name] = kind(**{field: values.pop(field) for field in taken})
        return function(**values)

    options.sort(key=lambda one: one.name in shared)  # shared ones last in the help
    parameters = [*flat, *options]
    run.__signature__ = signatures.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return guarded(run)


def check_receipts(file: Path | None) -> None:
    """Fail before the charge where receipts could not be written after it."""
    if file is not None:
        file.open("a").close()


def append_receipts(file: Path | None, receipts: Sequence[Receipt]) -> None:
    """Append signed receipts to the file of `--receipts`, one a line."""
    if file is None or not receipts:
        return
    with file.open("a", encoding="utf-8") as written:
        written.writelines(f"{receipt.to_json()}\n" for receipt in receipts)
    what = f"receipt {receipts[0].seq}" if len(receipts) == 1 else many(len(receipts), "receipt")
    print_note(f"{what} appended to {file}")


def is_out(source: Source) -> bool:
    """True if the table is published; a server serves no other."""
    return isinstance(source, RemoteSource) or is_published(source.ledger_path, source.name)


def not_out(source: Source) -> list[tuple[str, str]]:
    """The line that marks the price of a table that is not published."""
    return (
        [] if is_out(source) else [("not published", f"`sulq publish {source.name}` comes first")]
    )


def quoted_exactly(source: Source, asked: object) -> ExactQuote | RemoteExactQuote:
    """What an exact answer would be and do."""
    if isinstance(source, RemoteSource):
        return source.remote.quote_exactly(asked)
    with quoting(source) as database:
        return database.quote_exactly(asked)


def show_remote_ledger(source: RemoteSource, last: int, as_json: bool) -> None:
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
    show(key_values([(whose, credits_left(said.mine)), ("head", said.head)]))
    if lines:
        print()
        show(table(("event", "kind", "analyst", "credits"), [_line(line) for line in lines]))


def _line(line: dict[str, Any]) -> tuple[str, ...]:
    told = (line.get("seq"), line.get("kind"), line.get("analyst"), line.get("credits"))
    return tuple(
        "" if one is None else f"{one:g}" if isinstance(one, float) else str(one) for one in told
    )
