-- postgres
SELECT 'smokers' AS what, COUNT(*) AS n FROM people WHERE smoker UNION ALL SELECT 'others', COUNT(*) FROM people WHERE NOT smoker
-- reads
SELECT 'smokers' AS what, COUNT(*) AS n FROM people WHERE smoker UNION ALL SELECT 'others', COUNT(*) FROM people WHERE NOT smoker

-- postgres
SELECT city, COUNT(*) AS n FROM people GROUP BY city UNION ALL SELECT 'Total', COUNT(*) FROM people ORDER BY n DESC

-- postgres
SELECT 'age' AS col, AVG(age) AS mean, COUNT(age) AS n FROM people UNION ALL SELECT 'income', AVG(income), COUNT(income) FROM people UNION ALL SELECT 'balance', AVG(balance), COUNT(balance) FROM people

-- postgres
(SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city LIMIT 1) UNION ALL (SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n LIMIT 1)

-- postgres
SELECT city, smoker, COUNT(*) FROM people WHERE city IS NOT NULL AND smoker IS NOT NULL GROUP BY ROLLUP (city, smoker)

-- postgres
SELECT city, grade, COUNT(*) AS n FROM people WHERE city IS NOT NULL AND grade IS NOT NULL GROUP BY CUBE (city, grade) ORDER BY 1, 2

-- postgres
SELECT COALESCE(city, 'All') AS city, COUNT(*) AS n, AVG(income) AS m FROM people WHERE city IS NOT NULL GROUP BY ROLLUP (city)

-- postgres
SELECT CASE WHEN GROUPING(city) = 1 THEN 'Total' ELSE city END AS city, SUM(income) AS s FROM people WHERE city IS NOT NULL GROUP BY GROUPING SETS ((city), ())

-- mysql
SELECT IFNULL(city, 'Total') AS city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY city WITH ROLLUP
-- reads
SELECT IFNULL(city, 'Total') AS city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY ROLLUP (city)

-- tsql
SELECT ISNULL(city, 'Total') AS city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY city WITH CUBE
-- reads
SELECT IFNULL(city, 'Total') AS city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY ROLLUP (city)

-- snowflake
SELECT city, smoker, COUNT(*) AS n, GROUPING_ID(city, smoker) AS g FROM people WHERE city IS NOT NULL AND smoker IS NOT NULL GROUP BY CUBE (city, smoker)
-- reads
SELECT city, smoker, COUNT(*) AS n, GROUPING(city, smoker) AS g FROM people WHERE city IS NOT NULL AND smoker IS NOT NULL GROUP BY CUBE (city, smoker)

-- bigquery
SELECT city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY ROLLUP(city) ORDER BY city
-- reads
SELECT city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY ROLLUP (city)

-- tsql
SELECT city, [1] AS g1, [2] AS g2 FROM (SELECT city, grade FROM people) AS s PIVOT (COUNT(grade) FOR grade IN ([1], [2])) AS p
-- reads
SELECT city, COUNT(*) FILTER (grade = 1), COUNT(*) FILTER (grade = 2) FROM people GROUP BY city

-- duckdb
PIVOT people ON grade IN (1, 2, 3) USING count(*) GROUP BY city
-- reads
SELECT city, COUNT(*) FILTER (grade = 1), COUNT(*) FILTER (grade = 2), COUNT(*) FILTER (grade = 3) FROM people GROUP BY city

-- postgres
SELECT (SELECT COUNT(*) FROM people WHERE smoker) AS smokers, (SELECT AVG(age) FROM people) AS mean
-- reads
SELECT (SELECT COUNT(*) FROM people WHERE smoker) AS smokers, (SELECT AVG(age) FROM people) AS mean

-- postgres
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)

-- postgres
SELECT city, COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people WHERE smoker) GROUP BY city

-- postgres
SELECT COUNT(*) AS above FROM people WHERE age >= (SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY age) FROM people)
-- reads
SELECT COUNT(*) FROM people WHERE age >= (SELECT QUANTILE_DISC(age, 0.9) FROM people)

-- duckdb
SELECT count(*) FROM people WHERE age BETWEEN (SELECT avg(age) - stddev(age) FROM people) AND (SELECT avg(age) + stddev(age) FROM people)

-- bigquery
WITH s AS (SELECT AVG(income) AS m FROM people) SELECT COUNT(*) FROM people WHERE income > (SELECT m FROM s)
-- reads
SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)

-- snowflake
WITH s AS (SELECT AVG(income) AS m FROM people) SELECT COUNT_IF(p.income > s.m) AS above FROM people p CROSS JOIN s
-- reads
SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)

-- mysql
SELECT city, AVG(income) FROM people WHERE city IN (SELECT city FROM (SELECT city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY city ORDER BY n DESC LIMIT 2) t) GROUP BY city
-- reads
SELECT city, AVG(income) FROM people WHERE city IN (SELECT city FROM people WHERE city IS NOT NULL GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY city
