"""Spark Connect: the same integers through a server, and files that change are noticed."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from tests.kernel.engines import programs, reference, tables, vector_reference
from tests.kernel.engines import test_blocks as vectors
from tests.kernel.engines.test_spark_programs import parts
from tests.spark_session import options, why_not

import sulq.kernel.engines.spark.engine as engine_file
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.spark.session import local_settings

pytestmark = pytest.mark.slow
FOLDER = "spark.executorEnv.PYTHONPATH"
SERVICE = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    reason = why_not() or (None if find_spec("grpc") else "no grpc: install pyspark[connect]")
    if reason is not None:
        pytest.skip(reason)
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = options(tmp_path / "local") | {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
    }
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    process = subprocess.Popen(
        [
            home / "bin/spark-submit",
            "--master",
            "local[2]",
            "--class",
            SERVICE,
            *given,
            "spark-internal",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([local_settings()[FOLDER], *sys.path]),
        },
    )
    try:
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.filterwarnings("ignore")  # of pandas and protobuf
def test_the_same_integers(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = tables.rows(1, 40)
    folder = parts(content, tmp_path / "parts", 2)
    engine = open_engine(f"{server}?path={quote(str(folder))}", tables.SCHEMA)
    rng = random.Random(1)
    for _ in range(10):
        program = programs.program(rng, tables.FACTS)
        assert engine.exact_sums(program) == reference.exact_sums(program, content)
    monkeypatch.setattr(engine_file.SparkEngine, "most_products", 0)
    for vector in vectors.programs(3, 3):
        assert engine.exact_sums(vector) == vector_reference.outer_sums(vector, content)
    assert engine.unchanged()
    pq.write_table(tables.table(content[:1]), folder / "more.parquet")
    assert not engine.unchanged()
    engine.close()
