-- postgres
SELECT "employees"."department" AS "department", AVG("employees"."salary") AS "avg" FROM "hr"."employees" WHERE "employees"."terminated" = FALSE GROUP BY "employees"."department" ORDER BY "avg" DESC, "employees"."department" ASC
-- reads
SELECT department, AVG(salary) FROM employees WHERE terminated = FALSE GROUP BY 1

-- postgres
SELECT (("source"."Tenure")) AS "Tenure", COUNT(*) AS "count" FROM (SELECT FLOOR("hr"."employees"."Years at Company" / 5.0) * 5.0 AS "Tenure" FROM "hr"."employees") AS "source" GROUP BY "source"."Tenure" ORDER BY "source"."Tenure" ASC
-- reads
SELECT FLOOR("Years at Company" / 5) * 5, COUNT(*) FROM employees GROUP BY 1

-- postgres
SELECT count(*) AS count FROM (SELECT * FROM hr.employees) AS virtual_table WHERE remote IN (true) LIMIT 50000
-- reads
SELECT count(*) FROM employees WHERE remote

-- postgres
SELECT gender AS gender, AVG(salary) AS "AVG(salary)", COUNT(*) AS "count" FROM hr.employees WHERE hired_on >= TO_DATE('2015-01-01', 'YYYY-MM-DD') AND hired_on < TO_TIMESTAMP('2020-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY gender ORDER BY "AVG(salary)" DESC LIMIT 1000
-- reads
SELECT gender, AVG(salary), COUNT(*) FROM employees WHERE hired_on >= '2015-01-01' AND hired_on < '2020-01-01' GROUP BY gender

-- postgres
SELECT employees.department AS "employees.department", COALESCE(SUM(CASE WHEN NOT COALESCE(employees.terminated, FALSE) THEN 1 ELSE NULL END), 0) AS "employees.active", COALESCE(COALESCE(CAST(SUM(employees.salary) AS DOUBLE PRECISION), 0) / NULLIF(COUNT(employees.salary), 0), 0) AS "employees.average_salary" FROM hr.employees AS employees GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY
-- reads
SELECT department, SUM(CASE WHEN NOT COALESCE(terminated, FALSE) THEN 1 END), AVG(salary) FROM employees GROUP BY 1

-- postgres
select "_"."department", "_"."a0" from (select "rows"."department" as "department", sum("rows"."salary") as "a0" from "hr"."employees" "rows" group by "department") "_" where not "_"."a0" is null limit 1000001
-- reads
SELECT department, SUM(salary) FROM employees GROUP BY department

-- postgres
SELECT TO_CHAR(DATE_TRUNC('quarter', employees.hired_on), 'YYYY-MM') AS q, COUNT(*) FROM employees GROUP BY DATE_TRUNC('quarter', employees.hired_on) ORDER BY 1 DESC
-- reads
SELECT strftime(DATE_TRUNC('quarter', hired_on), '%Y-%m'), COUNT(*) FROM employees GROUP BY 1

-- postgres
SELECT department, country, AVG(salary) AS avg_sal, RANK() OVER (PARTITION BY country ORDER BY AVG(salary) DESC) FROM employees WHERE country IS NOT NULL AND department IS NOT NULL GROUP BY 1, 2 ORDER BY country, 4

-- postgres
SELECT SUM(salary * (1 + 0.03)) - SUM(salary) AS raise_cost FROM employees WHERE NOT terminated
-- reads
SELECT SUM(salary * 1.03) - SUM(salary) FROM employees WHERE NOT terminated

-- postgres
SELECT COUNT(*) FROM employees WHERE department NOT IN ('HR', 'Finance') AND (rating >= 4 OR bonus > 10000) AND hired_on BETWEEN SYMMETRIC '2020-12-31' AND '2010-01-01'
-- reads
SELECT COUNT(*) FROM employees WHERE department NOT IN ('HR', 'Finance') AND (rating >= 4 OR bonus > 10000) AND hired_on BETWEEN '2010-01-01' AND '2020-12-31'

-- postgres
SELECT department, COUNT(*) FROM employees WHERE salary > (SELECT AVG(salary) FROM employees) GROUP BY department

-- postgres
SELECT department FROM employees GROUP BY department HAVING AVG(salary) > (SELECT AVG(salary) FROM employees)

-- postgres impossible
SELECT e.department, AVG(e.salary) FROM employees e JOIN departments d ON d.id = e.department_id GROUP BY e.department

-- postgres impossible
VALUES (1), (2)

-- postgres impossible
SELECT version()

-- postgres impossible
SELECT rating, COUNT(*), REPEAT('*', (COUNT(*) / 10)::int) AS bar FROM employees GROUP BY rating

-- postgres
SELECT COUNT(*) FILTER (WHERE bonus IS NULL) * 1.0 / COUNT(*) AS missing_bonus, COUNT(bonus)::decimal / COUNT(*) AS has_bonus FROM employees
-- reads
SELECT COUNT(*) FILTER (WHERE bonus IS NULL) / COUNT(*), COUNT(bonus) / COUNT(*) FROM employees

-- postgres
SELECT date_trunc('year', hired_on)::date + INTERVAL '1 year' - INTERVAL '1 day' AS year_end, count(*) FROM employees GROUP BY 1
-- reads
SELECT (date_trunc('year', hired_on) + INTERVAL 1 YEAR - INTERVAL 1 DAY)::date, count(*) FROM employees GROUP BY 1

-- postgres
SELECT country, (AVG(salary) FILTER (WHERE gender = 'F')) / (AVG(salary) FILTER (WHERE gender = 'M')) - 1 AS gap FROM employees GROUP BY country HAVING COUNT(*) FILTER (WHERE gender = 'F') > 5 AND COUNT(*) FILTER (WHERE gender = 'M') > 5

-- postgres
SELECT t.lvl, t.n, SUM(t.n) OVER (ORDER BY t.lvl DESC) AS cum FROM (SELECT job_level AS lvl, COUNT(*) AS n FROM employees WHERE job_level IS NOT NULL GROUP BY job_level) t

-- postgres
SELECT CAST(hired_on AS varchar(4)) AS yr, COUNT(*) FROM employees GROUP BY 1
-- reads
SELECT strftime(hired_on, '%Y'), COUNT(*) FROM employees GROUP BY 1

-- postgres
(SELECT department, AVG(salary) AS s FROM employees WHERE department IS NOT NULL GROUP BY department ORDER BY s DESC LIMIT 1) UNION ALL (SELECT department, AVG(salary) FROM employees WHERE department IS NOT NULL GROUP BY department ORDER BY 2 ASC LIMIT 1)

-- snowflake impossible
SELECT DEPARTMENT, LISTAGG(DISTINCT COUNTRY, ',') FROM EMPLOYEES GROUP BY 1

-- snowflake
SELECT DEPARTMENT, AVG(SALARY) AS A, STDDEV(SALARY) AS S, S / A AS CV FROM HR.EMPLOYEES GROUP BY DEPARTMENT ORDER BY CV DESC NULLS LAST
-- reads
SELECT department, AVG(salary), STDDEV(salary), STDDEV(salary) / AVG(salary) FROM employees GROUP BY department

-- snowflake
SELECT FLOOR(DATEDIFF('day', HIRED_ON, '2024-12-31'::DATE) / 365.25) AS TENURE, COUNT(*) FROM EMPLOYEES GROUP BY TENURE
-- reads
SELECT FLOOR(DATE_DIFF('day', hired_on, DATE '2024-12-31') / 365.25), COUNT(*) FROM employees GROUP BY 1

-- snowflake
SELECT CASE WHEN GROUPING_ID(DEPARTMENT, COUNTRY) = 3 THEN 'total' WHEN GROUPING_ID(DEPARTMENT, COUNTRY) = 1 THEN 'dept' ELSE 'cell' END AS LVL, DEPARTMENT, COUNTRY, SUM(SALARY) FROM EMPLOYEES GROUP BY ROLLUP(DEPARTMENT, COUNTRY)
-- reads
SELECT CASE WHEN GROUPING_ID(department, country) = 3 THEN 'total' WHEN GROUPING_ID(department, country) = 1 THEN 'dept' ELSE 'cell' END, department, country, SUM(salary) FROM employees GROUP BY ROLLUP(department, country)

-- snowflake unread
SELECT TO_DECIMAL(AVG(SALARY), 12, 2) AS A, EQUAL_NULL(MAX(RATING), 5) AS TOP FROM EMPLOYEES

-- bigquery
SELECT department, AVG(salary) avg_salary, COUNT(*) cnt, ROUND(SAFE_DIVIDE(SUM(bonus), SUM(salary)) * 100, 2) bonus_pct FROM `co.hr.employees` WHERE terminated IS FALSE GROUP BY department ORDER BY avg_salary DESC LIMIT 10
-- reads
SELECT department, AVG(salary), COUNT(*), ROUND(SUM(bonus) / SUM(salary) * 100, 2) FROM employees WHERE terminated IS FALSE GROUP BY department

-- bigquery
SELECT DATE_DIFF(DATE '2024-12-31', hired_on, YEAR) AS yrs, COUNTIF(NOT terminated) AS active FROM hr.employees GROUP BY yrs HAVING active > 3
-- reads
SELECT date_diff('year', hired_on, DATE '2024-12-31'), COUNT(*) FILTER (WHERE NOT terminated) AS a FROM employees GROUP BY 1 HAVING a > 3

-- bigquery impossible
SELECT PERCENTILE_CONT(salary, 0.5) OVER (PARTITION BY department) FROM hr.employees

-- bigquery
SELECT department, SUM(salary) AS s FROM hr.employees GROUP BY ROLLUP(department) HAVING GROUPING(department) = 0
-- reads
SELECT department, SUM(salary) FROM employees GROUP BY department

-- bigquery
SELECT REGEXP_EXTRACT(department, r'^[A-Z]') AS initial, COUNT(*) FROM hr.employees WHERE REGEXP_CONTAINS(country, r'^(US|DE)$') GROUP BY initial
-- reads
SELECT regexp_extract(department, '^[A-Z]'), COUNT(*) FROM employees WHERE regexp_matches(country, '^(US|DE)$') GROUP BY 1

-- duckdb
SELECT department, count(*) AS n, avg(salary) AS a, a - avg(salary) FILTER (NOT remote) AS delta FROM employees GROUP BY department
-- reads
SELECT department, count(*), avg(salary), avg(salary) - avg(salary) FILTER (WHERE NOT remote) FROM employees GROUP BY department

-- duckdb impossible
SELECT arg_max(department, salary) FROM employees

-- duckdb
SELECT department, bool_or(rating = 5) AS any_star, count_if(rating = 5) AS stars FROM employees GROUP BY department
-- reads
SELECT department, count_if(rating = 5) > 0, count_if(rating = 5) FROM employees GROUP BY department

-- duckdb
SELECT department, count(*) FROM employees WHERE hired_on >= date_trunc('year', DATE '2024-06-30') - INTERVAL 5 YEAR GROUP BY department
-- reads
SELECT department, count(*) FROM employees WHERE hired_on >= DATE '2019-01-01' GROUP BY department

-- mysql
SELECT `department`, ROUND(AVG(`salary`)) AS `avg`, MAX(`salary`) - MIN(`salary`) AS `range` FROM `employees` GROUP BY `department` HAVING `avg` > 60000 ORDER BY `range` DESC
-- reads
SELECT department, ROUND(AVG(salary)), MAX(salary) - MIN(salary) FROM employees GROUP BY department HAVING ROUND(AVG(salary)) > 60000

-- mysql
SELECT COUNT(*) / COUNT(DISTINCT country) AS per_country FROM employees
-- reads
SELECT COUNT(*) / COUNT(DISTINCT country) FROM employees

-- mysql impossible
SELECT SUBSTRING_INDEX(email, '@', -1) AS domain, COUNT(*) FROM employees GROUP BY domain

-- tsql
SELECT [t0].[department], [t0].[a0] FROM (SELECT TOP (1000001) [department], AVG(CAST([salary] AS FLOAT)) AS [a0] FROM [hr].[employees] AS [$Table] GROUP BY [department]) AS [t0] ORDER BY [t0].[department]
-- reads
SELECT department, AVG(salary) FROM employees GROUP BY department

-- tsql
SELECT department, COUNT(*) AS n, CAST(100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS DECIMAL(5,2)) AS pct FROM employees GROUP BY department
-- reads
SELECT department, COUNT(*), ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 2) FROM employees GROUP BY department

