-- snowflake
SELECT SUM(IFF(smoker, 1, 0)) AS n, AVG(IFF(age > 50, balance, NULL)) AS b FROM people
-- reads
SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS n, AVG(CASE WHEN age > 50 THEN balance END) AS b FROM people

-- mysql
SELECT IF(age >= 65, 'old', 'young') AS a, COUNT(*) FROM people GROUP BY a
-- reads
SELECT CASE WHEN age >= 65 THEN 'old' ELSE 'young' END AS a, COUNT(*) FROM people GROUP BY a

-- tsql
SELECT IIF(age >= 65, 'old', 'young') AS a, COUNT(*) FROM people GROUP BY IIF(age >= 65, 'old', 'young')
-- reads
SELECT CASE WHEN age >= 65 THEN 'old' ELSE 'young' END AS a, COUNT(*) FROM people GROUP BY a

-- postgres
SELECT CASE city WHEN 'Oslo' THEN 'north' WHEN 'Paris' THEN 'middle' ELSE 'other' END AS r, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT CASE city WHEN 'Oslo' THEN 'north' WHEN 'Paris' THEN 'middle' ELSE 'other' END AS r, COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT COUNT(*) FROM people WHERE smoker IS TRUE AND member IS NOT TRUE
-- reads
SELECT COUNT(*) FROM people WHERE smoker IS TRUE AND member IS NOT TRUE

-- postgres
SELECT COUNT(*) FROM people WHERE NOT (smoker IS FALSE)
-- reads
SELECT COUNT(*) FROM people WHERE NOT (smoker IS NOT DISTINCT FROM FALSE)

-- postgres
SELECT SUM(smoker::int) AS n, AVG(smoker::int) AS share FROM people
-- reads
SELECT SUM(smoker::int) AS n, AVG(smoker::int) AS share FROM people

-- mysql
SELECT SUM(smoker) AS n, SUM(age > 50) AS old FROM people
-- reads
SELECT SUM(smoker::int) AS n, SUM((age > 50)::int) AS old FROM people

-- tsql
SELECT SUM(CAST(smoker AS int)) AS n, AVG(CAST(age AS float)) AS a FROM people WHERE member = 1
-- reads
SELECT SUM(smoker::int) AS n, AVG(age) AS a FROM people WHERE member

-- postgres
SELECT COALESCE(city, 'none') AS c, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT COALESCE(city, 'none') AS c, COUNT(*) FROM people GROUP BY 1

-- snowflake
SELECT NVL(city, 'Oslo') AS c, COUNT(*) FROM people GROUP BY c
-- reads
SELECT COALESCE(city, 'Oslo') AS c, COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT ISNULL(city, 'none') AS c, COUNT(*) FROM people GROUP BY ISNULL(city, 'none')
-- reads
SELECT COALESCE(city, 'none') AS c, COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT AVG(IFNULL(age, 0)) AS a FROM people
-- reads
SELECT AVG(COALESCE(age, 0)) AS a FROM people

-- snowflake
SELECT SUM(ZEROIFNULL(income)) AS s, DIV0(SUM(income), COUNT(income)) AS m FROM people
-- reads
SELECT SUM(income) AS s, AVG(income) AS m FROM people

-- bigquery
SELECT SAFE_DIVIDE(COUNTIF(smoker), COUNT(smoker)) AS share FROM people
-- reads
SELECT AVG(smoker::int) AS share FROM people

-- postgres
SELECT AVG(NULLIF(balance, 0)) AS b, COUNT(NULLIF(grade, 2)) AS g FROM people
-- reads
SELECT AVG(NULLIF(balance, 0)) AS b, COUNT(NULLIF(grade, 2)) AS g FROM people

-- spark
SELECT nvl(sum(age), 0) AS s, count_if(smoker) AS n FROM people
-- reads
SELECT SUM(age) AS s, COUNT(*) FILTER (WHERE smoker) AS n FROM people

-- postgres
SELECT AVG(age)::numeric(10,2) AS a, ROUND(AVG(income)::numeric, 1) AS i FROM people
-- reads
SELECT ROUND(AVG(age), 2) AS a, ROUND(AVG(income), 1) AS i FROM people

-- snowflake
SELECT DECODE(grade, 1, 'one', 2, 'two', 'more') AS g, COUNT(*) FROM people GROUP BY g
-- reads
SELECT CASE grade WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'more' END AS g, COUNT(*) FROM people GROUP BY g

-- postgres
SELECT city, CASE WHEN COUNT(*) > 88 THEN 'large' ELSE 'small' END AS size FROM people GROUP BY city
-- reads
SELECT city, CASE WHEN COUNT(*) > 88 THEN 'large' ELSE 'small' END AS size FROM people GROUP BY city
