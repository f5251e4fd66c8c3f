"""One table of a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.remote import MOST_BYTES, Remote, is_remote
from sulq.kernel.engines.duckdb.workbooks import XlsxFile
from sulq.kernel.schema.columns import DEFAULT_AT_MOST, Schema
from sulq.kernel.schema.promise import Population, Promise
from sulq.policy.columns import ColumnPolicy
from sulq.policy.exact import ExactPolicy
from sulq.shares import Partners

KEYS = (
    "source",
    "ledger",
    "promise",
    "unit",
    "columns",
    "at_most",
    "strata",
    "grants",
    "exact",
    "population",
    "individual",
    "remote",
    "most_bytes",
    "version_budget",
    "csv",
    "xlsx",
    "apart",
    "receipts",
    "partners",
    "sharing",
    "vault",
    "person_word",
)


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """Where a table lives, what is public about it, and what its owner promises.

    Paths are relative to `home`, the directory of the policy file.
    """

    name: str
    source: str
    ledger: str
    promise: Promise
    columns: tuple[ColumnPolicy, ...]
    unit: str = "row"
    max_rows: int = 1
    at_most: int | None = None
    strata: tuple[str, ...] | None = None
    grants: Mapping[str, Fraction] = field(default_factory=dict)
    exact: ExactPolicy | None = None
    population: Population | None = None
    home: Path = Path()
    individual: bool = False
    remote: bool = False
    version_budget: Fraction | None = None
    most_bytes: int = MOST_BYTES  # of a file that is fetched
    reading: CsvFile | XlsxFile | None = None  # how the source is read; None: as its ending says
    apart: bool = False
    """The owner says that nobody is in this table and in another one of the policy."""
    receipts: str | None = None  # the ledger's receipts journal
    partners: Partners | None = None  # owners to add securely with, V.4
    sharing: bool = False
    """Whoever was told an answer may share it with others who have a token of this table."""
    vault: bool | None = None  # clamped and rounded once; None: for large files
    person_word: str | Sequence[str] = ""
    """What one of those who are protected is called; or that, and what several are called."""
    companions: tuple[TablePolicy, ...] = field(default=(), compare=False, repr=False)
    beside: tuple[TablePolicy, ...] = field(default=(), compare=False, repr=False)
    """The other tables of the policy."""

    @classmethod
    def of(
        cls, name: str, source: str, ledger: str, schema: Schema, promise: Promise
    ) -> TablePolicy:
        """The policy that declares `schema`."""
        return cls(
            name=name,
            source=source,
            ledger=ledger,
            promise=promise,
            columns=tuple(ColumnPolicy.of(column) for column in schema.columns),
            unit=schema.unit,
            max_rows=schema.max_rows,
            at_most=None if schema.at_most == DEFAULT_AT_MOST else schema.at_most,
            person_word=schema.meanings().get("person", ""),
        )

    @classmethod
    def read(cls, name: str, facts: Any, home: Path) -> TablePolicy:
        """A table as TOML has it; everything unknown is refused."""
        if not isinstance(facts, Mapping):
            raise InvalidQuery(f"{name} must be a table: [{name}], got {type(facts).__name__}")
        unknown = sorted(set(facts) - set(KEYS))
        if unknown:
            raise InvalidQuery(f"[{name}]: unknown {unknown}; a table knows {list(KEYS)}")
        missing = [key for key in ("source", "ledger", "promise", "columns") if key not in facts]
        if missing:
            raise InvalidQuery(
                f"[{name}]: {missing} missing; a table needs source, ledger, promise and columns"
            )
        for key in ("promise", "columns"):
            if not isinstance(facts[key], Mapping):
                raise InvalidQuery(f"[{name}]: {key} must be a table, got {facts[key]!r:.40}")
        if not facts["columns"]:
            raise InvalidQuery(f"[{name}]: no columns; declare at least one, the rest stay hidden")
        unit, max_rows = _unit(name, facts.get("unit", "row"))
        return cls(
            name=name,
            source=_text(name, "source", facts["source"]),
            ledger=_text(name, "ledger", facts["ledger"]),
            promise=Promise.from_policy(facts["promise"]),
            columns=tuple(
                ColumnPolicy(column, given) for column, given in facts["columns"].items()
            ),
            unit=unit,
            max_rows=max_rows,
            at_most=facts.get("at_most"),
            strata=_strata(name, facts.get("strata")),
            grants=_grants(name, facts.get("grants", {})),
            exact=ExactPolicy.read(name, facts["exact"]) if "exact" in facts else None,
            population=_population(name, facts["population"], facts["promise"])
            if "population" in facts
            else None,
            home=home,
            individual=_yes(name, "individual", facts.get("individual", False)),
            remote=_remote(name, facts["source"], facts.get("remote", False)),
            version_budget=_version_budget(name, facts.get("version_budget")),
            most_bytes=_most_bytes(name, facts.get("most_bytes", MOST_BYTES)),
            reading=_reading(name, facts["source"], facts.get("csv"), facts.get("xlsx")),
            apart=_yes(name, "apart", facts.get("apart", False)),
            receipts=_text(name, "receipts", facts["receipts"]) if "receipts" in facts else None,
            partners=_partners(name, facts["partners"]) if "partners" in facts else None,
            sharing=_yes(name, "sharing", facts.get("sharing", False)),
            vault=_yes(name, "vault", facts["vault"]) if "vault" in facts else None,
            person_word=facts.get("person_word", ""),
        )

    @property
    def source_path(self) -> str:
        """The source where it lies; addresses such as postgresql://... stay as they are."""
        return self.source if "://" in self.source else str(self.home / self.source)

    @property
    def source_paths(self) -> tuple[str, ...]:
        """Where all rows lie: one place, or that of each table of a study."""
        return (self.source_path,)

    def shares_people(self, other: TablePolicy) -> bool:
        """True if people pay for both from balances of their own."""
        return (
            self.population is not None
            and self.population.persons
            and other.population == self.population
            and other.ledger_path == self.ledger_path
            and other.name != self.name
        )

    @property
    def rows(self) -> str | Remote | CsvFile | XlsxFile:
        """What an engine opens."""
        if self.reading is not None:
            return replace(self.reading, path=self.source_path)
        return Remote(self.source, self.most_bytes) if self.remote else self.source_path

    @property
    def ledger_path(self) -> Path | str:
        """The ledger where it lies; an address such as postgresql://... stays as it is."""
        return self.ledger if "://" in self.ledger else self.home / self.ledger

    @property
    def receipts_path(self) -> Path | None:
        """The receipts journal where it lies, if one was declared."""
        return None if self.receipts is None else self.home / self.receipts

    @property
    def unready(self) -> dict[str, str]:
        """The columns that are not askable yet, and why."""
        return {column.name: column.lacks for column in self.columns if column.lacks}

    def check_grants(self) -> None:
        """`InvalidQuery` if the grants, all together, are more than is promised."""
        left = Fraction(self.promise.credits)
        for analyst, credits in self.grants.items():
            if credits > left:
                raise InvalidQuery(
                    f"[{self.name}]: grants.{analyst} = {float(credits):g} is more than the"
                    f" {float(left):g} credits that the promise and earlier grants leave; grant"
                    " less, or promise more credits"
                )
            left -= credits

    def check_ready(self) -> None:
        """`InvalidQuery` while a column still lacks something."""
        if self.unready:
            raise InvalidQuery(
                f"[{self.name}] is not ready: {list(self.unready)} still lack bounds, values or"
                " your confirmation; `sulq check` says what"
            )

    def schema(self) -> Schema:
        """The public facts; `InvalidQuery` while a column still lacks something."""
        self.check_ready()
        return Schema(
            *(column.column() for column in self.columns),
            unit=self.unit,
            max_rows=self.max_rows,
            at_most=DEFAULT_AT_MOST if self.at_most is None else self.at_most,
            strata=self.strata,
            person_word=self.person_word,
        )


