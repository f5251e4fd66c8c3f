-- postgres
SELECT COUNT(*) FROM people WHERE seen >= '2024-01-01' AND seen < '2024-02-01'
-- reads
SELECT COUNT(*) FROM people WHERE seen >= DATE '2024-01-01' AND seen < DATE '2024-02-01'

-- postgres
SELECT COUNT(*) FROM people WHERE seen BETWEEN '2023-12-24' AND '2024-01-06' OR seen IN ('2024-02-01', '2024-02-29')
-- reads
SELECT COUNT(*) FROM people WHERE seen BETWEEN DATE '2023-12-24' AND DATE '2024-01-06' OR seen IN (DATE '2024-02-01', DATE '2024-02-29')

-- postgres
SELECT CAST(DATE_TRUNC('month', "people"."seen") AS date) AS m, COUNT(*) FROM people GROUP BY CAST(DATE_TRUNC('month', "people"."seen") AS date) ORDER BY m
-- reads
SELECT DATE_TRUNC('month', seen)::DATE AS m, COUNT(*) FROM people GROUP BY 1 ORDER BY m

-- postgres
SELECT EXTRACT(MONTH FROM seen) AS m, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1
-- reads
SELECT EXTRACT(MONTH FROM seen) AS m, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1

-- postgres
SELECT DATE_PART('dow', seen) AS d, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1
-- reads
SELECT DATE_PART('dow', seen) AS d, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1

-- postgres
SELECT EXTRACT(ISODOW FROM seen) AS d, AVG(balance) FROM people GROUP BY d
-- reads
SELECT EXTRACT(ISODOW FROM seen) AS d, AVG(balance) FROM people GROUP BY d

-- postgres
SELECT TO_CHAR(seen, 'YYYY-MM') AS m, COUNT(*) FROM people GROUP BY 1 ORDER BY 1
-- reads
SELECT STRFTIME(seen, '%Y-%m') AS m, COUNT(*) FROM people GROUP BY 1 ORDER BY 1

-- postgres
SELECT COUNT(*) FROM people WHERE EXTRACT(YEAR FROM seen) = 2024 AND EXTRACT(MONTH FROM seen) IN (1, 2)
-- reads
SELECT COUNT(*) FROM people WHERE EXTRACT(YEAR FROM seen) = 2024 AND EXTRACT(MONTH FROM seen) IN (1, 2)

-- postgres
SELECT EXTRACT(HOUR FROM visited) AS h, COUNT(*) FROM people GROUP BY h ORDER BY h
-- reads
SELECT EXTRACT(HOUR FROM visited) AS h, COUNT(*) FROM people GROUP BY h ORDER BY h

-- snowflake
SELECT DATE_TRUNC(MONTH, seen) AS m, COUNT(*) FROM people GROUP BY m
-- reads
SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) FROM people GROUP BY m

-- snowflake
SELECT DAYOFWEEK(seen) AS d, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT DAYOFWEEK(seen) AS d, COUNT(*) FROM people GROUP BY 1

-- snowflake
SELECT DAYNAME(seen) AS d, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT LEFT(DAYNAME(seen), 3) AS d, COUNT(*) FROM people GROUP BY 1

-- snowflake
SELECT COUNT(*) FROM people WHERE YEAR(seen) = 2024 AND visited::date >= '2024-01-15'
-- reads
SELECT COUNT(*) FROM people WHERE YEAR(seen) = 2024 AND visited::DATE >= DATE '2024-01-15'

-- bigquery
SELECT DATE_TRUNC(seen, MONTH) AS month, COUNT(*) AS n FROM people GROUP BY month
-- reads
SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) FROM people GROUP BY m

-- bigquery
SELECT EXTRACT(DAYOFWEEK FROM seen) AS d, COUNT(*) FROM people GROUP BY d
-- reads
SELECT DAYOFWEEK(seen) + 1 AS d, COUNT(*) FROM people GROUP BY d

-- bigquery
SELECT FORMAT_DATE('%Y-%m', seen) AS m, COUNT(*) FROM people GROUP BY m
-- reads
SELECT STRFTIME(seen, '%Y-%m') AS m, COUNT(*) FROM people GROUP BY m

-- bigquery
SELECT DATE_TRUNC(seen, WEEK) AS w, COUNT(*) FROM people GROUP BY w
-- reads
SELECT (seen - DAYOFWEEK(seen)::INT)::DATE AS w, COUNT(*) FROM people GROUP BY w

-- bigquery
SELECT COUNT(*) FROM people WHERE seen >= DATE_SUB(DATE '2024-03-01', INTERVAL 30 DAY)
-- reads
SELECT COUNT(*) FROM people WHERE seen >= DATE '2024-01-31'

-- duckdb
SELECT month(seen) AS m, dayofweek(seen) AS d, count(*) FROM people GROUP BY ALL
-- reads
SELECT month(seen) AS m, dayofweek(seen) AS d, count(*) FROM people GROUP BY ALL

-- duckdb
SELECT strftime(seen, '%Y') AS y, count(*) FROM people WHERE seen > DATE '2023-12-01' + INTERVAL 1 MONTH GROUP BY y
-- reads
SELECT strftime(seen, '%Y') AS y, count(*) FROM people WHERE seen > DATE '2024-01-01' GROUP BY y

-- duckdb
SELECT date_part('week', seen) AS w, count(*) FROM people GROUP BY 1
-- reads
SELECT date_part('week', seen) AS w, count(*) FROM people GROUP BY 1

