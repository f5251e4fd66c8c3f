"""The SQLAlchemy dialect over `sulq.dbapi`: `sulq://host/table`, with SQLAlchemy 1.4 and 2.x.

    engine = create_engine("sulq://:sulq_...@host/people?credits=20&purpose=dashboard")
    pandas.read_sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city", engine)

The password is the token (else SULQ_TOKEN). `sulq+http://` speaks HTTP in the clear, which the
client allows to this machine alone. Tables, columns and types are those of the public schema.
"""

from __future__ import annotations

import datetime
from types import ModuleType
from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.engine import default
from sqlalchemy.engine.url import URL

from sulq import dbapi
from sulq.kernel.schema.columns import Category, Column, Flag, Number, Schema
from sulq.kernel.schema.study import Study

TRUTHS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


class Day(types.Date):
    """A day; what is grouped by a day may come as the time of its beginning."""

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return lambda day: day.date() if isinstance(day, datetime.datetime) else day


class SulqDialect(default.DefaultDialect):
    """SELECT over one table; nothing is written, and a rollback takes no charge back."""

    name = "sulq"
    driver = "https"
    scheme = "https"
    default_paramstyle = "qmark"
    supports_alter = False
    supports_comments = False
    supports_native_boolean = True
    supports_native_decimal = False
    supports_sane_rowcount = False
    supports_statement_cache = True
    colspecs = {types.Date: Day}  # noqa: RUF012 - as the base class has it

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    @classmethod
    def dbapi(cls) -> ModuleType:  # type: ignore[override]
        """Return the module, as SQLAlchemy 1.4 asks for it."""
        return dbapi

    def create_connect_args(self, url: URL) -> Any:
        """Return the address of the table, and the options of `sulq.dbapi.connect`."""
        if not url.host or not url.database:
            raise exc.ArgumentError(
                f"got {url.render_as_string()!r:.80}; want sulq://host/table, or"
                " sulq+http://127.0.0.1:8765/table"
            )
        host = f"[{url.host}]" if ":" in url.host else url.host
        where = host if url.port is None else f"{host}:{url.port}"
        options: dict[str, Any] = {name: _option(name, text) for name, text in url.query.items()}
        if url.password:
            options["token"] = str(url.password)
        return [f"{self.scheme}://{where}/{url.database}"], options

    # --- transactions: there are none -----------------------------------------------------------

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: a pool rolls back whenever a connection is given back."""
        dbapi_connection.commit()

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Return whether the connection is open: it holds no socket that could be stale."""
        dbapi_connection.check_open()
        return True

    def _check_unicode_returns(self, connection: Any, *_: Any) -> bool:
        """Return True without a test statement, which SQLAlchemy 1.4 would send."""
        return True

    def _check_max_identifier_length(self, connection: Any) -> None:
        """Leave the length of names as it is."""

    # --- reflection: from the public schema -----------------------------------------------------

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return (1,)

    def _get_default_schema_name(self, connection: Any) -> str:
        return "public"

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        return ["public"]

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        remote = _remote(connection)
        return list(remote.tables or [remote.name]) if schema in (None, "public") else []

    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return table_name in self.get_table_names(connection, schema)

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)
        return [
            {"name": column.name, "type": type_of(column), "nullable": True, "default": None}
            for column in _columns(_remote(connection).schema, table_name)
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, *_: Any, **kw: Any) -> Any:
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, *_: Any, **kw: Any) -> Any:
        return []

    def get_indexes(self, connection: Any, table_name: str, *_: Any, **kw: Any) -> Any:
        return []

    def get_unique_constraints(self, connection: Any, table_name: str, *_: Any, **kw: Any) -> Any:
        return []

    def get_check_constraints(self, connection: Any, table_name: str, *_: Any, **kw: Any) -> Any:
        return []

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []


class SulqHttpDialect(SulqDialect):
    """The same without TLS: `sulq+http://127.0.0.1:8765/people`."""

    driver = "http"
    scheme = "http"
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi


def type_of(column: Column) -> types.TypeEngine[Any]:
    """Return the SQLAlchemy type of a declared column."""
    match column:
        case Flag():
            return types.Boolean()
        case Category(integers=whole):
            return types.Integer() if whole else types.String()
        case Number(kind="date"):
            return Day()
        case Number(kind="datetime"):
            return types.DateTime()
    whole = column.lattice is not None and column.lattice.denominator == 1
    return types.Integer() if whole else types.Float()


def _remote(connection: Any) -> Any:
    return connection.connection.dbapi_connection.remote


def _columns(schema: Schema, table: str) -> tuple[Column, ...]:
    """The columns that a table holds itself; those of a study are joined by the person column."""
    if isinstance(schema, Study) and table != schema.name:
        return schema.table(table).columns
    return schema.columns


def _option(name: str, text: Any) -> Any:
    """Return an option of the address as `connect` takes it."""
    match name:
        case "credits" | "confidence" | "timeout":
            try:
                return float(text)
            except ValueError:
                raise exc.ArgumentError(f"{name}={text!r:.40}: want a number") from None
        case "intervals" | "insecure":
            if str(text).lower() not in TRUTHS:
                raise exc.ArgumentError(f"{name}={text!r:.40}: want true or false")
            return TRUTHS[str(text).lower()]
        case "purpose" | "verify":
            return text
    raise exc.ArgumentError(
        f"got the option {name!r:.40}; there are credits, purpose, intervals, confidence, timeout,"
        " verify and insecure"
    )
