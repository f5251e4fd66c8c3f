-- postgres
SELECT school, grade_level, AVG(math) AS avg_math, AVG(reading) AS avg_reading, COUNT(*) AS n FROM students WHERE math IS NOT NULL AND reading IS NOT NULL GROUP BY school, grade_level ORDER BY school, grade_level

-- postgres
SELECT school, SUM(CASE WHEN math >= 70 THEN 1 ELSE 0 END)::float / COUNT(*) AS proficient FROM "sis"."students" GROUP BY school
-- reads
SELECT school, SUM(CASE WHEN math >= 70 THEN 1 ELSE 0 END) / COUNT(*) FROM students GROUP BY school

-- postgres impossible
SELECT ethnicity, COUNT(DISTINCT CASE WHEN absences >= 18 THEN student_id END) AS chronically_absent FROM students GROUP BY ethnicity

-- postgres
SELECT gender, frl, COUNT(*), COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY gender) AS pct FROM students GROUP BY gender, frl ORDER BY gender, frl

-- postgres
SELECT school, AVG(math) - (SELECT AVG(math) FROM students) AS vs_district FROM students GROUP BY school ORDER BY 2 DESC
-- reads
SELECT school, AVG(math) - (SELECT AVG(math) FROM students) FROM students GROUP BY school

-- postgres
SELECT CASE WHEN gpa >= 3.5 THEN 'A' WHEN gpa >= 2.5 THEN 'B' WHEN gpa >= 1.5 THEN 'C' WHEN gpa IS NULL THEN 'none' ELSE 'D' END AS band, COUNT(*) FROM students GROUP BY 1 ORDER BY MIN(gpa)
-- reads
SELECT CASE WHEN gpa >= 3.5 THEN 'A' WHEN gpa >= 2.5 THEN 'B' WHEN gpa >= 1.5 THEN 'C' WHEN gpa IS NULL THEN 'none' ELSE 'D' END, COUNT(*) FROM students GROUP BY 1

-- postgres rewritten
SELECT math / 10 AS decile, COUNT(*) FROM students GROUP BY math / 10
-- reads
SELECT math // 10, COUNT(*) FROM students GROUP BY 1

-- postgres
SELECT school, RANK() OVER (ORDER BY AVG(math) DESC) AS rnk, AVG(math) FROM students WHERE school IS NOT NULL GROUP BY school

-- postgres impossible
SELECT s.school FROM students s WHERE s.math = (SELECT MAX(math) FROM students)

-- postgres impossible
SELECT student_id, math, PERCENT_RANK() OVER (ORDER BY math) FROM students

-- postgres
SELECT CASE WHEN GROUPING(school) = 1 THEN 'District' ELSE school END AS school, COUNT(*) AS enrolled FROM students GROUP BY ROLLUP(school)
-- reads
SELECT CASE WHEN GROUPING(school) = 1 THEN 'District' ELSE school END, COUNT(*) FROM students GROUP BY ROLLUP(school)

-- postgres
SELECT 'math' AS subject, AVG(math) AS mean, STDDEV_SAMP(math) AS sd FROM students UNION ALL SELECT 'reading', AVG(reading), STDDEV_SAMP(reading) FROM students

-- postgres
SELECT COUNT(*) FILTER (WHERE math >= 50 AND reading >= 50) AS both_pass, COUNT(*) FILTER (WHERE math >= 50 AND NOT reading >= 50) AS math_only, COUNT(*) FILTER (WHERE math < 50 AND reading < 50) AS neither FROM students

-- postgres rewritten
SELECT school, mode() WITHIN GROUP (ORDER BY grade_level) FROM students GROUP BY school

-- postgres
SELECT (math - 50) / 10.0 AS z, COUNT(*) FROM students GROUP BY 1
-- reads
SELECT (math - 50) / 10.0, COUNT(*) FROM students GROUP BY 1

-- postgres
SELECT school, AVG(GREATEST(math, reading)) AS best, AVG(LEAST(math, reading)) AS worst FROM students WHERE math IS NOT NULL AND reading IS NOT NULL GROUP BY school

