-- postgres
SELECT COUNT(*) FROM people WHERE city ILIKE '%o%'

-- postgres
SELECT upper(left(city, 1)) AS initial, count(*) FROM people GROUP BY 1

-- postgres
SELECT count(*) FROM people WHERE city ~* '^(o|p)' AND city !~ 'x'
-- reads
SELECT COUNT(*) FROM people WHERE city ILIKE 'o%' OR city ILIKE 'p%'

-- postgres
SELECT city || ' (' || grade::text || ')' AS label, count(*) FROM people GROUP BY 1
-- reads
SELECT city || ' (' || grade::TEXT || ')', COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT length(city) AS l, count(*) FROM people GROUP BY length(city)

-- postgres
SELECT split_part(city, ' ', 1) AS first, count(*) FROM people GROUP BY 1

-- postgres
SELECT initcap(city) AS c, count(*) FROM people GROUP BY initcap(city)
-- reads
SELECT CASE city WHEN 'it''s' THEN 'It''S' ELSE city END, COUNT(*) FROM people GROUP BY 1

-- postgres
SELECT count(*) FROM people WHERE position('a' in city) > 0
-- reads
SELECT COUNT(*) FROM people WHERE CONTAINS(city, 'a')

-- postgres
SELECT count(*) FROM people WHERE city SIMILAR TO '(Oslo|Paris)'
-- reads
SELECT COUNT(*) FROM people WHERE city IN ('Oslo', 'Paris')

-- postgres
SELECT concat_ws('-', city, grade) AS k, count(*) FROM people WHERE city IS NOT NULL AND grade IS NOT NULL GROUP BY 1
-- reads
SELECT CONCAT_WS('-', city, grade), COUNT(*) FROM people WHERE city IS NOT NULL AND grade IS NOT NULL GROUP BY 1

-- snowflake
SELECT COUNT(*) FROM people WHERE CONTAINS(LOWER(city), 'os') OR STARTSWITH(city, 'P')
-- reads
SELECT COUNT(*) FROM people WHERE CONTAINS(LOWER(city), 'os') OR STARTS_WITH(city, 'P')

-- snowflake
SELECT COUNT(*) FROM people WHERE city ILIKE ANY ('o%', 'p%')
-- reads
SELECT COUNT(*) FROM people WHERE city ILIKE 'o%' OR city ILIKE 'p%'

-- snowflake
SELECT COUNT(*) FROM people WHERE CHARINDEX('s', city) = 2
-- reads
SELECT COUNT(*) FROM people WHERE STRPOS(city, 's') = 2

-- bigquery
SELECT COUNT(*) FROM people WHERE REGEXP_CONTAINS(city, r'^O') OR STARTS_WITH(city, 'P')
-- reads
SELECT COUNT(*) FROM people WHERE city LIKE 'O%' OR city LIKE 'P%'

-- bigquery
SELECT SUBSTR(city, 1, 2) AS p, COUNT(*) FROM people GROUP BY p
-- reads
SELECT SUBSTR(city, 1, 2), COUNT(*) FROM people GROUP BY 1

-- bigquery
SELECT CONCAT(city, '/', CAST(grade AS STRING)) AS k, COUNT(*) FROM people GROUP BY k
-- reads
SELECT city || '/' || grade::TEXT, COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT COUNT(*) FROM people WHERE city REGEXP '^O' OR LOCATE('r', city) > 0
-- reads
SELECT COUNT(*) FROM people WHERE city LIKE 'O%' OR CONTAINS(city, 'r')

-- mysql
SELECT LOWER(TRIM(city)) AS c, COUNT(*) FROM people GROUP BY c
-- reads
SELECT LOWER(TRIM(city)), COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT SUBSTRING_INDEX(city, ' ', 1) AS c, COUNT(*) FROM people GROUP BY c
-- reads
SELECT SPLIT_PART(city, ' ', 1), COUNT(*) FROM people GROUP BY 1

-- mysql
SELECT COUNT(*) FROM people WHERE FIND_IN_SET(city, 'Oslo,Paris') > 0
-- reads
SELECT COUNT(*) FROM people WHERE city IN ('Oslo', 'Paris')

-- tsql
SELECT LEFT(city, 1) + '...' AS c, LEN(city) AS l, COUNT(*) FROM people GROUP BY LEFT(city, 1) + '...', LEN(city)
-- reads
SELECT LEFT(city, 1) || '...', LENGTH(city), COUNT(*) FROM people GROUP BY 1, 2

-- tsql
SELECT COUNT(*) FROM people WHERE CHARINDEX('s', city) > 0 AND city LIKE '[OP]%'
-- reads
SELECT COUNT(*) FROM people WHERE CONTAINS(city, 's') AND (city LIKE 'O%' OR city LIKE 'P%')

-- spark
SELECT count(*) FROM people WHERE lower(city) LIKE 'os%' OR instr(city, 'ri') > 0
-- reads
SELECT COUNT(*) FROM people WHERE LOWER(city) LIKE 'os%' OR CONTAINS(city, 'ri')

-- duckdb
SELECT city[1] AS c, count(*) FROM people GROUP BY 1
-- reads
SELECT LEFT(city, 1), COUNT(*) FROM people GROUP BY 1

-- duckdb
SELECT regexp_extract(city, '^[A-Z]') AS c, count(*) FROM people GROUP BY 1

-- duckdb
SELECT count(*) FROM people WHERE city.lower() = 'oslo' OR prefix(city, 'Pa') OR suffix(city, 's')
-- reads
SELECT COUNT(*) FROM people WHERE LOWER(city) = 'oslo' OR PREFIX(city, 'Pa') OR SUFFIX(city, 's')

-- postgres
SELECT count(*) FROM people WHERE comment LIKE 'f%' OR comment = 'bad'

-- postgres
SELECT translate(city, 'os', 'xy') AS c, count(*) FROM people GROUP BY 1

-- postgres
SELECT reverse(city) AS c, lpad(city, 6, '*') AS p, count(*) FROM people GROUP BY 1, 2
