-- postgres
SELECT people.city AS "people.city", COUNT(*) AS "people.count", COALESCE(SUM(people.income), 0) AS "people.total_income" FROM public.people AS people WHERE ((people.age >= 18)) GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY
-- reads
SELECT city, COUNT(*), SUM(income) FROM people WHERE age >= 18 GROUP BY 1

-- postgres
SELECT (TO_CHAR(DATE_TRUNC('month', people.seen), 'YYYY-MM')) AS "people.seen_month", AVG((people.income * 1.0)) AS "people.avg" FROM public.people AS people GROUP BY (DATE_TRUNC('month', people.seen)) ORDER BY 1 DESC
-- reads
SELECT STRFTIME(seen, '%Y-%m'), AVG(income) FROM people GROUP BY 1

-- postgres
SELECT CASE WHEN people.smoker THEN 'Yes' ELSE 'No' END AS "people.smoker", COUNT(*) AS "people.count" FROM people GROUP BY 1 ORDER BY 2 DESC LIMIT 500
-- reads
SELECT CASE WHEN smoker THEN 'Yes' ELSE 'No' END, COUNT(*) FROM people GROUP BY 1

-- bigquery
SELECT people.city AS people_city, COUNT(*) AS people_count, COALESCE(ROUND(COALESCE(CAST(SUM(people.income) AS FLOAT64), 0), 6), 0) AS people_sum FROM `proj.shop.people` AS people WHERE (people.seen >= DATE('2024-01-01') AND people.seen < DATE('2024-02-15')) GROUP BY 1 ORDER BY 2 DESC LIMIT 500
-- reads
SELECT city, COUNT(*), SUM(income) FROM people WHERE seen >= DATE '2024-01-01' AND seen < DATE '2024-02-15' GROUP BY 1

-- postgres
WITH by_city AS (SELECT city, COUNT(*) AS n, SUM(income) AS total FROM public.people GROUP BY 1) SELECT by_city.city AS "by_city.city", COALESCE(SUM(by_city.total), 0) / NULLIF(COALESCE(SUM(by_city.n), 0), 0) AS "by_city.per_head" FROM by_city GROUP BY 1 ORDER BY 2 DESC
-- reads
SELECT city, SUM(income) / COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT (DATE(people.visited)) AS "people.visited_date", COUNT(*) AS "people.count" FROM people WHERE ((( people.visited ) >= (TIMESTAMP '2024-01-01') AND ( people.visited ) < (TIMESTAMP '2024-01-15'))) GROUP BY 1 ORDER BY 1 DESC
-- reads
SELECT visited::DATE, COUNT(*) FROM people WHERE visited >= TIMESTAMP '2024-01-01' AND visited < TIMESTAMP '2024-01-15' GROUP BY 1

-- snowflake
SELECT TO_CHAR(DATE_TRUNC('week', people.seen), 'YYYY-MM-DD') AS "people.seen_week", COUNT(*) AS "people.count" FROM PUBLIC.people AS people GROUP BY DATE_TRUNC('week', people.seen) ORDER BY 1 DESC NULLS LAST LIMIT 500
-- reads
SELECT STRFTIME(DATE_TRUNC('week', seen), '%Y-%m-%d'), COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT CASE WHEN people.age < 10 THEN '01' WHEN people.age >= 10 AND people.age < 20 THEN '02' WHEN people.age >= 20 AND people.age < 80 THEN '03' WHEN people.age >= 80 THEN '04' ELSE '05' END AS "people.tier__sort_", CASE WHEN people.age < 10 THEN 'Below 10' WHEN people.age >= 10 AND people.age < 20 THEN '10 to 19' WHEN people.age >= 20 AND people.age < 80 THEN '20 to 79' WHEN people.age >= 80 THEN '80 or Above' ELSE 'Undefined' END AS "people.tier", COUNT(*) AS "people.count" FROM people GROUP BY 1, 2 ORDER BY 1
-- reads
SELECT CASE WHEN age < 10 THEN '01' WHEN age < 20 THEN '02' WHEN age < 80 THEN '03' WHEN age >= 80 THEN '04' ELSE '05' END, CASE WHEN age < 10 THEN 'Below 10' WHEN age < 20 THEN '10 to 19' WHEN age < 80 THEN '20 to 79' WHEN age >= 80 THEN '80 or Above' ELSE 'Undefined' END, COUNT(*) FROM people GROUP BY 1, 2
