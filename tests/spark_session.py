"""A real Spark for the tests: one local driver per test run, small and quick to start.

    session = spark_session(folder)           # started once; later calls give the same
    spark_url(path)                           # spark+session://?path=...

The engine asks through it as through any session of the process. C1 only and a small heap: good
for tests, not for work.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sulq.kernel.engines.spark.session import DRIVER, local_settings

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "600m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m",
    "spark.sql.codegen.cache.maxEntries": "200",
}


def why_not() -> str | None:
    """The reason why no Spark can be started here."""
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return "no Java here: Spark needs 17 or 21"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pyspark.sql  # noqa: F401
    except ImportError:
        return "no pyspark here: install sulq[spark]"
    return None


def options(folder: Path) -> dict[str, str]:
    """The settings of a small driver that keeps its files in a folder."""
    kept = {"spark.local.dir": str(folder), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    return DRIVER | local_settings() | SMALL | kept


def spark_session(folder: Path, master: str = "local[2]") -> Any:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in options(folder).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_url(path: Path | str, **more: str) -> str:
    extra = "".join(f"&{name}={quote(value)}" for name, value in more.items())
    return f"spark+session://?path={quote(str(path))}{extra}"
