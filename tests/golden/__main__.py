"""`python -m tests.golden` writes the records anew; `--check` compares; names choose parts."""

from __future__ import annotations

import sys

from tests.golden.inside import options
from tests.golden.making import PARTS, made
from tests.golden.records import differences, path_of, read, written


def main(words: list[str]) -> int:
    check = "--check" in words
    wanted = [word for word in words if not word.startswith("-")] or list(PARTS)
    worst = 0
    if not check and wanted == list(PARTS):
        path_of("options").write_text(written(options()), "utf-8")
    for part in wanted:
        for name, found in made(part).items():
            told = differences(read(name), found) if path_of(name).exists() else ["new"]
            if not check:
                path_of(name).write_text(written(found), "utf-8")
            elif told:
                worst = 1
            print(f"{name}: {len(found)} records, {len(told)} different")
            for line in told:
                print(f"  {line}")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
