-- postgres
SELECT date_trunc('quarter', seen)::date AS q, count(*), avg(income)::numeric(10,2) FROM people GROUP BY 1 ORDER BY 1
-- reads
SELECT DATE_TRUNC('quarter', seen)::DATE, COUNT(*), ROUND(AVG(income), 2) FROM people GROUP BY 1

-- postgres
SELECT to_char(seen, 'Mon YYYY') AS month, count(*) FROM people GROUP BY 1
-- reads
SELECT STRFTIME(seen, '%b %Y'), COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT to_char(seen, 'Day') AS d, count(*) FROM people WHERE seen IS NOT NULL GROUP BY 1
-- reads
SELECT STRFTIME(seen, '%A'), COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1

-- postgres
SELECT COUNT(*) FROM people WHERE seen >= date '2024-01-15' - interval '2 weeks' AND seen < date '2024-01-15'
-- reads
SELECT COUNT(*) FROM people WHERE seen >= DATE '2024-01-01' AND seen < DATE '2024-01-15'

-- postgres
SELECT COUNT(*) FROM people WHERE seen >= TO_DATE('2024-01-02', 'YYYY-MM-DD') AND seen < TO_DATE('15.02.2024', 'DD.MM.YYYY')
-- reads
SELECT COUNT(*) FROM people WHERE seen >= DATE '2024-01-02' AND seen < DATE '2024-02-15'

