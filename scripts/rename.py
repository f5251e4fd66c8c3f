"""Move, merge and rename modules and names by one table.

    python scripts/rename.py TABLE.toml            rewrite src, tests, benchmarks, scripts and docs
    python scripts/rename.py TABLE.toml --check    only report what stands in the way

The table has three parts, all optional:

    [modules]            new module = old modules (a text, or a list: they become one module)
    "sulq.kernel.ledger.ledger" = ["sulq.ledger.journal", "sulq.ledger.drawn"]
    [packages]           old package = new package, for modules that [modules] does not name
    "sulq.ledger" = "sulq.kernel.ledger"
    [names]              "old module:name" = new name, of what a module defines at its top level
    "sulq.ledger.journal:Journal" = "Ledger"

Python files are rewritten by their syntax tree: imports, the names they bind, attributes of
imported modules. Other texts (documents, configuration, strings) are rewritten where they spell a
path or a dotted name. The tool refuses a merge in which two parts define or import different
things under one name, and a table that would make imports circular. Attributes and methods are
not renamed: their owner is not known without types. Run `ruff check --fix` and `ruff format`
afterwards: imports are written unsorted.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import shutil
import subprocess
import sys
import textwrap
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOTS = {"sulq": ROOT / "src" / "sulq", "tests": ROOT / "tests", "benchmarks": ROOT / "benchmarks"}
TEXTS = {".md", ".toml", ".ipynb", ".html", ".js", ".yml", ".yaml", ".txt", ".cfg", ".json"}
SKIPPED = ("scripts/rename", "scripts/moves", "tests/golden/", "changelog.d/")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
PATCHING = {"setattr", "delattr", "getattr", "hasattr", "object"}
COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def module_of(path: Path) -> str:
    for package, root in ROOTS.items():
        if path.is_relative_to(root):
            parts = [package, *path.relative_to(root).with_suffix("").parts]
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def path_of(module: str, is_package: bool) -> Path:
    package, *rest = module.split(".")
    place = ROOTS[package].joinpath(*rest)
    return place / "__init__.py" if is_package else place.with_name(place.name + ".py")


@dataclass
class Table:
    modules: dict[str, str]  # old -> new
    packages: dict[str, str]
    names: dict[tuple[str, str], str]  # (old module, old name) -> new name
    known: dict[str, Path]
    merged: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path, known: dict[str, Path]) -> Table:
        said = tomllib.loads(file.read_text())
        modules: dict[str, str] = {}
        merged: dict[str, list[str]] = {}
        for new, old in said.get("modules", {}).items():
            parts = [old] if isinstance(old, str) else old
            merged[new] = parts
            for part in parts:
                if part not in known:
                    sys.exit(f"{file.name}: {part} is no module")
                if part in modules:
                    sys.exit(f"{file.name}: {part} stands twice")
                modules[part] = new
        names = {}
        for old, new in said.get("names", {}).items():
            module, name = old.split(":")
            if module not in known:
                sys.exit(f"{file.name}: {module} (of the name {name}) is no module")
            names[module, name] = new
        return cls(modules, said.get("packages", {}), names, known, merged)

    def new(self, module: str) -> str:
        if module in self.modules:
            return self.modules[module]
        for old in sorted(self.packages, key=len, reverse=True):
            if module == old or module.startswith(old + "."):
                return self.packages[old] + module[len(old) :]
        return module

    def new_name(self, module: str, name: str) -> str:
        return self.names.get((module, name), name)


class Scopes(ast.NodeVisitor):
    """For each Name node: the scope (a node) that binds it. Module scope: the Module node."""

    def __init__(self, tree: ast.Module) -> None:
        self.bound: dict[ast.AST, set[str]] = defaultdict(set)
        self.globals: dict[ast.AST, set[str]] = defaultdict(set)
        self.chain: list[ast.AST] = [tree]
        self.uses: list[tuple[ast.Name, tuple[ast.AST, ...]]] = []
        self.imports: list[tuple[ast.Import | ast.ImportFrom, ast.AST]] = []
        for child in tree.body:
            self.visit(child)

    def _bind(self, name: str) -> None:
        self.bound[self.chain[-1]].add(name)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(node.name)
        for part in [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]:
            if part is not None:
                self.visit(part)
        for argument in self._arguments(node.args):
            if argument.annotation is not None:
                self.visit(argument.annotation)
        if node.returns is not None:
            self.visit(node.returns)
        self.chain.append(node)
        for argument in self._arguments(node.args):
            self._bind(argument.arg)
        for child in node.body:
            self.visit(child)
        self.chain.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    @staticmethod
    def _arguments(args: ast.arguments) -> list[ast.arg]:
        found = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        return found + [one for one in (args.vararg, args.kwarg) if one is not None]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for part in [*node.args.defaults, *node.args.kw_defaults]:
            if part is not None:
                self.visit(part)
        self.chain.append(node)
        for argument in self._arguments(node.args):
            self._bind(argument.arg)
        self.visit(node.body)
        self.chain.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name)
        for part in [*node.decorator_list, *node.bases, *[one.value for one in node.keywords]]:
            self.visit(part)
        self.chain.append(node)
        for child in node.body:
            self.visit(child)
        self.chain.pop()

    def _comprehension(self, node: ast.AST) -> None:
        self.visit(node.generators[0].iter)  # type: ignore[attr-defined]
        self.chain.append(node)
        for place, generator in enumerate(node.generators):  # type: ignore[attr-defined]
            if place:
                self.visit(generator.iter)
            self.visit(generator.target)
            for test in generator.ifs:
                self.visit(test)
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                self.visit(getattr(node, name))
        self.chain.pop()

    visit_ListComp = visit_SetComp = _comprehension  # noqa: N815
    visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        inner = next(s for s in reversed(self.chain) if not isinstance(s, COMPREHENSION))
        self.bound[inner].add(node.target.id)
        self.uses.append((node.target, tuple(self.chain)))
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self._bind(node.id)
        self.uses.append((node, tuple(self.chain)))

    def visit_Global(self, node: ast.Global) -> None:
        self.globals[self.chain[-1]].update(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.imports.append((node, self.chain[-1]))
        for alias in node.names:
            self._bind((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import  # noqa: N815

    def home(self, name: str, chain: tuple[ast.AST, ...]) -> ast.AST:
        for place in range(len(chain) - 1, -1, -1):
            scope = chain[place]
            if place and isinstance(scope, ast.ClassDef) and place != len(chain) - 1:
                continue
            if name in self.globals[scope]:
                return chain[0]
            if name in self.bound[scope]:
                return scope
        return chain[0]

    def uses_of(self, name: str, scope: ast.AST) -> list[ast.Name]:
        return [n for n, chain in self.uses if n.id == name and self.home(name, chain) is scope]

    def names_seen(self) -> set[str]:
        return {node.id for node, _ in self.uses} | set().union(*self.bound.values(), set())


@dataclass
class Import:
    """One imported name: `from module import name as binding`; name None: `import module`."""

    module: str
    name: str | None
    binding: str | None
    typing_only: bool = False
    kept: bool = False  # `import a as a`: handed on to others

    def text(self) -> str:
        if self.name is None:
            return f"import {self.module}" + (f" as {self.binding}" if self.binding else "")
        alias = (
            f" as {self.binding}"
            if self.binding and (self.binding != self.name or self.kept)
            else ""
        )
        return f"from {self.module} import {self.name}{alias}"

    def bound(self) -> str:
        return self.binding or self.name or self.module.split(".")[0]


def _as_written(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [Import(alias.name, None, alias.asname).text() for alias in node.names]
    found = [
        Import(node.module or "", alias.name, alias.asname, kept=alias.asname == alias.name)
        for alias in node.names
    ]
    return [one.text() for one in found]


def _lines(found: list[Import], node: ast.stmt) -> str:
    return f"\n{' ' * node.col_offset}".join(one.text() for one in found) or "pass"


class File:
    """One Python file, rewritten by the table."""

    def __init__(self, path: Path, table: Table) -> None:
        self.path, self.table = path, table
        self.module = module_of(path)
        self.home = table.new(self.module)
        self.source = path.read_text()
        self.tree = ast.parse(self.source)
        self.scopes = Scopes(self.tree)
        self.lines = self.source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line.encode()))
        self.data = self.source.encode()
        self.edits: list[tuple[int, int, str]] = []
        self.top: list[Import] = []  # imports at the top of the module, taken out when merged
        self.top_nodes: list[ast.stmt] = []
        self.renamed: dict[tuple[ast.AST, str], str] = {}
        self.taken = self.scopes.names_seen()
        self.changed: dict[int, list[Import]] = {}
        self.made: dict[str, str] = {}  # new bindings of modules
        self.bound_modules: dict[str, str] = {}  # old bindings of modules

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _replace(self, node: ast.AST, text: str) -> None:
        self.edits.append((
            self._at(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self._at(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
            text,
        ))  # fmt: skip

    def defines(self) -> dict[str, ast.AST]:
        found: dict[str, ast.AST] = {}
        for node in self.tree.body:
            for part in ast.walk(node) if isinstance(node, (ast.If, ast.Try, ast.With)) else [node]:
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    found[part.name] = part
                elif isinstance(part, (ast.Assign, ast.AnnAssign)):
                    for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                            if isinstance(one, ast.Name):
                                found[one.id] = part
        return found

    def rename_definitions(self) -> None:
        for name, node in self.defines().items():
            new = self.table.new_name(self.module, name)
            if new == name:
                continue
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                start = self._at(node.lineno, node.col_offset)
                spot = re.compile(rb"(?:async\s+def|def|class)\s+(" + name.encode() + rb")\b")
                match = spot.search(self.data, start)
                assert match is not None
                self.edits.append((match.start(1), match.end(1), new))
            self.rename_uses(name, new, self.tree)

    def rename_uses(self, old: str, new: str, scope: ast.AST) -> None:
        for node in self.scopes.uses_of(old, scope):
            self._replace(node, new)
        self.renamed[scope, old] = new

    def rename_attributes(
        self, binding: str, scope: ast.AST, target: str, instead: str | None
    ) -> None:
        """`binding.name` for a module imported as `binding`; `instead` None: the name alone."""
        uses = {id(node) for node in self.scopes.uses_of(binding, scope)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and id(node.value) in uses:
                new = self.table.new_name(origin_of(target, node.attr, self.table), node.attr)
                if instead is None:
                    self._replace(node, new)
                elif new != node.attr or instead != binding:
                    self._replace(node, f"{instead}.{new}")
                uses.discard(id(node.value))
        if instead is not None and instead != binding:
            for node in self.scopes.uses_of(binding, scope):
                if id(node) in uses:
                    self._replace(node, instead)
        elif uses and instead is None:
            for node in self.scopes.uses_of(binding, scope):
                if id(node) in uses:  # the module as an object, in its own merged home
                    place = f"{self.path.relative_to(ROOT)}:{node.lineno}"
                    print(f"{place}: module {binding} is used as a value")

    def read_imports(self) -> None:
        typing_blocks = [
            node
            for node in self.tree.body
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
            and all(isinstance(stmt, (ast.Import, ast.ImportFrom)) for stmt in node.body)
        ]
        inside = {id(stmt): block for block in typing_blocks for stmt in block.body}
        top = {id(node) for node in self.tree.body}
        for node, scope in self.scopes.imports:
            found = self._imports_of(node, scope)
            if [one.text() for one in found] != _as_written(node):
                self.changed[id(node)] = found
            if id(node) in top or id(node) in inside:
                for one in found:
                    one.typing_only = id(node) in inside
                self.top += found
                if id(node) in top:
                    self.top_nodes.append(node)
            else:
                if id(node) in self.changed:
                    self._replace(node, _lines(found, node))
        self.top_nodes += typing_blocks

    def _imports_of(self, node: ast.Import | ast.ImportFrom, scope: ast.AST) -> list[Import]:
        table = self.table
        found = []
        for alias in node.names:
            if isinstance(node, ast.Import):
                if alias.name.split(".")[0] not in ROOTS:
                    found.append(Import(alias.name, None, alias.asname))
                    continue
                new = table.new(alias.name)
                self.bound_modules[alias.asname or alias.name] = alias.name
                found.append(Import(new, None, alias.asname))
                if alias.asname:
                    self.rename_attributes(alias.asname, scope, alias.name, alias.asname)
                elif new != alias.name:
                    self._dotted(alias.name, new)
                continue
            assert node.level == 0, self.path
            module = node.module or ""
            if module.split(".")[0] not in ROOTS:
                found.append(Import(module, alias.name, alias.asname))
                continue
            whole = f"{module}.{alias.name}"
            binding = alias.asname or alias.name
            defined = module in table.known and alias.name in definitions_of(module, table)
            if whole in table.known and not defined:
                new = table.new(whole)
                self.bound_modules[binding] = whole
                if new == self.home and self.module.split(".")[0] == "sulq":
                    self.rename_attributes(binding, scope, whole, None)
                    continue
                package, leaf = new.rsplit(".", 1)
                wanted = alias.asname or leaf
                if wanted != binding and (
                    wanted in self.taken or self.made.get(wanted, new) != new
                ):
                    wanted = binding
                if self.path.name == "inside.py":  # others import its bindings by name
                    wanted = binding
                self.made[wanted] = new
                self.rename_attributes(binding, scope, whole, wanted)
                found.append(Import(package, leaf, wanted))
                continue
            module = origin_of(module, alias.name, table)
            new_name = table.new_name(module, alias.name)
            if table.new(module) == self.home and module != self.module and module in table.modules:
                if binding != new_name:
                    self.rename_uses(binding, new_name, scope)
                continue
            wanted = alias.asname or new_name
            if wanted == alias.name and alias.asname:
                wanted = alias.asname
            if wanted != binding:
                if wanted in self.taken:
                    wanted = binding
                else:
                    self.rename_uses(binding, wanted, scope)
            found.append(
                Import(
                    table.new(module),
                    new_name,
                    wanted,
                    kept=alias.asname == alias.name and self.path.name == "__init__.py",
                )
            )
        return found

    def _dotted(self, old: str, new: str) -> None:
        """`import sulq.a.b` and its uses, spelled out."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == old:
                self._replace(node, new)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == old:
                name = self.table.new_name(origin_of(old, node.attr, self.table), node.attr)
                if name != node.attr:
                    end = self._at(node.end_lineno or 0, node.end_col_offset or 0)
                    self.edits.append((end - len(node.attr), end, name))

    def rename_patched(self) -> None:
        """Names in quotes beside their module: `monkeypatch.setattr(module, "name", value)`."""
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call) or len(node.args) < 2:
                continue
            called = node.func
            verb = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            name = node.args[1]
            module = self.bound_modules.get(ast.unparse(node.args[0]))
            if verb not in PATCHING or module is None or not isinstance(name, ast.Constant):
                continue
            new = self.table.new_name(origin_of(module, str(name.value), self.table), name.value)
            if new != name.value:
                self._replace(name, f'"{new}"')

    def rename_quoted(self) -> None:
        """Names in quotes: of cast, of annotations."""
        known = {old: new for (scope, old), new in self.renamed.items() if scope is self.tree}
        if not known:
            return
        word = re.compile(r"\b(" + "|".join(map(re.escape, known)) + r")\b")
        for node in ast.walk(self.tree):
            texts: list[ast.AST | None] = []
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id == "cast":
                texts = [node.args[0]]
            elif isinstance(node, ast.arg):
                texts = [node.annotation]
            elif isinstance(node, FUNCTION[:2]):
                texts = [node.returns]
            elif isinstance(node, ast.AnnAssign):
                alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
                texts = [node.annotation, node.value if alias else None]
            elif isinstance(node, ast.Subscript):
                texts = [node.slice]
            for text in texts:
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    new = word.sub(lambda m: known[m[1]], text.value)
                    if new != text.value:
                        self._replace(text, f'"{new}"')
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                for text in ast.walk(node.value):
                    if isinstance(text, ast.Constant) and text.value in known:
                        self._replace(text, f'"{known[text.value]}"')

    def rewrite(self, texts: Callable[[str], str]) -> None:
        self.rename_definitions()
        self.read_imports()
        self.rename_quoted()
        self.rename_patched()
        spans = {(start, end) for start, end, _ in self.edits}
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                new = texts(token.string)
                start, end = self._character(token.start), self._character(token.end)
                if new != token.string and (start, end) not in spans:
                    self.edits.append((start, end, new))

    def _character(self, place: tuple[int, int]) -> int:
        """A place counted in characters, as bytes from the beginning."""
        line, column = place
        return self.starts[line - 1] + len(self.lines[line - 1][:column].encode())

    def text(self, without: list[ast.AST]) -> str:
        """The file after its edits; statements of `without` are left out."""
        cuts = []
        for node in without:
            start, end = self.starts[node.lineno - 1], self.starts[node.end_lineno]  # type: ignore[attr-defined]
            cuts.append((start, end, ""))
        spans = [(start, end) for start, end, _ in cuts]
        edits = {
            edit for edit in self.edits
            if not any(start <= edit[0] and edit[1] <= end for start, end in spans)
        }  # fmt: skip
        data = self.data
        previous = len(data) + 1
        for start, end, text in sorted([*edits, *cuts], key=lambda e: (e[0], e[1]), reverse=True):
            assert end <= previous, (self.path, start, end, text)
            data = data[:start] + text.encode() + data[end:]
            previous = start
        return data.decode()

    def text_alone(self) -> str:
        """The file after its edits, imports rewritten where they stand."""
        for node in self.top_nodes:
            for stmt in node.body if isinstance(node, ast.If) else [node]:
                if id(stmt) in self.changed:
                    self._replace(stmt, _lines(self.changed[id(stmt)], stmt))
        return self.text([])

    def docstring(self) -> ast.Expr | None:
        first = self.tree.body[0] if self.tree.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            return first if isinstance(first.value.value, str) else None
        return None


