-- postgres
SELECT COUNT(*) FROM people WHERE smoker = 'true' AND member IS NOT FALSE
-- reads
SELECT COUNT(*) FROM people WHERE smoker AND member

-- postgres
SELECT city, COUNT(CASE WHEN smoker THEN 1 END) AS smokers, COUNT(CASE WHEN smoker THEN 1 END)::float / COUNT(*) AS rate FROM people GROUP BY city
-- reads
SELECT city, COUNT(CASE WHEN smoker THEN 1 END), COUNT(CASE WHEN smoker THEN 1 END) / COUNT(*) FROM people GROUP BY city

-- postgres
SELECT bool_or(smoker) FROM people WHERE city = 'Atlantis'
-- reads
SELECT COUNT(*) > 0 FROM people WHERE city = 'Atlantis'

-- postgres
SELECT city, grade, COUNT(*) FROM people WHERE (city, grade) IN (('Oslo', 1), ('Paris', 2)) GROUP BY city, grade
-- reads
SELECT city, grade, COUNT(*) FROM people WHERE (city = 'Oslo' AND grade = 1) OR (city = 'Paris' AND grade = 2) GROUP BY city, grade

-- postgres
SELECT COUNT(*) FROM people WHERE city = ANY('{Oslo,Paris}')
-- reads
SELECT COUNT(*) FROM people WHERE city IN ('Oslo', 'Paris')

-- postgres
SELECT COUNT(*) FROM people WHERE city = ANY(ARRAY['Oslo', 'Paris']) AND age <> ALL(ARRAY[30, 40])
-- reads
SELECT COUNT(*) FROM people WHERE city IN ('Oslo', 'Paris') AND age NOT IN (30, 40)

-- postgres
SELECT COUNT(*) FROM people WHERE NOT (age < 18 OR age >= 65) AND income BETWEEN SYMMETRIC 500 AND 100
-- reads
SELECT COUNT(*) FROM people WHERE NOT (age < 18 OR age >= 65) AND income BETWEEN 100 AND 500

-- postgres
SELECT COALESCE(city, 'unknown') AS c, COUNT(*) FROM people GROUP BY COALESCE(city, 'unknown')

-- postgres
SELECT COUNT(*) FROM people WHERE COALESCE(age, 0) > 30 AND COALESCE(smoker, FALSE)

-- postgres
SELECT COUNT(*) - COUNT(age) AS missing, 1.0 * COUNT(age) / COUNT(*) AS filled FROM people

-- postgres
SELECT COUNT(*) FROM people WHERE age > 40 IS TRUE AND (smoker IS NOT NULL) = TRUE
-- reads
SELECT COUNT(*) FROM people WHERE age > 40 AND smoker IS NOT NULL

-- snowflake
SELECT city, COUNT_IF(age > 50) AS old, SUM(IFF(smoker, income, 0)) AS s, ZEROIFNULL(SUM(balance)) AS b, DIV0(SUM(income), COUNT(*)) AS m FROM people GROUP BY city
-- reads
SELECT city, COUNT(*) FILTER (age > 50), SUM(CASE WHEN smoker THEN income ELSE 0 END), SUM(balance), SUM(income) / COUNT(*) FROM people GROUP BY 1

-- snowflake
SELECT DECODE(grade, 1, 'low', 2, 'mid', 3, 'high', 'none') AS g, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT CASE grade WHEN 1 THEN 'low' WHEN 2 THEN 'mid' WHEN 3 THEN 'high' ELSE 'none' END, COUNT(*) FROM people GROUP BY 1

-- snowflake
SELECT NVL2(city, 'known', 'unknown') AS k, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT CASE WHEN city IS NOT NULL THEN 'known' ELSE 'unknown' END, COUNT(*) FROM people GROUP BY 1

-- snowflake
SELECT BOOLOR_AGG(smoker), COUNT(*) FROM people WHERE age > 200
-- reads
SELECT COUNT(*) > 0, COUNT(*) FROM people WHERE age > 200

-- snowflake
SELECT city, AVG(NULLIF(income, 0)) FROM people GROUP BY city

-- bigquery
SELECT IF(age >= 18, 'adult', 'minor') AS kind, COUNT(*) AS n, SAFE_DIVIDE(SUM(income), COUNT(*)) AS mean FROM people WHERE age IS NOT NULL GROUP BY kind
-- reads
SELECT CASE WHEN age >= 18 THEN 'adult' ELSE 'minor' END, COUNT(*), SUM(income) / COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY 1

-- bigquery
SELECT city, LOGICAL_OR(smoker) AS any_smoker, COUNTIF(smoker) / COUNT(*) AS share FROM people GROUP BY city
-- reads
SELECT city, BOOL_OR(smoker), COUNT(*) FILTER (smoker) / COUNT(*) FROM people GROUP BY city

