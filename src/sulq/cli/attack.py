"""`sulq attack --sandbox`: every attack we know, on fictional rows under the owner's promise."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.attacks.reconstruction import Sweep, optimum
from sulq.attacks.result import AttackResult
from sulq.cli.context import LocalSession, command, named
from sulq.cli.output import print_note, show, show_json, table
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.schema.promise import Promise
from sulq.learn.plotting.style import BLUE, GREY, INK, ORANGE, Picture, altair, chart, finished

if TYPE_CHECKING:
    from sulq.attacks.suite import Attack
    from sulq.policy import TablePolicy

ROWS = 1_000
"""Rows of the fictional tables: reconstruction solves for all of them at once."""
TABLES = 5
"""How often the picture's table is published and reconstructed."""
PICTURES = (".svg", ".png", ".html")
STYLES = {"red": "bold red", "amber": "yellow", "green": "green", "none": "dim"}
MEANING = (
    "red: more was learned than the promise allows, by over 3 standard errors: a fault of sulq;"
    " amber: the promise is kept and still gives people away: promise a smaller epsilon;"
    " green: within the promise"
)

TableName = Annotated[str | None, typer.Argument(metavar="[TABLE]", show_default=False)]
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Facing:
    """What is attacked: a promise, the table's own number of rows where known, and ours."""

    name: str | None
    promise: Promise
    own_rows: int | None
    rows: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The size of the table, and the promise where it is not that of a table."""

    rows: Annotated[
        int | None, typer.Option(help="How many rows the table has.", show_default=False)
    ] = None
    epsilon: Annotated[
        str | None,
        typer.Option(help="A promise of your own instead of a table's.", show_default=False),
    ] = None
    delta: Annotated[str, typer.Option(help="With --epsilon: its delta.")] = "1e-6"
    queries: Annotated[
        int | None,
        typer.Option(
            "--credits",
            "--queries",
            help="With --epsilon: for how many credits.",
            show_default=False,
        ),
    ] = None


@command
def attack(
    session: LocalSession,
    options: TargetOptions,
    name: TableName = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="On fictional rows; there is no other way.")
    ] = False,
    only: Annotated[
        str | None, typer.Option(help="Attacks by name, with commas; --list has them.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="More trials: minutes.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Recovered share against noise: .svg, .png or .html.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="The attacks, and no more.")] = False,
) -> None:
    """Attack your promise before you make it: fictional rows, your T, your noise.

    No real row is read and no real ledger is opened. Exit code 1 if a light is red.
    """
    from sulq.attacks.suite import FULL, QUICK, chosen, run, worst_light
    from sulq.sandbox import sandbox as sandboxed

    if list_them:
        _list(chosen(), session.as_json)
        return
    if not sandbox:
        raise InvalidQuery(_no_sandbox(name, options.epsilon))
    attacks = chosen(None if only is None else [word.strip() for word in only.split(",")])
    faced = _facing(session.policy, name, options)
    if plot is not None:
        _check_picture(plot)
    effort = FULL if full else QUICK
    with _progress(len(attacks) + (plot is not None)) as step:
        with sandboxed(faced.promise, faced.rows) as target:

            def seen(begun: Attack, findings: Sequence[AttackResult]) -> None:
                if not findings:
                    step(begun.name)

            found = run(target, [one.name for one in attacks], effort, seen)
        if plot is not None:
            step("picture")
            _draw(plot, faced.promise)
    _show(faced, effort, found, plot, session.as_json)
    if worst_light(found) == "red":
        raise typer.Exit(1)


# --- what was typed -----------------------------------------------------------------------------


def _no_sandbox(name: str | None, epsilon: str | None) -> str:
    typed = ["sulq attack --sandbox", name or "", f"--epsilon {epsilon}" if epsilon else ""]
    return (
        "a live table is never attacked: that would spend its budget, which never comes back."
        f" Attack fictional rows under the same promise: {' '.join(filter(None, typed))}"
    )


def _facing(policy: Path, name: str | None, options: TargetOptions) -> Facing:
    from sulq.kernel.schema.promise import Promise

    rows = options.rows
    if rows is not None and rows < 2:
        raise InvalidQuery(f"--rows takes a whole number above 1, got {rows}")
    notes: list[str] = []
    if options.epsilon is not None:
        if name is not None:
            raise InvalidQuery(f"give a table or --epsilon, not both; got {name!r:.40}")
        promise = Promise(options.epsilon, options.delta, options.queries)
        table_name, own = None, rows
    else:
        if options.queries is not None:
            raise InvalidQuery("--credits goes with --epsilon; a table has its own promise")
        if name is not None and name.endswith(".toml"):
            policy, name = Path(name), None
        source = named(policy, name)
        promise, table_name = source.promise, source.name
        own = rows or _public_size(source)
        if source.unit != "row":
            notes.append("a person is one row here: who has more rows pays for them in credits")
    used = min(own or ROWS, ROWS)
    if own is not None and own > used:
        notes.append(
            f"people are looked for among {used:,} fictional rows instead of {own:,}. Nothing else"
            " is scaled: promise, credits and noise are the table's own, and fewer rows are easier"
            " to find out"
        )
    elif own is None:
        notes.append(
            f"people are looked for among {used:,} fictional rows; --rows says how many yours has."
            " The noise does not depend on it, and fewer rows are easier to find out"
        )
    return Facing(name=table_name, promise=promise, own_rows=own, rows=used, notes=tuple(notes))


def _public_size(source: TablePolicy) -> int | None:
    """The rows of a Parquet file by its footer, where their number is public. Reads no row."""
    import duckdb

    public = source.promise.neighbours == "replace" and source.unit == "row"
    if not public or "://" in source.source or not source.source.endswith(".parquet"):
        return None
    path = "'" + source.source_path.replace("'", "''") + "'"
    try:
        with duckdb.connect(":memory:") as connection:
            sql = f"SELECT sum(num_rows) FROM parquet_file_metadata({path})"  # noqa: S608
            found = connection.execute(sql).fetchone()
    except duckdb.Error:
        return None  # a policy may be written before its file
    return int(found[0]) if found and found[0] and found[0] > 1 else None


def _check_picture(path: Path) -> None:
    """Found out before the attacks, not after."""
    if path.suffix.lower() not in PICTURES:
        raise InvalidQuery(f"a picture is one of {', '.join(PICTURES)}, got {path.name!r:.60}")
    from sulq.learn.plotting.registry import ready

    try:
        ready()
    except ImportError as missing:
        raise InvalidQuery(f"{missing}, or leave --plot out") from None
    if not path.exists():
        path.open("a").close()
        path.unlink()


# --- the run ------------------------------------------------------------------------------------


@contextmanager
def _progress(steps: int) -> Iterator[Step]:
    """A bar on a terminal's stderr; in a pipe nothing."""
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<16}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)
        begun = 0

        def step(name: str) -> None:
            nonlocal begun
            bar.update(task, description=name, completed=begun)
            begun += 1

        yield step


