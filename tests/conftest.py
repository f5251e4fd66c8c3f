"""What every test gets: its own state directory, plain output, settled random examples.

The tests write thousands of small files and wait for the disk at each, so TMPDIR is in memory where
there is room. Whoever wants them on a disk sets TMPDIR.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from httpx._transports import default as transports
from hypothesis import HealthCheck, settings
from tests import shared_engines
from typer import testing

from sulq.kernel.noise import entropy, sampler

FAULTS = Path(__file__).parent / "faults"
NOISE = Path(__file__).parent / "kernel" / "noise"
MEMORY = Path("/dev/shm")
ROOM = 4 << 30

if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # read the variable again

# The tree of commands is built once, not for each command that a test runs.
testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]

# The certificates of the machine are read once, not for each HTTP client of a test.
_context = cache(lambda _places, **words: httpx.create_ssl_context(**words))
transports.create_ssl_context = lambda **words: _context(  # type: ignore[attr-defined]
    (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")), **words
)

# The gate draws the same examples each time: when it turns red, the change did it, not the draw.
# `make test-all` looks for new ones, and more of them. Machines are shared: no deadlines, and no
# verdict about how long the drawing of an example took.
SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "gate", max_examples=25, derandomize=True, deadline=None, suppress_health_check=SLOW
)
settings.register_profile(
    "explore", max_examples=500, deadline=None, print_blob=True, suppress_health_check=SLOW
)
settings.load_profile("gate")


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep what is collected out of every later garbage collection: it lives to the end."""
    gc.disable()
    yield
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # so that extensions find nothing left over when the process ends


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    sampled: dict[str, list[pytest.Item]] = {}
    for item in items:
        if FAULTS in item.path.parents:
            item.add_marker(pytest.mark.faults)
        if item.get_closest_marker("sample") is not None:
            sampled.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in sampled.values():
        mark = cases[0].get_closest_marker("sample")
        assert mark is not None
        kept = spread(len(cases), *mark.args)
        for number, item in enumerate(cases):
            if number not in kept:
                item.add_marker(pytest.mark.slow)


def spread(cases: int, count: int) -> set[int]:
    """The first, the last, and as many between them as there are to be."""
    if count >= cases:
        return set(range(cases))
    return {round(each * (cases - 1) / max(1, count - 1)) for each in range(count)}


@pytest.fixture(scope="session")
def state_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for each test, by a count: `mktemp` reads all that are there each time."""
    parent = tmp_path_factory.mktemp("states")
    return (parent / str(number) for number in count())


def same_bits() -> SimpleNamespace:
    """In place of the operating system's: the same bits each time. Never in the package."""
    return SimpleNamespace(urandom=random.Random(14).randbytes)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Noise of its true law, from the same bits in each test: a verdict hangs on the change alone.

    Fresh bits where laws are tested, in `make test-all`, in programs that tests start or fork, and
    for scripts/flaky, whose business is to find who needs these.
    """
    shared_engines.share_for(item.path)
    fresh = NOISE in item.path.parents or not settings().derandomize
    entropy.os = os if fresh or "FLAKY_FACTOR" in os.environ else same_bits()  # type: ignore[attr-defined]


os.register_at_fork(after_in_child=lambda: setattr(entropy, "os", os))  # a copy would repeat them
# A child collects nothing that other tests left: the threads of its drivers are not there.
os.register_at_fork(before=gc.disable, after_in_parent=gc.enable)


@pytest.fixture(autouse=True)
def state_directory(
    state_directories: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Keys, anchors and data versions of one test; never those of the person who runs it."""
    directory = next(state_directories)
    directory.mkdir(mode=0o700)
    monkeypatch.setenv("SULQ_STATE", str(directory))
    monkeypatch.setenv("NO_COLOR", "1")
    yield directory


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw is 0: for tests that are not about noise, but whose verdict could hang on it."""
    monkeypatch.setattr(sampler, "draw", lambda law, count: [0] * count)
    monkeypatch.setattr(sampler, "draw_one_sided", lambda law, count: [0] * count)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of their true laws from bits that are the same each time: noise of its true size.

    For tests of one thread whose verdict needs noise, and no luck: what is learned, what drowns.
    """
    monkeypatch.setattr(entropy, "os", same_bits())