-- bigquery
SELECT IFNULL(city, "none") AS c, COUNT(*) FROM people GROUP BY 1
-- reads
SELECT COALESCE(city, 'none'), COUNT(*) FROM people GROUP BY 1

-- bigquery
SELECT RANGE_BUCKET(age, [18, 40, 65]) AS b, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY b
-- reads
SELECT CASE WHEN age < 18 THEN 0 WHEN age < 40 THEN 1 WHEN age < 65 THEN 2 ELSE 3 END, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY 1

-- mysql
SELECT IF(smoker, 'yes', 'no') AS s, COUNT(*) FROM people GROUP BY s
-- reads
SELECT CASE WHEN smoker THEN 'yes' ELSE 'no' END, COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT SUM(age > 30) AS n, SUM(smoker = 1 AND city = "Oslo") AS m, AVG(smoker) AS share FROM people
-- reads
SELECT COUNT(*) FILTER (age > 30), COUNT(*) FILTER (smoker AND city = 'Oslo'), AVG(smoker::INT) FROM people

-- mysql
SELECT COUNT(*) FROM people WHERE city IN ("Oslo", "Paris") && age > 20 || grade = 3
-- reads
SELECT COUNT(*) FROM people WHERE (city IN ('Oslo', 'Paris') AND age > 20) OR grade = 3

-- mysql
SELECT ELT(grade, 'low', 'mid', 'high') AS g, COUNT(*) FROM people GROUP BY g
-- reads
SELECT CASE grade WHEN 1 THEN 'low' WHEN 2 THEN 'mid' WHEN 3 THEN 'high' END, COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT COUNT(*) FROM people WHERE ISNULL(city) OR city <=> 'Oslo'
-- reads
SELECT COUNT(*) FROM people WHERE city IS NULL OR city = 'Oslo'

-- tsql
SELECT IIF(age < 40, 'young', 'old') AS a, COUNT(*) AS n FROM people GROUP BY IIF(age < 40, 'young', 'old')
-- reads
SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END, COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT CHOOSE(grade, 'low', 'mid', 'high') AS g, COUNT(*) FROM people GROUP BY CHOOSE(grade, 'low', 'mid', 'high')
-- reads
SELECT CASE grade WHEN 1 THEN 'low' WHEN 2 THEN 'mid' WHEN 3 THEN 'high' END, COUNT(*) FROM people GROUP BY 1

-- tsql
SELECT COUNT(*) FROM people WITH (NOLOCK) WHERE smoker = 1 AND city = N'Oslo' OPTION (MAXDOP 1)
-- reads
SELECT COUNT(*) FROM people WHERE smoker AND city = 'Oslo'

-- tsql
SELECT ISNULL(city, 'none') AS c, AVG(1.0 * age) AS a FROM people GROUP BY ISNULL(city, 'none')
-- reads
SELECT COALESCE(city, 'none'), AVG(age) FROM people GROUP BY 1

-- spark
SELECT nvl(city, 'none') AS c, sum(if(smoker, 1, 0)) AS s, count_if(member) AS m FROM people GROUP BY 1
-- reads
SELECT COALESCE(city, 'none'), SUM(CASE WHEN smoker THEN 1 ELSE 0 END), COUNT(*) FILTER (member) FROM people GROUP BY 1

-- spark
SELECT count(*) FROM people WHERE isnotnull(city) AND age between 20 and 30 AND city rlike '^O'
-- reads
SELECT COUNT(*) FROM people WHERE city IS NOT NULL AND age BETWEEN 20 AND 30 AND city LIKE 'O%'

-- duckdb
FROM people SELECT city, count(*) FILTER (smoker) AS s, avg(age) FILTER (WHERE NOT smoker) AS a GROUP BY city

-- duckdb
SELECT age > 40 AS older, smoker, count(*) FROM people GROUP BY ALL

-- duckdb
SELECT count(*) FROM people WHERE city NOT IN ('Oslo') AND age IS NOT DISTINCT FROM 40

-- postgres
SELECT city, 100.0 * SUM(CASE WHEN smoker THEN 1 ELSE 0 END) / NULLIF(SUM(CASE WHEN smoker IS NOT NULL THEN 1 ELSE 0 END), 0) AS pct FROM people GROUP BY city
-- reads
SELECT city, 100.0 * SUM(CASE WHEN smoker THEN 1 ELSE 0 END) / SUM(CASE WHEN smoker IS NOT NULL THEN 1 ELSE 0 END) FROM people GROUP BY city
