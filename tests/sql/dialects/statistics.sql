-- postgres
SELECT corr(age, income), covar_pop(age, income), covar_samp(age, income) FROM people

-- postgres
SELECT regr_slope(income, age) AS slope, regr_intercept(income, age) AS icept, regr_r2(income, age) AS r2, regr_count(income, age) AS n FROM people

-- postgres
SELECT regr_avgx(income, age), regr_avgy(income, age) FROM people

-- postgres
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY age) AS q1, percentile_cont(0.75) WITHIN GROUP (ORDER BY age) AS q3 FROM people WHERE city = 'Oslo'
-- reads
SELECT QUANTILE_DISC(age, 0.25), QUANTILE_DISC(age, 0.75) FROM people WHERE city = 'Oslo'

-- postgres
SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY age DESC) FROM people
-- reads
SELECT QUANTILE_DISC(age, 0.1) FROM people

-- postgres
SELECT stddev_pop(age) / avg(age) AS cv, variance(age) FROM people

-- postgres
SELECT sum(age * income) / sum(age) AS weighted FROM people WHERE age IS NOT NULL AND income IS NOT NULL

-- postgres
SELECT sum(income) FILTER (WHERE smoker) AS a, sum(income) FILTER (WHERE NOT smoker) AS b, avg(income) FILTER (WHERE smoker) - avg(income) FILTER (WHERE NOT smoker) AS gap FROM people

-- postgres refused
SELECT city, mode() WITHIN GROUP (ORDER BY grade) AS m FROM people GROUP BY city
-- reads
SELECT city, (ARRAY_AGG(grade ORDER BY n DESC, grade))[1] FROM (SELECT city, grade, COUNT(*) n FROM people WHERE grade IS NOT NULL GROUP BY ALL) GROUP BY city

-- postgres
SELECT count(distinct grade) AS grades, count(*) AS n FROM people
-- reads
SELECT COUNT(DISTINCT grade), COUNT(*) FROM people

-- postgres
SELECT city, count(distinct grade) FROM people GROUP BY city

-- postgres
SELECT AVG(POWER(age - 40, 2)) AS ms FROM people

-- snowflake
SELECT city, MEDIAN(age) AS med, APPROX_PERCENTILE(age, 0.9) AS p90, APPROX_COUNT_DISTINCT(grade) AS g FROM people GROUP BY city
-- reads
SELECT city, QUANTILE_DISC(age, 0.5), QUANTILE_DISC(age, 0.9), COUNT(DISTINCT grade) FROM people GROUP BY city

-- snowflake
SELECT VARIANCE_POP(age), STDDEV_POP(age), VAR_SAMP(age) FROM people
-- reads
SELECT VAR_POP(age), STDDEV_POP(age), VAR_SAMP(age) FROM people

-- bigquery
SELECT APPROX_QUANTILES(age, 4)[OFFSET(2)] AS med, STDDEV(age) AS sd FROM people
-- reads
SELECT QUANTILE_DISC(age, 0.5), STDDEV(age) FROM people

-- bigquery
SELECT AVG(age) AS a, ANY_VALUE(3) AS three FROM people WHERE smoker
-- reads
SELECT AVG(age), 3 FROM people WHERE smoker

-- mysql
SELECT city, STD(age) AS sd, VARIANCE(age) AS v, STDDEV_SAMP(age) AS ss FROM people GROUP BY city
-- reads
SELECT city, STDDEV_POP(age), VAR_POP(age), STDDEV_SAMP(age) FROM people GROUP BY city

-- mysql
SELECT COUNT(city) AS known, COUNT(*) AS n, COUNT(city) / COUNT(*) * 100 AS pct FROM people
-- reads
SELECT COUNT(city), COUNT(*), COUNT(city) / COUNT(*) * 100 FROM people

-- tsql
SELECT city, STDEV(income) AS sd, VAR(income) AS v, STDEVP(income) AS sp FROM people GROUP BY city
-- reads
SELECT city, STDDEV_SAMP(income), VAR_SAMP(income), STDDEV_POP(income) FROM people GROUP BY city

-- tsql
SELECT AVG(CAST(age AS float)) AS a, AVG(CAST(age AS decimal(10, 2))) AS b, SUM(CAST(smoker AS int)) AS s FROM people
-- reads
SELECT AVG(age), AVG(age), SUM(smoker::INT) FROM people

-- tsql
SELECT DISTINCT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) OVER () AS med FROM people
-- reads
SELECT QUANTILE_DISC(age, 0.5) FROM people

-- spark refused
SELECT city, percentile_approx(age, 0.5) AS med, skewness(age) AS sk FROM people GROUP BY city
-- reads
SELECT city, QUANTILE_DISC(age, 0.5), (SUM(POW(age - m, 3)) / COUNT(age)) / POW(SUM(POW(age - m, 2)) / COUNT(age), 1.5) FROM (SELECT city, age, AVG(age) OVER (PARTITION BY city) m FROM people) GROUP BY city

-- spark
SELECT mean(age) AS m, stddev(age) AS s, approx_count_distinct(city) AS c FROM people
-- reads
SELECT AVG(age), STDDEV(age), COUNT(DISTINCT city) FROM people

-- duckdb
SELECT quantile_cont(age, 0.9) AS p90, quantile_disc(age, 0.1) AS p10, mean(age) AS m, sum(age)::DOUBLE / count(age) AS mm FROM people
-- reads
SELECT QUANTILE_DISC(age, 0.9), QUANTILE_DISC(age, 0.1), AVG(age), AVG(age) FROM people

-- duckdb
SELECT city, fsum(income) AS s, favg(income) AS a FROM people GROUP BY city
-- reads
SELECT city, SUM(income), AVG(income) FROM people GROUP BY city

-- duckdb
SELECT sem(age) AS se FROM people
-- reads
SELECT STDDEV_POP(age) / SQRT(COUNT(age)) FROM people

-- duckdb refused
SELECT quantile_cont(age, [0.25, 0.5, 0.75]) AS q FROM people
-- reads
SELECT QUANTILE_DISC(age, 0.25), QUANTILE_DISC(age, 0.5), QUANTILE_DISC(age, 0.75) FROM people

-- postgres
SELECT count(*) AS n, avg(age) AS mean, sqrt(var_pop(age)) AS sd, avg(age) - 1.96 * stddev(age) / sqrt(count(age)) AS lo FROM people

-- postgres
SELECT DISTINCT city FROM people
-- reads
SELECT city FROM people GROUP BY city

-- postgres
SELECT city FROM people GROUP BY city ORDER BY COUNT(*) DESC
-- reads
SELECT city FROM people GROUP BY city
