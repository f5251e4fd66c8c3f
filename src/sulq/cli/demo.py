"""The tour: a newcomer watches a table being published, asked, and finally turned off."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
import sysconfig
import textwrap
import threading
import urllib.request
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from sulq.answers.oracle import Answer
from sulq.beliefs.sizing import sizing
from sulq.cli.output import number_text, plain, table
from sulq.cli.question_text import question
from sulq.cli.server_process import PORT, Started, Where, serve_tables
from sulq.database import Database
from sulq.demo import Demo, make_demo, own_state
from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.formatting import credits_left, credits_text
from sulq.kernel.ledger.inspect import inspect
from sulq.policy import read_policy
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables

WIDTH = 88
BAR = 30


@dataclass(slots=True)
class Stage:
    """The screen of the tour, and a record of what happened on it."""

    screen: Console
    lively: bool
    number: int = 0
    record: list[dict[str, Any]] = field(default_factory=list)

    def chapter(self, title: str) -> None:
        self.number += 1
        self.screen.print()
        self.screen.print(Text(f"{self.number}. {title}", style="bold cyan"))

    def say(self, *sentences: str) -> None:
        self._wrapped(" ".join(sentences), 3, "")

    def command(self, words: str) -> None:
        self.screen.print(Text(f"   $ {words}", style="bold"), soft_wrap=True)

    def result(self, text: str, style: str = "green") -> None:
        self._wrapped(text, 5, style)

    def _wrapped(self, text: str, indent: int, style: str) -> None:
        margin = " " * indent
        for line in textwrap.wrap(text, min(self.screen.width, WIDTH) - indent):
            self.screen.print(Text(margin + line, style=style), soft_wrap=True)

    def show(self, drawn: Any) -> None:
        self.screen.print(Padding(drawn, (0, 0, 0, 5), expand=False))

    def budget(self, left: Fraction, whole: int) -> None:
        """The lifetime budget as a bar that only ever gets shorter."""
        full = round(BAR * float(left) / whole)
        on, off = ("█", "░") if self.lively else ("#", ".")
        style = "green" if left * 2 > whole else "yellow" if left else "red"
        bar = Text("     budget ")
        bar.append(on * full, style=style)
        bar.append(off * (BAR - full), style="dim")
        bar.append(f" {credits_left(left).split()[0]} of {whole} credits left")
        self.screen.print(bar)

    @contextmanager
    def working(self, on_what: str) -> Iterator[None]:
        if self.lively:
            with self.screen.status(on_what):
                yield
        else:
            self.say(f"{on_what} ...")
            yield


def tour(directory: Path, people: int, *, quiet: bool = False) -> list[dict[str, Any]]:
    """Walk through the demo; returns what happened, step by step."""
    lively = sys.stdout.isatty()
    screen = Console(highlight=False, quiet=quiet)
    screen.width = min(screen.width, WIDTH) if lively else WIDTH
    stage = Stage(screen, lively)
    with own_state(directory):
        demo = _opening(stage, directory, people)
        source = demo.people
        with Database.open(
            source.source_path,
            source.schema(),
            source.promise,
            source.ledger_path,
            name="people",
            publish=True,
        ) as database:
            _published(stage, database)
            _public(stage, database)
            _questions(stage, database, demo)
            _repeat(stage, database)
            _refusals(stage, database)
            _the_end(stage, database)
        _audit(stage, demo)
    _next(stage, demo)
    return stage.record


def _opening(stage: Stage, directory: Path, people: int) -> Demo:
    stage.screen.print()
    words = (
        "A private statistical database. Ask a table of people anything statistical: answers are"
        " accurate about crowds and blind to any single person. Everything here is fictional."
    )
    if stage.lively:
        stage.screen.print(Panel(words, title="sulq", border_style="cyan"))
    else:
        stage.screen.print("\n".join(textwrap.wrap(f"sulq: {words}", WIDTH)), soft_wrap=True)
    stage.chapter("A health register to protect")
    with stage.working(f"making a fictional register of {people:,} people"):
        demo = make_demo(directory, people)
    stage.say(
        f"{people:,} invented people: age, sex, region, income, smoker, bmi, blood pressure,",
        f"diagnosis, visits. It lies in {directory}/people.parquet; no answer will show a row.",
    )
    stage.record.append({"step": "register", "people": people, "directory": directory})
    return demo


def _published(stage: Stage, database: Database) -> None:
    promise = database.promise
    stage.chapter("The owner publishes it, once, with one promise for its whole life")
    odds = math.exp(promise.epsilon)
    chance = math.floor(1 / database.statement().meaning.tail / 100) * 100
    stage.say(
        f"The promise: epsilon = {promise.epsilon}, delta = 1e-6, for {promise.credits} credits."
        " Whatever all answers together say, and whoever pools them: the odds between two guesses"
        f" about one person's row move by at most a factor {odds:.1f}, but for a chance of 1 in"
        f" {chance:,}.",
    )
    assert database.size is not None  # noqa: S101
    bar = sizing(promise, database.size).bar
    stage.say(
        f"That takes noise, and how much is known beforehand: 95 of 100 counts are within ±"
        f" {bar:,.0f} of the truth. So few questions make a short tour; real tables promise"
        " hundreds.",
    )
    stage.budget(database.remaining, promise.credits)
    stage.record.append({"step": "published", "promise": promise.to_json()})


def _ask(
    stage: Stage,
    database: Database,
    words: Sequence[str],
    where: str | None = None,
    **options: Any,
) -> Answer:
    """Show the command, ask what it asks, show the answer."""
    stage.command(_spelled("ask", words, where, options))
    asked = question(words, where, (), None, False, database.schema)
    found = database.ask(asked, **options)
    low, high = found.interval(0.95)
    if found.keys:
        rows = [
            [
                str(key),
                number_text(round(value)),
                f"{number_text(round(a))} to {number_text(round(b))}",
            ]
            for key, value, a, b in zip(found.keys, found.value, low, high, strict=True)  # type: ignore[arg-type]
        ]
        stage.show(table((words[1], "people", "95% interval"), rows))
    else:
        exact = "exactly" if low == high else f"between {number_text(low)} and {number_text(high)}"
        bound = "" if low == high else " (95%)"
        stage.result(f"{number_text(found.value)}, {exact}{bound}")
    stage.result(f"cost: {credits_text(found.credits)}", style="")
    stage.record.append(
        plain(
            {
                "step": "ask",
                "command": _spelled("ask", words, where, options),
                "value": found.value,
                "low": low,
                "high": high,
                "credits": found.credits,
                "left": database.remaining,
            }
        )
    )
    return found


def _spelled(verb: str, words: Sequence[str], where: str | None, options: dict[str, Any]) -> str:
    given = "".join(f" --{name} {number_text(value)}" for name, value in options.items())
    clause = "" if where is None else f' --where "{where}"'
    return f"sulq {verb} people {shlex.join(words)}{clause}{given}"


def _public(stage: Stage, database: Database) -> None:
    stage.chapter("What is public is exact, and free")
    stage.say(
        "The owner declared region and sex public: everybody knows them anyway. Sizes of public"
        " groups need no noise.",
    )
    _ask(stage, database, ["count"])
    _ask(stage, database, ["count"], "region = 'Islands' AND sex = 'female'")
    stage.budget(database.remaining, database.promise.credits)


OLD_SMOKERS = "smoker AND age >= 65"


def _questions(stage: Stage, database: Database, demo: Demo) -> None:
    whole = database.promise.credits
    stage.chapter("Look at the price before you buy")
    stage.command(f'sulq quote people count --where "{OLD_SMOKERS}"')
    asked = question(["count"], OLD_SMOKERS, (), None, False, database.schema)
    offer = database.quote(asked)
    half = float(offer.interval(0.95)[1])
    stage.result(f"{credits_text(offer.credits)}, ± {half:,.0f} (95%); a quote is free")
    stage.record.append(plain({"step": "quote", "credits": offer.credits, "half_width": half}))

    stage.chapter("Three questions about private columns")
    _ask(stage, database, ["count"], OLD_SMOKERS)
    columns = demo.register.columns
    truth = int(((columns["age"] >= 65) & (columns["smoker"] == 1)).sum())
    stage.say(
        f"Nobody real is in here, so the tour may peek: the true count is {truth:,}. The noise is"
        " drawn anew from the system's randomness; your next tour will say another number.",
    )
    stage.budget(database.remaining, whole)
    stage.screen.print()
    _ask(stage, database, ["mean", "blood_pressure"], "smoker")
    stage.say("A mean is a sum and a count, priced together.")
    stage.budget(database.remaining, whole)
    stage.screen.print()
    _ask(stage, database, ["histogram", "diagnosis"])
    stage.say(
        "Six counts for the price of two: a person is in one cell only, so changing one person"
        " changes two cells at most.",
    )
    stage.budget(database.remaining, whole)


def _repeat(stage: Stage, database: Database) -> None:
    stage.chapter("Asking again teaches nothing new, so it costs nothing")
    stage.say("The same question in other words gets the stored answer: no averaging away noise.")
    _ask(stage, database, ["count"], "NOT (age < 65) AND smoker = TRUE")
    stage.budget(database.remaining, database.promise.credits)


def _refusals(stage: Stage, database: Database) -> None:
    stage.chapter("Unsafe questions are refused before anything is read")
    for words, where, why in (
        (
            ["count"],
            "person_id = 4711",
            "The owner did not declare person_id, so for everybody else it does not exist.",
        ),
        (
            ["mean", "income / visits"],
            None,
            "With 0 visits one person could move the answer without limit, and no noise hides"
            " that. GREATEST(visits, 1) would be fine.",
        ),
    ):
        stage.command(_spelled("ask", words, where, {}))
        try:
            asked = question(words, where, (), None, False, database.schema)
            database.ask(asked)
        except (InvalidQuery, Refused) as error:
            stage.result(f"refused: {error} (0 credits spent)", style="red")
            stage.record.append({"step": "refused", "reason": str(error), "credits": 0})
        stage.say(why)


def _the_end(stage: Stage, database: Database) -> None:
    whole = database.promise.credits
    stage.chapter("The budget ends, and so does the talking")
    stage.say("A sharper answer costs more: half the error, four times the price. Spend the rest:")
    left = database.remaining
    _ask(stage, database, ["mean", "income"], "diagnosis = 'depression'", credits=left)
    stage.budget(database.remaining, whole)
    stage.screen.print()
    words, where = ["count"], "bmi >= 30"
    stage.command(_spelled("ask", words, where, {}))
    try:
        database.ask(question(words, where, (), None, False, database.schema))
    except BudgetSpent as error:
        stage.result(f"budget spent: {error}", style="red")
        stage.record.append({"step": "budget spent", "reason": str(error), "credits": 0})
    stage.say(
        "That is the promise being kept: enough precise answers would give people away, so the"
        " table turns itself off. There is no reset. What was answered stays readable, and"
        " repeating it stays free.",
    )


def _audit(stage: Stage, demo: Demo) -> None:
    stage.chapter("Anybody may check the books")
    stage.command("sulq verify people")
    found = inspect(demo.people.ledger_path)
    statement = found.statements["people"]
    kept = "matches" if found.anchored else "does NOT match"
    stage.result(f"{len(found.hashes)} chained events verify; the anchor {kept}")
    spent = credits_text(statement.spent.credits_fraction)
    stage.say(
        f"Every answer was charged before a row was read: {spent} in all, each with a signed"
        " receipt. The ledger holds questions, prices and noisy answers, never data.",
    )
    stage.record.append(
        plain(
            {
                "step": "verified",
                "events": len(found.hashes),
                "anchored": found.anchored,
                "spent": statement.spent.credits_fraction,
            }
        )
    )


def _reach_sulq() -> list[str]:
    """What makes `sulq` a command, where it is not one."""
    if shutil.which("sulq"):
        return []
    scripts = Path(sysconfig.get_path("scripts"))
    if not (scripts / "sulq").exists():
        return [f"alias sulq={shlex.quote(f'{shlex.quote(sys.executable)} -m sulq')}"]
    here = Path.cwd()
    near = scripts.is_relative_to(here)
    return [f'export PATH="{f"$PWD/{scripts.relative_to(here)}" if near else scripts}:$PATH"']


def _next(stage: Stage, demo: Demo) -> None:
    stage.chapter("Your turn")
    stage.say(
        f"The tour wrote {demo.policy}: read it, it is all an owner declares. It has a second"
        " table, town, with 200 unspent credits:",
    )
    for words in (
        *_reach_sulq(),
        f"cd {demo.directory} && export SULQ_STATE=$PWD/state",
        "sulq check town",
        "sulq publish town",
        'sulq quote town mean income --where "age BETWEEN 30 AND 40" --within 500',
        "sulq ask town quantiles bmi --shares 0.25,0.5,0.75",
        "sulq ask town histogram region,smoker",
        "sulq ledger town",
        "sulq explain-noise --epsilon 1 --delta 1e-6 --credits 200",
    ):
        stage.command(words)
    stage.say(
        "With data of your own: sulq init FILE, then sulq check. In Python: import sulq. To read"
        " on: README.md, docs/tutorial-owner.md, docs/tutorial-analyst.md.",
    )
    stage.screen.print()
    stage.record.append({"step": "next", "policy": str(demo.policy)})


# The end of the tour: the fictional register, served with its console.


def serve_demo(directory: Path, host: str, port: int | None, *, quiet: bool) -> dict[str, Any]:
    """On a terminal until Ctrl-C; else until it has answered once. What happened, as a step."""
    lively = sys.stdout.isatty() and not quiet
    found: dict[str, Any] = {"step": "served", "healthy": False}

    def told(now: Started) -> None:
        found["address"] = now.address
        if lively:
            print("\nThe console, for you alone (the link works once, within 10 minutes):")
            print(f"  {now.link}\nStop with Ctrl-C.")
            webbrowser.open(now.link)
        else:
            threading.Thread(target=answered, args=(now,)).start()

    def answered(now: Started) -> None:
        try:
            with urllib.request.urlopen(f"{now.address}/healthz", timeout=30) as reply:  # noqa: S310
                found["healthy"] = reply.status == 200
        finally:
            now.stop()

    where = Where(host, PORT if port is None else port)
    try:
        listening = where.listen()
    except Refused:
        if port is not None:
            raise
        where = Where(host, 0)
        listening = where.listen()
    with own_state(directory), listening, ExitStack() as stack:
        nowhere = stack.enter_context(Path(os.devnull).open("w"))  # a tour is for people
        databases = {
            name: stack.enter_context(
                Database.open(
                    table.source_path,
                    table.schema(),
                    table.promise,
                    table.ledger_path,
                    name=name,
                    publish=True,
                )
            )
            for name, table in read_policy(directory / "sulq.toml").items()
        }
        serve_tables(
            Tables(databases),
            where,
            listening,
            settings=Settings(),
            log=Log(nowhere),
            started=told,
        )
    if not lively and not quiet:
        print(f"The console answered at {found['address']}. On a terminal it stays until Ctrl-C;")
        print("here it was stopped. Again:")
        print(f"  cd {directory} && SULQ_STATE=$PWD/state sulq serve")
    if not lively and not found["healthy"]:
        raise Refused(f"the console at {found.get('address')} did not answer /healthz")
    return found