-- tsql
SELECT NTILE(4) OVER (ORDER BY AVG(salary)) AS q, department FROM employees WHERE department IS NOT NULL GROUP BY department

-- tsql
SELECT CASE WHEN DATEDIFF(DAY, hired_on, '2024-12-31') < 365 THEN 'new' WHEN DATEDIFF(DAY, hired_on, '2024-12-31') < 1825 THEN 'mid' ELSE 'old' END AS tenure, COUNT(*) FROM employees WHERE hired_on IS NOT NULL GROUP BY CASE WHEN DATEDIFF(DAY, hired_on, '2024-12-31') < 365 THEN 'new' WHEN DATEDIFF(DAY, hired_on, '2024-12-31') < 1825 THEN 'mid' ELSE 'old' END
-- reads
SELECT CASE WHEN DATE '2024-12-31' - hired_on < 365 THEN 'new' WHEN DATE '2024-12-31' - hired_on < 1825 THEN 'mid' ELSE 'old' END, COUNT(*) FROM employees WHERE hired_on IS NOT NULL GROUP BY 1

-- spark
SELECT department, avg(salary) avg_salary, stddev_samp(salary) / sqrt(count(*)) AS se FROM employees WHERE salary IS NOT NULL GROUP BY department HAVING count(*) > 10
-- reads
SELECT department, avg(salary), stddev_samp(salary) / sqrt(count(*)) FROM employees WHERE salary IS NOT NULL GROUP BY department HAVING count(*) > 10