def _draw(path: Path, promise: Promise) -> None:
    """The table is asked as many questions as rows, so that it belongs on the picture's curve."""
    from sulq.attacks.reconstruction import reconstruction, sweep
    from sulq.learn.plotting.registry import save
    from sulq.sandbox import sandbox as sandboxed

    here: list[AttackResult] = []
    with sandboxed(promise, CHART_ROWS) as target:
        swept = sweep(target, CHART_ROWS, SIGMAS)
        with suppress(Refused, InvalidQuery):  # the picture is then without its diamond
            for seed in range(TABLES):
                here.append(reconstruction(target, questions=CHART_ROWS, seed=seed))
    save(picture(swept, promise, here), path)


# --- what is shown ------------------------------------------------------------------------------


def _list(attacks: Sequence[Attack], as_json: bool) -> None:
    if as_json:
        show_json({"attacks": [{"attack": one.name, "tries": one.tries} for one in attacks]})
        return
    drawn = table(("attack", "tries"), [(one.name, one.tries) for one in attacks])
    drawn.columns[1].justify = "left"
    show(drawn)


def _show(
    faced: Facing, effort: str, found: Sequence[AttackResult], plot: Path | None, as_json: bool
) -> None:
    from sulq.attacks.suite import light, worst_light

    over_all = worst_light(found)
    if as_json:
        records = [{**one.to_json(), "light": light(one)} for one in found]
        show_json(
            {
                "table": faced.name,
                "promise": faced.promise.to_json(),
                "rows": faced.own_rows,
                "fictional_rows": faced.rows,
                "effort": effort,
                "light": over_all,
                "findings": records,
                "notes": faced.notes,
                "plot": plot,
            }
        )
        return
    from rich.text import Text

    print_note(f"promise: {faced.promise}")
    for note in faced.notes:
        print_note(f"note: {note}")
    heads = ("attack", "measure", "reached", "best possible", "light", "credits")
    drawn = table(heads, [])
    for place in (1, 4):
        drawn.columns[place].justify = "left"
    for one in found:
        colour = light(one)
        drawn.add_row(
            one.attack,
            one.measure,
            *_figures(one),
            Text(colour, STYLES[colour]),
            f"{float(one.credits):,.6g}",
        )
    show(drawn)
    for one in found:
        if one.note:
            print_note(f"{one.attack}: {one.note}")
    if plot is not None:
        print_note(f"plot: {plot}")
    show(Text(f"light: {over_all}", STYLES[over_all]))
    print_note(MEANING)


def _figures(finding: AttackResult) -> tuple[str, str]:
    """What was reached, with three standard errors where it is an estimate, and the bound."""
    if not finding.trials:
        return "-", "-"
    if finding.error:
        return f"{finding.reached:.3f} ± {3 * finding.error:.3f}", f"{finding.bound:.3f}"
    return f"{finding.reached:,.4g}", f"{finding.bound:,.4g}"


