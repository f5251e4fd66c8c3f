"""What the commands print: data to stdout, talk to stderr, colours only where they are seen."""

from __future__ import annotations

import datetime
import functools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sulq.errors import EngineFailed, SulqError, codes_of
from sulq.formatting import credits_text

if TYPE_CHECKING:
    from sulq.kernel.schema.promise import Promise

Result = TypeVar("Result")

PIPE_CLOSED = 141  # as a shell says it: 128 + SIGPIPE
PIPED_WIDTH = 200

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Policy = Annotated[Path, typer.Option("--policy", "-p", help="The policy file.")]
POLICY = Path("sulq.toml")
exit_stack = ExitStack()
"""Closed when a command has ended, however it ended."""


def out() -> Console:
    """Where data goes."""
    return _console(stderr=False)


def print_note(*words: str) -> None:
    """Say something beside the data."""
    _console(stderr=True).print(*words, soft_wrap=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(stderr=stderr, highlight=False, markup=False, width=width)


def show(drawn: Any) -> None:
    """Print to stdout; in a pipe without the blanks that fill up a table."""
    console = out()
    if sys.stdout.isatty():
        console.print(drawn)
        return
    with console.capture() as captured:
        console.print(drawn)
    for line in captured.get().splitlines():
        print(line.rstrip())


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table; the first column to the left, numbers to the right."""
    framed = sys.stdout.isatty()
    drawn = Table(
        box=box.SIMPLE_HEAD if framed else None,
        pad_edge=False,
        header_style="bold",
    )
    for place, name in enumerate(columns):
        drawn.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    return drawn


def key_values(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and what they are, one to a line."""
    drawn = Table.grid(padding=(0, 3))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(name, value)
    return drawn


def show_json(data: object) -> None:
    print(json.dumps(plain(data), ensure_ascii=False, allow_nan=False))


def plain(data: Any) -> Any:
    """Anything we show as what JSON has."""
    if hasattr(data, "tolist"):  # NumPy's arrays and scalars
        data = data.tolist()
    if isinstance(data, Fraction):
        return data.numerator if data.denominator == 1 else float(data)
    if isinstance(data, datetime.date):
        return data.isoformat()
    if isinstance(data, dict):
        return {str(name): plain(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(item) for item in data]
    if isinstance(data, float) and not math.isfinite(data):  # an end that is open, or unknown
        return None
    return str(data) if isinstance(data, Path) else data


class ChargedButFailed(Exception):
    """Something failed at or after the charge; `credits` is None where it is not known."""

    def __init__(self, error: Exception, credits: Fraction | None) -> None:
        super().__init__(_reason(error))
        self.kind, self.credits = type(error).__name__, credits


class Stopped(Exception):
    """A fit that ended early; `credits` is what its answers had cost by then."""

    def __init__(self, error: SulqError, credits: Fraction) -> None:
        super().__init__(str(error))
        self.error, self.credits = error, credits


@contextmanager
def stored(credits: Fraction) -> Iterator[None]:
    """What fails in here fails after the charge: the answer is in the ledger."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (SulqError, OSError) as error:
        raise ChargedButFailed(error, credits) from None


@contextmanager
def charging() -> Iterator[None]:
    """The system may fail in here before or after the charge."""
    try:
        yield
    except OSError as error:
        raise ChargedButFailed(error, None) from None


def guarded(command: Callable[..., Result]) -> Callable[..., Result]:
    """Errors as one line to stderr and an exit code; with --json also as data."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Result:
        try:
            result = command(*args, **options)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # the reader has seen enough
            _stop_writing()
            raise typer.Exit(PIPE_CLOSED) from None
        except ChargedButFailed as error:
            told = f"{error}; the answer is stored and stays free: ask again"
            if error.credits is None:
                told = f"{error}; the charge may stand: ask again, what is charged once is free"
            elif error.credits:
                told += f" ({credits_text(error.credits)} spent)"
            raise _failed(error.kind, told, error.credits, 1, options) from None
        except Stopped as stopped:
            told = f"{stopped} ({credits_text(stopped.credits)} spent)"
            kind, code = type(stopped.error).__name__, codes_of(stopped.error).exit_code
            raise _failed(kind, told, stopped.credits, code, options) from None
        except SulqError as error:
            unknown = None if isinstance(error, EngineFailed) else Fraction(0)
            spent = getattr(error, "credits_spent", unknown)
            kind, code = type(error).__name__, codes_of(error).exit_code
            raise _failed(kind, str(error), spent, code, options) from None
        except OSError as error:
            raise _failed("OSError", _reason(error), Fraction(0), 2, options) from None
        except (KeyboardInterrupt, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if os.environ.get("SULQ_DEBUG"):
                raise
            kind = type(error).__name__
            reason = f"unexpected {kind}; this is a fault of sulq (SULQ_DEBUG=1 shows where)"
            raise _failed(kind, reason, None, 1, options) from None
        finally:
            exit_stack.close()

    return run


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
    return str(error)


def _stop_writing() -> None:
    """Point stdout nowhere, so that the interpreter's last flush is silent too."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(
    kind: str, reason: str, spent: Fraction | None, code: int, options: dict[str, Any]
) -> typer.Exit:
    try:
        if options.get("as_json"):
            show_json({"error": reason, "kind": kind, "credits_spent": spent})
        sys.stdout.flush()
    except OSError:  # stdout itself is what failed
        _stop_writing()
    line = " ".join(reason.split())
    if spent == 0 and "words" in options:
        line += " (0 credits spent)"  # a question
    print(f"error: {line}", file=sys.stderr)
    return typer.Exit(code)


def promise_text(promise: Promise, unit: str) -> str:
    """The promise in words; who is protected is a row or a person."""
    return str(promise.about(unit))


def many(number: int, what: str) -> str:
    """1 receipt, 2 receipts."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def moment_text(value: Any, unit: str) -> str:
    """A number of days ("date") or seconds ("datetime") since 1970-01-01 as people read it."""
    if unit == "number" or value is None:
        return number_text(value)
    seconds = round(float(value)) if unit == "datetime" else 86_400 * round(float(value))
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return number_text(value)
    return str(moment.date() if unit == "date" else moment)


def number_text(value: Any) -> str:
    """A number as people read it."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Fraction):
        value = float(value)
    if isinstance(value, float):
        size = abs(value)
        if size >= 1000:
            return f"{value:,.0f}"
        return f"{value:.4g}" if size >= 0.001 or size == 0 else f"{value:.2e}"
    return str(value)
