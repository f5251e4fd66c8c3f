"""What the owner declares: columns with their domains, who is protected, and public strata."""

from __future__ import annotations

import datetime
import difflib
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.person_values import is_person_value

EPOCH = datetime.datetime(1970, 1, 1)
LARGEST_BOUND = 2**53
"""Bounds stay where binary64 still holds every integer."""
NARROWEST = Fraction(1, 2**200)
MOST_VALUES = 10_000
MOST_COLUMNS = 2_000
DEFAULT_AT_MOST = 2**27

Scalar = int | float | datetime.date | datetime.datetime | Fraction


def as_number(value: object, what: str) -> Fraction:
    """A declared bound or a literal as an exact number: dates in days, datetimes in seconds."""
    if value is not None and hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()  # a NumPy scalar
    if isinstance(value, bool):
        raise InvalidQuery(f"{what} must be a number or a date, got {value!r}")
    if isinstance(value, datetime.date):
        try:
            return _since_epoch(value)
        except (ValueError, OverflowError, TypeError):
            raise InvalidQuery(f"{what} must be a real date within the calendar") from None
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidQuery(f"{what} must be finite, got {value!r}")
        return Fraction(repr(value))
    if isinstance(value, int | Fraction):
        return Fraction(value)
    raise InvalidQuery(f"{what} must be a number or a date, got {type(value).__name__}")


def _since_epoch(value: datetime.date) -> Fraction:
    """Days of a date, seconds of a datetime."""
    if not isinstance(value, datetime.datetime):
        return Fraction((value - EPOCH.date()).days)
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    since = value - EPOCH
    seconds = Fraction(since.days * 86_400 + since.seconds)
    return seconds + Fraction(since.microseconds, 1_000_000)


