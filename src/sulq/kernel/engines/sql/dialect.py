"""How integer SQL is spelled on DuckDB; other engines override what they spell otherwise.

Facts relied on: NaN compares greater than everything, `//` truncates, `%` takes the dividend's
sign, `>>` floors, LEAST and GREATEST skip NULL.

Every literal, leaf, CASE and shift says its type by name, so that no engine widens one by its own
rules: a literal past 2^63 would be DECIMAL here, NUMERIC or DOUBLE there. What is wider than BIGINT
is asked for: `wide`, `double`, and the sums. docs/proofs/engines.md, claim 9.
"""

from __future__ import annotations

from collections.abc import Sequence

from sulq.errors import InvalidQuery


class Dialect:
    """DuckDB's spelling."""

    @staticmethod
    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    @staticmethod
    def name(value: str) -> str:
        return '"' + value.replace('"', '""') + '"'

    @staticmethod
    def table(name: str) -> str:
        """A table of our own in a FROM."""
        return name

    @staticmethod
    def real(value: float) -> str:
        return f"CAST('{value!r}' AS DOUBLE)"

    @staticmethod
    def integer(value: int) -> str:
        """The only way in which a whole number gets into a statement."""
        if abs(value) >= 2**63:
            raise InvalidQuery("a constant passes 64 bits; use smaller ones")
        return f"CAST({value} AS BIGINT)"

    @staticmethod
    def bigint(sql: str) -> str:
        return f"CAST({sql} AS BIGINT)"

    @staticmethod
    def wide(sql: str) -> str:
        """An integer type of 127 bits, for a division whose parts pass 2^62."""
        return f"CAST({sql} AS HUGEINT)"

    @staticmethod
    def double(sql: str) -> str:
        return f"CAST({sql} AS DOUBLE)"

    @staticmethod
    def streamed(sql: str) -> str:
        """A Number as a DOUBLE of a block; NULL arrives as NaN."""
        return Dialect.double(sql)

    @staticmethod
    def flag_bit(flag: str) -> str:
        """A BOOLEAN as 0 or 1."""
        return f"CAST({flag} AS BIGINT)"

    @staticmethod
    def rounded(x: str, per_unit: float) -> str:
        """floor(x * per_unit + 1/2) in binary64, for an x that is a leaf's own or NULL."""
        return f"FLOOR({x} * {Dialect.real(per_unit)} + {Dialect.real(0.5)})"

    @staticmethod
    def real_sum(value: str) -> str:
        """The sum of integer-valued DOUBLEs that is known to stay within 2^53, 0 of none."""
        return f"COALESCE(CAST(sum({value}) AS BIGINT), {Dialect.integer(0)})"

    @staticmethod
    def whole_sum(value: str, largest: int, rows: int) -> str:
        """The sum of BIGINTs of at most this size over so many rows, 0 of none; 128 bits hold any.

        Its own type is left as it is: another than this one would be noticed by the decoder.
        """
        return f"COALESCE(sum({Dialect.bigint(value)}), {Dialect.wide('0')})"

    @staticmethod
    def truncated_division(over: str, under: str) -> str:
        return f"({over} // {under})"

    @staticmethod
    def wide_division(over: str, under: str) -> str:
        """The same for the wide type."""
        return f"({over} // {under})"

    @staticmethod
    def floor_shift(value: str, bits: int) -> str:
        return f"({Dialect.bigint(value)} >> {Dialect.integer(bits)})"

    @staticmethod
    def can_hold(value: str) -> bool:
        """Whether a column of text could hold the value at all."""
        return True

    @staticmethod
    def like(column: str, pattern: str) -> str:
        """LIKE without an escape character, which is DuckDB's default."""
        return f"{column} LIKE {Dialect.text(pattern)}"

    @staticmethod
    def declared_only(column: str, values: Sequence[str] | Sequence[int]) -> str:
        """The column where it is one of `values`, else NULL, one hash lookup per row."""
        names = ", ".join(Dialect.text(str(value)) for value in values)
        return f"TRY_CAST(CAST({column} AS VARCHAR) AS ENUM({names}))"

    @staticmethod
    def place_among(column: str, values: Sequence[str] | Sequence[int]) -> str:
        """The value's place in `values` as a BIGINT, -1 where it is none of them."""
        declared = Dialect.declared_only(column, values)
        return f"COALESCE(CAST(enum_code({declared}) AS BIGINT), {Dialect.integer(-1)})"

    @staticmethod
    def text_hash(column: str) -> str:
        """The first 28 bits of MD5 as an integer."""
        return f"CAST('0x' || substr(md5({column}), 1, 7) AS BIGINT)"

    @staticmethod
    def part_of(key: str, parts: int) -> str:
        """Which of so many parts a text is in: 0 to parts - 1, by any hash."""
        return f"CAST(hash({key}) % CAST({parts} AS UBIGINT) AS BIGINT)"

    text_type = "VARCHAR"
    """The type of any text."""

    fence = ""
    """What ends an inner SELECT so that its names are worked out once per row."""
    counts_by_test = False
    """Whether a test of the bare column is the cheaper way to count where a leaf is a number."""
