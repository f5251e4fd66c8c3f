"""The command line: ten verbs, and groups for the rest. Nothing heavy is loaded before a command
runs."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import sulq
from sulq.cli import (
    access,
    alert,
    ask,
    attack,
    audit,
    backup,
    beliefs,
    change,
    derive,
    exact,
    find,
    init,
    learn,
    ledger,
    plan,
    publish,
    serve,
    suggest,
    verify,
)

WIDTH = 100

Commands = dict[str, Callable[..., None]]

VERBS: dict[str, Commands] = {
    "Publish a table": {
        "demo": init.demo,
        "init": init.init,
        "check": init.check,
        "publish": publish.publish,
        "serve": serve.serve,
    },
    "Ask it": {
        "columns": ask.columns,
        "quote": ask.quote,
        "ask": ask.ask,
        "plan": plan.plan,
        "learn": learn.learn,
    },
}
"""Heading -> commands at the top level."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Commands about one thing, and what the thing is."""

    help: str
    commands: Commands
    default: str | None = None
    """The command that is meant where none is named."""


GROUPS = {
    "find": Topic("Find values", {"keys": find.keys, "top": find.top}),
    "alert": Topic(
        "Tell when a sum passes a level",
        {"arm": alert.arm, "check": alert.check, "list": alert.listed},
    ),
    "access": Topic(
        "Who may ask", {"grant": access.grant, "revoke": access.revoke, "list": access.tokens}
    ),
    "table": Topic(
        "Change a table",
        {
            "amend": change.amend,
            "grow": change.grow,
            "close": change.close,
            "recover": backup.recover,
            "withdraw": change.withdraw,
            "book-release": change.outside,
            "balances": ledger.balances,
            "partners": access.partners,
            "suggest": suggest.suggest,
            "derive": derive.derive,
            "sandbox": init.sandbox,
        },
    ),
    "ledger": Topic(
        "What was spent",
        {
            "show": ledger.ledger,
            "export": ledger.export,
            "verify": verify.verify,
            "audit": audit.audit,
            "report": audit.report,
            "backup": backup.backup,
            "restore": backup.restore,
        },
        default="show",
    ),
    "privacy": Topic(
        "What the promise means",
        {
            "beliefs": beliefs.beliefs,
            "noise": init.explain_noise,
            "exact": exact.explain_exact,
            "attack": attack.attack,
        },
    ),
    "replica": Topic(
        "Serve one ledger from two machines", {"share-key": backup.share, "join": backup.join}
    ),
}

ALIASES = {
    **{name: f"access {name}" for name in ("grant", "revoke")},
    "tokens": "access list",
    **{name: f"find {name}" for name in ("keys", "top")},
    **{name: f"table {name}" for name in ("amend", "grow", "close", "recover", "withdraw")},
    **{name: f"table {name}" for name in ("balances", "partners", "suggest", "derive", "sandbox")},
    "outside": "table book-release",
    **{name: f"ledger {name}" for name in ("verify", "audit", "report", "backup", "restore")},
    **{name: f"privacy {name}" for name in ("beliefs", "attack")},
    "explain-noise": "privacy noise",
    "explain-exact": "privacy exact",
    **{name: f"replica {name}" for name in ("share-key", "join")},
}
"""Names of earlier releases -> where the command is now. They work as before and are not listed."""


class OneScreenGroup(TyperGroup):
    """A group whose help lists one command a line, on one screen."""

    default: str | None = None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command first where the first word is no command."""
        if self.default is not None:
            known = {*self.commands, *ctx.help_option_names}
            if not args or args[0] not in known:
                args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        listed = [(name, command) for name, command in self.commands.items() if not command.hidden]
        widest = max(len(name) for name, _ in listed)
        lines = [f"Usage: {ctx.command_path} COMMAND ... (-h shows its options)", self.help or ""]
        heading = ""
        for name, command in listed:
            panel = getattr(command, "rich_help_panel", None)
            if heading != (heading := panel if isinstance(panel, str) else "Commands"):
                lines.append(f"{heading}:")
            lines.append(f"  {name:<{widest}}  {_summary(command, width - widest - 4)}")
        here = [sorted(param.opts, key=len)[-1] for param in self.get_params(ctx)]
        lines += ["", textwrap.shorten(f"Options: {', '.join(here)}", width)]
        formatter.write("".join(f"{line}\n" for line in lines))


def _summary(command: Any, width: int) -> str:
    """The first sentence of a command's help; of a group also the names of its commands."""
    if isinstance(command, TyperGroup):
        told = f"{command.help}: {', '.join(command.commands)}"
    else:
        told = command.get_short_help_str(width)
    return textwrap.shorten(told, width, placeholder=" ...")


app = typer.Typer(
    name="sulq",
    cls=OneScreenGroup,
    help="A private statistical database: noisy sums, exact prices, one promise for life.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sulq {sulq.__version__}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A private statistical database: noisy sums, exact prices, one promise for life."""


def _register() -> None:
    for heading, verbs in VERBS.items():
        for name, command in verbs.items():
            app.command(name, rich_help_panel=heading)(command)
    for name, group in GROUPS.items():
        kind = type("DefaultingGroup", (OneScreenGroup,), {"default": group.default})
        inner = typer.Typer(cls=kind, no_args_is_help=group.default is None, help=group.help)
        for word, command in group.commands.items():
            inner.command(word)(command)
        app.add_typer(inner, name=name, rich_help_panel="Groups of commands")
    for old, path in ALIASES.items():
        name, word = path.split()
        app.command(old, hidden=True)(GROUPS[name].commands[word])


_register()


def main() -> None:
    """The `sulq` command."""
    app()
