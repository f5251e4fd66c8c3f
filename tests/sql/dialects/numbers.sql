-- postgres
SELECT floor(income / 100) * 100 AS b, count(*) FROM people GROUP BY 1 ORDER BY 1

-- postgres
SELECT width_bucket(income, 0, 1000, 5) AS b, count(*) FROM people GROUP BY 1

-- postgres
SELECT round(income, -2) AS b, count(*) FROM people GROUP BY 1
-- reads
SELECT ROUND(income / 100) * 100, COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT round(income) AS b, count(*) FROM people WHERE income < 20 GROUP BY 1

-- postgres
SELECT age % 10 AS last, count(*) FROM people GROUP BY 1

-- postgres
SELECT mod(age, 2) AS odd, count(*) FROM people GROUP BY mod(age, 2)

-- postgres
SELECT abs(balance) AS b, count(*) FROM people GROUP BY 1

-- postgres
SELECT sign(balance) AS s, count(*), sum(abs(balance)) FROM people GROUP BY 1

-- postgres
SELECT count(*) FROM people WHERE power(age, 2) > 900 AND sqrt(abs(balance)) < 3

-- postgres
SELECT log(avg(income)) AS l, ln(count(*)) AS c, power(avg(age), 2) AS p FROM people

-- postgres refused
SELECT greatest(least(income, 500), 100) AS x, count(*) FROM people WHERE income < 300 AND income >= 299 GROUP BY 1
-- reads
SELECT income, COUNT(*) FROM people WHERE income < 300 AND income >= 299 GROUP BY 1

-- postgres
SELECT sum(least(income, 500)) FROM people
-- reads
SELECT SUM(CASE WHEN income > 500 THEN 500 ELSE income END) FROM people

-- postgres
SELECT avg(age * age) - avg(age) * avg(age) AS v FROM people

-- postgres
SELECT sum(income * 1.25 - 100) AS net FROM people

-- postgres refused
SELECT avg(income / age) FROM people WHERE age > 0

-- postgres refused
SELECT log10(sum(income)), cbrt(8) FROM people
-- reads
SELECT LOG10(SUM(income)), 2 FROM people

-- snowflake refused
SELECT SQUARE(AVG(age)) AS s, TRUNC(AVG(income), 1) AS t, ROUND(SUM(income) / COUNT(*), 2) AS r FROM people
-- reads
SELECT POW(AVG(age), 2), TRUNC(AVG(income) * 10) / 10, ROUND(SUM(income) / COUNT(*), 2) FROM people

-- bigquery
SELECT CAST(FLOOR(age / 10) * 10 AS INT64) AS decade, AVG(income) AS m FROM people GROUP BY decade ORDER BY decade
-- reads
SELECT FLOOR(age / 10) * 10, AVG(income) FROM people GROUP BY 1

-- bigquery
SELECT DIV(age, 10) AS d, MOD(age, 10) AS m, COUNT(*) FROM people WHERE age < 30 GROUP BY d, m
-- reads
SELECT age // 10, age % 10, COUNT(*) FROM people WHERE age < 30 GROUP BY 1, 2

-- mysql
SELECT age DIV 10 * 10 AS decade, COUNT(*) FROM people GROUP BY decade
-- reads
SELECT age // 10 * 10, COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT TRUNCATE(income, -2) AS b, COUNT(*) FROM people GROUP BY b
-- reads
SELECT FLOOR(income / 100) * 100, COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT FLOOR(age / 10.0) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY FLOOR(age / 10.0) * 10 ORDER BY decade
-- reads
SELECT FLOOR(age / 10) * 10, COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT CEILING(income / 250) AS b, COUNT(*) FROM people GROUP BY CEILING(income / 250)
-- reads
SELECT CEIL(income / 250), COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT SUM(income) * 1.0 / NULLIF(COUNT(*), 0) AS m, CAST(AVG(income) AS decimal(10, 2)) AS r FROM people
-- reads
SELECT SUM(income) / COUNT(*), ROUND(AVG(income), 2) FROM people

-- spark
SELECT bround(avg(income), 1) AS b, pmod(age, 10) AS k FROM people GROUP BY pmod(age, 10)
-- reads
SELECT ROUND(AVG(income), 1), age % 10 FROM people GROUP BY 2

-- duckdb
SELECT age // 25 AS q, count(*) FROM people GROUP BY q

-- duckdb
SELECT avg(ln(age + 1)), avg(sqrt(age)), avg(exp(balance / 50)) FROM people

-- duckdb
SELECT round(avg(income), 1) AS r FROM people

-- postgres
SELECT sum(case when age between 0 and 17 then 1 else 0 end) as "0-17", sum(case when age between 18 and 64 then 1 else 0 end) as "18-64", sum(case when age > 64 then 1 else 0 end) as "65+" from people

-- postgres
SELECT count(*) FROM people WHERE log(income + 1) > 2
-- reads
SELECT COUNT(*) FROM people WHERE income > 99

-- postgres
SELECT count(*) FROM people WHERE income / 12 > 50 AND income * 0.8 < 700 AND age + 5 > 30 AND (age - 20) * 2 < 100

-- postgres
SELECT trunc(log(income + 1)) AS magnitude, count(*) FROM people GROUP BY 1
-- reads
SELECT TRUNC(LOG10(income + 1)), COUNT(*) FROM people GROUP BY 1

-- postgres refused
SELECT avg(sin(age)) AS s FROM people

-- postgres refused
SELECT sum(income) / 1e3 AS k, (sum(income) * 100)::bigint % 7 AS m FROM people
-- reads
SELECT SUM(income) / 1000, (SUM(income) * 100) % 7 FROM people