# Recovered share against noise: where sqrt(n) lies, and where a table stands.
#
# n rows, n questions about random halves of them. T credits spent so are n questions of T/n
# credits, so a table of any T has its place on the same axis.


CHART_ROWS = 256
SIGMAS = tuple(math.sqrt(CHART_ROWS) * step for step in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4))
NEAREST, FARTHEST = 1 / 12, 64.0
"""The ends of the axis in sqrt(n): beyond them nothing is to be seen."""
QUIET = "#57606A"


def standing(promise: Promise, rows: int = CHART_ROWS) -> float:
    """The noise of each answer when all credits are spent as n equal questions. S4.1, S4.13"""
    return calibrate(promise).count_error(Fraction(promise.credits, rows))


def picture(swept: Sweep, promise: Promise, here: Sequence[AttackResult]) -> Picture:
    """The curve of the optimum, the dots measured, sqrt(n), and the table that is attacked."""
    alt = altair()
    root, rows = swept.threshold, swept.rows
    left = root * NEAREST
    mine = min(max(standing(promise, rows), left), root * FARTHEST)
    right = max(root * 16, mine * 5)
    ticks = [2.0**power for power in range(1, math.ceil(math.log2(right)) + 1, 2)]
    x = alt.X(
        "noise:Q",
        title=f"noise of one answer (standard deviation), for {rows} rows and {rows} questions",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        axis=alt.Axis(values=ticks, format="~g", grid=False),
    )
    y = alt.Y(
        "share:Q",
        title="share of secret bits recovered",
        scale=alt.Scale(domain=[0.4, 1.0]),
        axis=alt.Axis(format="%", values=[0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
    )
    reach = [left * (right / left) ** (place / 120) for place in range(121)]
    curve = (
        chart([{"noise": s, "share": optimum(s, rows)} for s in reach], width=520, height=300)
        .mark_line(color=BLUE, strokeWidth=2.2)
        .encode(x, y)
    )
    coin = chart([{"share": 0.5}]).mark_rule(color=GREY, strokeDash=[2, 3]).encode(y=y)
    dots = [_dot(point.sigma, point.recovered, point.error) for point in swept.points]
    tables = [one for one in here if one.trials]
    layers = [coin, _upright(root, QUIET, [5, 4]), _upright(mine, ORANGE, [1, 0]), curve]
    layers += _marked(dots, "circle", INK, x, y)
    if tables:
        share = sum(one.reached for one in tables) / len(tables)
        error = math.sqrt(sum(one.error**2 for one in tables)) / len(tables)
        layers += _marked([_dot(mine, share, error)], "diamond", ORANGE, x, y)
    layers += [
        _label(root, 0.985, f"√n = {root:g}", QUIET),
        _label(mine, 0.935, "this table", ORANGE, align="left" if mine >= root else "right"),
        _label(left * 1.1, 0.513, "a coin", QUIET),
        _label(right, optimum(right, rows) + 0.035, "best possible", BLUE, align="right"),
    ]
    said = [
        "line: the most that anyone can recover; dots: least squares on fictional rows, with 95 %"
        " intervals",
        f"this table: {promise.credits:,} credits spent as {rows} questions about random halves"
        " of the rows",
    ]
    return finished(alt.layer(*layers), "How much noise hides everybody", said)


def _dot(noise: float, share: float, error: float) -> dict[str, float]:
    high = min(1.0, share + 1.96 * error)
    return {"noise": noise, "share": share, "low": share - 1.96 * error, "high": high}


def _marked(dots: Sequence[dict[str, float]], shape: str, colour: str, x: Any, y: Any) -> list[Any]:
    """Dots with their intervals."""
    alt, base = altair(), chart(dots)
    bars = base.mark_rule(color=colour, strokeWidth=1.6)
    size = 60 if shape == "circle" else 130
    points = base.mark_point(shape=shape, size=size, filled=True, color=colour, opacity=1)
    return [bars.encode(x, alt.Y("low:Q"), alt.Y2("high:Q")), points.encode(x, y)]


def _upright(noise: float, colour: str, dash: Sequence[int]) -> Picture:
    ruled = chart([{"noise": noise}]).mark_rule(
        color=colour, strokeDash=list(dash), strokeWidth=1.6
    )
    return ruled.encode(altair().X("noise:Q"))


def _label(noise: float, share: float, text: str, colour: str, align: str = "left") -> Picture:
    alt = altair()
    word = chart([{"noise": noise, "share": share, "text": text}])
    return word.mark_text(
        align=align,
        dx=6 if align == "left" else -6,
        baseline="middle",
        color=colour,
        fontSize=12,
        fontWeight=600,
    ).encode(alt.X("noise:Q"), alt.Y("share:Q"), text="text:N")
