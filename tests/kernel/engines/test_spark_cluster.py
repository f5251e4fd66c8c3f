"""A standalone cluster: an executor killed under a question, and the driver.

A master and a worker run as processes of their own. Spark runs a lost task again, so the answer
comes all the same; where it may not, the charge stands and the same question then works.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.spark_session import SMALL, why_not

from sulq.kernel.engines.spark.session import local_settings

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def started(home: Path, folder: Path, name: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [home / "bin/spark-class", f"org.apache.spark.deploy.{name}", *words],
            stdout=log,
            stderr=log,
            cwd=folder,
            env=os.environ
            | {
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path]),
            },
        )
    try:
        yield process
    finally:
        process.terminate()  # a worker ends its executors
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(there: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while there not in log.read_text(errors="replace"):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The master's address, and the number of the worker's process."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home, folder, port = Path(spec.origin).parent, tmp_path_factory.mktemp("cluster"), free_port()
    ports = ("--host", "127.0.0.1", "--webui-port", "0")
    with started(home, folder, "master.Master", *ports, "--port", str(port)) as master:
        until("I have been elected leader", folder / "master.Master.log", master)
        url = f"spark://127.0.0.1:{port}"
        sizes = ("--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work"))
        with started(home, folder, "worker.Worker", *ports, *sizes, url) as worker:
            until("Successfully registered", folder / "worker.Worker.log", worker)
            yield url, worker.pid


SCRIPT = """
import sys
from tests.kernel.engines.test_spark_changes import *
import sulq.kernel.engines.spark.engine as engine_file

folder, url, worker, extra = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
path = wide_rows(folder / "w.parquet", 500)
note, go = folder / "note", folder / "go"
real = blocks_file.partial_sums

def waiting(program, place):
    inner, noted, let = real(program, place), str(note), str(go)
    def sums(batches):
        Path(noted).write_text("here")
        while not Path(let).exists():
            time.sleep(0.05)
        yield from inner(batches)
    return sums

def executors():
    found = []
    for at in Path("/proc").glob("[0-9]*"):
        try:
            parent = (at / "stat").read_text().rpartition(")")[2].split()[1]
            words = (at / "cmdline").read_text()
        except OSError:
            continue
        if parent == worker and "CoarseGrainedExecutorBackend" in words:
            found.append(int(at.name))
    return found

def asked(db, key, kill):
    '''Ask under a key, and kill something while the executors are at it.'''
    note.unlink(missing_ok=True)
    go.unlink(missing_ok=True)
    blocks_file.partial_sums = waiting
    got = []
    def ask():
        try:
            got.append(db.ask(MOMENTS, key=key))
        except Exception as error:
            got.append(error)
    asking = threading.Thread(target=ask)
    asking.start()
    deadline = time.monotonic() + 180
    while not note.exists():
        assert asking.is_alive() and time.monotonic() < deadline, got
        time.sleep(0.02)
    kill()
    go.touch()
    asking.join()
    blocks_file.partial_sums = real
    return got[0]

def kill_executor():
    victims = executors()
    assert victims, "no executor was found"
    for victim in victims:
        os.kill(victim, signal.SIGKILL)

def kill_driver():
    from pyspark import SparkContext
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()

def opened(number, **more):
    from urllib.parse import quote
    given = "".join(f"&{name}={quote(str(value))}" for name, value in more.items())
    address = f"{url}?path={quote(str(path))}&{extra}{given}"
    ledger, name = folder / f"ledger{number}", f"t{number}"
    return Database.open(address, WIDE, PROMISE, ledger, name=name, publish=True)

def check_failed(db, kill, key):
    before = db.statement().spent
    failed = asked(db, key, kill)
    assert isinstance(failed, EngineFailed) and str(failed) == CONSTANT, repr(failed)
    assert said(failed) == f"{failed!r} {CONSTANT}"
    charged = db.statement().spent
    assert charged > before
    assert db.ask(MOMENTS, key=key).value.shape == (12, 12)
    assert db.statement().spent == charged

what = sys.argv[5]
if what == "again":
    with opened(1) as db:
        expected = db.engine.exact_sums(COUNT)
        assert expected == [500]
        answer = asked(db, "k", kill_executor)
        assert not isinstance(answer, Exception), repr(answer)
        assert db.ask(MOMENTS, key="k").receipt == answer.receipt
elif what == "once":
    with opened(2, **{"spark.task.maxFailures": 1}) as db:
        check_failed(db, kill_executor, "k")
else:
    with opened(3) as db:
        check_failed(db, kill_driver, "k")
print("DONE")
"""


@pytest.mark.parametrize("what", ["again", "once", "driver"])
def test_killed_under_a_question(cluster: tuple[str, int], tmp_path: Path, what: str) -> None:
    url, worker = cluster
    small = SMALL | {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SMALL["spark.driver.extraJavaOptions"],
        "spark.local.dir": str(tmp_path / "local"),
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        **local_settings(),
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(SCRIPT),
            str(tmp_path),
            url,
            str(worker),
            urlencode(small),
            what,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        cwd=ROOT,
        env=os.environ
        | {
            "PYTHONPATH": f"src{os.pathsep}.",
            "SULQ_STATE": str(tmp_path / "s"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        },
    )
    assert "DONE" in done.stdout, done.stdout + done.stderr
    assert "SECRET" not in done.stdout + done.stderr