TREES: dict[str, ast.Module] = {}
DEFINED: dict[str, set[str]] = {}


def definitions_of(module: str, table: Table) -> set[str]:
    if module not in DEFINED:
        DEFINED[module] = set(File(table.known[module], table).defines())
    return DEFINED[module]


def origin_of(module: str, name: str, table: Table) -> str:
    """Where a name that a module hands on is defined; pages of packages keep what they show."""
    while module in table.known and table.known[module].name != "__init__.py":
        if module not in TREES:
            TREES[module] = ast.parse(table.known[module].read_text())
        for node in TREES[module].body:
            if (
                isinstance(node, ast.ImportFrom)
                and (node.module or "").startswith("sulq")
                and any(alias.name == name and alias.asname in (None, name) for alias in node.names)
                and f"{node.module}.{name}" not in table.known
            ):
                module = node.module or ""
                break
        else:
            break
    return module


def write_imports(found: list[Import], home: str) -> tuple[str, str]:
    """The import lines for all times, and those for type checking alone."""
    handed_on = {one.bound() for one in found if one.kept}
    found = [replace(one, kept=one.bound() in handed_on and one.name is not None) for one in found]
    always = {one.text() for one in found if not one.typing_only}
    bound = {one.bound() for one in found if not one.typing_only}
    typing = {one.text() for one in found if one.typing_only and one.bound() not in bound}
    future = [line for line in always if "__future__" in line]
    rest = sorted(always - set(future))
    return "\n".join([*future, "", *rest]), "\n".join(f"    {line}" for line in sorted(typing))


