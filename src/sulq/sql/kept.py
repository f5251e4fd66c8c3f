"""Plans of statements read before: a dashboard's text is read once, then looked up.

A plan follows from the text, the schema, the promise and the public size; no row has a part in it,
so neither what is kept nor how long a look-up takes says anything about one. Each asker has entries
of its own: the time a statement takes tells nobody what a colleague asked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from sulq.oracle import Oracle
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise
from sulq.sql.recipes import Plan

MOST = 128
LONGEST = 4_000
"""Longer statements are read anew: what is kept stays small."""

Key = tuple[str, str, str, str | None, int | None]
_plans: OrderedDict[Key, tuple[Schema, Promise, Plan]] = OrderedDict()
_lock = threading.Lock()


def kept(oracle: Oracle, text: str, table: str | None, make: Callable[[], Plan]) -> Plan:
    """The plan of this text for this asker: as it was made before, if nothing has changed since."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return make()
    asker = str(getattr(oracle, "name", ""))
    key = (type(oracle).__qualname__, asker, text, table, oracle.size)
    schema, promise = oracle.schema, oracle.promise
    with _lock:
        found = _plans.get(key)
        if found is not None and found[0] is schema and found[1] == promise:
            _plans.move_to_end(key)
            return found[2]
    plan = make()
    with _lock:
        _plans[key] = (schema, promise, plan)
        while len(_plans) > MOST:
            _plans.popitem(last=False)
    return plan
