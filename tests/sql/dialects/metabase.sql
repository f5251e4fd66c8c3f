-- postgres
-- Metabase:: userID: 1 queryType: MBQL queryHash: 0f4a
SELECT "public"."people"."city" AS "city", COUNT(*) AS "count" FROM "public"."people" GROUP BY "public"."people"."city" ORDER BY "public"."people"."city" ASC
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city

-- postgres
SELECT CAST(DATE_TRUNC('month', "public"."people"."visited") AS date) AS "visited", "public"."people"."city" AS "city", AVG("public"."people"."income") AS "avg" FROM "public"."people" WHERE ("public"."people"."visited" >= timestamp with time zone '2024-01-01 00:00:00.000Z') AND ("public"."people"."visited" < timestamp with time zone '2024-03-01 00:00:00.000Z') GROUP BY CAST(DATE_TRUNC('month', "public"."people"."visited") AS date), "public"."people"."city" ORDER BY CAST(DATE_TRUNC('month', "public"."people"."visited") AS date) ASC, "public"."people"."city" ASC
-- reads
SELECT DATE_TRUNC('month', visited)::DATE, city, AVG(income) FROM people WHERE visited >= TIMESTAMP '2024-01-01' AND visited < TIMESTAMP '2024-03-01' GROUP BY 1, 2

-- postgres
SELECT FLOOR((("public"."people"."age" - 0.0) / 12.5)) * 12.5 + 0.0 AS "age", COUNT(*) AS "count" FROM "public"."people" GROUP BY FLOOR((("public"."people"."age" - 0.0) / 12.5)) * 12.5 + 0.0 ORDER BY FLOOR((("public"."people"."age" - 0.0) / 12.5)) * 12.5 + 0.0 ASC
-- reads
SELECT FLOOR(age / 12.5) * 12.5, COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT CAST(SUM(CASE WHEN "public"."people"."city" = 'Oslo' THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(CAST(COUNT(*) AS DOUBLE PRECISION), 0.0) AS "share" FROM "public"."people"
-- reads
SELECT SUM(CASE WHEN city = 'Oslo' THEN 1 ELSE 0 END) / COUNT(*) FROM people

-- postgres
SELECT "source"."city" AS "city", "source"."count" AS "count" FROM (SELECT "public"."people"."city" AS "city", COUNT(*) AS "count" FROM "public"."people" GROUP BY "public"."people"."city" ORDER BY "public"."people"."city" ASC) AS "source" WHERE "source"."count" > 50 LIMIT 1048575
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city HAVING COUNT(*) > 50

-- postgres
SELECT COUNT(*) AS "count" FROM "public"."people" WHERE (LOWER("public"."people"."city") LIKE '%o%')
-- reads
SELECT COUNT(*) FROM people WHERE LOWER(city) LIKE '%o%'

-- postgres
SELECT COUNT(*) AS "count" FROM "public"."people" WHERE ("public"."people"."city" <> 'Oslo') OR ("public"."people"."city" IS NULL)
-- reads
SELECT COUNT(*) FROM people WHERE city <> 'Oslo' OR city IS NULL

-- postgres
SELECT (CAST(extract(dow from "public"."people"."visited") AS integer) + 1) AS "visited", COUNT(*) AS "count" FROM "public"."people" WHERE "public"."people"."visited" IS NOT NULL GROUP BY (CAST(extract(dow from "public"."people"."visited") AS integer) + 1) ORDER BY (CAST(extract(dow from "public"."people"."visited") AS integer) + 1) ASC
-- reads
SELECT EXTRACT(DOW FROM visited) + 1, COUNT(*) FROM people WHERE visited IS NOT NULL GROUP BY 1

-- postgres
SELECT CAST(extract(hour from "public"."people"."visited") AS integer) AS "visited", COUNT(*) AS "count" FROM "public"."people" GROUP BY CAST(extract(hour from "public"."people"."visited") AS integer) ORDER BY CAST(extract(hour from "public"."people"."visited") AS integer) ASC
-- reads
SELECT EXTRACT(HOUR FROM visited), COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT SUM("public"."people"."income") AS "sum", SUM(CASE WHEN "public"."people"."age" < 30 THEN "public"."people"."income" ELSE 0.0 END) AS "sum_2", count(distinct "public"."people"."city") AS "count" FROM "public"."people"
-- reads
SELECT SUM(income), SUM(CASE WHEN age < 30 THEN income ELSE 0 END), COUNT(DISTINCT city) FROM people

-- mysql
SELECT STR_TO_DATE(CONCAT(DATE_FORMAT(`people`.`seen`, '%Y-%m'), '-01'), '%Y-%m-%d') AS `seen`, COUNT(*) AS `count` FROM `people` GROUP BY STR_TO_DATE(CONCAT(DATE_FORMAT(`people`.`seen`, '%Y-%m'), '-01'), '%Y-%m-%d') ORDER BY STR_TO_DATE(CONCAT(DATE_FORMAT(`people`.`seen`, '%Y-%m'), '-01'), '%Y-%m-%d') ASC
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT DATE(`people`.`visited`) AS `visited`, COUNT(*) AS `count` FROM `people` WHERE (`people`.`visited` >= DATE_ADD(DATE('2024-01-10'), INTERVAL -7 DAY)) AND (`people`.`visited` < DATE('2024-01-10')) GROUP BY DATE(`people`.`visited`) ORDER BY DATE(`people`.`visited`) ASC
-- reads
SELECT visited::DATE, COUNT(*) FROM people WHERE visited >= DATE '2024-01-03' AND visited < DATE '2024-01-10' GROUP BY 1

-- snowflake
SELECT "PUBLIC"."PEOPLE"."CITY" AS "CITY", TO_DATE(DATE_TRUNC("MONTH", "PUBLIC"."PEOPLE"."SEEN")) AS "SEEN", COUNT(*) AS "count" FROM "DB"."PUBLIC"."PEOPLE" GROUP BY "PUBLIC"."PEOPLE"."CITY", TO_DATE(DATE_TRUNC("MONTH", "PUBLIC"."PEOPLE"."SEEN"))
-- reads
SELECT city, DATE_TRUNC('month', seen)::DATE, COUNT(*) FROM people GROUP BY 1, 2

-- bigquery
SELECT DATE_TRUNC(`shop.people`.`seen`, month) AS `seen`, COUNT(*) AS `count` FROM `shop.people` GROUP BY `seen` ORDER BY `seen` ASC
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT "public"."people"."smoker" AS "smoker", STDDEV("public"."people"."age") AS "stddev", PERCENTILE_CONT(0.5) within group (order by "public"."people"."age") AS "median" FROM "public"."people" WHERE "public"."people"."grade" IN (1, 2) GROUP BY "public"."people"."smoker"
-- reads
SELECT smoker, STDDEV(age), QUANTILE_DISC(age, 0.5) FROM people WHERE grade IN (1, 2) GROUP BY smoker

-- postgres
SELECT "source"."band" AS "band", COUNT(*) AS "count" FROM (SELECT "public"."people"."age" AS "age", CASE WHEN "public"."people"."age" < 18 THEN 'minor' WHEN "public"."people"."age" < 65 THEN 'adult' ELSE 'senior' END AS "band" FROM "public"."people") AS "source" GROUP BY "source"."band" ORDER BY "source"."band" ASC
-- reads
SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'senior' END, COUNT(*) FROM people GROUP BY 1