-- postgres
SELECT x.school, x.pass_rate FROM (SELECT school, AVG(CASE WHEN math >= 60 THEN 1.0 ELSE 0.0 END) AS pass_rate, COUNT(*) AS n FROM students GROUP BY school) AS x WHERE x.n >= 30 AND x.pass_rate < 0.5
-- reads
SELECT school, AVG(CASE WHEN math >= 60 THEN 1.0 ELSE 0.0 END) FROM students GROUP BY school HAVING COUNT(*) >= 30 AND AVG(CASE WHEN math >= 60 THEN 1.0 ELSE 0.0 END) < 0.5

-- postgres
SELECT date_part('year', enrolled) AS yr, grade_level, count(*) FROM students WHERE date_part('year', enrolled) >= 2022 GROUP BY yr, grade_level

-- postgres
SELECT upper(left(school, 3)) AS code, sum(absences), sum(absences)::numeric / count(*) AS per_student FROM students GROUP BY upper(left(school, 3))
-- reads
SELECT upper(left(school, 3)), sum(absences), sum(absences) / count(*) FROM students GROUP BY 1

-- postgres
SELECT COUNT(*) FROM students WHERE school ~* '^(lincoln|jefferson)' AND grade_level IN (9, 10, 11, 12)
-- reads
SELECT COUNT(*) FROM students WHERE regexp_matches(school, '^(lincoln|jefferson)', 'i') AND grade_level IN (9, 10, 11, 12)

-- snowflake
SELECT SCHOOL, APPROX_PERCENTILE(MATH, 0.25) AS P25, MEDIAN(MATH) AS P50, APPROX_PERCENTILE(MATH, 0.75) AS P75 FROM STUDENTS GROUP BY SCHOOL
-- reads
SELECT school, quantile_disc(math, 0.25), quantile_disc(math, 0.5), quantile_disc(math, 0.75) FROM students GROUP BY school

-- snowflake
SELECT SCHOOL, SUM(ELL::INT) AS ELL_CNT, SUM(IEP::INT) AS IEP_CNT, ROUND(ELL_CNT / COUNT(*) * 100, 1) AS ELL_PCT FROM STUDENTS GROUP BY SCHOOL
-- reads
SELECT school, SUM(ell::INT), SUM(iep::INT), ROUND(SUM(ell::INT) / COUNT(*) * 1000) / 10 FROM students GROUP BY school

-- snowflake
SELECT WIDTH_BUCKET(GPA, 0, 4, 8) AS B, COUNT(*) FROM STUDENTS WHERE GPA IS NOT NULL GROUP BY 1 ORDER BY 1
-- reads
SELECT LEAST(FLOOR(gpa * 2), 8) + 1, COUNT(*) FROM students WHERE gpa IS NOT NULL GROUP BY 1

-- snowflake
SELECT YEAR(ENROLLED) AS Y, COUNT(*) AS N, LAG(N) OVER (ORDER BY Y) AS PREV, (N - PREV) / NULLIF(PREV, 0) AS GROWTH FROM STUDENTS WHERE ENROLLED IS NOT NULL GROUP BY Y ORDER BY Y
-- reads
WITH t AS (SELECT YEAR(enrolled) AS y, COUNT(*) AS n FROM students WHERE enrolled IS NOT NULL GROUP BY 1) SELECT y, n, LAG(n) OVER (ORDER BY y), (n - LAG(n) OVER (ORDER BY y)) / LAG(n) OVER (ORDER BY y) FROM t

-- snowflake
SELECT DECODE(GENDER, 'F', 'Female', 'M', 'Male', 'Other') AS G, NVL2(MATH, 'tested', 'untested') AS T, COUNT(*) FROM STUDENTS GROUP BY 1, 2
-- reads
SELECT CASE gender WHEN 'F' THEN 'Female' WHEN 'M' THEN 'Male' ELSE 'Other' END, CASE WHEN math IS NOT NULL THEN 'tested' ELSE 'untested' END, COUNT(*) FROM students GROUP BY 1, 2

