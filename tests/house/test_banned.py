"""Things the package must not do, read from its syntax trees: run text, round money, draw lots.

A rule that finds nothing proves nothing, so each one is also shown a line that breaks it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.syntax import nodes, source_trees

SOURCE = Path(__file__).parents[2] / "src" / "sulq"


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a chain of names, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        front = dotted(node.value)
        return f"{front}.{node.attr}" if front else ""
    return ""


@cache
def names_used(tree: ast.Module) -> tuple[tuple[int, str], ...]:
    """Every imported or read name, in full: `import numpy as np` makes np.random numpy.random."""
    return tuple(_names_used(tree))


def _names_used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    aliases: dict[str, str] = {}
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                aliases[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield node.lineno, f"{node.module}.{alias.name}"
    for node in nodes(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            if first in aliases:
                yield node.lineno, f"{aliases[first]}.{rest}"


def use_of(*banned: str) -> Callable[[ast.Module], list[int]]:
    def find(tree: ast.Module) -> list[int]:
        return [
            line
            for line, used in names_used(tree)
            if any(used == name or used.startswith(name + ".") for name in banned)
        ]

    return find


def call_of(*banned: str) -> Callable[[ast.Module], list[int]]:
    def find(tree: ast.Module) -> list[int]:
        return [
            node.lineno
            for node in nodes(tree)
            if isinstance(node, ast.Call) and dotted(node.func) in banned
        ]

    return find


def parameter_named(*banned: str) -> Callable[[ast.Module], list[int]]:
    def find(tree: ast.Module) -> list[int]:
        return [
            node.lineno
            for node in nodes(tree)
            if (isinstance(node, ast.arg | ast.keyword) and node.arg in banned)
            or (isinstance(node, ast.Attribute) and node.attr in banned)
        ]

    return find


ERRORS = ("Error", "Exception", "InvalidQuery", "Refused", "BudgetSpent", "TooNoisy", "Problem")
READING = {
    *("startswith", "endswith", "find", "rfind", "index", "split", "rsplit", "partition"),
    *("rpartition", "replace", "splitlines", "removeprefix", "removesuffix"),
}
MATCHING = {"search", "match", "fullmatch", "findall", "finditer", "sub", "split"}


def error_text_read(tree: ast.Module) -> list[int]:
    """Where the words of an exception decide: compared, searched, matched or split."""
    functions = [node for node in nodes(tree) if isinstance(node, ast.FunctionDef)]
    return sorted({line for scope in [tree, *functions] for line in _text_read(scope)})


def _text_read(scope: ast.AST) -> Iterator[int]:
    texts: set[str] = set()
    errors = set(_errors_named(scope))
    for names, value in _assigned(scope):
        texts |= {names} if _is_text(value, errors, texts) else set()
    for node in nodes(scope):
        read: list[ast.expr] = []
        match node:
            case ast.Compare(left=left, comparators=others):
                read = [left, *others]
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=given):
                read = [inner] if name in READING else []
                read += given if name in MATCHING else []
        if any(_is_text(part, errors, texts) for part in read):
            yield node.lineno  # type: ignore[attr-defined]


def _errors_named(scope: ast.AST) -> Iterator[str]:
    for node in nodes(scope):
        if isinstance(node, ast.ExceptHandler) and node.name is not None:
            yield node.name
        if isinstance(node, ast.arg) and dotted(node.annotation or node).endswith(ERRORS):
            yield node.arg


def _assigned(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """`a = x` and `a, b = x, y`, name by name."""
    for node in nodes(scope):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=False) if both else [(target, value)]
            yield from ((name.id, held) for name, held in pairs if isinstance(name, ast.Name))


def _is_text(node: ast.AST, errors: set[str], texts: set[str]) -> bool:
    """`str(error)`, `error.args`, a name for one of these, or something made of them."""
    match node:
        case ast.Name(id=name):
            return name in texts
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name in errors
        case ast.Attribute(value=ast.Name(id=name), attr="args" | "text" | "detail"):
            return name in errors
        case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):
            return _is_text(inner, errors, texts)
    return False


@dataclass(frozen=True)
class Rule:
    name: str
    find: Callable[[ast.Module], list[int]]
    breaks: str
    only_in: tuple[str, ...] = ("",)
    except_in: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        return path.startswith(self.only_in) and not path.startswith(self.except_in)


# Post-processing, or a fictional table: their own randomness costs no privacy and may be seeded.
MAY_BE_RANDOM = ("demo.py", "synthetic.py", "learn/", "attacks/")
# Where a float would decide about privacy.
EXACT = (
    "kernel/ledger/",
    "kernel/accounting/individual.py",
    "kernel/accounting/pricing.py",
    "kernel/schema/bind.py",
    "kernel/engines/sql/emitter.py",
    "kernel/noise/sampler.py",
    "kernel/noise/entropy.py",
)
# What draws noise or spends: nothing there can be made to repeat itself.
UNREPEATABLE = (
    "kernel/noise/",
    "kernel/accounting/",
    "kernel/ledger/",
    "kernel/release/",
    "exact/",
    "answers/oracle.py",
    "database/",
)

RULES = [
    Rule(
        "text is never run",
        call_of("eval", "exec", "compile", "__import__"),
        "eval('1 + 1')",
    ),
    Rule(
        "no format that runs code is read",
        use_of("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"),
        "import pickle",
    ),
    Rule(
        "YAML is read as data",
        use_of("yaml.load", "yaml.unsafe_load", "yaml.full_load"),
        "import yaml\nyaml.load(text)",
    ),
    Rule(
        "pseudo-random numbers stay with the learners",
        use_of("random", "numpy.random"),
        "import numpy as np\nnp.random.default_rng()",
        except_in=MAY_BE_RANDOM,
    ),
    Rule(
        "noise bits come from the system, in one file",
        use_of("os.urandom", "os.getrandom"),
        "from os import urandom",
        except_in=("kernel/noise/entropy.py",),
    ),
    Rule(
        "keys, tokens and random ids are made by the ledger, the server and who asks it",
        use_of("secrets", "nacl.utils.random", "uuid.uuid1", "uuid.uuid4"),
        "import secrets",
        except_in=("kernel/ledger/", "server/", "client/", "federation/"),
    ),
    Rule(
        "what draws or spends cannot be seeded",
        parameter_named("seed", "rng", "random_state", "set_state"),
        "def perturb(sums, seed=None): ...",
        only_in=UNREPEATABLE,
    ),
    Rule(
        "no float decides",
        call_of("float"),
        "price = float(credits)",
        only_in=EXACT,
    ),
    Rule(
        "an error is known by its class and reason, not by its words",
        error_text_read,
        "def hint(error: InvalidQuery):\n    return 'no column' in str(error)",
        # the engine's sentence about the owner's own expression: its first line is shown
        except_in=("cli/derive.py",),
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_is_kept(rule):
    faults = [
        f"{name}:{line}"
        for name, tree in source_trees().items()
        if rule.covers(name)
        for line in rule.find(tree)
    ]
    assert faults == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_catches_what_breaks_it(rule):
    assert rule.find(ast.parse(rule.breaks))


@pytest.mark.parametrize(
    "line",
    [
        "said = str(error)\n    x = said.startswith('no')",
        "hint, said = '', str(error)\n    x = DAY.search(said)",
        "x = re.sub(' at .*', '', error.args[0])",
        "x = str(error).partition(';')[0]",
        "x = PATTERN.match(error.detail)",
    ],
)
def test_every_way_to_read_the_words_of_an_error_is_seen(line):
    tree = ast.parse(f"try:\n    ask()\nexcept SulqError as error:\n    {line}\n")
    assert error_text_read(tree)


def test_the_words_of_an_error_may_be_shown():
    shown = "    print(str(error))\n    raise Refused(f'not opened: {error}')\n"
    assert error_text_read(ast.parse(f"try:\n    ask()\nexcept SulqError as error:\n{shown}")) == []


def test_a_method_that_shares_a_banned_name_is_fine():
    tree = ast.parse("import re\nre.compile('a')\nfrom sulq.kernel.query import random_order\n")
    assert [rule.name for rule in RULES if rule.find(tree)] == []