-- postgres
SELECT COUNT(*) FROM people WHERE visited >= TO_TIMESTAMP('2024-01-15 06:30:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
-- reads
SELECT COUNT(*) FROM people WHERE visited >= TIMESTAMP '2024-01-15 06:30:00'

-- postgres
SELECT COUNT(*) FROM people WHERE visited::date = '2024-01-15'
-- reads
SELECT COUNT(*) FROM people WHERE visited::DATE = DATE '2024-01-15'

-- postgres
SELECT COUNT(*) FILTER (WHERE EXTRACT(DOW FROM visited) IN (0, 6)) * 100.0 / COUNT(*) AS weekend_pct FROM people

-- postgres
SELECT AVG(DATE '2024-03-10' - seen) AS days_ago FROM people
-- reads
SELECT AVG(DATE '2024-03-10' - seen) FROM people

-- postgres
SELECT AVG(EXTRACT(EPOCH FROM (TIMESTAMP '2024-03-10 00:00:00' - visited)) / 86400) AS days_ago FROM people
-- reads
SELECT AVG(EPOCH(TIMESTAMP '2024-03-10 00:00:00' - visited) / 86400) FROM people

-- postgres
SELECT CASE WHEN EXTRACT(HOUR FROM visited) < 12 THEN 'morning' WHEN EXTRACT(HOUR FROM visited) < 18 THEN 'afternoon' ELSE 'evening' END AS part, COUNT(*) FROM people WHERE visited IS NOT NULL GROUP BY 1

-- postgres
SELECT EXTRACT(YEAR FROM seen) * 100 + EXTRACT(MONTH FROM seen) AS ym, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT YEAR(seen) * 100 + MONTH(seen), COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT COUNT(*) FROM people WHERE (EXTRACT(MONTH FROM seen), EXTRACT(YEAR FROM seen)) = (1, 2024)
-- reads
SELECT COUNT(*) FROM people WHERE MONTH(seen) = 1 AND YEAR(seen) = 2024

-- bigquery
SELECT EXTRACT(DAYOFWEEK FROM seen) AS dow, COUNT(*) AS n FROM people WHERE seen IS NOT NULL GROUP BY dow ORDER BY dow
-- reads
SELECT DAYOFWEEK(seen) + 1, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1

-- bigquery
SELECT FORMAT_DATE('%Y-%m', seen) AS month, COUNT(*) AS n FROM `proj.data.people` GROUP BY month
-- reads
SELECT STRFTIME(seen, '%Y-%m'), COUNT(*) FROM people GROUP BY 1

-- bigquery
SELECT DATE_DIFF(DATE '2024-03-10', seen, WEEK) AS weeks, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY weeks
-- reads
SELECT (DATE '2024-03-10' + 1 - DATE '2000-01-03') // 7 - (seen + 1 - DATE '2000-01-03') // 7, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1

-- bigquery
SELECT COUNTIF(seen >= DATE_SUB(DATE '2024-03-10', INTERVAL 30 DAY)) AS recent FROM people
-- reads
SELECT COUNT(*) FILTER (seen >= DATE '2024-02-09') FROM people

-- snowflake
SELECT DATEDIFF('day', seen, '2024-03-10'::DATE) AS d, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT DATE '2024-03-10' - seen, COUNT(*) FROM people GROUP BY 1

-- snowflake
SELECT MONTHNAME(seen) AS m, COUNT(*) FROM people WHERE YEAR(seen) = 2024 GROUP BY ALL
-- reads
SELECT STRFTIME(seen, '%b'), COUNT(*) FROM people WHERE YEAR(seen) = 2024 GROUP BY ALL

-- snowflake
SELECT COUNT(*) FROM people WHERE seen > DATEADD('month', -2, TO_DATE('2024-03-01'))
-- reads
SELECT COUNT(*) FROM people WHERE seen > DATE '2024-01-01'

-- snowflake
SELECT LAST_DAY(seen) AS m, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT LAST_DAY(seen), COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT DATE_FORMAT(seen, '%Y-%m') AS ym, COUNT(*) FROM people GROUP BY ym HAVING COUNT(*) > 20
-- reads
SELECT STRFTIME(seen, '%Y-%m'), COUNT(*) FROM people GROUP BY 1 HAVING COUNT(*) > 20

-- mysql
SELECT WEEKDAY(seen) AS d, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY d
-- reads
SELECT ISODOW(seen) - 1, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1

-- mysql
SELECT COUNT(*) FROM people WHERE DATEDIFF('2024-03-10', seen) <= 30
-- reads
SELECT COUNT(*) FROM people WHERE DATE '2024-03-10' - seen <= 30

-- mysql
SELECT TIMESTAMPDIFF(DAY, seen, '2024-03-10') DIV 7 AS weeks, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY weeks
-- reads
SELECT (DATE '2024-03-10' - seen) // 7, COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1

-- mysql
SELECT COUNT(*) FROM people WHERE seen BETWEEN '2024-01-01' AND LAST_DAY('2024-02-01')
-- reads
SELECT COUNT(*) FROM people WHERE seen BETWEEN DATE '2024-01-01' AND DATE '2024-02-29'

-- mysql
SELECT EXTRACT(YEAR_MONTH FROM seen) AS ym, COUNT(*) FROM people GROUP BY ym
-- reads
SELECT YEAR(seen) * 100 + MONTH(seen), COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT QUARTER(seen) AS q, AVG(income) FROM people GROUP BY q
-- reads
SELECT QUARTER(seen), AVG(income) FROM people GROUP BY 1

-- tsql
SELECT FORMAT(seen, 'yyyy-MM') AS ym, COUNT(*) AS n FROM people GROUP BY FORMAT(seen, 'yyyy-MM')
-- reads
SELECT STRFTIME(seen, '%Y-%m'), COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT DATENAME(month, seen) AS m, COUNT(*) AS n FROM people GROUP BY DATENAME(month, seen)
-- reads
SELECT MONTHNAME(seen), COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT EOMONTH(seen) AS m, COUNT(*) FROM people GROUP BY EOMONTH(seen)
-- reads
SELECT LAST_DAY(seen), COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT CONVERT(date, visited) AS d, COUNT(*) AS n FROM dbo.people WHERE visited >= '20240101' AND visited < '20240108' GROUP BY CONVERT(date, visited)
-- reads
SELECT visited::DATE, COUNT(*) FROM people WHERE visited >= TIMESTAMP '2024-01-01' AND visited < TIMESTAMP '2024-01-08' GROUP BY 1

-- tsql
SELECT DATEFROMPARTS(YEAR(seen), MONTH(seen), 1) AS m, COUNT(*) FROM people GROUP BY DATEFROMPARTS(YEAR(seen), MONTH(seen), 1)
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT DATETRUNC(month, seen) AS m, COUNT(*) FROM people GROUP BY DATETRUNC(month, seen)
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, COUNT(*) FROM people GROUP BY 1

-- spark
SELECT trunc(seen, 'MM') AS m, count(*) FROM people GROUP BY trunc(seen, 'MM')
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, COUNT(*) FROM people GROUP BY 1

-- spark
SELECT date_format(seen, 'yyyy-MM') AS m, count(*) FROM people GROUP BY 1
-- reads
SELECT STRFTIME(seen, '%Y-%m'), COUNT(*) FROM people GROUP BY 1

-- spark
SELECT count(*) FROM people WHERE seen > date_add(to_date('2024-01-01'), 10) AND year(seen) = 2024
-- reads
SELECT COUNT(*) FROM people WHERE seen > DATE '2024-01-11'

-- spark
SELECT weekofyear(seen) AS w, count(*) FROM people GROUP BY weekofyear(seen)
-- reads
SELECT WEEKOFYEAR(seen), COUNT(*) FROM people GROUP BY 1

-- spark
SELECT months_between(date'2024-03-01', trunc(seen, 'MM')) AS age_months, count(*) FROM people WHERE seen IS NOT NULL GROUP BY 1
-- reads
SELECT DATE_DIFF('month', seen, DATE '2024-03-01'), COUNT(*) FROM people WHERE seen IS NOT NULL GROUP BY 1

-- duckdb
SELECT strftime(seen, '%Y-%m') AS m, count(*) FROM people GROUP BY ALL ORDER BY ALL

-- duckdb
SELECT seen.month() AS m, count() FROM people GROUP BY m
-- reads
SELECT MONTH(seen), COUNT(*) FROM people GROUP BY 1

-- duckdb
SELECT datediff('month', seen, DATE '2024-03-10') AS d, count(*) FROM people GROUP BY d

-- duckdb
SELECT time_bucket(INTERVAL '7 days', seen) AS w, count(*) FROM people GROUP BY w
-- reads
SELECT time_bucket(INTERVAL '7 days', seen)::DATE, COUNT(*) FROM people GROUP BY 1

-- duckdb
SELECT count(*) FROM people WHERE month(seen) = 1 AND dayofweek(seen) NOT IN (0, 6)