-- spark
SELECT country, sum(case when remote then 1 else 0 end) / count(*) as remote_share, approx_count_distinct(department) as depts FROM employees GROUP BY country
-- reads
SELECT country, sum(case when remote then 1 else 0 end) / count(*), count(distinct department) FROM employees GROUP BY country

-- spark
SELECT ceil(`Years at Company` / 5) AS five, count(*) FROM employees GROUP BY ceil(`Years at Company` / 5)
-- reads
SELECT ceil("Years at Company" / 5), count(*) FROM employees GROUP BY 1

-- postgres
SELECT CASE WHEN AVG(salary) > 150000 THEN 'high' ELSE 'low' END AS tier, department FROM employees GROUP BY department

-- postgres
SELECT tier, COUNT(*) FROM (SELECT CASE WHEN salary >= 150000 THEN 'A' WHEN salary >= 80000 THEN 'B' ELSE 'C' END AS tier FROM employees WHERE salary IS NOT NULL) s GROUP BY tier ORDER BY tier

-- postgres
SELECT date_trunc('year', hired_on)::date AS cohort, COUNT(*) AS hired, SUM(terminated::int) AS left_, ROUND(1 - AVG(terminated::int), 3) AS retention FROM employees GROUP BY cohort ORDER BY cohort
-- reads
SELECT date_trunc('year', hired_on)::date, COUNT(*), SUM(terminated::int), ROUND(1 - AVG(terminated::int), 3) FROM employees GROUP BY 1

