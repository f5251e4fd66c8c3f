SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people WHERE smoker
select count(*) from PEOPLE where SMOKER
SELECT COUNT(1) AS n, COUNT('x') AS m FROM people WHERE member
SELECT COUNT(NULL) FROM people WHERE member
SELECT COUNT(age) FROM people
SELECT COUNT(city) FROM people
SELECT COUNT(comment) FROM people WHERE member
SELECT COUNT(smoker) FROM people
SELECT COUNT(CASE WHEN age > 50 THEN 'old' END) FROM people
SELECT COUNT(CASE WHEN age > 50 THEN city END) FROM people
SELECT SUM(age) FROM people
SELECT SUM(balance) FROM people WHERE balance < 0
SELECT SUM(balance), SUM(-balance), SUM(balance * balance) FROM people
SELECT SUM(age + balance), SUM(age - balance) FROM people
SELECT AVG(age) FROM people
SELECT AVG(income) FROM people WHERE smoker AND age >= 30
SELECT AVG(age - balance) FROM people
SELECT AVG(age) - AVG(balance) AS gap FROM people
SELECT AVG(COALESCE(age, 40)) FROM people
SELECT AVG(income / 10 + 3) FROM people
SELECT COUNT(*), COUNT(age), SUM(age), AVG(age) FROM people WHERE member
SELECT SUM(income), AVG(income), COUNT(income) FROM people
SELECT VARIANCE(age), VAR_POP(age), VAR_SAMP(age) FROM people
SELECT STDDEV(income), STDDEV_POP(income), STDDEV_SAMP(income) FROM people WHERE member
SELECT VAR_POP(balance) FROM people WHERE balance > 0
SELECT CORR(age, income), COVAR_SAMP(age, income), COVAR_POP(age, balance) FROM people
SELECT smoker, CORR(income, age) AS r, COUNT(*) FROM people GROUP BY smoker
SELECT MIN(age), MAX(age) FROM people
SELECT MIN(balance), MAX(balance) FROM people WHERE balance BETWEEN -10 AND 10
SELECT COUNT_IF(age > 50), COUNT_IF(smoker), COUNTIF(city = 'Oslo') FROM people
SELECT COUNT(*) FILTER (WHERE smoker) FROM people
SELECT COUNT(*) FILTER (WHERE smoker), COUNT(*) FILTER (WHERE NOT smoker), COUNT(*) FROM people WHERE member
SELECT SUM(age) FILTER (WHERE smoker), AVG(age) FILTER (WHERE smoker), AVG(age) FROM people
SELECT COUNT_IF(age > 50) FILTER (WHERE member) FROM people
SELECT SUM(CASE WHEN smoker THEN age ELSE 0 END) FROM people
SELECT SUM(CASE WHEN smoker THEN age END), AVG(CASE WHEN age < 20 THEN 1 ELSE 0 END) FROM people
SELECT SUM(CASE WHEN city = 'Oslo' THEN 1 WHEN city = 'Paris' THEN 2 ELSE 3 END) FROM people
SELECT SUM(age > 50) FROM people
SELECT SUM(ABS(balance)), SUM(LEAST(age, 50)), SUM(GREATEST(balance, 0)) FROM people WHERE age IS NOT NULL
SELECT SUM(CLAMP(income, 0, 100)) FROM people
SELECT COUNT(*) FROM people WHERE age = 30 OR age = 31
SELECT COUNT(*) FROM people WHERE age <> 30
SELECT COUNT(*) FROM people WHERE age != 30 AND age <= 60
SELECT COUNT(*) FROM people WHERE NOT (age > 30 AND smoker)
SELECT COUNT(*) FROM people WHERE NOT age > 30
SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 40
SELECT COUNT(*) FROM people WHERE age NOT BETWEEN 30 AND 40
SELECT COUNT(*) FROM people WHERE city IN ('Oslo', 'Paris')
SELECT COUNT(*) FROM people WHERE city NOT IN ('Oslo', 'Paris')
SELECT COUNT(*) FROM people WHERE city NOT IN ('Oslo', NULL)
SELECT COUNT(*) FROM people WHERE grade IN (1, 3)
SELECT COUNT(*) FROM people WHERE city LIKE '%o'
SELECT COUNT(*) FROM people WHERE city NOT LIKE 'P%'
SELECT COUNT(*) FROM people WHERE city LIKE 'S_o%'
SELECT COUNT(*) FROM people WHERE comment LIKE 'a%' OR comment = 'ünïcode'
SELECT COUNT(*) FROM people WHERE city = 'it''s'
SELECT COUNT(*) FROM people WHERE city = 'São Paulo'
SELECT COUNT(*) FROM people WHERE age IS NULL
SELECT COUNT(*) FROM people WHERE age IS NOT NULL AND smoker IS NULL
SELECT COUNT(*) FROM people WHERE city IS NULL OR grade IS NULL
SELECT COUNT(*) FROM people WHERE age = NULL
SELECT COUNT(*) FROM people WHERE smoker = TRUE AND member = FALSE
SELECT COUNT(*) FROM people WHERE balance < -10
SELECT COUNT(*) FROM people WHERE balance * 2 + age > 100
SELECT COUNT(*) FROM people WHERE age / 2 >= 20.5
SELECT COUNT(*) FROM people WHERE age > balance
SELECT COUNT(*) FROM people WHERE seen >= DATE '2024-01-01'
SELECT COUNT(*) FROM people WHERE seen BETWEEN DATE '2023-12-24' AND DATE '2024-02-29'
SELECT COUNT(*) FROM people WHERE "Blood Pressure" > 120
SELECT AVG("blood pressure") FROM people
SELECT COUNT(*) FROM people WHERE age > 1000
SELECT COUNT(*), SUM(age) FROM people WHERE FALSE
SELECT SUM(age) FROM people WHERE age > 50 AND age < 40
SELECT city, COUNT(*) FROM people GROUP BY city
SELECT city AS town, COUNT(*) AS n FROM people GROUP BY town
SELECT city, smoker, COUNT(*) FROM people GROUP BY city, smoker
SELECT city, smoker, grade, COUNT(*), SUM(balance) FROM people GROUP BY ALL
SELECT grade, AVG(income), SUM(age), COUNT(age) FROM people GROUP BY grade
SELECT smoker, VAR_POP(age), STDDEV(balance) FROM people GROUP BY smoker
SELECT city, COUNT(*) FROM people WHERE city <> 'Oslo' GROUP BY city
SELECT city, COUNT(*) FROM people WHERE city IN ('Oslo', 'it''s') GROUP BY 1
SELECT city, COUNT(*) FROM people WHERE city LIKE '%a%' OR city IS NULL GROUP BY city
SELECT age, COUNT(*) FROM people GROUP BY age
SELECT age, COUNT(*) FROM people WHERE age BETWEEN 18 AND 21 GROUP BY age
SELECT balance, COUNT(*) FROM people WHERE balance >= 45 GROUP BY balance
SELECT seen, COUNT(*) FROM people WHERE seen < DATE '2023-11-20' GROUP BY seen
SELECT FLOOR(age / 10) AS decade, COUNT(*) FROM people GROUP BY decade
SELECT FLOOR(age / 10) * 10 AS band, COUNT(*), AVG(income) FROM people GROUP BY 1
SELECT FLOOR(balance / 20) * 20 AS band, COUNT(*) FROM people GROUP BY band
SELECT 5 + 10 * FLOOR((age - 5) / 10) AS band, COUNT(*) FROM people WHERE age >= 5 GROUP BY band
SELECT FLOOR(income / 250) AS part, COUNT(*) FROM people GROUP BY part
SELECT -FLOOR(-balance / 25) AS up, COUNT(*) FROM people GROUP BY up
SELECT WIDTH_BUCKET(age, 20, 80, 3) AS w, COUNT(*) FROM people GROUP BY w
SELECT WIDTH_BUCKET(balance, -30, 30, 4) AS w, SUM(balance) FROM people GROUP BY w
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS a, COUNT(*) FROM people GROUP BY a
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' END AS a, COUNT(*) FROM people GROUP BY a
SELECT CASE WHEN age < 18 OR age > 80 THEN 'x' WHEN age < 65 THEN 'y' ELSE 'x' END AS a, AVG(age) FROM people GROUP BY a
SELECT CASE WHEN age < 18 THEN 2 WHEN age < 65 THEN 1 ELSE -1 END AS a, COUNT(*) FROM people GROUP BY a ORDER BY a
SELECT CASE WHEN city = 'Oslo' THEN 'ø' ELSE '雪' END AS c, COUNT(*) FROM people GROUP BY c
SELECT COALESCE(CASE WHEN age < 18 THEN 'child' END, 'other') AS a, COUNT(*) FROM people GROUP BY a
SELECT age >= 65 AS old, COUNT(*) FROM people GROUP BY old
SELECT city IN ('Oslo', 'Paris') AS known, COUNT(*) FROM people GROUP BY known
SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) FROM people GROUP BY m
SELECT DATE_TRUNC('week', seen) AS w, COUNT(*) FROM people WHERE seen > DATE '2024-01-15' GROUP BY w
SELECT DATE_TRUNC('quarter', seen) AS q, AVG(balance) FROM people GROUP BY q
SELECT EXTRACT(YEAR FROM seen) AS y, COUNT(*) FROM people GROUP BY y
SELECT YEAR(seen) AS y, smoker, COUNT(*) FROM people GROUP BY y, smoker
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING n > 90
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 50 AND AVG(balance) > 0
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING city IS NOT NULL AND NOT n BETWEEN 0 AND 87
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING city IN ('Oslo', 'Paris') OR city = 'it''s'
SELECT age, COUNT(*) AS n FROM people WHERE age < 30 GROUP BY age ORDER BY age DESC
SELECT age, COUNT(*) AS n FROM people WHERE age < 30 GROUP BY age ORDER BY COUNT(*) DESC, age
SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY 2 DESC, 1 LIMIT 5
SELECT age, COUNT(*) AS n FROM people GROUP BY age HAVING n > 0 ORDER BY age LIMIT 5 OFFSET 3
SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY city NULLS FIRST
SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY city
SELECT COUNT(*) AS n FROM people WHERE age > 30 HAVING n > 500
SELECT SUM(age) / COUNT(age) AS a, AVG(age) AS b FROM people
SELECT COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS share FROM people
SELECT 100.0 * COUNT_IF(smoker) / COUNT(smoker) AS percent FROM people
SELECT SUM(income) / NULLIF(SUM(age), 0) AS r FROM people WHERE member
SELECT city, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY city
SELECT city, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY city HAVING COUNT(*) > 80
SELECT -COUNT(*) AS a, +SUM(balance) AS b, (COUNT(*) - 10) * 2 AS c FROM people WHERE member
SELECT ROUND(AVG(age), 1) AS a, ABS(SUM(balance)) AS b, SQRT(COUNT(*)) AS c FROM people WHERE member
SELECT COUNT(*)::DOUBLE / 3 AS a, CAST(SUM(age) AS BIGINT) AS b, COALESCE(SUM(age), 0) AS c FROM people WHERE member
SELECT FLOOR(age / 10) * 10 AS band, FLOOR(age / 10) * 10 + 5 AS middle, COUNT(*) FROM people GROUP BY band
SELECT 'all' AS what, 7 AS seven, COUNT(*) AS n FROM people WHERE member
SELECT p.city, AVG(p.age) FROM people AS p WHERE p.smoker GROUP BY p.city
SELECT people.city, COUNT(*) FROM people GROUP BY people.city
WITH a AS (SELECT * FROM people WHERE smoker) SELECT COUNT(*) FROM a
WITH a AS (SELECT age / 10 AS x, city FROM people WHERE smoker) SELECT city, AVG(x) FROM a GROUP BY city
WITH a AS (SELECT age, balance FROM people WHERE age > 20), b AS (SELECT age - balance AS d FROM a WHERE balance < 0) SELECT COUNT(*), AVG(d) FROM b
SELECT AVG(x) FROM (SELECT age * 2 AS x FROM people WHERE member) AS t WHERE x > 50
SELECT AVG(age) FROM (SELECT age + 1 AS age FROM people) t
SELECT band, COUNT(*) FROM (SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS band FROM people) t WHERE band = 'young' GROUP BY band
SELECT COUNT(*) FROM (SELECT CASE WHEN age < 30 THEN city ELSE 'x' END AS c FROM people) t WHERE c IN ('x', 'Oslo')
SELECT t.n, COUNT(*) FROM (SELECT FLOOR(age / 25) AS n FROM people WHERE age IS NOT NULL) t GROUP BY t.n ORDER BY t.n
SELECT r.name, COUNT(*) FROM people JOIN regions r ON people.city = r.key GROUP BY r.name
SELECT r.name, COUNT(*) FROM people p LEFT JOIN regions AS r ON r.key = p.city GROUP BY r.name
SELECT r.half, COUNT(*), SUM(r.cost), AVG(age) FROM people p INNER JOIN regions r ON p.city = r.key GROUP BY r.half
SELECT COUNT(*) FROM people JOIN regions r ON city = key WHERE r.name = 'North'
SELECT COUNT(*) FROM people LEFT JOIN regions r ON city = key WHERE r.name IS NULL
SELECT COUNT(*) FROM people LEFT JOIN regions r ON city = key WHERE r.name <> 'North'
SELECT COUNT(*) FROM people LEFT JOIN regions r ON city = key WHERE r.name NOT LIKE 'N%' AND r.half IN ('N', 'S')
SELECT SUM(age * r.cost) FROM people JOIN regions r ON city = key
SELECT COALESCE(r.name, 'none') AS v, COUNT(*) FROM people LEFT JOIN regions r ON city = key GROUP BY v
SELECT r.name, COUNT(*) FROM (SELECT city AS key, age FROM people WHERE age > 40) t JOIN regions r USING (key) GROUP BY r.name
SELECT COUNT(*) FROM people;
SELECT city, COUNT(*) FROM people GROUP BY city, city
SELECT COUNT(*) FROM people WHERE city = 'Oslo' OR TRUE
SELECT SUM(age) FILTER (WHERE city IS NULL) FROM people
SELECT age, age + 1 AS next, COUNT(*) FROM people WHERE age < 3 GROUP BY age
SELECT smoker OR member AS any, COUNT(*) FROM people GROUP BY smoker OR member
SELECT NOT smoker AS no, COUNT(*) FROM people GROUP BY NOT smoker
SELECT city, COUNT(*) FROM people GROUP BY (city)
SELECT COUNT(*) FROM "people" "p" WHERE "p"."age" > 3
SELECT AVG(age) FROM people WHERE age IS NULL
SELECT MEDIAN(age) FROM people WHERE FALSE
SELECT city, MAX(income) FROM people WHERE age > 200 GROUP BY city
SELECT income > 500 AND smoker AS x, COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM people WHERE TIMESTAMP '2024-01-01 00:00:00' < seen