def section_comment(text: str) -> str:
    paragraphs = [textwrap.dedent(part) for part in re.split(r"\n\s*\n", text.strip())]
    lines: list[str] = []
    for part in paragraphs:
        listed = any(line.startswith((" ", "|", "-")) for line in part.splitlines())
        lines += [*(part.splitlines() if listed else textwrap.wrap(" ".join(part.split()), 97)), ""]
    return "\n".join(f"# {line}".rstrip() for line in lines[:-1])


def ordered(parts: list[File], table: Table) -> list[File]:
    """Parts of one merged module: what is imported comes before who imports it; else as listed."""
    by_module = {part.module: part for part in parts}
    needs: dict[str, set[str]] = {}
    for part in parts:
        found = set()
        for node, scope in part.scopes.imports:
            if scope is part.tree and isinstance(node, ast.ImportFrom) and node in part.tree.body:
                for alias in node.names:
                    found |= {node.module or "", f"{node.module}.{alias.name}"} & set(by_module)
        needs[part.module] = found - {part.module}
    done: list[str] = []

    def place(name: str, path: tuple[str, ...]) -> None:
        if name in done or name in path:
            return
        for other in [m for m in by_module if m in needs[name]]:
            place(other, (*path, name))
        done.append(name)

    for name in by_module:
        place(name, ())
    return [by_module[name] for name in done]