-- duckdb
SELECT count(*) FROM people WHERE date_trunc('hour', visited) >= '2023-12-01 12:00' AND visited < '2023-12-05'
-- reads
SELECT count(*) FROM people WHERE date_trunc('hour', visited) >= '2023-12-01 12:00' AND visited < '2023-12-05'

-- mysql
SELECT DATE_FORMAT(seen, '%Y-%m') AS m, COUNT(*) FROM people GROUP BY m
-- reads
SELECT STRFTIME(seen, '%Y-%m') AS m, COUNT(*) FROM people GROUP BY m

-- mysql
SELECT MONTH(seen) AS m, SUM(balance) FROM people WHERE YEAR(seen) = 2024 GROUP BY MONTH(seen)
-- reads
SELECT MONTH(seen) AS m, SUM(balance) FROM people WHERE YEAR(seen) = 2024 GROUP BY m

-- mysql
SELECT WEEKDAY(seen) AS d, COUNT(*) FROM people GROUP BY d
-- reads
SELECT ISODOW(seen) - 1 AS d, COUNT(*) FROM people GROUP BY d

-- mysql
SELECT MONTHNAME(seen) AS m, COUNT(*) FROM people GROUP BY m
-- reads
SELECT MONTHNAME(seen) AS m, COUNT(*) FROM people GROUP BY m

-- mysql
SELECT HOUR(visited) AS h, COUNT(*) FROM people WHERE HOUR(visited) BETWEEN 9 AND 16 GROUP BY h
-- reads
SELECT HOUR(visited) AS h, COUNT(*) FROM people WHERE HOUR(visited) BETWEEN 9 AND 16 GROUP BY h

-- tsql
SELECT DATEPART(year, seen) AS y, DATEPART(month, seen) AS m, COUNT(*) FROM people GROUP BY DATEPART(year, seen), DATEPART(month, seen)
-- reads
SELECT YEAR(seen) AS y, MONTH(seen) AS m, COUNT(*) FROM people GROUP BY ALL

-- tsql
SELECT DATEPART(weekday, seen) AS d, COUNT(*) FROM people GROUP BY DATEPART(weekday, seen)
-- reads
SELECT DAYOFWEEK(seen) + 1 AS d, COUNT(*) FROM people GROUP BY d

-- tsql
SELECT CAST(visited AS date) AS d, COUNT(*) FROM people WHERE visited < '2023-12-01' GROUP BY CAST(visited AS date)
-- reads
SELECT visited::DATE AS d, COUNT(*) FROM people WHERE visited < DATE '2023-12-01' GROUP BY d

-- tsql
SELECT COUNT(*) FROM people WHERE seen >= DATEADD(day, -30, '2024-03-01')
-- reads
SELECT COUNT(*) FROM people WHERE seen >= DATE '2024-01-31'

-- spark
SELECT date_format(seen, 'yyyy-MM') AS m, count(*) FROM people GROUP BY m
-- reads
SELECT STRFTIME(seen, '%Y-%m') AS m, COUNT(*) FROM people GROUP BY m

-- spark
SELECT trunc(seen, 'MM') AS m, dayofweek(seen) AS d, count(*) FROM people GROUP BY m, d
-- reads
SELECT DATE_TRUNC('month', seen)::DATE AS m, DAYOFWEEK(seen) + 1 AS d, COUNT(*) FROM people GROUP BY ALL

-- spark
SELECT quarter(seen) AS q, count(*) FROM people WHERE seen >= date'2024-01-01' GROUP BY q
-- reads
SELECT quarter(seen) AS q, count(*) FROM people WHERE seen >= DATE '2024-01-01' GROUP BY q

-- postgres
SELECT AVG(EXTRACT(DAY FROM seen)) AS d, SUM(EXTRACT(MONTH FROM seen)) AS m FROM people
-- reads
SELECT AVG(DAY(seen)) AS d, SUM(MONTH(seen)) AS m FROM people

-- postgres
SELECT COUNT(*) FROM people WHERE DATE_TRUNC('month', seen) = '2024-01-01'
-- reads
SELECT COUNT(*) FROM people WHERE DATE_TRUNC('month', seen) = DATE '2024-01-01'

-- duckdb
SELECT date_diff('day', seen, DATE '2024-03-10') AS d, count(*) FROM people WHERE seen > '2024-03-01' GROUP BY d
-- reads
SELECT date_diff('day', seen, DATE '2024-03-10') AS d, count(*) FROM people WHERE seen > '2024-03-01' GROUP BY d

-- mysql
SELECT AVG(TIMESTAMPDIFF(DAY, seen, '2024-03-10')) AS d FROM people
-- reads
SELECT AVG(DATE '2024-03-10' - seen) AS d FROM people

-- snowflake
SELECT TO_VARCHAR(seen, 'YYYY-MM') AS m, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT STRFTIME(seen, '%Y-%m') AS m, COUNT(*) FROM people GROUP BY 1

-- bigquery
SELECT COUNT(*) FROM people WHERE TIMESTAMP_TRUNC(visited, DAY) = TIMESTAMP '2024-01-05'
-- reads
SELECT COUNT(*) FROM people WHERE visited::DATE = DATE '2024-01-05'

-- postgres
SELECT EXTRACT(MONTH FROM NULLIF(seen, DATE '2024-01-01')) AS m, EXTRACT(HOUR FROM seen) AS h, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1, 2
-- reads
SELECT MONTH(NULLIF(seen, DATE '2024-01-01')) AS m, CASE WHEN seen IS NOT NULL THEN 0 END AS h, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1, 2