-- snowflake
SELECT CORR(MATH, READING) AS R, COVAR_SAMP(MATH, READING) AS COV, VARIANCE(MATH) AS V FROM STUDENTS WHERE SCHOOL ILIKE '%hs'
-- reads
SELECT CORR(math, reading), COVAR_SAMP(math, reading), VARIANCE(math) FROM students WHERE school ILIKE '%hs'

-- bigquery
SELECT school, COUNT(DISTINCT ethnicity) AS groups FROM `sis.students` GROUP BY school
-- reads
SELECT school, COUNT(DISTINCT ethnicity) FROM students GROUP BY school

-- bigquery
SELECT RANGE_BUCKET(math, [0, 40, 60, 80]) AS bucket, COUNT(*) AS n FROM sis.students GROUP BY bucket
-- reads
SELECT CASE WHEN math < 40 THEN 1 WHEN math < 60 THEN 2 WHEN math < 80 THEN 3 WHEN math >= 80 THEN 4 END, COUNT(*) FROM students GROUP BY 1

-- bigquery
SELECT school, ROUND(100 * AVG(CAST(frl AS INT64)), 1) AS frl_pct FROM sis.students GROUP BY school HAVING frl_pct > 30
-- reads
SELECT school, ROUND(1000 * AVG(frl::INT)) / 10 AS p FROM students GROUP BY school HAVING p > 30

-- bigquery
WITH scored AS (SELECT school, (math + reading) / 2 AS composite FROM sis.students WHERE math IS NOT NULL AND reading IS NOT NULL) SELECT school, AVG(composite) AS m, COUNT(*) AS n FROM scored GROUP BY school
-- reads
SELECT school, AVG((math + reading) / 2), COUNT(*) FROM students WHERE math IS NOT NULL AND reading IS NOT NULL GROUP BY school

-- bigquery
SELECT STRING(DATE_TRUNC(enrolled, YEAR)) AS y, COUNT(*) FROM sis.students GROUP BY y
-- reads
SELECT CAST(DATE_TRUNC('year', enrolled)::DATE AS TEXT), COUNT(*) FROM students GROUP BY 1

-- bigquery
SELECT EXTRACT(HOUR FROM tested_at) AS h, COUNT(*) FROM sis.students WHERE DATE(tested_at) = '2024-05-14' GROUP BY h
-- reads
SELECT EXTRACT(HOUR FROM tested_at), COUNT(*) FROM students WHERE tested_at::DATE = '2024-05-14' GROUP BY 1

-- bigquery
SELECT TIMESTAMP_TRUNC(tested_at, DAY) AS d, AVG(math) FROM sis.students GROUP BY d ORDER BY d
-- reads
SELECT tested_at::DATE, AVG(math) FROM students GROUP BY 1

-- bigquery impossible
SELECT school, ARRAY_AGG(STRUCT(gender, math) ORDER BY math DESC LIMIT 3) FROM sis.students GROUP BY school

-- duckdb
SELECT school, count(*) FILTER (grade_level <= 5) AS elem, count(*) FILTER (grade_level BETWEEN 6 AND 8) AS middle, count(*) FILTER (grade_level > 8) AS high FROM students GROUP BY school

-- duckdb
SELECT school, avg(COLUMNS(['math', 'reading'])) FROM students GROUP BY school
-- reads
SELECT school, avg(math), avg(reading) FROM students GROUP BY school

-- duckdb
SELECT bin AS math_bin, count(*) FROM (SELECT floor(math / 5) * 5 AS bin FROM students WHERE math IS NOT NULL) GROUP BY bin ORDER BY bin

-- duckdb impossible
SELECT school, median(math), mad(math) FROM students GROUP BY school

-- duckdb rewritten
SELECT ethnicity, gender, count(*) AS n, sum(n) OVER (PARTITION BY ethnicity) AS total FROM students GROUP BY CUBE (ethnicity, gender)

-- mysql rewritten
SELECT school, COUNT(*) AS n, FORMAT(AVG(math), 1) AS m FROM students GROUP BY school