def merge_faults(new: str, parts: list[File]) -> list[str]:
    origins: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        for name in part.defines():
            origins[part.table.new_name(part.module, name)].add(f"defined in {part.module}")
        for one in part.top:
            origins[one.bound()].add(replace(one, kept=False, typing_only=False).text())
    return [
        f"{new}: {name}: {'; '.join(sorted(origin))}"
        for name, origin in sorted(origins.items())
        if len(origin) > 1 and name != "__future__"
    ]


def merged_text(parts: list[File]) -> str:
    first = parts[0]
    found = [one for part in parts for one in part.top]
    always, typing = write_imports(found, first.home)
    doc = first.docstring()
    head = ast.get_source_segment(first.source, doc) if doc else ""
    bodies = []
    for part in parts:
        own = part.docstring()
        drop: list[ast.AST] = [*part.top_nodes, *([own] if own else [])]
        body = part.text(drop).strip("\n")
        if part is not first and own is not None and body:
            body = section_comment(own.value.value) + "\n\n\n" + body  # type: ignore[attr-defined]
        if body:
            bodies.append(body)
    if typing and "import TYPE_CHECKING" not in always:
        always += "\nfrom typing import TYPE_CHECKING"
    checked = f"if TYPE_CHECKING:\n{typing}" if typing else ""
    blocks = [head or "", always.strip("\n"), checked, *bodies]
    return "\n\n".join(block for block in blocks if block) + "\n"