-- postgres
SELECT country, SUM(salary + COALESCE(bonus, 0)) AS comp FROM employees GROUP BY country
-- reads
SELECT country, SUM(salary + COALESCE(bonus, 0)) FROM employees GROUP BY country

-- postgres impossible
SELECT age(current_date, hired_on) FROM employees

-- snowflake
SELECT DEPARTMENT, GENDER, COUNT(*) AS N, ROUND(RATIO_TO_REPORT(COUNT(*)) OVER (PARTITION BY DEPARTMENT) * 100, 1) AS PCT FROM EMPLOYEES WHERE DEPARTMENT IS NOT NULL AND GENDER IS NOT NULL GROUP BY 1, 2
-- reads
SELECT department, gender, COUNT(*), ROUND(COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY department) * 1000) / 10 FROM employees WHERE department IS NOT NULL AND gender IS NOT NULL GROUP BY 1, 2

-- snowflake
SELECT NVL(DEPARTMENT, '(none)') AS DEPT, AVG(SALARY) FROM EMPLOYEES GROUP BY 1 HAVING AVG(SALARY) > 100000 ORDER BY 2 DESC
-- reads
SELECT COALESCE(department, '(none)'), AVG(salary) FROM employees GROUP BY 1 HAVING AVG(salary) > 100000

