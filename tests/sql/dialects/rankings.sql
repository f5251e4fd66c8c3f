-- postgres
SELECT city, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM people GROUP BY city ORDER BY n DESC

-- postgres
SELECT city, grade, COUNT(*) AS n, COUNT(*)::float / SUM(COUNT(*)) OVER (PARTITION BY city) AS share FROM people GROUP BY city, grade ORDER BY city, grade
-- reads
SELECT city, grade, COUNT(*), COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY city) FROM people GROUP BY 1, 2

-- postgres
SELECT m, n, n - LAG(n) OVER (ORDER BY m) AS change FROM (SELECT DATE_TRUNC('month', seen)::date AS m, COUNT(*) AS n FROM people WHERE seen IS NOT NULL GROUP BY 1) t ORDER BY m

-- postgres
WITH monthly AS (SELECT date_trunc('month', seen)::date AS month, sum(income) AS total FROM people WHERE seen IS NOT NULL GROUP BY 1) SELECT month, total, sum(total) OVER (ORDER BY month ROWS UNBOUNDED PRECEDING) AS running, 100 * (total / lag(total) OVER (ORDER BY month) - 1) AS growth FROM monthly ORDER BY month

-- postgres
SELECT * FROM (SELECT city, grade, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY city ORDER BY COUNT(*) DESC, grade) AS rn FROM people WHERE city IS NOT NULL AND grade IS NOT NULL GROUP BY city, grade) x WHERE rn = 1
-- reads
SELECT city, grade, COUNT(*) AS n, 1 AS rn FROM people WHERE city IS NOT NULL AND grade IS NOT NULL GROUP BY city, grade QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY COUNT(*) DESC, grade) = 1

-- postgres
SELECT city, AVG(income) AS m, AVG(income) - (SELECT AVG(income) FROM people) AS gap FROM people GROUP BY city

-- postgres
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > (SELECT COUNT(*) / 5 FROM people)
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 80

-- postgres
SELECT city, NTILE(2) OVER (ORDER BY COUNT(*) DESC, city) AS half, COUNT(*) AS n FROM people GROUP BY city

-- postgres
SELECT city, COUNT(*) AS n, PERCENT_RANK() OVER (ORDER BY COUNT(*)) AS pr, CUME_DIST() OVER (ORDER BY COUNT(*)) AS cd FROM people GROUP BY city

-- postgres
SELECT d, n, AVG(n) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS smooth FROM (SELECT MONTH(seen) AS d, COUNT(*) AS n FROM people WHERE seen IS NOT NULL GROUP BY 1) s

-- postgres
SELECT city, COUNT(*) AS n, FIRST_VALUE(city) OVER (ORDER BY COUNT(*) DESC, city) AS top FROM people GROUP BY city

-- postgres
SELECT city, n, MAX(n) OVER () - n AS behind FROM (SELECT city, COUNT(*) n FROM people GROUP BY city) q

-- postgres
SELECT city, SUM(COUNT(*)) OVER w AS running FROM people WHERE city IS NOT NULL GROUP BY city WINDOW w AS (ORDER BY city)

-- snowflake
SELECT city, RATIO_TO_REPORT(COUNT(*)) OVER () AS share FROM people GROUP BY city
-- reads
SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () FROM people GROUP BY city

-- snowflake
SELECT city, grade, COUNT(*) AS n FROM people GROUP BY 1, 2 QUALIFY RANK() OVER (PARTITION BY grade ORDER BY n DESC) = 1

-- snowflake
SELECT TOP 2 city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2

-- bigquery
SELECT city, n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) WHERE n > 10
-- reads
SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) FROM people GROUP BY city HAVING COUNT(*) > 10

-- tsql
WITH t AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT TOP (2) WITH TIES city, n FROM t ORDER BY n DESC
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2

-- tsql
SELECT city, COUNT(*) AS n, DENSE_RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city ORDER BY r OFFSET 0 ROWS FETCH NEXT 4 ROWS ONLY
-- reads
SELECT city, COUNT(*) AS n, DENSE_RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city ORDER BY r LIMIT 4

-- mysql
SELECT city, n, n / total AS share FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) a CROSS JOIN (SELECT COUNT(*) AS total FROM people) b
-- reads
SELECT city, COUNT(*), COUNT(*) / 400 FROM people GROUP BY city

-- spark
SELECT city, n, lead(n, 1, 0) OVER (ORDER BY n DESC, city) AS next FROM (SELECT city, count(*) AS n FROM people GROUP BY city)
-- reads
SELECT city, n, lead(n, 1, 0) OVER (ORDER BY n DESC, city) FROM (SELECT city, count(*) AS n FROM people GROUP BY city)

-- duckdb refused
SELECT city, count(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 50%
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2

-- duckdb
WITH c AS (FROM people SELECT city, count(*) AS n GROUP BY ALL) FROM c SELECT city, n WHERE n = (SELECT max(n) FROM c)

-- postgres
SELECT o.n AS oslo, p.n AS paris, o.n::float / p.n AS ratio FROM (SELECT COUNT(*) AS n FROM people WHERE city = 'Oslo') o, (SELECT COUNT(*) AS n FROM people WHERE city = 'Paris') p
-- reads
SELECT COUNT(*) FILTER (city = 'Oslo'), COUNT(*) FILTER (city = 'Paris'), COUNT(*) FILTER (city = 'Oslo') / COUNT(*) FILTER (city = 'Paris') FROM people

-- postgres
WITH a AS (SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city), b AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT a.city, a.n, b.n AS total, 1.0 * a.n / b.n AS rate FROM a JOIN b ON a.city = b.city ORDER BY rate DESC
-- reads
SELECT city, COUNT(*) FILTER (smoker), COUNT(*), COUNT(*) FILTER (smoker) / COUNT(*) FROM people WHERE city IS NOT NULL GROUP BY city

-- postgres
WITH a AS (SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city), b AS (SELECT city, AVG(income) AS m FROM people GROUP BY city) SELECT b.city, COALESCE(a.n, 0) AS n, m FROM b LEFT JOIN a USING (city)
-- reads
SELECT city, CASE WHEN city IS NULL THEN 0 ELSE COUNT(*) FILTER (smoker) END, AVG(income) FROM people GROUP BY city

-- postgres refused
WITH a AS (SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city), b AS (SELECT city, COUNT(*) AS n FROM people WHERE NOT smoker GROUP BY city) SELECT COALESCE(a.city, b.city) AS city, a.n AS x, b.n AS y FROM a FULL OUTER JOIN b ON a.city = b.city WHERE a.city IS NOT NULL
-- reads
SELECT city, COUNT(*) FILTER (smoker), COUNT(*) FILTER (NOT smoker) FROM people WHERE city IS NOT NULL GROUP BY city
