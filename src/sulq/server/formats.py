"""The format of a table that leaves: JSON, CSV or an Arrow stream, as the caller's Accept says.

What is not had is refused before anything is asked. The reply that is kept under a key is JSON,
whatever left: a retry may accept another format, and is told the same.
"""

from __future__ import annotations

import csv
import io
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import Response

from sulq.server.errors import HttpProblem
from sulq.wire import SqlReply, reply_columns

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
SPENT = "Sulq-Credits"
"""The header that tells what was charged, where the body has no place for it."""
TABLES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            CSV: {"schema": {"type": "string"}},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        }
    }
}
"""What the description of the API says beside JSON."""


def had() -> tuple[str, ...]:
    """Return the formats that this server has; Arrow needs pyarrow."""
    return (JSON, CSV, ARROW) if find_spec("pyarrow") else (JSON, CSV)


def chosen_format(accept: str) -> str:
    """Return the format that the caller likes best, or refuse with 406, free."""
    ranges = [_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    ranges.sort(key=lambda one: -one[1])  # stable: as they were written
    formats = had()
    for wanted, weight in ranges:
        for media in formats:
            if weight > 0 and _matches(wanted, media):
                return media
    raise HttpProblem(
        406,
        "not_acceptable",
        f"Accept has none of the formats of a table: {', '.join(formats)}",
        "send Accept with one of them; nothing was charged",
    )


async def accepted_format(request: Request) -> str:
    return chosen_format(request.headers.get("accept", ""))


Format = Annotated[str, Depends(accepted_format)]


def table_response(reply: bytes, media: str) -> Response:
    """Return a reply to a statement, kept as JSON, in the format that was chosen."""
    if media == JSON:
        return Response(reply, media_type=JSON, headers={"Vary": "Accept"})
    read = SqlReply.model_validate_json(reply)
    content = _csv(read) if media == CSV else _arrow(read)
    headers = {"Vary": "Accept", SPENT: str(read.credits_exact)}
    return Response(content, media_type=media, headers=headers)


def _csv(reply: SqlReply) -> bytes:
    """Return keys and aggregates, `n` also as n_low and n_high; NULL is empty. RFC 4180"""
    columns, file = reply_columns(reply, intervals=True), io.StringIO(newline="")
    table = csv.writer(file)
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    return file.getvalue().encode()


def _arrow(reply: SqlReply) -> bytes:
    import pyarrow
    from pyarrow import ipc

    keys = {column.name for column in reply.columns if column.is_key}
    arrays = {
        name: pyarrow.array(cells, None if name in keys else pyarrow.float64())
        for name, cells in reply_columns(reply, intervals=True).items()
    }
    table, sink = pyarrow.table(arrays), pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _range(part: str) -> tuple[str, float]:
    """Return a media range and its weight; what cannot be read weighs 0."""
    media, *parameters = (word.strip().lower() for word in part.split(";"))
    weights = [word[2:] for word in parameters if word.startswith("q=")]
    try:
        return media, float(weights[0]) if weights else 1.0
    except ValueError:
        return media, 0.0


def _matches(wanted: str, media: str) -> bool:
    kind = media.partition("/")[0]
    return wanted in (media, "*/*", f"{kind}/*")
