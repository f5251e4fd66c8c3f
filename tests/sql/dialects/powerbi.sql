-- tsql
SELECT TOP (1000001) [t0].[city], SUM(CAST([t0].[income] AS FLOAT)) AS [a0], COUNT_BIG(*) AS [a1] FROM [dbo].[people] AS [t0] GROUP BY [t0].[city]
-- reads
SELECT city, SUM(income), COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT TOP (501) * FROM (SELECT [t0].[city] AS [c0], AVG(CAST([t0].[age] AS FLOAT)) AS [a0] FROM (SELECT [_].[city], [_].[age], [_].[smoker] FROM [dbo].[people] AS [_] WHERE [_].[age] >= 18) AS [t0] GROUP BY [t0].[city]) AS [MainTable] WHERE (NOT(([a0] IS NULL))) ORDER BY [c0] ASC
-- reads
SELECT city, AVG(age) FROM people WHERE age >= 18 GROUP BY 1

-- postgres
select "_"."city", "_"."a0" from (select "rows"."city" as "city", count(*) as "a0" from "public"."people" "rows" group by "city") "_" where not "_"."a0" is null limit 1000001
-- reads
SELECT city, COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT [t0].[grade], SUM(CASE WHEN [t0].[smoker] = 1 THEN 1 ELSE 0 END) AS [a0], COUNT(*) AS [a1] FROM [people] AS [t0] WHERE [t0].[city] = N'Oslo' GROUP BY [t0].[grade]
-- reads
SELECT grade, SUM(CASE WHEN smoker THEN 1 ELSE 0 END), COUNT(*) FROM people WHERE city = 'Oslo' GROUP BY 1

-- tsql
SELECT SUM([t0].[income]) AS [a0] FROM [dbo].[people] AS [t0] WHERE ([t0].[seen] >= CAST('20240101 00:00:00' AS DATETIME) AND [t0].[seen] < CAST('20240201 00:00:00' AS DATETIME))
-- reads
SELECT SUM(income) FROM people WHERE seen >= DATE '2024-01-01' AND seen < DATE '2024-02-01'

-- tsql
SELECT COUNT_BIG(*) AS [a0], COUNT_BIG(DISTINCT [t0].[city]) AS [a1] FROM [dbo].[people] AS [t0]
-- reads
SELECT COUNT(*), COUNT(DISTINCT city) FROM people

-- tsql
SELECT YEAR([t0].[seen]) AS [y], MONTH([t0].[seen]) AS [m], SUM([t0].[income]) AS [a0] FROM [dbo].[people] AS [t0] GROUP BY YEAR([t0].[seen]), MONTH([t0].[seen]) ORDER BY [y], [m]
-- reads
SELECT YEAR(seen), MONTH(seen), SUM(income) FROM people GROUP BY 1, 2

-- postgres refused
SELECT "t0"."city", SUM("t0"."income") AS "a0", MIN("t0"."age") AS "a1", MAX("t0"."age") AS "a2" FROM ((SELECT "city", "income", "age" FROM "public"."people")) AS "t0" GROUP BY "t0"."city"
-- reads
SELECT city, SUM(income), MIN(age), MAX(age) FROM people GROUP BY 1

-- tsql
SELECT [t0].[city], STDEV([t0].[age]) AS [a0], VARP([t0].[age]) AS [a1] FROM [dbo].[people] AS [t0] WHERE NOT ([t0].[city] IS NULL) GROUP BY [t0].[city]
-- reads
SELECT city, STDDEV_SAMP(age), VAR_POP(age) FROM people WHERE city IS NOT NULL GROUP BY 1