def headed_by(listed: File, first: File, text: str) -> str:
    """The docstring of the part that the table lists first speaks for the whole module."""
    own, was = listed.docstring(), first.docstring()
    if listed is first or own is None or was is None:
        return text
    old = ast.get_source_segment(first.source, was) or ""
    new = ast.get_source_segment(listed.source, own) or ""
    text = text.replace(old, new, 1)
    comment = section_comment(str(ast.literal_eval(own.value)))
    instead = section_comment(str(ast.literal_eval(was.value)))
    return text.replace(comment + "\n\n\n", instead + "\n\n\n", 1)


def cycles(table: Table, files: list[File]) -> list[str]:
    graph: dict[str, set[str]] = defaultdict(set)
    homes = {table.new(module) for module in table.known}
    for file in files:
        for one in file.top:
            if one.typing_only or not one.module.startswith("sulq"):
                continue
            whole = f"{one.module}.{one.name}"
            target = whole if whole in homes else one.module
            if target != file.home:
                graph[file.home].add(target)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[str] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = []
            while True:
                group.append(stack.pop())
                if group[-1] == name:
                    break
            if len(group) > 1:
                edges = [f"{a} -> {b}" for a in group for b in sorted(graph[a]) if b in group]
                found.append("cycle: " + "; ".join(edges))

    sys.setrecursionlimit(10000)
    for name in list(graph):
        if name not in index:
            visit(name)
    return found


