"""Superset's own code, without its web pages: connect, list, make a dataset, draw charts.

    python superset_charts.py <folder> <address of the database>

Run by test_environments.py in the environment of a Superset. Prints one JSON object.
"""

import datetime
import json
import logging
import os
import sys
from pathlib import Path

folder, address = Path(sys.argv[1]), sys.argv[2]
CACHES = "CACHE_CONFIG DATA_CACHE_CONFIG FILTER_STATE_CACHE_CONFIG EXPLORE_FORM_DATA_CACHE_CONFIG"
config = folder / "superset_config.py"
config.write_text(
    f"SQLALCHEMY_DATABASE_URI = 'sqlite:///{folder}/superset.db'\nSECRET_KEY = '{'x' * 40}'\n"
    + "".join(f"{name} = {{'CACHE_TYPE': 'NullCache'}}\n" for name in CACHES.split())
)
os.environ |= {"SUPERSET_HOME": str(folder), "SUPERSET_CONFIG_PATH": str(config)}
logging.disable(logging.CRITICAL)

from superset.app import create_app  # noqa: E402

SINCE, UNTIL = datetime.datetime(2021, 1, 1), datetime.datetime(2023, 1, 1)
YEAR = {"granularity": "day", "is_timeseries": True, "from_dttm": SINCE, "to_dttm": UNTIL}
AVERAGE = {"expressionType": "SIMPLE", "column": {"column_name": "income"}, "aggregate": "AVG"}
SHARE = {"expressionType": "SQL", "sqlExpression": "SUM(CASE WHEN smoker THEN 1 ELSE 0 END)"}
CHARTS = [
    {},
    {"columns": ["blood"]},
    {"columns": ["blood", "smoker"], "orderby": [("count", False)]},
    {"columns": ["blood"], "metrics": [AVERAGE | {"label": "pay"}]},
    {"metrics": [SHARE | {"label": "smokers"}]},
    {
        "filter": [
            {"col": "age", "op": ">", "val": 30},
            {"col": "city", "op": "IN", "val": ["Oslo"]},
        ]
    },
    {"filter": [{"col": "blood", "op": "==", "val": "A"}]},
    {"filter": [{"col": "blood", "op": "NOT IN", "val": ["A", "B"]}], "columns": ["smoker"]},
    {"filter": [{"col": "income", "op": "IS NOT NULL", "val": None}]},
    {"columns": ["city"], "metrics": []},
    {**YEAR, "extras": {"time_grain_sqla": "P1Y"}},
    {**YEAR, "columns": ["blood"], "extras": {"time_grain_sqla": "P3M"}},
    {**YEAR, "granularity": "seen", "extras": {"time_grain_sqla": "P1Y"}},
    {"columns": ["blood"], "extras": {"having": "COUNT(*) > 100"}},
    {"columns": ["age", "blood"], "metrics": None},
]
EMPTY = {"granularity": None, "from_dttm": None, "to_dttm": None, "groupby": [], "filter": []}
EMPTY |= {"metrics": ["count"], "is_timeseries": False, "columns": [], "row_limit": 1000}
EMPTY |= {"extras": {}, "orderby": []}

with create_app().app_context():
    from flask_appbuilder import Model
    from superset.connectors.sqla.models import SqlaTable
    from superset.extensions import db
    from superset.models.core import Database
    from superset.sql.parse import Table

    Model.metadata.create_all(db.engine)
    base = Database(database_name="sulq")
    base.set_sqlalchemy_uri(address)
    db.session.add(base)
    db.session.commit()
    tables = base.get_all_table_names_in_schema(catalog=None, schema="public")
    listed = base.get_columns(Table("people", "public", None))
    dataset = SqlaTable(table_name="people", schema="public", database=base)
    db.session.add(dataset)
    db.session.flush()
    dataset.fetch_metadata()
    db.session.commit()
    drawn = [dataset.query(EMPTY | chart) for chart in CHARTS]
    told = {
        "tables": sorted(table[0] for table in tables),
        "columns": {column["column_name"]: str(column["type"]) for column in listed},
        "times": [column.column_name for column in dataset.columns if column.is_dttm],
        "values": [str(value) for value in dataset.values_for_column("blood")],
        "rows": [len(chart.df) for chart in drawn],
        "failed": [chart.error_message for chart in drawn if chart.error_message],
    }
print(json.dumps(told))
