"""How integer SQL is spelled on DuckDB; other engines override what they spell otherwise.

Facts relied on: NaN compares greater than everything, `//` truncates, `%` takes the dividend's
sign, `>>` floors, LEAST and GREATEST skip NULL.
"""

from __future__ import annotations

from collections.abc import Sequence


class Dialect:
    """DuckDB's spelling."""

    @staticmethod
    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    @staticmethod
    def name(value: str) -> str:
        return '"' + value.replace('"', '""') + '"'

    @staticmethod
    def real(value: float) -> str:
        return f"CAST('{value!r}' AS DOUBLE)"

    @staticmethod
    def integer(value: int) -> str:
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
    def truncated_division(over: str, under: str) -> str:
        return f"({over} // {under})"

    @staticmethod
    def floor_shift(value: str, bits: int) -> str:
        return f"({value} >> {bits})"

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
    def text_hash(column: str) -> str:
        """The first 28 bits of MD5 as an integer."""
        return f"CAST('0x' || substr(md5({column}), 1, 7) AS BIGINT)"


INFINITY = Dialect.real(float("inf"))
