"""Print pip's settings as shell exports for uv, which reads neither pip.conf nor PIP_*.

What the user has set for uv already is left alone.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys

# pip's own precedence: a later section wins.
SECTIONS = ("global", "install", ":env:")

# pip's name -> uv's variable and the separator uv wants between several values.
NAMES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
}


def settings_of_pip(listing: str) -> dict[str, str]:
    """Read `pip config list`: lines such as global.cert='/path'."""
    found: dict[str, str] = {}
    for section in SECTIONS:
        for line in listing.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(section + "."):
                found[name.removeprefix(section + ".")] = str(ast.literal_eval(value))
    return found


def exports(found: dict[str, str], environment: dict[str, str]) -> dict[str, str]:
    """The variables to set for uv."""
    result = {
        variable: separator.join(found[name].split())
        for name, (variable, separator) in NAMES.items()
        if found.get(name, "").strip()
    }
    if found.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        result["UV_NO_INDEX"] = "1"
    if "UV_INDEX" in result:
        # pip takes the best version of all indexes; uv would stop at the first with the name.
        result["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in result.items() if name not in environment}


def main() -> None:
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name, value in exports(settings_of_pip(listing), dict(os.environ)).items():
        print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