def _text(name: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value or "\x00" in value:
        raise InvalidQuery(f"[{name}]: {key} must be a path, got {value!r:.40}")
    return value


def _partners(name: str, value: object) -> Partners:
    if not isinstance(value, Mapping) or set(value) != {"keys", "colluding"}:
        raise InvalidQuery(
            f'[{name}]: partners must be {{keys = ["...", "..."], colluding = 1}}, with the keys'
            f" that the other owners gave you, got {value!r:.60}"
        )
    return Partners(value["keys"], value["colluding"])


def _unit(name: str, value: object) -> tuple[str, int]:
    if value == "row":
        return "row", 1
    if isinstance(value, Mapping) and set(value) == {"column", "max_rows"}:
        return value["column"], value["max_rows"]
    raise InvalidQuery(
        f'[{name}]: unit must be "row" or {{column = "person_id", max_rows = 4}}, got {value!r:.60}'
    )


def _yes(name: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidQuery(f"[{name}]: {key} must be true or false, got {value!r:.40}")
    return value


def _remote(name: str, source: str, value: object) -> bool:
    if _yes(name, "remote", value):
        if not is_remote(source):
            raise InvalidQuery(f"[{name}]: remote = true is for a source at https:// or s3://")
        Remote(source)  # refused now, not when the table is opened
    elif is_remote(source):
        raise InvalidQuery(
            f"[{name}]: the source is on the network; remote = true says that it may be fetched"
        )
    return bool(value)


def _most_bytes(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidQuery(f"[{name}]: most_bytes must be a whole number, got {value!r:.40}")
    return value


def _reading(name: str, source: str, csv: object, xlsx: object) -> CsvFile | XlsxFile | None:
    """How a file is read, as declared; refused now, not when the table is opened."""
    given = csv if xlsx is None else xlsx
    if given is None:
        return None
    if not isinstance(given, Mapping) or (csv is not None and xlsx is not None):
        raise InvalidQuery(
            f'[{name}]: say csv = {{delimiter = ";"}} or xlsx = {{sheet = "2024"}}, one of them'
        )
    if "://" in source or source.endswith(".parquet"):
        raise InvalidQuery(f"[{name}]: csv and xlsx are for files of text; the source is none")
    try:
        return (CsvFile if xlsx is None else XlsxFile).read(source, given)
    except InvalidQuery as error:
        raise InvalidQuery(f"[{name}]: {error}") from None


def _population(name: str, value: object, promise: Mapping[str, Any]) -> Population:
    if not isinstance(value, Mapping) or "name" not in value or "epsilon" not in value:
        raise InvalidQuery(
            f'[{name}]: population must be {{name = "town", epsilon = 2, delta = 1e-6}}, got'
            f" {value!r:.60}"
        )
    inherited = {"neighbours": promise["neighbours"]} if "neighbours" in promise else {}
    said = {key: found for key, found in value.items() if key not in ("name", "persons")}
    told = Promise.from_policy({**inherited, **said})
    return Population(value["name"], told, value.get("persons", False))


def _strata(name: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidQuery(f"[{name}]: strata must be a list of public columns, got {value!r:.40}")
    return tuple(value)


def _version_budget(name: str, value: object) -> Fraction | None:
    if value is None:
        return None
    if isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool) and value > 0:
        return Fraction(value)
    raise InvalidQuery(f"[{name}]: version_budget must be a number of credits above 0")


def _grants(name: str, value: object) -> dict[str, Fraction]:
    if not isinstance(value, Mapping):
        raise InvalidQuery(f"[{name}]: grants must be a table, such as grants.ann = 200")
    for analyst, credits in value.items():
        real = isinstance(credits, int | Decimal | Fraction) and not isinstance(credits, bool)
        if not real or (isinstance(credits, Decimal) and not credits.is_finite()) or credits <= 0:
            raise InvalidQuery(f"[{name}]: grants.{analyst} must be a number above 0")
    return {analyst: Fraction(credits) for analyst, credits in value.items()}
