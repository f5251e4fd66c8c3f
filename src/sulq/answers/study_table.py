"""One table of a study as an Oracle of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from sulq.answers.oracle import Answer, Quote
from sulq.answers.statistics import count
from sulq.errors import InvalidQuery
from sulq.kernel.query.sum_query import about_table
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.study import Study


class HasSchema(Protocol):
    """An Oracle, or one whose verbs are awaited."""

    @property
    def schema(self) -> Schema: ...


@dataclass(frozen=True, slots=True)
class StudyTable:
    """What is asked here is about the rows of one table, and is charged to the study."""

    oracle: Any
    name: str

    @property
    def schema(self) -> Schema:
        study: Study = self.oracle.schema
        return study.relation(self.name)

    @property
    def promise(self) -> Promise:
        promise: Promise = self.oracle.promise
        return promise

    @property
    def size(self) -> int | None:
        """The public number of rows: of persons under replace, of events never."""
        size: int | None = self.oracle.size
        return size if self.schema.one_each else None

    @property
    def remaining(self) -> Fraction:
        left: Fraction = self.oracle.remaining
        return left

    @property
    def durable(self) -> bool:
        return bool(getattr(self.oracle, "durable", True))

    def quote(self, query: object, **terms: Any) -> Quote:
        quote: Quote = self.oracle.quote(about_table(query, self.name), **terms)
        return quote

    def ask(self, query: object, **terms: Any) -> Answer:
        answer: Answer = self.oracle.ask(about_table(query, self.name), **terms)
        return answer

    def plan(self, queries: Sequence[object], **terms: Any) -> Any:
        return self.oracle.plan([about_table(query, self.name) for query in queries], **terms)

    def top(self, of: Any, *, by: object = None, **terms: Any) -> Any:
        by = about_table(count() if by is None else by, self.name)
        return self.oracle.top(of, by=by, **terms)

    def alert(self, question: object, **terms: Any) -> Any:
        return self.oracle.alert(about_table(question, self.name), **terms)

    def sql(self, text: str, *params: Any, **terms: Any) -> Any:
        return self.oracle.sql(text, *params, **terms)

    def quote_sql(self, text: str, *params: Any, **terms: Any) -> Any:
        return self.oracle.quote_sql(text, *params, **terms)

    def __repr__(self) -> str:
        return f"<StudyTable {self.name!r} of {self.oracle!r}>"


def study_table(oracle: HasSchema, name: str) -> StudyTable:
    """The table `name` of a study: `study.table("visits").ask(count())`."""
    if not isinstance(oracle.schema, Study):
        raise InvalidQuery("this is one table, not a study of several; ask it as it is")
    oracle.schema.relation(name)
    return StudyTable(oracle, name)


def tables_of(oracle: HasSchema) -> tuple[str, ...]:
    """The names of a study's tables, the person table first; of one table alone, none."""
    study = oracle.schema
    return study.names if isinstance(study, Study) else ()