-- mysql
SELECT school, STD(math) AS sd, VARIANCE(reading) AS v FROM students GROUP BY school
-- reads
SELECT school, STDDEV_POP(math), VAR_POP(reading) FROM students GROUP BY school

-- mysql
SELECT INTERVAL(math, 40, 60, 80) AS b, COUNT(*) FROM students WHERE math IS NOT NULL GROUP BY b
-- reads
SELECT CASE WHEN math < 40 THEN 0 WHEN math < 60 THEN 1 WHEN math < 80 THEN 2 ELSE 3 END, COUNT(*) FROM students WHERE math IS NOT NULL GROUP BY 1

-- mysql
SELECT YEARWEEK(enrolled, 3) AS yw, COUNT(*) FROM students WHERE enrolled >= '2023-08-01' GROUP BY yw
-- reads
SELECT isoyear(enrolled) * 100 + week(enrolled), COUNT(*) FROM students WHERE enrolled >= '2023-08-01' GROUP BY 1

-- tsql impossible
SELECT school, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY math) OVER (PARTITION BY school) FROM students

-- tsql
SELECT school, IIF(frl = 1, 'FRL', 'Paid') AS lunch, COUNT(*) AS n, AVG(CAST(math AS FLOAT)) AS m FROM dbo.students GROUP BY school, IIF(frl = 1, 'FRL', 'Paid')
-- reads
SELECT school, IF(frl, 'FRL', 'Paid'), COUNT(*), AVG(math) FROM students GROUP BY 1, 2

-- tsql
SELECT grade_level, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY grade_level ROWS UNBOUNDED PRECEDING) AS running FROM students WHERE grade_level IS NOT NULL GROUP BY grade_level ORDER BY grade_level OFFSET 0 ROWS FETCH NEXT 20 ROWS ONLY
-- reads
SELECT grade_level, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY grade_level ROWS UNBOUNDED PRECEDING) FROM students WHERE grade_level IS NOT NULL GROUP BY grade_level

-- tsql
SELECT CHOOSE(grade_level, 'K-5','K-5','K-5','K-5','K-5','6-8','6-8','6-8','9-12','9-12','9-12','9-12') AS lvl, COUNT(*) FROM students GROUP BY CHOOSE(grade_level, 'K-5','K-5','K-5','K-5','K-5','6-8','6-8','6-8','9-12','9-12','9-12','9-12')
-- reads
SELECT CASE WHEN grade_level <= 5 THEN 'K-5' WHEN grade_level <= 8 THEN '6-8' WHEN grade_level <= 12 THEN '9-12' END, COUNT(*) FROM students GROUP BY 1

-- tsql
SELECT EOMONTH(enrolled) AS m, COUNT(*) AS n FROM students WHERE enrolled >= DATEADD(year, -1, '2024-06-30') GROUP BY EOMONTH(enrolled)
-- reads
SELECT LAST_DAY(enrolled), COUNT(*) FROM students WHERE enrolled >= '2023-06-30' GROUP BY 1

-- spark refused
SELECT school, avg(math) AS m, kurtosis(math), skewness(math) FROM students GROUP BY school

-- spark
SELECT school, nvl(sum(absences), 0) AS abs, round(nvl(sum(absences), 0) / count(*), 2) AS rate FROM students GROUP BY school SORT BY abs
-- reads
SELECT school, sum(absences), round(sum(absences) / count(*), 2) FROM students GROUP BY school

-- spark
SELECT date_format(enrolled, 'yyyy-MM') AS ym, count(*) AS n FROM students WHERE enrolled >= add_months(date'2024-06-01', -12) GROUP BY date_format(enrolled, 'yyyy-MM')
-- reads
SELECT strftime(enrolled, '%Y-%m'), count(*) FROM students WHERE enrolled >= DATE '2023-06-01' GROUP BY 1

-- spark
SELECT /*+ BROADCAST(s) */ s.gender, s.iep, count(1) FROM students s GROUP BY s.gender, s.iep WITH CUBE
-- reads
SELECT gender, iep, count(1) FROM students GROUP BY CUBE (gender, iep)