def _kind_of(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return "datetime"
    return "date" if isinstance(value, datetime.date) else "number"


def _check_open(column: Category) -> None:
    if not isinstance(column.whole, bool):
        raise InvalidQuery(f"{column.name}: whole must be true or false, got {column.whole!r:.40}")
    if column.complete:
        raise InvalidQuery(
            f"{column.name}: complete is for declared values; of an open column what is missing is"
            " never shown"
        )
    if column.public:
        raise InvalidQuery(f"{column.name}: {column.opened} cannot be public; declare its values")


def _check_complete(column: Column) -> None:
    if not isinstance(column.complete, bool):
        said = f"{column.name}: complete must be true or false, got {column.complete!r:.40}"
        raise InvalidQuery(said)


def _check_name(name: object) -> None:
    if isinstance(name, str) and is_person_value(name):
        return  # its name is its definition
    if not isinstance(name, str) or not name or len(name) > 200 or "\x00" in name:
        raise InvalidQuery(f"a column name must be a text of 1 to 200 characters, got {name!r:.80}")


LONGEST_WORDS = 200


def _check_words(value: object, what: str, most: int = LONGEST_WORDS) -> None:
    """Words for people: one line of text. They bear on no price, digest or answer."""
    if not isinstance(value, str) or len(value) > most or not (value.isprintable() or not value):
        raise InvalidQuery(f"{what} must be one line of up to {most} letters, got {value!r:.60}")


def _words() -> Any:
    """A field of words for people: whoever compares two columns looks at what they hold."""
    return field(default="", kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric column and the bounds everybody may know: values outside are clamped.

    `step` is the natural lattice (1 for ages, 0.01 for prices in cents). Bounds may be dates
    (counted in days) or datetimes (in seconds). `about` says what the column is ("length of stay")
    and `measured_in` what it is counted in ("days").
    """

    name: str
    low: Scalar
    high: Scalar
    step: int | float | Fraction | None = None
    public: bool = False
    complete: bool = False
    """Nobody's value is missing: SQL shows no group of NULL. Nothing else follows from it."""
    range: tuple[Fraction, Fraction] = field(init=False, compare=False, repr=False)
    lattice: Fraction | None = field(init=False, compare=False, repr=False)
    """The natural step in user units; dates are whole days."""
    kind: str = field(init=False, compare=False, repr=False)
    """ "number", "date" or "datetime"."""
    about: str = _words()
    measured_in: str = _words()

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_words(self.about, f"{self.name}: about")
        _check_words(self.measured_in, f"{self.name}: measured_in", 40)
        _check_complete(self)
        low = as_number(self.low, f"{self.name}: low")
        high = as_number(self.high, f"{self.name}: high")
        if _kind_of(self.low) != _kind_of(self.high):
            raise InvalidQuery(
                f"{self.name}: low is a {_kind_of(self.low)} and high a {_kind_of(self.high)};"
                " give both in one kind"
            )
        if not low < high:
            raise InvalidQuery(f"{self.name}: low must be below high, got {self.low}, {self.high}")
        if max(abs(low), abs(high)) > LARGEST_BOUND:
            raise InvalidQuery(f"{self.name}: bounds must lie within +-2^53; rescale the column")
        if high - low < NARROWEST:
            raise InvalidQuery(f"{self.name}: the range is too narrow; rescale the column")
        kind = _kind_of(self.low)
        lattice = Fraction(1) if kind == "date" else None
        if self.step is not None:
            lattice = as_number(self.step, f"{self.name}: step")
            if lattice <= 0:
                raise InvalidQuery(f"{self.name}: step must be above 0, got {self.step}")
        object.__setattr__(self, "range", (low, high))
        object.__setattr__(self, "lattice", lattice)
        object.__setattr__(self, "kind", kind)


@dataclass(frozen=True, slots=True)
class Category:
    """A text or integer column with declared values; without values it is open.

    Open text, or with `whole` open whole numbers, of 64 bits: what does not fit is missing.
    `about` says what the column is, and `labels` what its values mean: {"I21": "infarction"}.
    """

    name: str
    values: Sequence[str] | Sequence[int] | None = None
    public: bool = False
    whole: bool = False
    complete: bool = False
    about: str = _words()
    labels: Mapping[Any, str] = field(default_factory=dict, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_words(self.about, f"{self.name}: about")
        _check_complete(self)
        self._check_labels()
        if self.values is None:
            _check_open(self)
            return
        if self.whole:
            raise InvalidQuery(f"{self.name}: whole is for open columns, without values")
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise InvalidQuery(
                f"{self.name}: values must be a list, got {type(self.values).__name__}"
            )
        kinds = {type(value) for value in self.values}
        if kinds not in ({str}, {int}):
            raise InvalidQuery(f"{self.name}: values must be all texts or all integers, at least 1")
        if len(set(self.values)) != len(self.values):
            raise InvalidQuery(f"{self.name}: a value is declared twice")
        if len(self.values) > MOST_VALUES:
            raise InvalidQuery(f"{self.name}: at most {MOST_VALUES} values, got {len(self.values)}")
        for value in self.values:
            if isinstance(value, int) and abs(value) >= 2**63:
                raise InvalidQuery(f"{self.name}: integer values must fit in 64 bits")
            if isinstance(value, str) and not storable(value):
                raise InvalidQuery(f"{self.name}: a value is not storable text")
        object.__setattr__(self, "values", tuple(self.values))

    def _check_labels(self) -> None:
        if not isinstance(self.labels, Mapping):
            raise InvalidQuery(
                f'{self.name}: labels must say what values mean, such as {{"I21": "infarction"}},'
                f" got {type(self.labels).__name__}"
            )
        unknown = [value for value in self.labels if value not in (self.values or ())]
        if unknown:
            raise InvalidQuery(
                f"{self.name}: labels name {unknown[0]!r:.60}, which is no declared value"
            )
        for value, said in self.labels.items():
            _check_words(said, f"{self.name}: the label of {value!r:.60}")
        object.__setattr__(self, "labels", dict(self.labels))

    def said(self, value: object) -> str:
        """A value with its label: "I21: infarction"."""
        label = self.labels.get(value, "") if self.labels else ""
        return f"{value}: {label}" if label else str(value)

    @property
    def integers(self) -> bool:
        """Whether it holds whole numbers, declared or open; else text."""
        return self.whole or (self.values is not None and isinstance(self.values[0], int))

    @property
    def opened(self) -> str:
        """How an open column is called."""
        return "an open whole-number column" if self.whole else "open text"


@dataclass(frozen=True, slots=True)
class Flag:
    """A yes/no column: booleans or 0/1; anything else is NULL. `about` says what it is."""

    name: str
    public: bool = False
    complete: bool = False
    about: str = _words()

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_words(self.about, f"{self.name}: about")
        _check_complete(self)


Column = Number | Category | Flag


def storable(text: str) -> bool:
    """Whether every engine can hold this text: valid Unicode without NUL."""
    if "\x00" in text:
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """The public facts of a table: its columns, and who is protected.

    `unit="row"` protects each row. `Schema(..., unit="person_id", max_rows=4)` protects each
    person, of whom at most `max_rows` rows count. `at_most` bounds the rows under add-remove.
    `strata` names the public columns whose cells are accounts (default: all that can be).
    `person_word` is what one of those who are protected is called, "patient"; where more of them
    are not "patients", it is a pair such as ("child", "children").
    """

    columns: tuple[Column, ...]
    unit: str
    max_rows: int
    at_most: int
    strata: tuple[str, ...]
    bits: int
    _by_name: Mapping[str, Column] = field(compare=False, repr=False)
    _words: tuple[str, str] = field(compare=False, repr=False)

    MOST_ACCOUNTS: ClassVar[int] = 4_096
    of_study: ClassVar[bool] = False  # of several tables about the same persons

    def __init__(
        self,
        *columns: Column,
        unit: str = "row",
        max_rows: int = 1,
        at_most: int = DEFAULT_AT_MOST,
        strata: Sequence[str] | None = None,
        bits: int = 24,
        person_word: str | Sequence[str] = "",
    ) -> None:
        for column in columns:
            if not isinstance(column, Number | Category | Flag):
                raise InvalidQuery(
                    f"a schema holds Number, Category and Flag, got {type(column).__name__}"
                )
        if not columns:
            raise InvalidQuery("a schema needs at least one column, got none")
        if len(columns) > MOST_COLUMNS:
            raise InvalidQuery(f"a schema holds at most {MOST_COLUMNS} columns, got {len(columns)}")
        by_name = {column.name: column for column in columns}
        folded = {name.casefold() for name in by_name}
        if len(folded) != len(columns):
            twice = sorted({c.name for c in columns if _count(columns, c.name) > 1})
            raise InvalidQuery(f"column names must differ (also in case), got twice: {twice}")
        check_whole(max_rows, "max_rows", 1, 2**20)
        check_whole(at_most, "at_most", 1, 2**40)
        check_whole(bits, "bits", 8, 31)
        if not isinstance(unit, str) or not unit:
            raise InvalidQuery(f'unit must be "row" or the name of a person column, got {unit!r}')
        if unit == "row" and max_rows != 1:
            raise InvalidQuery('max_rows belongs to a person unit; with unit="row" leave it out')
        if unit != "row" and unit in by_name:
            raise InvalidQuery(f"the person column {unit!r} must not also be an askable column")
        put = object.__setattr__
        put(self, "columns", tuple(columns))
        put(self, "unit", unit)
        put(self, "max_rows", max_rows)
        put(self, "at_most", at_most)
        put(self, "bits", bits)
        put(self, "_by_name", by_name)
        put(self, "_words", _word_pair(person_word))
        put(self, "strata", self._chosen_strata(strata))

    def _chosen_strata(self, named: Sequence[str] | None) -> tuple[str, ...]:
        able = [c.name for c in self.columns if c.public and isinstance(c, Category | Flag)]
        if named is not None:
            wrong = [name for name in named if name not in able]
            if wrong or isinstance(named, str) or len(set(named)) != len(named):
                raise InvalidQuery(
                    f"strata must name public Category or Flag columns once each, got {named!r};"
                    f" there are {able}"
                )
            able = [name for name in able if name in named]
        accounts = math.prod(self.cells_of(name) for name in able)
        if accounts > self.MOST_ACCOUNTS:
            raise InvalidQuery(
                f"the public columns {able} make {accounts} accounts, at most"
                f" {self.MOST_ACCOUNTS}: name fewer in strata="
            )
        return tuple(able)

    def cells_of(self, name: str) -> int:
        """How many values a public column can have, "something else" included."""
        column = self[name]
        if isinstance(column, Category) and column.values is not None:
            return len(column.values) + 1
        return 3

    def __getitem__(self, name: str) -> Column:
        column = self._by_name.get(name)
        if column is None:
            if self.unit != "row" and name.casefold() == self.unit.casefold():
                raise InvalidQuery(
                    f"{name!r:.60} is the person column: it is neither shown, compared nor"
                    " grouped by; it can only be counted, COUNT(DISTINCT ...) or `persons`",
                    reason=Reason.PERSON_COLUMN,
                    about={"column": name},
                )
            near = difflib.get_close_matches(name, self._by_name, 1)
            near += [known for known in self._by_name if known.casefold() == name.casefold()]
            hint = f"did you mean {near[-1]!r}? " if near else ""
            raise InvalidQuery(
                f"no column {name!r}; {hint}the schema has {sorted(self._by_name)}",
                reason=Reason.NO_COLUMN,
                about={"column": name},
            )
        return column

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def one_each(self) -> bool:
        """Whether everybody who is protected has one row, no more and no less."""
        return self.unit == "row"

    @property
    def who(self) -> str:
        """Who is protected, in the plural."""
        return self._words[1] or ("rows" if self.unit == "row" else "persons")

    @property
    def each(self) -> str:
        """Who is protected, in the singular."""
        return self._words[0] or ("row" if self.unit == "row" else "person")

    @property
    def held(self) -> str:
        """What an interval holds: of persons, the value over the rows that count, not the file's"""
        return "the true value" if self.one_each else "the true value over the rows that count"

    def on_grid(self, bits: int) -> Schema:
        """The same schema with another leaf resolution."""
        return Schema(
            *self.columns,
            unit=self.unit,
            max_rows=self.max_rows,
            at_most=self.at_most,
            strata=self.strata,
            bits=bits,
            person_word=self._words,
        )

    def meanings(self) -> dict[str, Any]:
        """What columns, values and those who are protected are called; apart from `to_json`, for
        nothing that is priced, hashed or answered depends on it. `with_meanings` reads it back."""
        found: dict[str, Any] = {"person": list(self._words)} if self._words[0] else {}
        columns = {column.name: said for column in self.columns if (said := meaning_of(column))}
        return found | ({"columns": columns} if columns else {})

    def with_meanings(self, said: Mapping[str, Any]) -> Schema:
        """The same schema with these words; of what it does not have, none."""
        columns = said.get("columns", {})
        found = copy(self)
        put = object.__setattr__
        put(found, "columns", tuple(_meant(c, columns.get(c.name, {})) for c in self.columns))
        put(found, "_by_name", {column.name: column for column in found.columns})
        put(found, "_words", _word_pair(said.get("person", "")))
        return found

    def to_json(self) -> dict[str, Any]:
        """The public facts as JSON-ready values; reads back with `Schema.from_json`."""
        return {
            "columns": [column_json(column) for column in self.columns],
            "unit": self.unit,
            "max_rows": self.max_rows,
            "at_most": self.at_most,
            "strata": list(self.strata),
            "bits": self.bits,
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Schema:
        rest = {name: value for name, value in facts.items() if name != "columns"}
        return cls(*(column_from_json(column) for column in facts["columns"]), **rest)


@dataclass(frozen=True, slots=True)
class HiddenColumns:
    """The names of all columns but the public ones: what is not known to be public is hidden."""

    public: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return name not in self.public


def _word_pair(given: object) -> tuple[str, str]:
    """One of those who are protected, and several; a text makes the plural by its rule."""
    pair = (given, given and plural(str(given))) if isinstance(given, str) else given
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise InvalidQuery(
            'person_word must be a word such as "patient", or two such as ["child", "children"],'
            f" got {given!r:.60}"
        )
    for word in pair:
        _check_words(word, "person_word", 40)
    return str(pair[0]), str(pair[1])


def plural(word: str) -> str:
    """More of what a word names, by the rule."""
    if word.endswith("sis"):
        return word[:-2] + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("x", "ch", "sh")):
        return word + "es"
    return word if word.endswith("s") else word + "s"


def meaning_of(column: Column) -> dict[str, Any]:
    """The words for people that a column carries, those that there are."""
    found: dict[str, Any] = {"about": column.about} if column.about else {}
    if isinstance(column, Number) and column.measured_in:
        found["measured_in"] = column.measured_in
    if isinstance(column, Category) and column.labels:
        found["labels"] = {str(value): said for value, said in column.labels.items()}
    return found


def _meant(column: Column, said: Mapping[str, Any]) -> Column:
    """The column with these words."""
    about = said.get("about", "")
    if isinstance(column, Number):
        return replace(column, about=about, measured_in=said.get("measured_in", ""))
    if isinstance(column, Category):
        return replace(column, about=about, labels=labels_of(column.values, said.get("labels", {})))
    return replace(column, about=about)


def labels_of(values: Sequence[Any] | None, labels: Any) -> Any:
    """Labels by value, where a file has the values as text."""
    if not isinstance(labels, Mapping):
        return labels
    by_text = {str(value): value for value in values or ()}
    return {by_text.get(str(value), value): said for value, said in labels.items()}


def _count(columns: Sequence[Column], name: str) -> int:
    return sum(column.name.casefold() == name.casefold() for column in columns)


def check_whole(value: object, name: str, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidQuery(f"{name} must be a whole number from {least} to {most}, got {value!r}")


def _scalar_json(value: Scalar) -> Any:
    if isinstance(value, datetime.datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    return str(as_number(value, "bound"))


def _scalar_from_json(value: Any) -> Scalar:
    if isinstance(value, Mapping):
        if "datetime" in value:
            return datetime.datetime.fromisoformat(value["datetime"])
        return datetime.date.fromisoformat(value["date"])
    number = Fraction(value)
    return number.numerator if number.denominator == 1 else number


def renamed(column: Column, name: str) -> Column:
    """The same column under another name."""
    return replace(column, name=name)


def column_json(column: Column) -> dict[str, Any]:
    """A column as JSON-ready values."""
    match column:
        case Number():
            facts: dict[str, Any] = {
                "number": [_scalar_json(column.low), _scalar_json(column.high)],
                "step": None if column.step is None else str(as_number(column.step, "step")),
            }
        case Category():
            facts = {"category": None if column.values is None else list(column.values)}
            facts |= {"whole": True} if column.whole else {}
        case Flag():
            facts = {"flag": True}
    facts |= {"complete": True} if column.complete else {}
    return {"name": column.name, "public": column.public, **facts}


def column_from_json(facts: Mapping[str, Any]) -> Column:
    """Read `column_json` back."""
    name, public = facts["name"], bool(facts["public"])
    complete = bool(facts.get("complete", False))
    if "number" in facts:
        low, high = (_scalar_from_json(bound) for bound in facts["number"])
        step = None if facts["step"] is None else Fraction(facts["step"])
        return Number(name, low, high, step, public, complete)
    if "category" in facts:
        whole = bool(facts.get("whole", False))
        return Category(name, facts["category"], public, whole, complete)
    return Flag(name, public, complete)


# Public strata: the cells of the public Category and Flag columns, each an account (G.2).


@dataclass(frozen=True, slots=True)
class Other:
    """A public value that is NULL or was not declared."""


OTHER = Other()
Known: TypeAlias = str | int | bool | Other
Assignment: TypeAlias = Mapping[str, Known]

EVERYONE = "everyone"
"""The one account of a table without public strata."""


def values_of(schema: Schema, name: str) -> tuple[Known, ...]:
    column = schema[name]
    if isinstance(column, Category):
        return (*(column.values or ()), OTHER)
    return (False, True, OTHER)


def strata_columns(schema: Schema) -> tuple[str, ...]:
    """The columns whose cells are accounts; a person's rows may lie in many cells, so none."""
    return schema.strata if schema.unit == "row" else ()


def accounts(schema: Schema) -> tuple[str, ...]:
    """The names of all accounts, in the order of the cells."""
    columns = strata_columns(schema)
    if not columns:
        return (EVERYONE,)
    cells = itertools.product(*(values_of(schema, name) for name in columns))
    return tuple(_account(columns, cell) for cell in cells)


def _account(columns: tuple[str, ...], cell: tuple[Known, ...]) -> str:
    named = zip(columns, cell, strict=True)
    return ", ".join(f"{_spelled(name)}={_spelled(value)}" for name, value in named)


def _spelled(value: Known) -> str:
    """Plain where that is unambiguous, quoted otherwise: two cells never share a name."""
    if isinstance(value, Other):
        return "*"
    if isinstance(value, str) and not re.fullmatch(r"[\w .+/-]+", value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def assignments(
    schema: Schema, mentioned: Iterable[str]
) -> list[tuple[dict[str, Known], tuple[int, ...]]]:
    """Every combination of the mentioned strata columns, with the accounts that share it."""
    columns = strata_columns(schema)
    wanted = [name for name in columns if name in set(mentioned)]
    if not columns:
        return [({}, (0,))]
    at = [columns.index(name) for name in wanted]
    found: dict[tuple[Known, ...], list[int]] = {}
    cells = itertools.product(*(values_of(schema, name) for name in columns))
    for index, cell in enumerate(cells):
        found.setdefault(tuple(cell[place] for place in at), []).append(index)
    return [
        (dict(zip(wanted, values, strict=True)), tuple(indexes))
        for values, indexes in found.items()
    ]