def text_rewriter(table: Table) -> Callable[[str], str]:
    """Paths and dotted names in texts, the longest first."""
    rules: dict[str, str] = {}
    for module, path in table.known.items():
        new = table.new(module)
        if new == module:
            continue
        is_package = path.name == "__init__.py"
        old_path = path.relative_to(ROOT).as_posix()
        new_path = path_of(new, is_package).relative_to(ROOT).as_posix()
        rules[old_path] = new_path
        if old_path.startswith("src/sulq/") and old_path.count("/") > 2:
            rules[old_path.removeprefix("src/sulq/")] = new_path.removeprefix("src/sulq/")
        if old_path.startswith("tests/") and old_path.rpartition("/")[2].startswith("test_"):
            rules[old_path.removeprefix("tests/")] = new_path.removeprefix("tests/")
        if module.count(".") > 1 or (module.startswith("sulq.") and not is_package):
            rules[module] = new
    for old, new in table.packages.items():
        rules[old] = new
        for prefix in ("src/", "") if old.startswith("sulq") else ("",):
            rules[prefix + old.replace(".", "/") + "/"] = prefix + new.replace(".", "/") + "/"
    for (module, name), new_name in table.names.items():
        rules[f"{module}.{name}"] = f"{table.new(module)}.{new_name}"
    if not rules:
        return lambda text: text
    longest = sorted(rules, key=len, reverse=True)
    ends = [re.escape(old) + ("" if old.endswith("/") else r"(?!\w)") for old in longest]
    pattern = re.compile(r"(?<![\w./-])(?:" + "|".join(ends) + ")")
    return lambda text: pattern.sub(lambda match: rules[match[0]], text)


