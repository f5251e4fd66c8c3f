-- mysql
SELECT STD(age) AS s, VARIANCE(age) AS v FROM people
-- reads
SELECT STDDEV_POP(age) AS s, VAR_POP(age) AS v FROM people

-- tsql
SELECT STDEV(age) AS s, STDEVP(age) AS sp, VAR(age) AS v, VARP(age) AS vp FROM people
-- reads
SELECT STDDEV_SAMP(age) AS s, STDDEV_POP(age) AS sp, VAR_SAMP(age) AS v, VAR_POP(age) AS vp FROM people

-- duckdb
SELECT quantile_cont(age, 0.5) AS m, approx_quantile(age, 0.9) AS n FROM people
-- reads
SELECT quantile_disc(age, 0.5) AS m, quantile_disc(age, 0.9) AS n FROM people

-- snowflake
SELECT APPROX_PERCENTILE(age, 0.5) AS m, MEDIAN(age) AS n FROM people
-- reads
SELECT quantile_disc(age, 0.5) AS m, quantile_disc(age, 0.5) AS n FROM people

-- bigquery
SELECT APPROX_QUANTILES(age, 100)[OFFSET(90)] AS p90 FROM people
-- reads
SELECT quantile_disc(age, 0.9) AS p90 FROM people

-- postgres
SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY age) AS q FROM people
-- reads
SELECT quantile_disc(age, 0.25) AS q FROM people

-- spark
SELECT percentile_approx(age, 0.5) AS m, std(age) AS s FROM people
-- reads
SELECT quantile_disc(age, 0.5) AS m, stddev_samp(age) AS s FROM people

-- bigquery
SELECT city, COUNTIF(smoker) AS n FROM people GROUP BY city
-- reads
SELECT city, COUNT(*) FILTER (WHERE smoker) AS n FROM people GROUP BY city

-- postgres
SELECT COUNT(*) FILTER (WHERE smoker) * 100.0 / COUNT(*) AS percent FROM people
-- reads
SELECT COUNT(*) FILTER (WHERE smoker) * 100.0 / COUNT(*) AS percent FROM people

-- mysql
SELECT city, ROUND(AVG(age), 1) AS a FROM people GROUP BY city HAVING COUNT(*) > 10 ORDER BY a DESC LIMIT 3
-- reads
SELECT city, ROUND(AVG(age), 1) AS a FROM people GROUP BY city HAVING COUNT(*) > 10 ORDER BY a DESC LIMIT 3

-- bigquery
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=.5, delta=NULL, group_selection_strategy=PUBLIC_GROUPS) city, SUM(age, contribution_bounds_per_row => (0, 50)) AS s FROM people GROUP BY city
-- reads
SELECT city, SUM(CLAMP(age, 0, 50)) AS s FROM people GROUP BY city
