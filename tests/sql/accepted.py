"""Statements that are answered, with DuckDB's spelling of the same where it differs."""

from __future__ import annotations

from pathlib import Path

SAME = Path(__file__).with_name("accepted.sql").read_text("utf-8").splitlines()

OTHERWISE = [
    ("SELECT MEDIAN(age) FROM people", "SELECT QUANTILE_DISC(age, 0.5) FROM people"),
    ("SELECT QUANTILE(age, 0.9) AS a, QUANTILE(balance, 0.1) AS b FROM people",
     "SELECT QUANTILE_DISC(age, 0.9) AS a, QUANTILE_DISC(balance, 0.1) AS b FROM people"),
    ("SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS q FROM people",
     "SELECT QUANTILE_DISC(age, 0.25) AS q FROM people"),
    ("SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY balance DESC) AS q FROM people",
     "SELECT QUANTILE_DISC(balance, 0.75) AS q FROM people"),
    ("SELECT MEDIAN(age) FILTER (WHERE smoker) AS a FROM people WHERE member",
     "SELECT QUANTILE_DISC(age, 0.5) FILTER (WHERE smoker) AS a FROM people WHERE member"),
    ("SELECT smoker, MEDIAN(age) AS m, MAX(age) AS x FROM people GROUP BY smoker",
     "SELECT smoker, QUANTILE_DISC(age, 0.5) AS m, MAX(age) AS x FROM people GROUP BY smoker"),
    ("SELECT MIN(seen), MAX(seen), MEDIAN(seen) FROM people",
     "SELECT MIN(seen), MAX(seen), QUANTILE_DISC(seen, 0.5) FROM people"),
    ("SELECT AVG(smoker) FROM people", "SELECT AVG(CAST(smoker AS INT)) FROM people"),
    ("SELECT AVG(seen) FROM people", "SELECT AVG(seen - DATE '1970-01-01') FROM people"),
    ("SELECT SAFE_DIVIDE(SUM(age), COUNT(age)) AS a FROM people",
     "SELECT AVG(age) AS a FROM people"),
    ("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS a, DP_INTERVAL_HIGH(n) AS b FROM people"
     " WHERE member",
     "SELECT COUNT(*) AS n, COUNT(*) AS a, COUNT(*) AS b FROM people WHERE member"),
    ("SELECT DP_INTERVAL_LOW(n) AS a, COUNT(*) AS n FROM people WHERE member",
     "SELECT COUNT(*) AS a, COUNT(*) AS n FROM people WHERE member"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, max_groups_contributed=1) city,"
     " COUNT(*) FROM people GROUP BY city", "SELECT city, COUNT(*) FROM people GROUP BY city"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM people WHERE smoker",
     "SELECT COUNT(*) FROM people WHERE smoker"),
    ("SELECT COUNT(*) FROM people WHERE smoker WITHIN 50 CONFIDENCE 95",
     "SELECT COUNT(*) FROM people WHERE smoker"),
    ("SELECT COUNT(*) FROM people WHERE smoker WITHIN 50 CONFIDENCE 0.9;",
     "SELECT COUNT(*) FROM people WHERE smoker"),
    ("SELECT age, COUNT(*) FROM people GROUP BY age HAVING COUNT(*) > 0 ORDER BY age LIMIT 3"
     " WITHIN 100",
     "SELECT age, COUNT(*) FROM people GROUP BY age HAVING COUNT(*) > 0 ORDER BY age LIMIT 3"),
]  # fmt: skip

ACCEPTED = [(text, text) for text in SAME] + OTHERWISE
