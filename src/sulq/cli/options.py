"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
