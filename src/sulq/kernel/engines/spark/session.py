"""Sessions of Spark: the address of a table, and sessions set up so that answers cannot differ.

    spark+local:///data/people.parquet              Spark inside this process, every core
    spark://master:7077?table=clinic.patients       a standalone cluster
    sc://connect:15002/;use_ssl=true?table=patients Spark Connect
    spark+session://?table=clinic.patients          the session this process already has

`table=` is a name of the catalogue; `path=` a folder or file of Parquet, or with `format=` of orc,
delta or iceberg. Options that start with `spark.` go to Spark when its driver is started here.
An address may hold a token: it is never shown.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.engines.proved import silenced

FORM = (
    "spark+local:///folder/people.parquet, spark://master:7077?table=db.people,"
    " sc://host:15002?table=db.people or spark+session://?table=db.people"
)
FORMATS = ("parquet", "orc", "delta", "iceberg")
Kind = Literal["local", "master", "connect", "session"]
KINDS: dict[str, Kind] = {
    "spark+local": "local",
    "spark": "master",
    "sc": "connect",
    "spark+session": "session",
}
UNREACHED = "Spark cannot be reached; ask again when it can"

SETTINGS = {
    # arithmetic that wraps: the optimiser regroups products, whose parts may then pass 2^63
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # rows never vanish without a word, and no file makes a question fail by its age
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # statistics leave NaN out, and these would skip rows by them
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""Of every session, whoever started the driver."""
DRIVER = {
    "spark.app.name": "sulq",
    "spark.log.level": "OFF",  # an executor's errors may quote rows
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.io.encryption.enabled": "true",  # shuffles and spills hold rows
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
}
"""Of a driver that is started here; options of the address go before."""


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """Where a table is."""

    kind: Kind
    master: str = field(repr=False)
    table: tuple[str, ...]
    """The parts of its name, or none."""
    path: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_address(url: str) -> SparkAddress:
    server, _, query = url.partition("?")
    kind = KINDS.get(server.partition("://")[0].lower())
    given = dict(parse_qsl(query, keep_blank_values=True))
    options = {name: given.pop(name) for name in list(given) if name.startswith("spark.")}
    table = given.pop("table", "")
    path = given.pop("path", "")
    form = given.pop("format", "parquet").lower()
    if kind == "local" and not path:
        path = unquote(urlsplit(server).path)
    parts = tuple(table.split(".")) if table else ()
    wrong = (
        kind is None
        or bool(given)
        or bool(parts) == bool(path)
        or not all(parts)
        or "\x00" in table + path
        or "#" in server
        or (kind in ("local", "session") and bool(urlsplit(server).netloc))
        or (kind in ("master", "connect") and not urlsplit(server).netloc)
    )
    if wrong or kind is None:
        raise InvalidQuery(f"a table of Spark is {FORM}, with one of table= and path=")
    if form not in FORMATS:
        raise InvalidQuery(f"format= is one of {', '.join(FORMATS)}")
    if options and kind in ("connect", "session"):
        raise InvalidQuery("options of Spark are set where its driver is started, not here")
    return SparkAddress(
        kind, "" if kind in ("local", "session") else server, parts, path, form, options
    )


def local_settings() -> dict[str, str]:
    """What a driver in this process needs: loopback only, and this package on its workers."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[4]),
    }


class SparkSessions:
    """Sessions for one table; a driver started here ends with the last of them."""

    _guard = threading.RLock()
    _started_here = 0

    def __init__(self, address: SparkAddress, threads: int | None) -> None:
        self.address = address
        self._threads = threads
        self._session: Any = None
        self._holds = False

    def session(self) -> tuple[Any, bool]:
        """A session that lives, and whether it is a new one."""
        with SparkSessions._guard:
            if self._session is not None and _lives(self._session):
                return self._session, False
            self._session = self._new()
            for name, value in SETTINGS.items():
                self._session.conf.set(name, value)
            return self._session, True

    def _new(self) -> Any:
        sql = _driver()
        address = self.address
        if address.kind == "connect":
            if find_spec("grpc") is None:
                raise Refused("Spark Connect needs more: pip install 'pyspark[connect]'")
            return sql.SparkSession.builder.remote(address.master).create()
        running = _running()
        if running is not None:
            if not self._fits(running.sparkContext.master):
                raise Refused(
                    "this process already uses another Spark; give spark+session:// to ask through"
                    " it, or close what uses it"
                )
            if not self._holds and SparkSessions._started_here:
                self._hold()
            return running.newSession()
        if address.kind == "session":
            raise Refused("this process has no Spark session; start one, or give spark+local://")
        if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
            raise Refused("Spark needs Java 17 or 21; install it or set JAVA_HOME")
        if address.kind == "local":  # else workers run the first python3 of the path
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.master(self._master())
        settings = DRIVER | (local_settings() if address.kind == "local" else {})
        for name, value in (settings | dict(address.options)).items():
            builder = builder.config(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in `_driver`
            started = builder.getOrCreate()
        self._hold()
        return started.newSession()

    def _hold(self) -> None:
        if not self._holds:
            self._holds = True
            SparkSessions._started_here += 1

    def _master(self) -> str:
        threads = "*" if self._threads is None else str(self._threads)
        return self.address.master or f"local[{threads}]"

    def _fits(self, master: str) -> bool:
        kind = self.address.kind
        return (
            kind == "session"
            or (kind == "local" and master.startswith("local"))
            or master == self.address.master
        )

    def close(self) -> None:
        with SparkSessions._guard:
            session, self._session = self._session, None
            last = self._holds and SparkSessions._started_here == 1
            SparkSessions._started_here -= self._holds
            self._holds = False
            if session is None or not (last or self.address.kind == "connect"):
                return
            _stop(session)


def _driver() -> Any:
    """pyspark.sql, or what to install."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas, which is not used
            import pyarrow  # noqa: F401 - what rows travel in
            from pyspark import sql
            from pyspark.logger import PySparkLogger
    except ImportError:
        raise Refused(
            "Spark needs its driver: pip install 'sulq[spark]' (and Java 17 or 21)"
        ) from None
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True  # writes errors out, which may quote rows
    return sql


def _running() -> Any:
    """The session of a live driver in this process; one that died is forgotten."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    if _runs(context):
        return SparkSession(context)
    _stop(context)
    # pyspark keeps the connection to a driver that is gone, and would go on using it
    SparkContext._active_spark_context = None
    if not _answers(SparkContext._jvm):
        SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    return None


def _stop(running: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        silenced(running.stop, lambda _: None)


def _lives(session: Any) -> bool:
    def lives() -> bool:
        context = getattr(session, "_sc", None)
        return not session.is_stopped if context is None else _runs(context)

    return silenced(lives, lambda _: False)


def _runs(context: Any) -> bool:
    return silenced(lambda: not context._jsc.sc().isStopped(), lambda _: False)


def _answers(machine: Any) -> bool:
    return silenced(lambda: bool(machine.java.lang.System.nanoTime()), lambda _: False)
