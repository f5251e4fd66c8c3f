-- postgres
SELECT FLOOR(age / 10) * 10 AS band, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT FLOOR(age / 10) * 10 AS band, COUNT(*) FROM people GROUP BY 1

-- duckdb
SELECT age // 10 AS decade, count(*) FROM people GROUP BY decade
-- reads
SELECT age // 10 AS decade, count(*) FROM people GROUP BY decade

-- mysql
SELECT age DIV 10 AS decade, COUNT(*) FROM people GROUP BY decade
-- reads
SELECT age // 10 AS decade, count(*) FROM people GROUP BY decade

-- postgres
SELECT age % 10 AS digit, COUNT(*) FROM people GROUP BY digit
-- reads
SELECT age % 10 AS digit, COUNT(*) FROM people GROUP BY digit

-- bigquery
SELECT DIV(age, 25) AS q, COUNT(*) FROM people WHERE MOD(age, 2) = 0 GROUP BY q
-- reads
SELECT age // 25 AS q, COUNT(*) FROM people WHERE age % 2 = 0 GROUP BY q

-- postgres
SELECT AVG(LN(age + 1)) AS l, SUM(SQRT(age)) AS r FROM people
-- reads
SELECT AVG(LN(age + 1)) AS l, SUM(SQRT(age)) AS r FROM people

-- snowflake
SELECT SUM(POWER(age, 2)) AS s, SUM(SIGN(balance)) AS g, AVG(ABS(balance)) AS b FROM people
-- reads
SELECT SUM(POWER(age, 2)) AS s, SUM(SIGN(balance)) AS g, AVG(ABS(balance)) AS b FROM people

-- tsql
SELECT CEILING(age / 20.0) AS c, COUNT(*) FROM people GROUP BY CEILING(age / 20.0)
-- reads
SELECT CEIL(age / 20.0) AS c, COUNT(*) FROM people GROUP BY c

-- spark
SELECT round(age, -1) AS r, count(*) FROM people GROUP BY r
-- reads
SELECT round(age, -1) AS r, count(*) FROM people GROUP BY r

-- postgres
SELECT width_bucket(age, 0, 100, 5) AS w, COUNT(*) FROM people GROUP BY w
-- reads
SELECT width_bucket(age, 0, 100, 5) AS w, COUNT(*) FROM people GROUP BY w

-- postgres
SELECT COUNT(*) FROM people WHERE FLOOR(age / 10) * 10 = 30 OR balance % 7 = -3
-- reads
SELECT COUNT(*) FROM people WHERE FLOOR(age / 10) * 10 = 30 OR balance % 7 = -3

-- duckdb
SELECT balance // 20 AS b, count(*) FROM people GROUP BY b
-- reads
SELECT balance // 20 AS b, count(*) FROM people GROUP BY b

-- postgres
SELECT FLOOR(NULLIF(age, 0) / 50) AS f, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY 1
-- reads
SELECT FLOOR(NULLIF(age, 0) / 50) AS f, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY 1
