-- postgres
SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) t WHERE n > 88
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 88

-- postgres
WITH counted AS (SELECT city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY 1) SELECT city, a * 2 AS twice, CASE WHEN n > 88 THEN 'large' ELSE 'small' END AS size FROM counted WHERE city IS NOT NULL ORDER BY a
-- reads
SELECT city, AVG(age) * 2 AS twice, CASE WHEN COUNT(*) > 88 THEN 'large' ELSE 'small' END AS size FROM people WHERE city IS NOT NULL GROUP BY city

-- bigquery
WITH t AS (SELECT grade, smoker, COUNT(*) AS n FROM people GROUP BY grade, smoker) SELECT * FROM t ORDER BY n DESC, grade, smoker LIMIT 3
-- reads
SELECT grade, smoker, COUNT(*) AS n FROM people GROUP BY grade, smoker ORDER BY n DESC, grade, smoker LIMIT 3

-- postgres
SELECT AVG(n) AS mean, MAX(n) AS most, MIN(n) AS least, SUM(n) AS total, COUNT(*) AS groups FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) t
-- reads
SELECT AVG(n) AS mean, MAX(n) AS most, MIN(n) AS least, SUM(n) AS total, COUNT(*) AS groups FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) t

-- postgres
SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city
-- reads
SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city

-- snowflake
SELECT city, COUNT(*) AS n FROM people GROUP BY city QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 2
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 2

-- postgres
SELECT city, n FROM (SELECT city, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city) t WHERE r <= 2
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 2

-- duckdb
SELECT date_trunc('month', seen) AS m, count(*) AS n, sum(count(*)) OVER (ORDER BY date_trunc('month', seen)) AS running FROM people WHERE seen IS NOT NULL GROUP BY m
-- reads
SELECT date_trunc('month', seen) AS m, count(*) AS n, sum(count(*)) OVER (ORDER BY date_trunc('month', seen)) AS running FROM people WHERE seen IS NOT NULL GROUP BY m

-- tsql
SELECT MONTH(seen) AS m, COUNT(*) AS n, LAG(COUNT(*), 1) OVER (ORDER BY MONTH(seen)) AS before FROM people WHERE seen >= '2024-01-01' GROUP BY MONTH(seen)
-- reads
SELECT MONTH(seen) AS m, COUNT(*) AS n, LAG(COUNT(*), 1) OVER (ORDER BY MONTH(seen)) AS before FROM people WHERE seen >= '2024-01-01' GROUP BY m

-- postgres
SELECT city, smoker, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY city) AS share FROM people GROUP BY city, smoker
-- reads
SELECT city, smoker, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY city) AS share FROM people GROUP BY city, smoker

-- snowflake
SELECT city, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM people GROUP BY city
-- reads
SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY city

-- spark
SELECT grade, count(*) AS n, avg(count(*)) OVER () AS mean, count(*) - lead(count(*)) OVER (ORDER BY grade) AS step FROM people WHERE grade IS NOT NULL GROUP BY grade
-- reads
SELECT grade, count(*) AS n, avg(count(*)) OVER () AS mean, count(*) - lead(count(*)) OVER (ORDER BY grade) AS step FROM people WHERE grade IS NOT NULL GROUP BY grade

-- mysql
SELECT t.city, t.n FROM (SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city) AS t WHERE t.n BETWEEN 10 AND 30 ORDER BY t.n DESC
-- reads
SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city HAVING COUNT(*) BETWEEN 10 AND 30

-- postgres
WITH old AS (SELECT * FROM people WHERE age > 40), counted AS (SELECT city, COUNT(*) AS n FROM old GROUP BY city) SELECT city, n, n * 100.0 / SUM(n) OVER () AS percent FROM counted
-- reads
SELECT city, COUNT(*) AS n, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent FROM people WHERE age > 40 GROUP BY city

-- bigquery
WITH a AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city), b AS (SELECT city, n, RANK() OVER (ORDER BY n DESC) AS r FROM a) SELECT city, r FROM b WHERE r < 3
-- reads
SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city QUALIFY r < 3

-- postgres
SELECT city, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM people) AS percent FROM people GROUP BY city
-- reads
SELECT city, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM people) AS percent FROM people GROUP BY city

-- tsql
SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people WHERE member = 1) AS ratio FROM people WHERE smoker = 1
-- reads
SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people WHERE member) AS ratio FROM people WHERE smoker

-- bigquery
SELECT COUNT(DISTINCT city) AS cities FROM people WHERE city <> 'Oslo'
-- reads
SELECT MAX(n) FROM (SELECT COUNT(DISTINCT city) AS n FROM people WHERE city <> 'Oslo')

-- snowflake
SELECT APPROX_COUNT_DISTINCT(grade) FROM people
-- reads
SELECT COUNT(DISTINCT grade) FROM people