def rewrite_texts(texts: Callable[[str], str]) -> None:
    """Documents and configuration. Python files were rewritten by their syntax."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        path = ROOT / name
        other = path.suffix != "" and path.suffix not in TEXTS
        if other or name.startswith(SKIPPED) or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if (new := texts(text)) != text:
            path.write_text(new)


def deeper(text: str, old: Path, new: Path) -> str:
    """`Path(__file__).parents[n]` counts folders: one more where the file lies one deeper."""
    more = len(new.parts) - len(old.parts)
    if not more:
        return text
    return re.sub(
        r"(__file__\)(?:\.resolve\(\))?\.parents\[)(\d+)\]",
        lambda m: f"{m[1]}{int(m[2]) + more}]",
        text,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("--check", action="store_true", help="report, write nothing")
    options = parser.parse_args()
    paths = sorted(p for root in ROOTS.values() for p in root.rglob("*.py"))
    known = {module_of(path): path for path in paths}
    table = Table.read(options.table, known)
    extra = [p for p in (ROOT / "scripts").iterdir() if p.suffix == ".py" and p.name != "rename.py"]
    files = [File(path, table) for path in [*paths, *extra]]
    texts = text_rewriter(table)
    for file in files:
        file.rewrite(texts)
    groups: dict[str, list[File]] = defaultdict(list)
    for file in files:
        groups[file.home].append(file)
    faults = []
    for new, group in groups.items():
        if len(group) > 1:
            listed = table.merged.get(new, [])
            group.sort(key=lambda f: listed.index(f.module) if f.module in listed else -1)
            faults += merge_faults(new, group)
    faults += cycles(table, files)
    for (module, name), new_name in table.names.items():
        if name not in definitions_of(module, table):
            faults.append(f"{module} defines no {name} (wanted {new_name})")
    print("\n".join(faults))
    before = [module for module in known if module.startswith("sulq")]
    after = {table.new(module) for module in before}
    print(f"{len(faults)} faults; {len(before)} modules become {len(after)}")
    if options.check or faults:
        return 1 if faults else 0
    written = []
    for new, group in groups.items():
        if len(group) == 1:
            file = group[0]
            if file.home == file.module and not file.edits and not file.changed:
                continue
            ours = new.split(".")[0] in ROOTS
            target = path_of(new, file.path.name == "__init__.py") if ours else file.path
            written.append((file.path, target, deeper(file.text_alone(), file.path, target)))
        else:
            package = any(file.path.name == "__init__.py" for file in group)
            target = path_of(new, package)
            inner = ordered(group, table)
            text = headed_by(group[0], inner[0], merged_text(inner))
            for file in group:
                text = deeper(text, file.path, target)
                written.append((file.path, target, text))
    for old, _, _ in written:
        old.unlink()
    for _, target, text in written:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    for folder in sorted({old.parent for old, _, _ in written}, key=lambda p: -len(p.parts)):
        for cache in folder.glob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
    rewrite_texts(texts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