-- postgres
SELECT school, COUNT(*) AS enrolled, COUNT(*) FILTER (WHERE absences >= 18) AS chronic, (100.0 * COUNT(*) FILTER (WHERE absences >= 18) / COUNT(*))::numeric(5,1) AS pct FROM students GROUP BY school
-- reads
SELECT school, COUNT(*), COUNT(*) FILTER (WHERE absences >= 18), ROUND(1000.0 * COUNT(*) FILTER (WHERE absences >= 18) / COUNT(*)) / 10 FROM students GROUP BY school

-- postgres
SELECT grade_level, AVG(math) AS m, AVG(math) - LAG(AVG(math)) OVER (ORDER BY grade_level) AS gain FROM students WHERE grade_level BETWEEN 3 AND 8 GROUP BY grade_level

-- postgres
SELECT ethnicity, frl, AVG(gpa) FROM students GROUP BY ethnicity, frl HAVING COUNT(*) >= 10 ORDER BY AVG(gpa) DESC NULLS LAST

-- postgres
SELECT a.grade_level, a.m AS lincoln, b.m AS jefferson, a.m - b.m AS gap FROM (SELECT grade_level, AVG(math) m FROM students WHERE school = 'Lincoln HS' GROUP BY 1) a INNER JOIN (SELECT grade_level, AVG(math) m FROM students WHERE school = 'Jefferson HS' GROUP BY 1) b USING (grade_level) ORDER BY 1
-- reads
SELECT grade_level, AVG(math) FILTER (WHERE school = 'Lincoln HS'), AVG(math) FILTER (WHERE school = 'Jefferson HS'), AVG(math) FILTER (WHERE school = 'Lincoln HS') - AVG(math) FILTER (WHERE school = 'Jefferson HS') FROM students WHERE grade_level IS NOT NULL GROUP BY 1

-- postgres
SELECT corr(math, reading) AS r, corr(absences, gpa) AS r2, count(*) AS n FROM students

-- postgres
SELECT ntile(4) OVER (ORDER BY avg(math)) AS quartile, school, avg(math) FROM students WHERE school IS NOT NULL GROUP BY school

-- postgres
SELECT school, grade_level, COUNT(*) FROM students WHERE (school, grade_level) IN (('Lincoln HS', 9), ('Jefferson HS', 10)) GROUP BY 1, 2

-- postgres
SELECT COALESCE(school, 'TOTAL') AS school, COALESCE(gender, 'ALL') AS gender, COUNT(*) FROM students WHERE school IS NOT NULL AND gender IS NOT NULL GROUP BY ROLLUP (school, gender)

-- postgres
SELECT width_bucket(gpa, 0, 4, 4) AS b, min(gpa), max(gpa), count(*) FROM students WHERE gpa IS NOT NULL AND gpa < 4 GROUP BY 1
-- reads
SELECT floor(gpa)::int + 1, min(gpa), max(gpa), count(*) FROM students WHERE gpa IS NOT NULL AND gpa < 4 GROUP BY 1

-- snowflake
SELECT GRADE_LEVEL, AVG(MATH)::NUMBER(5,1) AS M, AVG(READING)::NUMBER(5,1) AS R, M - R AS DIFF FROM SIS.STUDENTS WHERE GRADE_LEVEL IN (3, 4, 5) GROUP BY GRADE_LEVEL ORDER BY GRADE_LEVEL
-- reads
SELECT grade_level, ROUND(AVG(math) * 10) / 10, ROUND(AVG(reading) * 10) / 10, ROUND(AVG(math) * 10) / 10 - ROUND(AVG(reading) * 10) / 10 FROM students WHERE grade_level IN (3, 4, 5) GROUP BY 1

