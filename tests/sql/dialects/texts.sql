-- postgres
SELECT COUNT(*) FROM people WHERE city ILIKE 'o%' OR city ILIKE '%PAULO'
-- reads
SELECT COUNT(*) FROM people WHERE city ILIKE 'o%' OR city ILIKE '%PAULO'

-- postgres
SELECT COUNT(*) FROM people WHERE LOWER(city) = 'oslo' AND UPPER(city) <> 'PARIS'
-- reads
SELECT COUNT(*) FROM people WHERE LOWER(city) = 'oslo' AND UPPER(city) <> 'PARIS'

-- postgres
SELECT COUNT(*) FROM people WHERE city ~ '^[OP]' AND city !~ 'z$'
-- reads
SELECT COUNT(*) FROM people WHERE regexp_matches(city, '^[OP]')

-- postgres
SELECT COUNT(*) FROM people WHERE city > 'P'
-- reads
SELECT COUNT(*) FROM people WHERE city > 'P'

-- mysql
SELECT COUNT(*) FROM people WHERE city REGEXP '^(Os|Pa)'
-- reads
SELECT COUNT(*) FROM people WHERE regexp_matches(city, '^(Os|Pa)')

-- bigquery
SELECT COUNT(*) FROM people WHERE REGEXP_CONTAINS(city, r'o$') OR STARTS_WITH(city, 'P')
-- reads
SELECT COUNT(*) FROM people WHERE regexp_matches(city, 'o$') OR starts_with(city, 'P')

-- snowflake
SELECT UPPER(city) AS c, COUNT(*) FROM people GROUP BY c
-- reads
SELECT UPPER(city) AS c, COUNT(*) FROM people GROUP BY c

-- duckdb
SELECT substring(city, 1, 1) AS c, count(*) FROM people GROUP BY c
-- reads
SELECT substring(city, 1, 1) AS c, count(*) FROM people GROUP BY c

-- tsql
SELECT LEFT(city, 2) AS c, COUNT(*) FROM people GROUP BY LEFT(city, 2)
-- reads
SELECT LEFT(city, 2) AS c, COUNT(*) FROM people GROUP BY c

-- spark
SELECT concat(city, '!') AS c, count(*) FROM people WHERE length(trim(city)) > 4 GROUP BY c
-- reads
SELECT city || '!' AS c, count(*) FROM people WHERE length(city) > 4 GROUP BY c

-- mysql
SELECT AVG(CHAR_LENGTH(city)) AS l FROM people
-- reads
SELECT AVG(LENGTH(city)) AS l FROM people

-- postgres
SELECT COUNT(*) FROM people WHERE SUBSTRING(city FROM 1 FOR 1) IN ('O', 'P') AND city NOT ILIKE 'PAR%'
-- reads
SELECT COUNT(*) FROM people WHERE SUBSTRING(city, 1, 1) IN ('O', 'P') AND city NOT ILIKE 'PAR%'
