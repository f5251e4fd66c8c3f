-- postgres
SELECT "city", AVG("income") AS "m" FROM (SELECT "people".* FROM "people" WHERE ("age" > 18.0)) "q01" GROUP BY "city" ORDER BY "m" DESC
-- reads
SELECT city, AVG(income) FROM people WHERE age > 18 GROUP BY 1

-- mysql
SELECT `city`, COUNT(*) AS `n` FROM `people` GROUP BY `city`
-- reads
SELECT city, COUNT(*) FROM people GROUP BY 1

-- duckdb
SELECT city, n, n / SUM(n) OVER () AS p FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) q01

-- postgres
SELECT "band", COUNT(*) AS "n" FROM (SELECT "people".*, CASE WHEN ("age" < 18.0) THEN 'child' WHEN ("age" < 65.0) THEN 'adult' ELSE 'senior' END AS "band" FROM "people") AS "q01" GROUP BY "band"
-- reads
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END, COUNT(*) FROM people GROUP BY 1

-- duckdb
SELECT "t1"."city", "t1"."n" FROM (SELECT "t0"."city", COUNT(*) AS "n" FROM "people" AS "t0" GROUP BY 1) AS "t1" WHERE "t1"."n" > CAST(80 AS TINYINT)
-- reads
SELECT city, COUNT(*) FROM people GROUP BY 1 HAVING COUNT(*) > 80

-- duckdb
SELECT "t0"."city", SUM("t0"."income") AS "total", AVG("t0"."income") AS "mean", STDDEV_SAMP("t0"."income") AS "sd" FROM "main"."people" AS "t0" WHERE "t0"."member" AND "t0"."age" BETWEEN CAST(20 AS TINYINT) AND CAST(60 AS TINYINT) GROUP BY "t0"."city"
-- reads
SELECT city, SUM(income), AVG(income), STDDEV_SAMP(income) FROM people WHERE member AND age BETWEEN 20 AND 60 GROUP BY 1

-- postgres
SELECT SUM(CASE WHEN (("smoker") AND ("age" >= 65.0)) THEN 1.0 WHEN NOT (("smoker") AND ("age" >= 65.0)) THEN 0.0 END) AS "n" FROM "people"

-- postgres
SELECT SUM(CAST("smoker" AS INTEGER)) AS "smokers", AVG(CAST("smoker" AS INTEGER)) AS "share" FROM "people"
-- reads
SELECT SUM(smoker::INT), AVG(smoker::INT) FROM people

-- duckdb
SELECT count_star() AS n FROM people WHERE smoker
-- reads
SELECT COUNT(*) FROM people WHERE smoker

-- postgres
SELECT anon_1.city, anon_1.n FROM (SELECT people.city AS city, count(*) AS n FROM people GROUP BY people.city HAVING count(*) > 10) AS anon_1 ORDER BY anon_1.n DESC LIMIT 5
-- reads
SELECT city, COUNT(*) FROM people GROUP BY 1 HAVING COUNT(*) > 10

-- spark
SELECT city, avg(income) AS `avg(income)`, count(1) AS `count(1)` FROM people GROUP BY city
-- reads
SELECT city, AVG(income), COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT floor(extract(epoch from visited)/86400)*86400 AS "time", count(*) AS value FROM people WHERE visited BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-31T23:59:59Z' GROUP BY 1 ORDER BY 1
-- reads
SELECT FLOOR(EXTRACT(epoch FROM visited)/86400)*86400, COUNT(*) FROM people WHERE visited BETWEEN TIMESTAMP '2024-01-01' AND TIMESTAMP '2024-01-31 23:59:59' GROUP BY 1
