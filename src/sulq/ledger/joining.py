"""How another replica comes to the owner's signing key, and to a mark to begin with.

The key alone would not do: a replica that starts without a mark believes whatever it finds.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sulq.errors import Refused
from sulq.ledger.anchor import SLOT, furthest
from sulq.ledger.book import Files, path_home, remember
from sulq.ledger.keys import Key
from sulq.ledger.places import place_name
from sulq.ledger.state import named, private_directory, read_private, write_private

_LEDGER = re.compile(r"[0-9a-f]{32}")
_NOT = "{} does not hold what `sulq share-key` writes; make it anew"


def share_key(path: str | Path, file: Path) -> str:
    """Write key and mark of the ledger at `path` to a new file that only its owner may read; the
    ledger's id. Whoever has the file can sign in the owner's name."""
    known = (read_private(path_home(place_name(path)) / "ledger") or b"").decode("ascii", "replace")
    files = Files(known)
    secret, anchor = read_private(files.key), read_private(files.anchor)
    if not known or secret is None or anchor is None:
        raise Refused(
            f"the state directory has no key and mark of {place_name(path)}; do this where the"
            " ledger is in use"
        )
    said = {"ledger": known, "key": secret.hex(), "anchor": anchor.hex()}
    if not write_private(file, json.dumps(said).encode(), replace=False):
        raise Refused(f"there is a file at {file} already; give a new name")
    return known


def join(path: str | Path, file: Path) -> str:
    """Take key and mark of the ledger at `path` into this state directory; the ledger's id."""
    try:
        said = json.loads(file.read_bytes())
        ledger, secret = str(said["ledger"]), bytes.fromhex(said["key"])
        anchor, key = bytes.fromhex(said["anchor"]), Key(secret)
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(_NOT.format(file)) from None
    if not _LEDGER.fullmatch(ledger) or furthest(anchor, ledger, [key.public]) is None:
        raise Refused(_NOT.format(file))
    home = private_directory("paths", named(place_name(path)))
    known = (read_private(home / "ledger") or b"").decode("ascii", "replace")
    if known not in ("", ledger):
        raise Refused(f"{place_name(path)} is another ledger here; give each a name of its own")
    private_directory("ledgers", ledger)
    files = Files(ledger)
    if read_private(files.anchor) is None:  # its own mark is never taken back
        write_private(files.anchor, anchor.ljust(2 * SLOT, b"\0"), replace=False)
    write_private(files.key, secret, replace=True)
    remember(home, ledger)
    return ledger
