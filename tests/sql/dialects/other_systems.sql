-- bigquery
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=.5, delta=1e-7, max_groups_contributed=1) city, COUNT(*) AS n FROM people GROUP BY city
-- reads
SELECT city, COUNT(*) FROM people GROUP BY city

-- bigquery
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, group_selection_strategy=PUBLIC_GROUPS) city, SUM(income, contribution_bounds_per_row => (0, 500)) AS s FROM people GROUP BY city
-- reads
SELECT city, SUM(CASE WHEN income > 500 THEN 500 ELSE income END) FROM people GROUP BY city

-- bigquery refused
SELECT WITH ANONYMIZATION OPTIONS(epsilon=0.5, delta=1e-6) city, ANON_COUNT(*) AS n, ANON_AVG(age CLAMPED BETWEEN 0 AND 80) AS a FROM people GROUP BY city
-- reads
SELECT city, COUNT(*), AVG(CASE WHEN age > 80 THEN 80 ELSE age END) FROM people GROUP BY city

-- bigquery refused
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=NULL) COUNT(*) AS n, AVG(age, contribution_bounds_per_group => (0, 100)) AS a FROM people
-- reads
SELECT COUNT(*), AVG(age) FROM people

-- snowflake
SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS lo, DP_INTERVAL_HIGH(n) AS hi FROM people WHERE smoker
-- reads
SELECT COUNT(*), COUNT(*), COUNT(*) FROM people WHERE smoker

-- snowflake
SELECT city, AVG(income)::NUMBER(10,2) AS a FROM db.public.people GROUP BY city
-- reads
SELECT city, ROUND(AVG(income), 2) FROM people GROUP BY city

-- postgres
select count(*) /* all of them */ as n -- how many
from public.people as p
where p.age > 30;
-- reads
SELECT COUNT(*) FROM people WHERE age > 30

-- postgres
SELECT p.city, r.name, COUNT(*) FROM people p JOIN regions r ON r.key = p.city GROUP BY p.city, r.name

-- postgres
SELECT r.half, AVG(p.income * r.cost) AS c FROM people AS p INNER JOIN regions AS r ON p.city = r.key GROUP BY r.half

-- postgres
SELECT COUNT(*) FROM people WHERE city IN (SELECT key FROM regions WHERE half = 'N')

-- postgres refused
SELECT city, COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM regions WHERE regions.key = people.city AND half = 'N') GROUP BY city

-- postgres
WITH base AS (SELECT age, city, income, age >= 65 AS old FROM people WHERE smoker), picked AS (SELECT * FROM base WHERE city <> 'Paris') SELECT old, COUNT(*), AVG(income) FROM picked GROUP BY old
-- reads
SELECT age >= 65, COUNT(*), AVG(income) FROM people WHERE smoker AND city <> 'Paris' GROUP BY 1

-- postgres
SELECT age AS "Age", COUNT(*) AS "Number of people" FROM people WHERE age BETWEEN 30 AND 35 GROUP BY "Age" ORDER BY "Age"
-- reads
SELECT age, COUNT(*) FROM people WHERE age BETWEEN 30 AND 35 GROUP BY 1

-- postgres refused
SELECT COUNT(*) FROM people WHERE age IN (SELECT 30 UNION SELECT 40)
-- reads
SELECT COUNT(*) FROM people WHERE age IN (30, 40)

-- postgres refused
SELECT v.label, COUNT(*) FROM people JOIN (VALUES ('Oslo', 'north'), ('Paris', 'middle')) AS v(city, label) ON v.city = people.city GROUP BY v.label
-- reads
SELECT CASE city WHEN 'Oslo' THEN 'north' ELSE 'middle' END, COUNT(*) FROM people WHERE city IN ('Oslo', 'Paris') GROUP BY 1

-- postgres refused
SELECT city, comment, COUNT(*) FROM people GROUP BY city, comment
