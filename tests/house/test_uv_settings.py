"""uv must install from where pip would."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "uv_settings.py"))
LISTING = """\
:env:.cert='/etc/other.pem'
global.cert='/etc/mirror.pem'
global.extra-index-url='https://a.example/b https://c.example/d'
global.find-links='\\nwheels\\nmore'
global.index-url='https://first.example/'
global.timeout='60'
install.index-url='https://second.example/'
"""


def test_the_nearer_section_wins_and_lists_are_joined_as_uv_reads_them():
    found = SCRIPT["settings_of_pip"](LISTING)
    assert SCRIPT["exports"](found, {}) == {
        "UV_DEFAULT_INDEX": "https://second.example/",
        "UV_INDEX": "https://a.example/b https://c.example/d",
        "UV_FIND_LINKS": "wheels,more",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/etc/other.pem",
    }


def test_what_the_user_told_uv_stays():
    found = SCRIPT["settings_of_pip"](LISTING)
    assert "UV_DEFAULT_INDEX" not in SCRIPT["exports"](found, {"UV_DEFAULT_INDEX": "mine"})


def test_without_settings_nothing_is_set():
    assert SCRIPT["exports"](SCRIPT["settings_of_pip"](""), {}) == {}
