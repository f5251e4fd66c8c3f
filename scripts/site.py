"""Hooks of mkdocs for `make docs`: pages from the project's root, and links as the site needs them.

Documents link to each other and to code by paths of the repository. The site has the documents and
not the code, so a link to code becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Documents of the root, by the page that shows them.
PAGES = {
    "readme.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name headings as the links in the documents do."""
    from pymdownx.slugs import slugify

    config.mdx_configs["toc"] = {"permalink": True, "slugify": slugify(case="lower")}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for page, name in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    return files


def site_text(text: str, page: str, known: set[str]) -> str:
    """`text` of `page` with links between pages of the site, and code by its name alone."""
    source = PAGES.get(page, f"docs/{page}")

    def put(found: re.Match[str]) -> str:
        picture, words, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        page_of = {name: shown for shown, name in PAGES.items()}
        goal = page_of.get(path) or path.removeprefix("docs/")
        if goal not in known:
            return words
        relative = posixpath.relpath(goal, posixpath.dirname(page) or ".")
        return f"{picture}[{words}]({relative}{anchor or ''})"

    parts = FENCE.split(text)
    return "".join(part if n % 2 else LINK.sub(put, part) for n, part in enumerate(parts))


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    return site_text(markdown, page.file.src_uri, {file.src_uri for file in files})