-- snowflake
SELECT CASE WHEN CONTAINS(SCHOOL, 'HS') THEN 'High' WHEN ENDSWITH(SCHOOL, 'MS') THEN 'Middle' ELSE 'Elementary' END AS LVL, COUNT(*) FROM STUDENTS WHERE SCHOOL IS NOT NULL GROUP BY LVL
-- reads
SELECT CASE WHEN contains(school, 'HS') THEN 'High' WHEN suffix(school, 'MS') THEN 'Middle' ELSE 'Elementary' END, COUNT(*) FROM students WHERE school IS NOT NULL GROUP BY 1

-- bigquery
SELECT school, AVG(math) AS avg_math, STDDEV_SAMP(math) / SQRT(COUNT(math)) AS sem FROM sis.students GROUP BY school HAVING COUNT(math) > 30
-- reads
SELECT school, AVG(math), STDDEV_SAMP(math) / SQRT(COUNT(math)) FROM students GROUP BY school HAVING COUNT(math) > 30

-- bigquery
SELECT CASE WHEN math IS NULL THEN 'not tested' WHEN math < 50 THEN 'below' WHEN math BETWEEN 50 AND 74 THEN 'basic' ELSE 'proficient' END AS lvl, COUNT(*) AS n, COUNT(*) / (SELECT COUNT(*) FROM sis.students) AS share FROM sis.students GROUP BY 1
-- reads
SELECT CASE WHEN math IS NULL THEN 'not tested' WHEN math < 50 THEN 'below' WHEN math BETWEEN 50 AND 74 THEN 'basic' ELSE 'proficient' END, COUNT(*), COUNT(*) / (SELECT COUNT(*) FROM students) FROM students GROUP BY 1

-- duckdb
SELECT regexp_extract(school, '(HS|MS|Elementary)$', 1) AS kind, count(*), avg(absences) FROM students GROUP BY kind

-- duckdb
SELECT round(math, -1) AS m, count(*) FROM students WHERE math IS NOT NULL GROUP BY m ORDER BY m
-- reads
SELECT round(math / 10.0) * 10, count(*) FROM students WHERE math IS NOT NULL GROUP BY 1

-- mysql
SELECT school, SUM(gender = 'F') AS girls, SUM(gender = 'M') AS boys, SUM(gender = 'F') / SUM(gender = 'M') AS ratio FROM students GROUP BY school
-- reads
SELECT school, COUNT(*) FILTER (WHERE gender = 'F'), COUNT(*) FILTER (WHERE gender = 'M'), COUNT(*) FILTER (WHERE gender = 'F') / COUNT(*) FILTER (WHERE gender = 'M') FROM students GROUP BY school

-- mysql
SELECT ROUND(gpa, 1) AS g, COUNT(*) FROM students WHERE gpa IS NOT NULL GROUP BY ROUND(gpa, 1)
-- reads
SELECT ROUND(gpa::DECIMAL(5,2), 1), COUNT(*) FROM students WHERE gpa IS NOT NULL GROUP BY 1

-- tsql
SELECT s.school, COUNT(*) AS n, AVG(1.0 * s.math) AS avg_math, STDEVP(s.math) AS sd FROM dbo.students s GROUP BY s.school WITH ROLLUP
-- reads
SELECT school, COUNT(*), AVG(math), STDDEV_POP(math) FROM students GROUP BY ROLLUP(school)

-- tsql
SELECT UPPER(SUBSTRING(school, 1, 1)) + LOWER(SUBSTRING(school, 2, 3)) AS abbr, COUNT(*) FROM students GROUP BY UPPER(SUBSTRING(school, 1, 1)) + LOWER(SUBSTRING(school, 2, 3))
-- reads
SELECT UPPER(SUBSTRING(school, 1, 1)) || LOWER(SUBSTRING(school, 2, 3)), COUNT(*) FROM students GROUP BY 1

-- spark
SELECT school, round(avg(math), 1) AS m, percentile_approx(math, 0.5) AS med, count_if(math >= 70) AS prof FROM students GROUP BY school HAVING count(*) > 20
-- reads
SELECT school, round(avg(math) * 10) / 10, quantile_disc(math, 0.5), count_if(math >= 70) FROM students GROUP BY school HAVING count(*) > 20
