-- postgres
SELECT "people"."city" AS "city", SUM(1) AS "cnt:people:ok", AVG(CAST("people"."income" AS DOUBLE PRECISION)) AS "avg:income:ok" FROM "public"."people" "people" GROUP BY 1
-- reads
SELECT city, COUNT(*), AVG(income) FROM people GROUP BY 1

-- postgres
SELECT CAST(TRUNC(EXTRACT(YEAR FROM "people"."seen")) AS INTEGER) AS "yr:seen:ok", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1
-- reads
SELECT YEAR(seen), COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT DATE_TRUNC( 'MONTH', CAST("people"."seen" AS TIMESTAMP) ) AS "tmn:seen:ok", SUM("people"."income") AS "sum:income:ok" FROM "public"."people" "people" WHERE (("people"."city" IN ('Oslo', 'Paris')) AND ("people"."seen" >= (DATE '2023-12-01'))) GROUP BY 1
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, SUM(income) FROM people WHERE city IN ('Oslo', 'Paris') AND seen >= DATE '2023-12-01' GROUP BY 1

-- postgres
SELECT (CASE WHEN ("people"."city" IN ('Oslo', 'Paris')) THEN 'Europe' ELSE "people"."city" END) AS "City (group)", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1
-- reads
SELECT CASE WHEN city IN ('Oslo', 'Paris') THEN 'Europe' ELSE city END, COUNT(1) FROM people GROUP BY 1

-- postgres
SELECT MIN("people"."age") AS "TEMP(min)", MAX("people"."age") AS "TEMP(max)", COUNT("people"."age") AS "TEMP(cnt)" FROM "public"."people" "people" HAVING (COUNT(1) > 0)
-- reads
SELECT MIN(age), MAX(age), COUNT(age) FROM people

-- postgres
SELECT SUM("t0"."n") AS "total" FROM (SELECT "people"."city" AS "city", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1) "t0"
-- reads
SELECT COUNT(*) FROM people

-- postgres
SELECT "people"."city" AS "city", (SUM("people"."income") / NULLIF(CAST(SUM("people"."age") AS DOUBLE PRECISION), 0)) AS "ratio" FROM "public"."people" "people" WHERE (NOT ("people"."city" IS NULL)) GROUP BY 1 HAVING (SUM("people"."age") > 1000)
-- reads
SELECT city, SUM(income) / SUM(age) FROM people WHERE city IS NOT NULL GROUP BY 1 HAVING SUM(age) > 1000

-- postgres
SELECT CAST("people"."grade" AS TEXT) AS "grade", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1
-- reads
SELECT CAST(grade AS TEXT), COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT [people].[city] AS [city], SUM(CAST(1 AS BIGINT)) AS [cnt], SUM([people].[income]) AS [sum] FROM [dbo].[people] [people] GROUP BY [people].[city]
-- reads
SELECT city, COUNT(*), SUM(income) FROM people GROUP BY 1

-- tsql
SELECT DATEPART(year,[people].[seen]) AS [yr:seen:ok], DATEPART(quarter,[people].[seen]) AS [qr:seen:ok], COUNT_BIG(1) AS [n] FROM [dbo].[people] [people] GROUP BY DATEPART(year,[people].[seen]), DATEPART(quarter,[people].[seen])
-- reads
SELECT YEAR(seen), QUARTER(seen), COUNT(*) FROM people GROUP BY 1, 2

-- tsql
SELECT DATEADD(month, DATEDIFF(month, 0, [people].[seen]), 0) AS [m], COUNT(*) AS [n] FROM [dbo].[people] [people] GROUP BY DATEADD(month, DATEDIFF(month, 0, [people].[seen]), 0)
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT (CASE WHEN "people"."smoker" THEN 1 WHEN NOT "people"."smoker" THEN 0 ELSE NULL END) AS "smoker", COUNT(1) AS "n" FROM "public"."people" "people" GROUP BY 1
-- reads
SELECT CASE WHEN smoker THEN 1 WHEN NOT smoker THEN 0 END, COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT "people"."city" AS "city", AVG("people"."age") AS "a" FROM "public"."people" "people" INNER JOIN (SELECT "people"."city" AS "city", COUNT(1) AS "$__alias__0" FROM "public"."people" "people" GROUP BY 1 ORDER BY 2 DESC LIMIT 2) "t0" ON ("people"."city" = "t0"."city") GROUP BY 1
-- reads
SELECT city, AVG(age) FROM people WHERE city IN (SELECT city FROM people WHERE city IS NOT NULL GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY 1
