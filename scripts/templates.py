"""Format the templates of the console: one block element a line, at most 120 characters a line.

    python scripts/templates.py           formats them in place
    python scripts/templates.py --check   names those that are not formatted; exit code 1

A line ends only where the page does not show it: beside a block element, where there was white
space already, between the attributes of a tag, and after a statement, whose line end Jinja drops
(`trim_blocks`). The console drops the indentation when it loads a template, so it is never sent.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[1] / "src/sulq/server/console/templates"
WIDTH = 120
STEP = "  "
BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """article aside body dd details div dl dt fieldset footer form h1 h2 h3 h4 head header hr
        html legend li link main meta nav ol option p section summary table tbody td template tfoot
        th thead title tr ul""",
    )
)
"""White space beside these tags is not shown."""
VOID = frozenset(["br", "hr", "img", "input", "link", "meta"])
OPENS = {"if": "endif", "for": "endfor", "macro": "endmacro", "with": "endwith"}
BETWEEN = ("else", "elif")
_JINJA = r"\{%.*?%\}|\{\{.*?\}\}"
_QUOTED = rf'"(?:{_JINJA}|[^"])*"'
TOKEN = re.compile(
    r"(?P<verbatim><(?P<raw>pre|textarea|script)\b.*?</(?P=raw)>)"
    r"|(?P<statement>\{%.*?%\})"
    r"|(?P<expression>\{\{.*?\}\})"
    r"|(?P<comment>\{#.*?#\}|<!--.*?-->)"
    rf"|(?P<tag></?[a-zA-Z!](?:{_JINJA}|{_QUOTED}|[^>\"])*>)"
    r"|(?P<space>\s+)"
    r"|(?P<text>[^\s<{]+|[<{])",
    re.DOTALL,
)
NAME = re.compile(r"</?!?([a-zA-Z0-9]+)")
INSIDE = re.compile(
    rf"(?P<jinja>{_JINJA})|(?P<quoted>{_QUOTED})|(?P<space>\s+)|(?P<end>/?>$)", re.DOTALL
)
WORDS = re.compile(r"\"[^\"]*\"|'[^']*'|(?P<space>\s+)")
AT_A_GAP, AT_AN_ATTRIBUTE, BEFORE_THE_END, IN_AN_EXPRESSION = range(4)
"""Where a line that is too long is cut, best first."""
Cut = tuple[int, int, int]
"""First and last place of what is dropped, and its rank."""


@dataclass
class Node:
    """A token; of an element or a statement with an end, all that is in it too."""

    kind: str
    text: str
    name: str
    spaced: bool
    """True if white space stands before it."""
    children: list[Node] = field(default_factory=list)
    close: Node | None = None

    @property
    def block(self) -> bool:
        return self.kind in ("tag", "verbatim") and self.name in BLOCKS

    @property
    def parts(self) -> list[Node]:
        """What it consists of, the tag itself without its children first."""
        own = Node(self.kind, self.text, self.name, self.spaced)
        return [own, *self.children, *([self.close] if self.close else [])]

    @property
    def broad(self) -> bool:
        """True if a block element is in it: then its parts have lines of their own."""
        return any(child.block or child.broad for child in self.children)

    @property
    def ends(self) -> Node:
        return self.close or self


def tokens(source: str) -> Iterator[Node]:
    spaced, kind = False, ""
    for found in TOKEN.finditer(source):
        text = found.group()
        before, kind = kind, "verbatim" if found["verbatim"] else found.lastgroup or "text"
        if kind == "space":
            dropped = before in ("statement", "comment") and text.startswith("\n")
            spaced = "\n" in text[1:] if dropped else True
            continue
        name = ""
        if kind in ("tag", "verbatim"):
            named = NAME.match(text)
            name = named[1].lower() if named else ""
        elif kind == "statement":
            text = re.sub(r"\s+", " ", text)
            name = text.strip("{%-+ }").split()[0]
        elif kind == "expression":
            text = re.sub(r"\s+", " ", text)
        yield Node(kind, text, name, spaced)
        spaced = False


def tree(source: str) -> list[Node]:
    """Read a template. What is opened and not closed beside it stays a mere token."""
    root: list[Node] = []
    stack: list[Node] = []

    def add(node: Node) -> None:
        (stack[-1].children if stack else root).append(node)

    for node in tokens(source):
        if _opens(node):
            stack.append(node)
            continue
        match = next((n for n in reversed(stack) if _closes(node, n)), None)
        if match is None:
            add(node)
            continue
        while stack[-1] is not match:
            _dissolve(stack.pop(), add)
        stack.pop()
        match.close = node
        add(match)
    while stack:
        _dissolve(stack.pop(), add)
    return root


def _dissolve(node: Node, add: Callable[[Node], None]) -> None:
    children, node.children = node.children, []
    for each in (node, *children):
        add(each)


def _opens(node: Node) -> bool:
    if node.kind == "statement":
        return node.name in OPENS
    text = node.text
    plain = node.kind == "tag" and not text.startswith(("</", "<!")) and not text.endswith("/>")
    return plain and node.name not in VOID


def _closes(node: Node, opened: Node) -> bool:
    if node.kind == "statement":
        return opened.kind == "statement" and OPENS[opened.name] == node.name
    return node.text.startswith("</") and opened.kind == "tag" and opened.name == node.name


def gap(before: Node, after: Node) -> tuple[str, bool]:
    """What stands between two nodes on one line, and whether a line may end there instead."""
    end = before.ends
    if end.text.endswith("-%}") or after.text.startswith("{%-"):
        return "", True
    if end.kind in ("statement", "comment"):
        return (" ", False) if after.spaced and not after.block else ("", True)
    if end.block or after.block:
        return "", True
    return (" ", True) if after.spaced else ("", False)


def flat(nodes: Sequence[Node]) -> tuple[str, list[Cut]]:
    """Nodes on one line, and where it may be cut."""
    made, cuts = "", list[Cut]()
    for at, node in enumerate(nodes):
        between, free = gap(nodes[at - 1], node) if at else ("", False)
        if free:
            cuts.append((len(made), len(made) + len(between), AT_A_GAP))
        made += between
        text, own = flat(node.parts) if node.close else (node.text, _cuts(node))
        cuts += [(start + len(made), end + len(made), rank) for start, end, rank in own]
        made += text
    return made, cuts


def _cuts(node: Node) -> list[Cut]:
    if node.kind in ("statement", "expression"):
        return [(*m.span(), IN_AN_EXPRESSION) for m in WORDS.finditer(node.text) if m["space"]]
    if node.kind not in ("tag", "verbatim"):
        return []
    text, cuts, last = node.text, list[Cut](), ""
    head = text if node.kind == "tag" else text[: _head(text)]
    for found in INSIDE.finditer(head):
        if found["space"] and not last.endswith("%}"):
            cuts.append((*found.span(), AT_AN_ATTRIBUTE))
        elif found["jinja"] and found["jinja"].startswith("{%") and last.endswith(('"', "%}")):
            cuts.append((found.start(), found.start(), AT_AN_ATTRIBUTE))
        elif found["end"]:
            cuts.append((found.start(), found.start(), BEFORE_THE_END))
        last = head[: found.end()] if found["jinja"] or found["quoted"] else last
        last = last if len(last) == found.end() else ""
    return cuts


def _head(text: str) -> int:
    """Where the first tag of a text ends."""
    found = re.match(rf"<(?:{_JINJA}|{_QUOTED}|[^>\"])*>", text, re.DOTALL)
    return found.end() if found else 0


class Writer:
    """Lines of at most WIDTH characters."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line, self.depth, self.cuts = "", 0, list[Cut]()

    def end(self, depth: int) -> None:
        if self.line.strip():
            self.lines.append(self.line.rstrip())
        self.line, self.depth, self.cuts = STEP * depth, depth, []

    def add(self, text: str, cuts: Sequence[Cut] = ()) -> None:
        at = len(self.line)
        self.line += text
        self.cuts += [(start + at, end + at, rank) for start, end, rank in cuts]
        while len(self.line) > WIDTH:
            indent = len(self.line) - len(self.line.lstrip())
            fit = [cut for cut in self.cuts if indent < cut[0] <= WIDTH]
            if not fit:
                return
            start, end, _ = min(fit, key=lambda cut: (cut[2], -cut[0]))
            self.lines.append(self.line[:start].rstrip())
            deep = STEP * (self.depth + 2)
            self.line = deep + self.line[end:]
            self.cuts = [
                (a - end + len(deep), b - end + len(deep), rank)
                for a, b, rank in self.cuts
                if a >= end and a > start
            ]

    def put(self, nodes: Sequence[Node], depth: int) -> None:
        for at, node in enumerate(nodes):
            before = nodes[at - 1] if at else None
            between, free = gap(before, node) if before else ("", False)
            deep = depth - (node.kind == "statement" and node.name in BETWEEN)
            apart = _apart(node) or (before is not None and _apart(before))
            if free and apart and self.line.strip():
                self.end(deep)
                between = ""
            text, cuts = flat([node])
            fits = len(self.line + between + text) <= WIDTH
            if node.close and (node.broad or (_apart(node) and not fits)):
                self.add(between, [(0, len(between), AT_A_GAP)] if free else [])
                self.open_up(node, deep)
                continue
            gaps = [(0, len(between), AT_A_GAP)] if free else []
            moved = [(a + len(between), b + len(between), rank) for a, b, rank in cuts]
            self.add(between + text, gaps + moved)

    def open_up(self, node: Node, depth: int) -> None:
        """Write the parts of a node on lines of their own."""
        own, *children, close = node.parts
        self.add(own.text, _cuts(own))
        if children:
            self._next(own, children[0], depth + 1)
            self.put(children, depth + 1)
            self._next(children[-1], close, depth)
        self.add(close.text, _cuts(close))

    def _next(self, before: Node, after: Node, depth: int) -> None:
        between, free = gap(before, after)
        if free:
            self.end(depth)
        else:
            self.add(between)


def _apart(node: Node) -> bool:
    """True if it has a line of its own where that is possible."""
    return node.block or node.kind in ("statement", "comment")


def formatted(source: str) -> str:
    writer = Writer()
    writer.put(tree(source), 0)
    writer.end(0)
    return "\n".join(writer.lines) + "\n"


def unformatted(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if formatted(path.read_text("utf-8")) != path.read_text("utf-8")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing")
    paths = unformatted(sorted(TEMPLATES.glob("*.html")))
    if parser.parse_args().check:
        for path in paths:
            print(f"{path.name} is not formatted: run scripts/templates.py")
        sys.exit(bool(paths))
    for path in paths:
        path.write_text(formatted(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
