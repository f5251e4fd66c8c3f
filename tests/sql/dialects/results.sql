-- postgres
SELECT 'smokers' AS who, COUNT(*) AS n FROM people WHERE smoker UNION ALL SELECT 'members', COUNT(*) FROM people WHERE member ORDER BY n DESC
-- reads
SELECT 'smokers' AS who, COUNT(*) AS n FROM people WHERE smoker UNION ALL SELECT 'members', COUNT(*) FROM people WHERE member

-- bigquery
SELECT city, COUNT(*) AS n FROM `db.people` GROUP BY city UNION ALL SELECT 'all cities', COUNT(*) FROM `db.people` WHERE age > 10
-- reads
SELECT city, COUNT(*) AS n FROM people GROUP BY city UNION ALL SELECT 'all cities', COUNT(*) FROM people WHERE age > 10

-- snowflake
(SELECT 'top' AS what, city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city LIMIT 1) UNION ALL (SELECT 'grade', grade::varchar, COUNT(*) FROM people WHERE grade = 1 GROUP BY grade)
-- reads
(SELECT 'top' AS what, city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city LIMIT 1) UNION ALL (SELECT 'grade', grade::varchar, COUNT(*) FROM people WHERE grade = 1 GROUP BY grade)

-- postgres
SELECT city, grade, COUNT(*) AS n, AVG(age) AS a, GROUPING(city) AS no_city, GROUPING(grade) AS no_grade FROM people GROUP BY ROLLUP (city, grade)
-- reads
SELECT city, grade, COUNT(*) AS n, AVG(age) AS a, GROUPING(city) AS no_city, GROUPING(grade) AS no_grade FROM people GROUP BY ROLLUP (city, grade)

-- tsql
SELECT grade, smoker, SUM(income) AS total, GROUPING_ID(grade, smoker) AS level FROM people WHERE member = 1 GROUP BY CUBE (grade, smoker)
-- reads
SELECT grade, smoker, SUM(income) AS total, GROUPING_ID(grade, smoker) AS level FROM people WHERE member GROUP BY CUBE (grade, smoker)

-- mysql
SELECT grade, COUNT(*) AS n, GROUPING(grade) AS all_grades FROM people WHERE age >= 18 GROUP BY grade WITH ROLLUP
-- reads
SELECT grade, COUNT(*) AS n, GROUPING(grade) AS all_grades FROM people WHERE age >= 18 GROUP BY ROLLUP (grade)

-- spark
SELECT city, smoker, count(*) AS n, grouping_id(city, smoker) AS g FROM people GROUP BY city, smoker GROUPING SETS ((city), (smoker))
-- reads
SELECT city, smoker, count(*) AS n, grouping_id(city, smoker) AS g FROM people GROUP BY GROUPING SETS ((city), (smoker))

-- duckdb
SELECT date_trunc('month', seen) AS m, smoker, median(age) AS mid, grouping(smoker) AS g, grouping(date_trunc('month', seen)) AS h FROM people WHERE seen IS NOT NULL GROUP BY ROLLUP (m, smoker)
-- reads
SELECT date_trunc('month', seen) AS m, smoker, quantile_disc(age, 0.5) AS mid, grouping(smoker) AS g, grouping(date_trunc('month', seen)) AS h FROM people WHERE seen IS NOT NULL GROUP BY ROLLUP (m, smoker)

-- postgres
SELECT grade, SUM(n) AS n, MAX(n) AS most, COUNT(*) AS cities FROM (SELECT city, grade, COUNT(*) AS n FROM people GROUP BY city, grade) t GROUP BY grade HAVING SUM(n) > 100
-- reads
SELECT grade, SUM(n) AS n, MAX(n) AS most, COUNT(*) AS cities FROM (SELECT city, grade, COUNT(*) AS n FROM people GROUP BY city, grade) t GROUP BY grade HAVING SUM(n) > 100

-- bigquery
WITH by_city AS (SELECT city, COUNTIF(smoker) AS s, COUNT(*) AS n FROM people GROUP BY city) SELECT IF(city IN ('Oslo', 'Paris'), 'old', 'new') AS world, SUM(s) / SUM(n) AS share FROM by_city WHERE city IS NOT NULL GROUP BY world
-- reads
SELECT CASE WHEN city IN ('Oslo', 'Paris') THEN 'old' ELSE 'new' END AS world, SUM(s) / SUM(n) AS share FROM (SELECT city, COUNT(*) FILTER (WHERE smoker) AS s, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY city) t GROUP BY world

-- postgres
SELECT SUM(n) AS top_two FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) t
-- reads
SELECT SUM(n) AS top_two FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) t

-- snowflake
WITH s AS (SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city), a AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT a.city, DIV0(s.n, a.n) AS rate FROM a LEFT JOIN s ON s.city = a.city WHERE a.city IS NOT NULL
-- reads
SELECT city, COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS rate FROM people WHERE city IS NOT NULL GROUP BY city

-- tsql
WITH t AS (SELECT COUNT(*) AS total FROM people WHERE member = 1), g AS (SELECT grade, COUNT(*) AS n FROM people WHERE member = 1 GROUP BY grade) SELECT g.grade, 100.0 * g.n / t.total AS pct FROM g CROSS JOIN t
-- reads
SELECT grade, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people WHERE member GROUP BY grade

-- mysql
SELECT (SELECT COUNT(*) FROM people WHERE smoker) AS smokers, (SELECT AVG(age) FROM people WHERE member) AS age
-- reads
SELECT COUNT(*) FILTER (WHERE smoker) AS smokers, AVG(age) FILTER (WHERE member) AS age FROM people

-- postgres
SELECT city, AVG(age) - (SELECT AVG(age) FROM people WHERE NOT smoker) AS difference FROM people WHERE smoker GROUP BY city HAVING COUNT(*) > (SELECT COUNT(*) / 8 FROM people WHERE smoker)
-- reads
SELECT city, AVG(age) - (SELECT AVG(age) FROM people WHERE NOT smoker) AS difference FROM people WHERE smoker GROUP BY city HAVING COUNT(*) > (SELECT COUNT(*) / 8 FROM people WHERE smoker)
