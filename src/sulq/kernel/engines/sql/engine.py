"""What every engine does alike: a program becomes statements, and their rows exact integers.

An engine says how it reads, how it runs a statement, and how rows come out of it block by block or
key by key. Whatever fails while rows are read is one constant sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sulq.errors import EngineFailed, InvalidQuery
from sulq.kernel.engines.proved import Guard, silenced
from sulq.kernel.engines.sql.compile import (
    TABLE,
    KeyRow,
    SqlStatement,
    held_statement,
    key_statements,
    person_statement,
    row_select,
    small_outer,
    statement,
)
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.engines.sql.study import StudySql, TableScope
from sulq.kernel.schema.columns import Category, Schema
from sulq.kernel.schema.keys import KeyCounts
from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.sensitivity import PersonSums
from sulq.kernel.schema.trees import TreeSums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sulq.kernel.schema.bind import Program
    from sulq.kernel.schema.vector_program import BlockSums, Leaf

    Blocks = Generator[Sequence[NDArray[np.generic]], None, None]

T = TypeVar("T")
Batches = Generator[list[Any], None, None]
SPARE_KEYS = 1_000
"""Undeclared values a category may hold and still be grouped by as it is."""


@dataclass(frozen=True, slots=True)
class Work:
    """What to do with a session, and the letters of its longest statement."""

    letters: int
    run: Callable[[Any], list[int]]


class SqlEngine(ABC):
    """Exact sums over one table, by SQL."""

    terms_each: int | None = None
    """Terms of one SELECT, where there is a limit."""
    most_products = 0
    """Products of an outer product that are added up by SQL; more are worked out on blocks."""
    held: str
    """In a FROM: how many rows each person has, before any is cut."""
    study: StudySql | None = None
    """The tables, where they are several about the same persons."""

    def __init__(
        self, places: Mapping[str, ColumnSql], rows: int, size: int, fingerprint: str
    ) -> None:
        self.places, self.rows = places, rows
        self._size, self._fingerprint = size, fingerprint
        self._guard = Guard()

    # --- what an engine says --------------------------------------------------------------------

    @abstractmethod
    def _reading(self, letters: int) -> AbstractContextManager[Any]:
        """A session in which the rows have a name, for statements of so many letters."""

    @abstractmethod
    def _execute(self, session: Any, sql: str) -> list[Any]:
        """All rows of a result."""

    @abstractmethod
    def _batches(self, session: Any, sql: str) -> Batches:
        """The rows of a long result, a batch at a time."""

    def _blocks(self, session: Any, sql: str, place: Mapping[Leaf, int]) -> Blocks:
        """The rows of `sql`, the leaves in their places, as arrays."""
        raise NotImplementedError

    def _sent(self, sql: str) -> str:
        """The statement as it is sent."""
        return sql

    # --- questions ------------------------------------------------------------------------------

    def exact_sums(self, program: Program) -> list[int]:
        """The program's integers, exactly."""
        return self.prepare(program)()

    def prepare(self, program: Program) -> Callable[[], list[int]]:
        """What will read the rows, once everything that may be refused was checked."""
        self.check()
        work = self._work(program)
        return lambda: self.read(work.run, work.letters)

    def check(self) -> None:
        """Before a charge: `Refused` if a number came back that its proof rules out."""
        self._guard.check()

    def read(self, work: Callable[[Any], T], letters: int = 0) -> T:
        """Work on rows in a session of its own; `EngineFailed` whatever goes wrong."""

        def done() -> T:
            with self._reading(letters) as session:
                return work(session)

        return silenced(done, self._failed)

    def _failed(self, error: Exception) -> EngineFailed:
        self._guard.saw(error)
        return EngineFailed()

    def _work(self, program: Program) -> Work:
        if isinstance(program, TreeSums):
            cells, counts = self._work(program.cells), program.tree.counts
            return Work(cells.letters, lambda session: counts(cells.run(session)))
        if self.study is not None:
            if isinstance(program, PersonSums):
                raise InvalidQuery("a study sums rows of a table, nothing per person")
            rows, scope = self.study.scope(program)
            return self._summed(replace(program, rows=rows), scope)
        return self._summed(program, TableScope(self.places, self.rows, TABLE))

    def _summed(self, program: RowSums | PersonSums | BlockSums, scope: TableScope) -> Work:
        if isinstance(program, PersonSums):
            if program.uncut:
                return self._asked(held_statement(program, self.places, self.rows, self.held))
            return self._asked(person_statement(program, self.places, self.rows))
        if isinstance(program, RowSums):
            return self._row_sums(program, scope)
        small = small_outer(program, self.most_products) if self.most_products else None
        if small is not None:
            sums = self._row_sums(small.sums, scope)
            return Work(sums.letters, lambda session: small.matrix(sums.run(session)))
        sql, place = row_select(program, scope.places, scope.table)
        return Work(len(self._sent(sql)), self._outer_sums(program, sql, place))

    def _asked(self, question: SqlStatement) -> Work:
        sql = self._sent(question.sql)
        return Work(len(sql), lambda session: question.decode(self._execute(session, sql)))

    def _row_sums(self, program: RowSums, scope: TableScope) -> Work:
        """One SELECT, or several of the same session where there are many terms."""
        terms, most = program.terms, self.terms_each
        if most is None or len(terms) <= most:
            return self._asked(statement(program, *scope))
        slices = [terms[at : at + most] for at in range(0, len(terms), most)]
        works = [self._row_sums(replace(program, terms=part), scope) for part in slices]

        def together(session: Any) -> list[int]:
            tables = [
                _rows_of(work.run(session), len(part))
                for work, part in zip(works, slices, strict=True)
            ]
            return [x for cell in zip(*tables, strict=True) for part in cell for x in part]

        return Work(max(work.letters for work in works), together)

    def _outer_sums(
        self, program: BlockSums, sql: str, place: Mapping[Leaf, int]
    ) -> Callable[[Any], list[int]]:
        """Products added up on blocks of rows; what is refused is refused here."""
        from sulq.kernel.engines.blocks import OuterSums  # loaded when first asked

        sums = OuterSums(program, place)

        def of(session: Any) -> list[int]:
            with closing(self._blocks(session, sql, place)) as blocks:
                return sums.of(blocks)

        return of

    def prepare_keys(self, program: KeyCounts) -> Callable[[], Iterator[list[KeyRow]]]:
        """What will read the keys that occur with their counts and sums, a batch at a time."""
        if self.study is not None:
            raise InvalidQuery("keys that nobody declared are not told of a study")
        self.check()
        asked = key_statements(program, self.places, self.rows)
        statements = [self._sent(sql) for sql in asked.parts]

        def batches() -> Generator[list[KeyRow], None, None]:
            with self._reading(max(len(sql) for sql in statements)) as session:
                for sql in statements:
                    with closing(self._batches(session, sql)) as rows:
                        for batch in rows:
                            yield asked.decode(batch)

        def read() -> Iterator[list[KeyRow]]:
            found = batches()
            try:
                while (batch := silenced(lambda: next(found, None), self._failed)) is not None:
                    yield batch
            finally:
                silenced(found.close, self._failed)  # of a reader that stops early

        return read

    # --- the source -----------------------------------------------------------------------------

    def fingerprint(self) -> str:
        return self._fingerprint

    def size(self) -> int:
        return self._size

    @abstractmethod
    def unchanged(self) -> bool:
        """Whether the source still is what was opened."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the table; idempotent."""


def _rows_of(values: list[int], width: int) -> list[list[int]]:
    return [values[at : at + width] for at in range(0, len(values), width)]


# --- opening ------------------------------------------------------------------------------------


def few_at_most(schema: Schema) -> dict[str, int]:
    """By category with declared values: how many it may hold and still be grouped by as it is."""
    return {
        column.name: len(column.values) + SPARE_KEYS
        for column in schema.columns
        if isinstance(column, Category) and column.values is not None
    }


def surveyed(
    places: Mapping[str, ColumnSql], distinct: Mapping[str, int], most: Mapping[str, int]
) -> dict[str, ColumnSql]:
    """The places, with a mark on those that hold few values."""
    few = {name for name, seen in distinct.items() if seen <= most[name]}
    return {name: replace(place, few=name in few) for name, place in places.items()}
