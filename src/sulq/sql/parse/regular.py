"""Regular expressions over public texts, matched by RE2: in time linear in the text, any pattern.

RE2 is had through DuckDB. The connection is private to this module and holds no table.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sulq.errors import InvalidQuery, Reason

_lock = threading.Lock()


@lru_cache(maxsize=1)
def _connection() -> Any:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False})


def matched(
    pattern: str, texts: Sequence[str | None], ignore_case: bool = False, whole: bool = False
) -> list[bool | None]:
    """Whether each text holds (or, with `whole`, is) what the pattern describes; None of None."""
    import duckdb

    function = "regexp_full_match" if whole else "regexp_matches"
    options = "i" if ignore_case else "c"
    asked = f"SELECT [{function}(x, $1, '{options}') FOR x IN $2]"
    with _lock:
        try:
            found = _connection().execute(asked, [pattern, list(texts)]).fetchone()
        except duckdb.Error:
            raise InvalidQuery(
                "the regular expression cannot be read; write for instance '^O.*o$'",
                reason=Reason.WRONG_FORM,
            ) from None
    return list(found[0])
