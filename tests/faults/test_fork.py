"""A forked child must not touch its parent's ledger, whatever way it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PARENT = """
import os, sys
from sulq.errors import Refused
from tests.kernel.ledger.publishing import *

path, ending = sys.argv[1:]
journal = publish(path)
ask(journal, "before")
aside = journal.reserve("owner", credits(4))
child = os.fork()
if child == 0:
    for use in (lambda: pay(journal, "child"), journal.statement, lambda: publish(path),
                lambda: journal.grant("ann", ONE), lambda: pay(aside, "child")):
        try:
            use()
        except Refused:
            pass
        else:
            os._exit(9)
    if ending == "forgotten":
        del journal, aside
        sys.exit(0)
    if ending == "destroyed":  # what a finalizer of the child's copy would do
        journal._shared._store._connection.close()
    if ending == "closed":
        aside.close()
        journal.close()
    if ending == "abrupt":
        os._exit(0)
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert journal.remaining("owner") == credits(5)  # the child's end is no end of the reservation
ask(aside, "aside", price=credits(4))
for number in range(3):
    ask(journal, f"after{number}")
try:
    publish(path + "x").close()
finally:
    os.unlink(path + "x")
os._exit(0)  # no tidying: what is on disk must do
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("ending", ["normal", "forgotten", "destroyed", "closed", "abrupt"])
def test_a_child_leaves_its_parent_s_ledger_alone(path, ending):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, "."])}
    command = [sys.executable, "-c", PARENT, str(path), ending]
    root = Path(__file__).parents[2]
    run = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    check = (
        "import sys; from tests.kernel.ledger.publishing import *; journal = publish(sys.argv[1]); "
        "assert journal.statement().answered == 5; journal.close()"
    )
    subprocess.run([sys.executable, "-c", check, str(path)], env=environment, cwd=root, check=True)
