-- postgres
SELECT DATE_TRUNC('day', visited) AS __timestamp, city AS city, COUNT(*) AS count FROM public.people WHERE visited >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND visited < TO_TIMESTAMP('2024-01-08 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', visited), city ORDER BY count DESC LIMIT 10000
-- reads
SELECT DATE_TRUNC('day', visited)::DATE, city, COUNT(*) FROM people WHERE visited >= TIMESTAMP '2024-01-01' AND visited < TIMESTAMP '2024-01-08' GROUP BY 1, 2

-- postgres
SELECT city AS city, sum(income) AS "SUM(income)" FROM public.people WHERE city IN ('Oslo', 'Paris') GROUP BY city ORDER BY "SUM(income)" DESC LIMIT 100
-- reads
SELECT city, SUM(income) FROM people WHERE city IN ('Oslo', 'Paris') GROUP BY city

-- postgres
SELECT * FROM (SELECT city, count(*) AS n FROM people GROUP BY city) AS virtual_table LIMIT 1000
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city

-- postgres
SELECT DATE_TRUNC('week', seen) AS __timestamp, city AS city, COUNT(*) AS count FROM people JOIN (SELECT city AS city__, COUNT(*) AS mme_inner__ FROM people WHERE seen >= '2024-01-01' GROUP BY city ORDER BY mme_inner__ DESC LIMIT 2) AS series_limit ON city = city__ WHERE seen >= '2024-01-01' GROUP BY DATE_TRUNC('week', seen), city ORDER BY count DESC
-- reads
SELECT DATE_TRUNC('week', seen)::DATE, city, COUNT(*) FROM people WHERE seen >= '2024-01-01' AND city IN (SELECT city FROM people WHERE seen >= '2024-01-01' AND city IS NOT NULL GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY 1, 2

-- postgres
SELECT CASE WHEN age >= 65 THEN '65+' WHEN age >= 18 THEN '18-64' ELSE '0-17' END AS "Age group", AVG(income) AS "AVG(income)", COUNT(DISTINCT city) AS "COUNT_DISTINCT(city)" FROM public.people GROUP BY CASE WHEN age >= 65 THEN '65+' WHEN age >= 18 THEN '18-64' ELSE '0-17' END ORDER BY "AVG(income)" DESC LIMIT 1000
-- reads
SELECT CASE WHEN age >= 65 THEN '65+' WHEN age >= 18 THEN '18-64' ELSE '0-17' END, AVG(income), COUNT(DISTINCT city) FROM people GROUP BY 1

-- mysql
SELECT DATE(DATE_SUB(seen, INTERVAL DAYOFMONTH(seen) - 1 DAY)) AS `__timestamp`, AVG(age) AS `AVG(age)` FROM people GROUP BY DATE(DATE_SUB(seen, INTERVAL DAYOFMONTH(seen) - 1 DAY))
-- reads
SELECT DATE_TRUNC('month', seen)::DATE, AVG(age) FROM people GROUP BY 1

-- bigquery
SELECT DATETIME_TRUNC(`visited`, MONTH) AS `__timestamp`, COUNT(*) AS `count__c8f5f` FROM `people` WHERE `visited` >= CAST('2024-01-01T00:00:00' AS DATETIME) GROUP BY `__timestamp` ORDER BY `count__c8f5f` DESC LIMIT 1000
-- reads
SELECT DATE_TRUNC('month', visited)::DATE, COUNT(*) FROM people WHERE visited >= TIMESTAMP '2024-01-01' GROUP BY 1

-- postgres
SELECT city AS city, smoker AS smoker, COUNT(*) AS count, SUM(CASE WHEN member THEN 1 ELSE 0 END)*1.0/COUNT(*) AS "member rate" FROM people WHERE age IS NOT NULL AND ((income > 100)) GROUP BY city, smoker ORDER BY count DESC LIMIT 50000
-- reads
SELECT city, smoker, COUNT(*), SUM(CASE WHEN member THEN 1 ELSE 0 END)*1.0/COUNT(*) FROM people WHERE age IS NOT NULL AND income > 100 GROUP BY 1, 2

-- postgres
SELECT COUNT(*) AS rowcount FROM (SELECT city AS city, COUNT(*) AS count FROM people GROUP BY city) AS rowcount_qry
-- reads
SELECT COUNT(*) FROM (SELECT city FROM people GROUP BY city)

-- postgres
SELECT min(age) AS min, max(age) AS max FROM people
-- reads
SELECT MIN(age), MAX(age) FROM people
