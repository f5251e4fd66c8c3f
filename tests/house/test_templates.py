"""Templates of the console: formatted by `scripts/templates.py`, which changes no page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from sulq.server.console.framework import Unindented

SCRIPT = Path(__file__).parents[2] / "scripts" / "templates.py"


@pytest.fixture(scope="module")
def formatter() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_every_template_is_formatted(formatter: dict[str, Any]) -> None:
    """`make format` does it. Once formatted, a template stays as it is."""
    found = formatter["unformatted"](sorted(formatter["TEMPLATES"].glob("*.html")))
    assert not found, f"run scripts/templates.py: {[path.name for path in found]}"


WORDS = "one two three four five six seven eight nine ten eleven twelve"
SOURCES = [
    "<p>plain</p>",
    f"<div><p>{WORDS} <b>bold</b>, {WORDS}</p><p>{{{{ x }}}}</p></div>",
    "<span>a</span><span>b</span> <i>c</i>",
    '<span class="l">{{ x }}</span><span class="n" data-q="get"><b>{{ x }}</b> u</span>' * 4,
    "<ul>{% for n in many %}<li>{{ n }}{% if n > 1 %} more{% endif %}</li>{% endfor %}</ul>",
    "{% if x %}yes{% else %}no{% endif %} and {% if many %}<b>m</b>{% endif %}<i>i</i>" * 3,
    '<input id="a-rather-long-name" type="number" min="0" step="any" inputmode="decimal"'
    ' aria-label="Error bar, plus or minus"{% if x %} checked{% endif %}'
    "{% if many %} hidden{% endif %}>",
    "<div><pre>  kept\n    as it is\n</pre><p>after</p></div>",
    "{% macro m(a) -%}\n<em>{{ a }}</em>\n{%- endmacro %}[{{ m(x) }}]",
    f'{{{{ "{WORDS}" ~ x ~ "{WORDS}" }}}}!',
    f"<p>{WORDS}<a href='#'>{WORDS}</a>{WORDS}.{WORDS}</p>",
    "<td>{% if x %}<span>{{ x }}</span>{% else %}none{% endif %}</td>",
]


def shown(formatter: dict[str, Any], source: str) -> str:
    """What a reader of the page sees: no white space beside block elements, else one blank."""
    settings = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    page = Environment(**settings, autoescape=True, extensions=[Unindented]).from_string(source)
    html = page.render(x=Markup("<s>7</s>"), many=[1, 2])
    kept = re.findall(r"<pre>.*?</pre>", html, re.DOTALL)
    html = re.sub(r"\s+", " ", html)
    html = re.sub(r"\s*(/?>)", r"\1", html)
    blocks = "|".join(formatter["BLOCKS"])
    return re.sub(rf" ?(</?(?:{blocks})(?: [^>]*)?>) ?", r"\1", html).strip() + "".join(kept)


@pytest.mark.parametrize("source", SOURCES)
def test_formatting_changes_no_page_and_only_once(formatter: dict[str, Any], source: str) -> None:
    made = formatter["formatted"](source)
    assert formatter["formatted"](made) == made
    assert shown(formatter, made) == shown(formatter, source)
    assert all(len(line) <= formatter["WIDTH"] for line in made.splitlines())


def test_an_element_has_a_line(formatter: dict[str, Any]) -> None:
    made = formatter["formatted"]("<ul><li>a</li><li>b <b>c</b></li></ul>")
    assert made == "<ul>\n  <li>a</li>\n  <li>b <b>c</b></li>\n</ul>\n"