-- bigquery
SELECT department, COUNT(*) AS n, AVG(salary) AS s, RANK() OVER (ORDER BY AVG(salary) DESC) AS rk FROM hr.employees WHERE department IS NOT NULL GROUP BY department QUALIFY rk <= 2
-- reads
SELECT department, COUNT(*), AVG(salary), RANK() OVER (ORDER BY AVG(salary) DESC) AS rk FROM employees WHERE department IS NOT NULL GROUP BY department QUALIFY rk <= 2

-- bigquery
SELECT job_level, SUM(IF(gender = 'F', salary, 0)) / NULLIF(COUNTIF(gender = 'F'), 0) AS f_avg FROM hr.employees GROUP BY job_level
-- reads
SELECT job_level, SUM(IF(gender = 'F', salary, 0)) / COUNT(*) FILTER (WHERE gender = 'F') FROM employees GROUP BY job_level

-- duckdb
SELECT "Years at Company" // 5 AS five, avg(salary) FROM employees GROUP BY five ORDER BY five

-- duckdb unread
SELECT department, max(salary) - min(salary) AS spread, rating FROM employees GROUP BY department, rating HAVING count(*) > 4

-- mysql
SELECT department, AVG(salary) AS avg_salary FROM employees WHERE hired_on < DATE_SUB('2024-12-31', INTERVAL 5 YEAR) GROUP BY department
-- reads
SELECT department, AVG(salary) FROM employees WHERE hired_on < DATE '2019-12-31' GROUP BY department

-- mysql
SELECT CASE rating WHEN 5 THEN 'star' WHEN 1 THEN 'risk' ELSE 'core' END AS talent, COUNT(*) AS n, AVG(bonus) FROM employees WHERE rating IS NOT NULL GROUP BY talent
-- reads
SELECT CASE rating WHEN 5 THEN 'star' WHEN 1 THEN 'risk' ELSE 'core' END, COUNT(*), AVG(bonus) FROM employees WHERE rating IS NOT NULL GROUP BY 1

-- tsql
WITH d AS (SELECT department, AVG(salary) AS s FROM hr.employees WHERE department IS NOT NULL GROUP BY department) SELECT department, s, s - (SELECT AVG(s) FROM d) AS vs_mean FROM d
-- reads
WITH d AS (SELECT department, AVG(salary) AS s FROM employees WHERE department IS NOT NULL GROUP BY department) SELECT department, s, s - (SELECT AVG(s) FROM d) FROM d

-- tsql
SELECT country, COUNT(*) AS n, COUNT(CASE WHEN remote = 1 THEN 1 END) * 100 / COUNT(*) AS remote_pct FROM hr.employees GROUP BY country
-- reads
SELECT country, COUNT(*), COUNT(CASE WHEN remote THEN 1 END) * 100 / COUNT(*) FROM employees GROUP BY country

-- spark
SELECT year(hired_on) AS y, count(*) AS n, sum(count(*)) OVER (ORDER BY year(hired_on)) AS total FROM employees WHERE hired_on IS NOT NULL GROUP BY year(hired_on)

-- spark
SELECT department, country, avg(salary) FROM employees GROUP BY department, country GROUPING SETS ((department, country), (department), ())
-- reads
SELECT department, country, avg(salary) FROM employees GROUP BY GROUPING SETS ((department, country), (department), ())
