-- postgres
SELECT COUNT(*) FROM public.people
-- reads
SELECT COUNT(*) FROM people

-- postgres
SELECT "public"."people"."city" AS "city", COUNT(*) AS "count" FROM "public"."people" GROUP BY "public"."people"."city" ORDER BY "public"."people"."city" ASC
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city

-- postgres
/* sent by a dashboard */ SELECT COUNT(*) AS n -- all of them
FROM "db"."public"."people" AS t WHERE t.age >= 18;
-- reads
SELECT COUNT(*) FROM people WHERE age >= 18

-- mysql
SELECT `city`, COUNT(*) AS n FROM `shop`.`people` GROUP BY `city`
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city

-- bigquery
SELECT city, COUNT(*) AS n FROM `project.data.people` GROUP BY city
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city

-- tsql
SELECT TOP 3 [city], COUNT(*) AS n FROM [dbo].[people] WITH (NOLOCK) WHERE [city] IS NOT NULL GROUP BY [city] ORDER BY n DESC, [city]
-- reads
SELECT city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY city ORDER BY n DESC, city LIMIT 3

-- postgres
SELECT [city], `smoker`, COUNT(*) FROM dbo.people GROUP BY 1, 2
-- reads
SELECT city, smoker, COUNT(*) FROM people GROUP BY ALL

-- snowflake
SELECT TOP 2 grade, COUNT(*) AS n FROM db.public.people WHERE grade IS NOT NULL GROUP BY grade ORDER BY grade
-- reads
SELECT grade, COUNT(*) AS n FROM people WHERE grade IS NOT NULL GROUP BY grade ORDER BY grade LIMIT 2

-- postgres
SELECT grade, COUNT(*) AS n FROM people WHERE grade IS NOT NULL GROUP BY grade ORDER BY grade FETCH FIRST 2 ROWS ONLY
-- reads
SELECT grade, COUNT(*) AS n FROM people WHERE grade IS NOT NULL GROUP BY grade ORDER BY grade LIMIT 2

-- duckdb
SELECT count() FROM people WHERE smoker
-- reads
SELECT COUNT(*) FROM people WHERE smoker

-- spark
SELECT `city`, count(1) AS n FROM default.people GROUP BY `city` LIMIT 0
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city LIMIT 0

-- mysql
SELECT COUNT(*) FROM people WHERE city = "Oslo" # a comment
-- reads
SELECT COUNT(*) FROM people WHERE city = 'Oslo'

-- tsql
SELECT COUNT_BIG(*) AS n FROM dbo.people AS p WHERE p.age BETWEEN 20 AND 29
-- reads
SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 29
