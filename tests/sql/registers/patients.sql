-- postgres
SELECT p.region, COUNT(*) AS n_patients, ROUND(AVG(p.bmi)::numeric, 1) AS mean_bmi FROM registry.patients p WHERE p.deceased IS NOT TRUE GROUP BY p.region ORDER BY n_patients DESC;
-- reads
SELECT region, COUNT(*), ROUND(AVG(bmi) * 10) / 10 FROM patients WHERE deceased IS NOT TRUE GROUP BY region

-- postgres
SELECT CASE WHEN age < 18 THEN '0-17' WHEN age BETWEEN 18 AND 39 THEN '18-39' WHEN age BETWEEN 40 AND 64 THEN '40-64' ELSE '65+' END AS age_group, sex, COUNT(*) FROM patients WHERE age IS NOT NULL GROUP BY age_group, sex ORDER BY age_group, sex
-- reads
SELECT CASE WHEN age < 18 THEN '0-17' WHEN age BETWEEN 18 AND 39 THEN '18-39' WHEN age BETWEEN 40 AND 64 THEN '40-64' ELSE '65+' END, sex, COUNT(*) FROM patients WHERE age IS NOT NULL GROUP BY 1, 2

-- postgres
SELECT ward, 100.0 * SUM(CASE WHEN deceased THEN 1 ELSE 0 END) / COUNT(*) AS mortality_pct FROM patients GROUP BY ward HAVING COUNT(*) >= 20 ORDER BY mortality_pct DESC
-- reads
SELECT ward, 100.0 * SUM(CASE WHEN deceased THEN 1 ELSE 0 END) / COUNT(*) FROM patients GROUP BY ward HAVING COUNT(*) >= 20

-- postgres
SELECT date_trunc('month', admitted)::date AS month, count(*) FILTER (WHERE ward = 'ICU') AS icu, count(*) AS total, round(100.0 * count(*) FILTER (WHERE ward = 'ICU') / NULLIF(count(*), 0), 1) AS pct FROM patients WHERE admitted >= '2023-01-01' AND admitted < '2024-01-01' GROUP BY 1 ORDER BY 1
-- reads
SELECT date_trunc('month', admitted)::date, count(*) FILTER (WHERE ward = 'ICU'), count(*), round(1000.0 * count(*) FILTER (WHERE ward = 'ICU') / NULLIF(count(*), 0)) / 10 FROM patients WHERE admitted >= '2023-01-01' AND admitted < '2024-01-01' GROUP BY 1

-- postgres
SELECT EXTRACT(YEAR FROM AGE(admitted, birth_date)) AS age_at_admission, COUNT(*) FROM patients GROUP BY 1
-- reads
SELECT EXTRACT(YEAR FROM AGE(admitted, birth_date)), COUNT(*) FROM patients GROUP BY 1

-- postgres
SELECT substring(icd from 1 for 1) AS chapter, COUNT(*) AS cases, SUM(cost) AS total_cost FROM patients GROUP BY substring(icd from 1 for 1) ORDER BY total_cost DESC NULLS LAST
-- reads
SELECT substring(icd, 1, 1), COUNT(*), SUM(cost) FROM patients GROUP BY 1

-- postgres
SELECT split_part(icd, '.', 1) AS icd3, COUNT(*) n FROM patients WHERE icd LIKE 'E%' OR icd LIKE 'I%' GROUP BY 1

-- postgres rewritten
SELECT sex, percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY los) FROM patients GROUP BY sex
-- reads
SELECT sex, quantile_disc(los, 0.25), quantile_disc(los, 0.5), quantile_disc(los, 0.75) FROM patients GROUP BY sex

-- postgres
SELECT count(*) AS "Total", count(*) filter (where discharged - admitted > 7) AS "Long stays", avg(discharged - admitted) AS "Mean LOS (days)" FROM "registry"."patients" WHERE discharged IS NOT NULL AND admitted IS NOT NULL AND discharged >= admitted
-- reads
SELECT count(*), count(*) filter (where discharged - admitted > 7), avg(discharged - admitted) FROM patients WHERE discharged >= admitted

-- postgres
SELECT region, sex, COUNT(*) FROM patients GROUP BY GROUPING SETS ((region, sex), (region), ()) ORDER BY region NULLS LAST, sex NULLS LAST
-- reads
SELECT region, sex, COUNT(*) FROM patients GROUP BY GROUPING SETS ((region, sex), (region), ())

-- postgres impossible
SELECT * FROM patients WHERE age > 90 LIMIT 20

-- postgres impossible
SELECT patient_id, cost FROM patients ORDER BY cost DESC LIMIT 10

-- postgres impossible
SELECT region, string_agg(DISTINCT icd, ', ') FROM patients GROUP BY region

-- postgres impossible
SELECT COUNT(*) FROM patients WHERE diabetic AND hba1c > 9 AND note ILIKE '%insulin%'

-- postgres
SELECT to_char(admitted, 'YYYY-"Q"Q') AS quarter, COUNT(*) FROM patients GROUP BY 1 ORDER BY 1
-- reads
SELECT year(admitted) || '-Q' || quarter(admitted), COUNT(*) FROM patients GROUP BY 1

-- postgres
SELECT width_bucket(age, 0, 100, 10) AS decade, COUNT(*), AVG(systolic) FROM patients WHERE age BETWEEN 0 AND 99 GROUP BY 1 ORDER BY 1

-- postgres
SELECT COALESCE(ward, 'Unknown') AS ward, COALESCE(SUM(cost), 0) / NULLIF(SUM(los), 0) AS cost_per_day FROM patients GROUP BY COALESCE(ward, 'Unknown')

-- postgres
SELECT bool_or(age > 105), bool_and(age >= 0), every(los >= 0) FROM patients
-- reads
SELECT COUNT(*) FILTER (WHERE age > 105) > 0, COUNT(*) FILTER (WHERE NOT age >= 0) = 0, COUNT(*) FILTER (WHERE NOT los >= 0) = 0 FROM patients

-- postgres
SELECT corr(age, systolic), regr_slope(systolic, age), regr_r2(systolic, age) FROM patients WHERE systolic IS NOT NULL

-- postgres
SELECT region, avg(cost) FILTER (WHERE sex = 'F') - avg(cost) FILTER (WHERE sex = 'M') AS diff FROM patients GROUP BY region

-- snowflake
SELECT REGION, COUNT_IF(SMOKER) / COUNT(*) AS SMOKING_RATE FROM REGISTRY.PUBLIC.PATIENTS GROUP BY ALL QUALIFY ROW_NUMBER() OVER (ORDER BY SMOKING_RATE DESC) <= 2
-- reads
SELECT region, COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS r FROM patients GROUP BY 1 ORDER BY r DESC LIMIT 2

-- snowflake
SELECT IFF(BMI >= 30, 'obese', IFF(BMI >= 25, 'overweight', 'normal')) AS BMI_CLASS, COUNT(*) AS N, MEDIAN(SYSTOLIC) FROM PATIENTS WHERE BMI IS NOT NULL GROUP BY BMI_CLASS
-- reads
SELECT CASE WHEN bmi >= 30 THEN 'obese' WHEN bmi >= 25 THEN 'overweight' ELSE 'normal' END, COUNT(*), quantile_disc(systolic, 0.5) FROM patients WHERE bmi IS NOT NULL GROUP BY 1

-- snowflake
SELECT ZEROIFNULL(SUM(COST)) AS TOTAL, DIV0NULL(SUM(COST), SUM(LOS)) AS PER_DAY, APPROX_COUNT_DISTINCT(ICD) AS CODES FROM PATIENTS
-- reads
SELECT SUM(cost), SUM(cost) / SUM(los), COUNT(DISTINCT icd) FROM patients

-- snowflake
SELECT DATEDIFF('year', BIRTH_DATE, ADMITTED) AS AGE_YEARS, COUNT(*) FROM PATIENTS GROUP BY AGE_YEARS HAVING COUNT(*) > 5 ORDER BY AGE_YEARS
-- reads
SELECT DATE_DIFF('year', birth_date, admitted), COUNT(*) FROM patients GROUP BY 1 HAVING COUNT(*) > 5

-- snowflake
SELECT ICD, AVG(DATEDIFF(DAY, ADMITTED, DISCHARGED)) AS ALOS FROM PATIENTS WHERE DISCHARGED IS NOT NULL GROUP BY ICD
-- reads
SELECT icd, AVG(discharged - admitted) FROM patients WHERE discharged IS NOT NULL GROUP BY icd

-- snowflake
SELECT MONTHNAME(ADMITTED) AS MON, COUNT(*) FROM PATIENTS WHERE YEAR(ADMITTED) = 2023 GROUP BY MONTHNAME(ADMITTED)
-- reads
SELECT strftime(admitted, '%b'), COUNT(*) FROM patients WHERE YEAR(admitted) = 2023 GROUP BY 1

-- snowflake
SELECT * FROM (SELECT region, ward FROM patients) PIVOT (COUNT(ward) FOR ward IN ('ICU', 'Surgery')) AS p
-- reads
SELECT region, COUNT(*) FILTER (WHERE ward = 'ICU'), COUNT(*) FILTER (WHERE ward = 'Surgery') FROM patients GROUP BY region

-- snowflake impossible
SELECT SEX, ARRAY_AGG(AGE) FROM PATIENTS GROUP BY SEX

-- snowflake
SELECT TRY_TO_NUMBER(SPLIT_PART(SUBSTR(ICD, 2), '.', 1)) AS CODE_NUM, COUNT(*) FROM PATIENTS GROUP BY 1
-- reads
SELECT TRY_CAST(SPLIT_PART(SUBSTR(icd, 2), '.', 1) AS INT), COUNT(*) FROM patients GROUP BY 1

-- bigquery
SELECT region, COUNTIF(diabetic) AS diabetics, SAFE_DIVIDE(COUNTIF(diabetic), COUNT(*)) AS prevalence FROM `health-prod.registry.patients` GROUP BY region ORDER BY prevalence DESC
-- reads
SELECT region, COUNT(*) FILTER (WHERE diabetic), COUNT(*) FILTER (WHERE diabetic) / COUNT(*) FROM patients GROUP BY region

-- bigquery
SELECT FORMAT_DATE('%Y-%m', admitted) AS month, COUNT(*) AS n, SUM(IF(ward = 'ICU', 1, 0)) AS icu FROM `registry.patients` WHERE admitted BETWEEN '2023-06-01' AND '2023-12-31' GROUP BY month ORDER BY month
-- reads
SELECT strftime(admitted, '%Y-%m'), COUNT(*), SUM(IF(ward = 'ICU', 1, 0)) FROM patients WHERE admitted BETWEEN '2023-06-01' AND '2023-12-31' GROUP BY 1

-- bigquery
SELECT DATE_DIFF(discharged, admitted, DAY) > 14 AS long_stay, AVG(cost) AS avg_cost FROM registry.patients WHERE discharged >= admitted GROUP BY long_stay
-- reads
SELECT discharged - admitted > 14, AVG(cost) FROM patients WHERE discharged >= admitted GROUP BY 1

-- bigquery rewritten
SELECT APPROX_QUANTILES(los, 4) AS quartiles FROM registry.patients
-- reads
SELECT MIN(los), quantile_disc(los, 0.25), quantile_disc(los, 0.5), quantile_disc(los, 0.75), MAX(los) FROM patients

-- bigquery impossible
SELECT icd, APPROX_TOP_COUNT(ward, 1) FROM registry.patients GROUP BY icd

-- bigquery
SELECT CASE WHEN smoker AND diabetic THEN 'both' WHEN smoker THEN 'smoker' WHEN diabetic THEN 'diabetic' ELSE 'neither' END risk, COUNT(1) n, STDDEV(hba1c) sd FROM registry.patients GROUP BY risk
-- reads
SELECT CASE WHEN smoker AND diabetic THEN 'both' WHEN smoker THEN 'smoker' WHEN diabetic THEN 'diabetic' ELSE 'neither' END, COUNT(1), STDDEV(hba1c) FROM patients GROUP BY 1

-- bigquery
SELECT EXTRACT(ISOWEEK FROM admitted) AS wk, COUNT(*) AS admissions FROM registry.patients WHERE EXTRACT(ISOYEAR FROM admitted) = 2023 GROUP BY wk ORDER BY wk
-- reads
SELECT EXTRACT(WEEK FROM admitted), COUNT(*) FROM patients WHERE EXTRACT(ISOYEAR FROM admitted) = 2023 GROUP BY 1

-- bigquery
SELECT DATE_TRUNC(admitted, WEEK(MONDAY)) AS week_start, COUNT(*) FROM registry.patients WHERE admitted >= DATE_SUB(DATE '2024-06-30', INTERVAL 8 WEEK) GROUP BY week_start
-- reads
SELECT DATE_TRUNC('week', admitted)::DATE, COUNT(*) FROM patients WHERE admitted >= DATE '2024-05-05' GROUP BY 1

-- bigquery impossible
SELECT LOGICAL_OR(age > 100) AS any_centenarian, ANY_VALUE(region) FROM registry.patients

-- duckdb
FROM patients SELECT region, ward, count(*) AS n, avg(cost) GROUP BY ALL ORDER BY ALL

-- duckdb
PIVOT patients ON sex USING count(*) GROUP BY region
-- reads
SELECT region, COUNT(*) FILTER (WHERE sex = 'F'), COUNT(*) FILTER (WHERE sex = 'M'), COUNT(*) FILTER (WHERE sex = 'X') FROM patients GROUP BY region

-- duckdb
SELECT icd[1:3] AS category, count(*) AS n, sum(cost)::BIGINT AS cost FROM patients GROUP BY 1 HAVING n > 20
-- reads
SELECT icd[1:3], count(*), sum(cost)::BIGINT FROM patients GROUP BY 1 HAVING count(*) > 20

-- duckdb rewritten
SELECT histogram(age // 10) FROM patients
-- reads
SELECT age // 10, count(*) FROM patients WHERE age IS NOT NULL GROUP BY 1

-- duckdb
SELECT datepart('dow', admitted) AS dow, count(*) n, n / sum(n) OVER () AS share FROM patients GROUP BY dow
-- reads
SELECT datepart('dow', admitted), count(*), count(*) / sum(count(*)) OVER () FROM patients GROUP BY 1

-- duckdb
SELECT age // 10 * 10 AS decade, count(*), quantile_cont(los, 0.9), max(systolic), min(systolic) FROM patients GROUP BY decade
-- reads
SELECT age // 10 * 10, count(*), quantile_disc(los, 0.9), max(systolic), min(systolic) FROM patients GROUP BY 1

-- duckdb
SELECT datediff('month', admitted, discharged) AS months, count(*) FROM patients WHERE discharged > admitted GROUP BY months

-- duckdb impossible
SUMMARIZE patients

-- mysql
SELECT `region`, COUNT(*) AS `n`, SUM(`smoker`) AS smokers, AVG(`smoker`) * 100 AS pct FROM `registry`.`patients` GROUP BY `region` WITH ROLLUP
-- reads
SELECT region, COUNT(*), SUM(smoker::INT), AVG(smoker::INT) * 100 FROM patients GROUP BY ROLLUP (region)

-- mysql
SELECT DATE_FORMAT(admitted, '%Y-%m-01') AS month, COUNT(*) FROM patients WHERE admitted >= DATE_SUB('2024-06-30', INTERVAL 6 MONTH) GROUP BY DATE_FORMAT(admitted, '%Y-%m-01') ORDER BY month
-- reads
SELECT strftime(admitted, '%Y-%m-01'), COUNT(*) FROM patients WHERE admitted >= DATE '2023-12-30' GROUP BY 1

-- mysql
SELECT TIMESTAMPDIFF(YEAR, birth_date, admitted) AS age_adm, COUNT(*) FROM patients GROUP BY age_adm
-- reads
SELECT datesub('year', birth_date, admitted), COUNT(*) FROM patients GROUP BY 1

-- mysql
SELECT IF(los > 10, 'long', 'short') AS stay, COUNT(*), ROUND(AVG(cost), 2) FROM patients WHERE los IS NOT NULL GROUP BY stay LIMIT 0, 10
-- reads
SELECT IF(los > 10, 'long', 'short'), COUNT(*), ROUND(AVG(cost), 2) FROM patients WHERE los IS NOT NULL GROUP BY 1

-- mysql impossible
SELECT ward, GROUP_CONCAT(DISTINCT sex) FROM patients GROUP BY ward

-- mysql
SELECT ELT(QUARTER(admitted), 'Q1', 'Q2', 'Q3', 'Q4') AS q, COUNT(*) FROM patients WHERE YEAR(admitted) = 2023 GROUP BY q
-- reads
SELECT 'Q' || QUARTER(admitted), COUNT(*) FROM patients WHERE YEAR(admitted) = 2023 GROUP BY 1

-- mysql
SELECT SUM(CASE sex WHEN 'F' THEN 1 ELSE 0 END) AS women, SUM(CASE sex WHEN 'M' THEN 1 ELSE 0 END) AS men, SUM(ISNULL(sex)) AS missing FROM patients
-- reads
SELECT COUNT(*) FILTER (WHERE sex = 'F'), COUNT(*) FILTER (WHERE sex = 'M'), COUNT(*) FILTER (WHERE sex IS NULL) FROM patients

-- tsql
SELECT TOP (5) [icd], COUNT_BIG(*) AS [Cases] FROM [dbo].[patients] WHERE [icd] IS NOT NULL GROUP BY [icd] ORDER BY [Cases] DESC
-- reads
SELECT icd, COUNT(*) FROM patients WHERE icd IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT 5

-- tsql rewritten
SELECT DATEDIFF(YEAR, birth_date, admitted) / 10 * 10 AS age_band, COUNT(*) AS n FROM dbo.patients WHERE birth_date <= admitted GROUP BY DATEDIFF(YEAR, birth_date, admitted) / 10 * 10
-- reads
SELECT DATE_DIFF('year', birth_date, admitted) // 10 * 10, COUNT(*) FROM patients WHERE birth_date <= admitted GROUP BY 1

-- tsql
SELECT ISNULL(ward, 'n/a') AS ward, CAST(SUM(CAST(deceased AS INT)) AS FLOAT) / COUNT(*) AS cfr FROM patients GROUP BY ISNULL(ward, 'n/a')
-- reads
SELECT COALESCE(ward, 'n/a'), SUM(deceased::INT) / COUNT(*) FROM patients GROUP BY 1

-- tsql
SELECT FORMAT(admitted, 'yyyy-MM') AS ym, COUNT(*) FROM patients GROUP BY FORMAT(admitted, 'yyyy-MM') ORDER BY ym
-- reads
SELECT strftime(admitted, '%Y-%m'), COUNT(*) FROM patients GROUP BY 1

-- tsql
SELECT region, [F], [M] FROM (SELECT region, sex FROM patients) AS src PIVOT (COUNT(sex) FOR sex IN ([F], [M])) AS pvt
-- reads
SELECT region, COUNT(*) FILTER (WHERE sex = 'F'), COUNT(*) FILTER (WHERE sex = 'M') FROM patients GROUP BY region

-- tsql
SELECT DATEFROMPARTS(YEAR(admitted), MONTH(admitted), 1) AS m, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY DATEFROMPARTS(YEAR(admitted), MONTH(admitted), 1)) AS prev FROM patients WHERE admitted >= '20240101' GROUP BY DATEFROMPARTS(YEAR(admitted), MONTH(admitted), 1)
-- reads
SELECT DATE_TRUNC('month', admitted)::DATE, COUNT(*), LAG(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', admitted)) FROM patients WHERE admitted >= '2024-01-01' GROUP BY DATE_TRUNC('month', admitted)

-- tsql
SELECT region, STDEV(bmi) AS sd, AVG(bmi) AS m, STDEV(bmi) / SQRT(COUNT(bmi)) AS se FROM patients GROUP BY region
-- reads
SELECT region, STDDEV(bmi), AVG(bmi), STDDEV(bmi) / SQRT(COUNT(bmi)) FROM patients GROUP BY region

-- tsql
SELECT DATENAME(weekday, admitted) AS d, COUNT(*) FROM patients GROUP BY DATENAME(weekday, admitted)
-- reads
SELECT dayname(admitted), COUNT(*) FROM patients GROUP BY 1

-- spark
SELECT region, count(if(bmi >= 30, 1, NULL)) AS obese, percentile_approx(hba1c, 0.5) AS med FROM hive_metastore.registry.patients GROUP BY region
-- reads
SELECT region, count(*) FILTER (WHERE bmi >= 30), quantile_disc(hba1c, 0.5) FROM patients GROUP BY region

-- spark impossible
SELECT ward, count(*) AS n, collect_set(icd) FROM patients GROUP BY ward

-- spark
SELECT trunc(admitted, 'MM') AS month, sum(cost) FROM patients GROUP BY trunc(admitted, 'MM') ORDER BY 1
-- reads
SELECT DATE_TRUNC('month', admitted)::DATE, SUM(cost) FROM patients GROUP BY 1

-- spark
SELECT region, sum(int(deceased)) AS deaths, sum(int(deceased)) * 100000 / count(*) AS per_100k FROM patients GROUP BY region
-- reads
SELECT region, sum(deceased::INT), sum(deceased::INT) * 100000 / count(*) FROM patients GROUP BY region

-- spark impossible
SELECT sex, stack(2, 'a', avg(bmi), 'b', avg(los)) FROM patients GROUP BY sex

-- postgres
SELECT "region", COUNT(*) AS "n", AVG("bmi") AS "bmi" FROM "patients" WHERE (NOT((("bmi") IS NULL))) GROUP BY "region"
-- reads
SELECT region, COUNT(*), AVG(bmi) FROM patients WHERE bmi IS NOT NULL GROUP BY region

-- postgres
SELECT "region", SUM(CASE WHEN ("smoker") THEN 1.0 WHEN NOT ("smoker") THEN 0.0 END) / COUNT(*) AS "rate" FROM (SELECT "patients".* FROM "patients" WHERE ("age" >= 18.0)) AS "q01" GROUP BY "region"
-- reads
SELECT region, SUM(CASE WHEN smoker THEN 1.0 WHEN NOT smoker THEN 0.0 END) / COUNT(*) FROM patients WHERE age >= 18 GROUP BY region

-- postgres
SELECT t0.sex, count(*) AS n, sum(CAST(t0.diabetic AS INTEGER)) AS d FROM patients AS t0 WHERE t0.age > CAST(40 AS SMALLINT) GROUP BY 1
-- reads
SELECT sex, count(*), sum(diabetic::INT) FROM patients WHERE age > 40 GROUP BY 1

-- postgres
SELECT extract(epoch from (discharged::timestamp - admitted::timestamp)) / 86400 AS days, count(*) FROM patients WHERE discharged > admitted GROUP BY 1 HAVING count(*) > 3
-- reads
SELECT discharged - admitted, count(*) FROM patients WHERE discharged > admitted GROUP BY 1 HAVING count(*) > 3

-- postgres
SELECT floor(age / 5.0)::int * 5 AS age_lo, floor(age / 5.0)::int * 5 + 4 AS age_hi, count(*) FROM patients GROUP BY 1, 2 ORDER BY 1
-- reads
SELECT floor(age / 5) * 5, floor(age / 5) * 5 + 4, count(*) FROM patients GROUP BY 1, 2

-- postgres
SELECT concat(floor(age / 10) * 10, '-', floor(age / 10) * 10 + 9) AS band, count(*) FROM patients WHERE age IS NOT NULL GROUP BY floor(age / 10)
-- reads
SELECT concat((floor(age / 10) * 10)::int, '-', (floor(age / 10) * 10 + 9)::int), count(*) FROM patients WHERE age IS NOT NULL GROUP BY floor(age / 10)

-- postgres
SELECT ward, avg(los), avg(los) FILTER (WHERE deceased), avg(los) FILTER (WHERE NOT deceased) FROM patients WHERE ward IN ('ICU', 'Surgery') GROUP BY ward ORDER BY avg(los) FILTER (WHERE deceased) DESC

-- postgres
SELECT sex, (COUNT(*) FILTER (WHERE smoker AND deceased))::numeric / NULLIF(COUNT(*) FILTER (WHERE smoker), 0) / NULLIF((COUNT(*) FILTER (WHERE NOT smoker AND deceased))::numeric / NULLIF(COUNT(*) FILTER (WHERE NOT smoker), 0), 0) AS relative_risk FROM patients GROUP BY sex
-- reads
SELECT sex, (COUNT(*) FILTER (WHERE smoker AND deceased) / COUNT(*) FILTER (WHERE smoker)) / (COUNT(*) FILTER (WHERE NOT smoker AND deceased) / COUNT(*) FILTER (WHERE NOT smoker)) FROM patients GROUP BY sex

-- postgres
SELECT (SUM(CASE WHEN smoker AND deceased THEN 1 ELSE 0 END) * SUM(CASE WHEN NOT smoker AND NOT deceased THEN 1 ELSE 0 END))::float / (SUM(CASE WHEN smoker AND NOT deceased THEN 1 ELSE 0 END) * SUM(CASE WHEN NOT smoker AND deceased THEN 1 ELSE 0 END)) AS odds_ratio FROM patients
-- reads
SELECT (SUM(CASE WHEN smoker AND deceased THEN 1 ELSE 0 END) * SUM(CASE WHEN NOT smoker AND NOT deceased THEN 1 ELSE 0 END)) / (SUM(CASE WHEN smoker AND NOT deceased THEN 1 ELSE 0 END) * SUM(CASE WHEN NOT smoker AND deceased THEN 1 ELSE 0 END)) FROM patients

-- postgres
WITH base AS (SELECT region, age, CASE WHEN bmi < 18.5 THEN 'under' WHEN bmi < 25 THEN 'normal' WHEN bmi < 30 THEN 'over' ELSE 'obese' END AS bmi_cat FROM patients WHERE bmi IS NOT NULL), counts AS (SELECT region, bmi_cat, COUNT(*) AS n FROM base GROUP BY region, bmi_cat), totals AS (SELECT region, SUM(n) AS total FROM counts GROUP BY region) SELECT c.region, c.bmi_cat, c.n, ROUND(100.0 * c.n / t.total, 1) AS pct FROM counts c JOIN totals t ON t.region = c.region ORDER BY c.region, c.bmi_cat
-- reads
SELECT region, CASE WHEN bmi < 18.5 THEN 'under' WHEN bmi < 25 THEN 'normal' WHEN bmi < 30 THEN 'over' ELSE 'obese' END AS b, COUNT(*), ROUND(1000.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY region)) / 10 FROM patients WHERE bmi IS NOT NULL AND region IS NOT NULL GROUP BY region, b

-- postgres
SELECT icd, count(*) FROM patients WHERE icd = ANY(ARRAY['I10', 'E11.9']) GROUP BY icd

-- postgres
SELECT date_trunc('week', admitted) AS wk, count(*) AS n, count(*) - lag(count(*)) OVER (ORDER BY date_trunc('week', admitted)) AS delta FROM patients WHERE admitted >= '2024-01-01'::date GROUP BY date_trunc('week', admitted) ORDER BY wk
-- reads
SELECT date_trunc('week', admitted)::date AS wk, count(*) AS n, count(*) - lag(count(*)) OVER (ORDER BY date_trunc('week', admitted)) AS delta FROM patients WHERE admitted >= '2024-01-01'::date GROUP BY date_trunc('week', admitted)

-- postgres
SELECT count(*) FROM patients WHERE age BETWEEN 18 AND 64 AND NOT (smoker OR diabetic) AND coalesce(bmi, 0) > 25

-- postgres
SELECT region, round(stddev(cost)::numeric / nullif(avg(cost), 0)::numeric, 3) AS cv FROM patients GROUP BY region HAVING avg(cost) > 1000
-- reads
SELECT region, round(stddev(cost) / avg(cost), 3) FROM patients GROUP BY region HAVING avg(cost) > 1000

-- postgres
SELECT r.region, r.n FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) r CROSS JOIN (SELECT AVG(n) AS mean_n FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) x) m WHERE r.n > m.mean_n
-- reads
WITH r AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) SELECT region, n FROM r WHERE n > (SELECT AVG(n) FROM (SELECT * FROM r UNION ALL SELECT NULL, 0 WHERE FALSE))

-- postgres
SELECT CASE WHEN sex IS NULL THEN 'missing' ELSE sex END AS s, COUNT(*) FROM patients GROUP BY CASE WHEN sex IS NULL THEN 'missing' ELSE sex END
-- reads
SELECT COALESCE(sex, 'missing'), COUNT(*) FROM patients GROUP BY 1

-- postgres
SELECT COUNT(CASE WHEN hba1c >= 6.5 THEN 1 END) AS diabetic_range, COUNT(hba1c) AS measured, COUNT(*) - COUNT(hba1c) AS unmeasured, COUNT(CASE WHEN hba1c >= 6.5 THEN 1 END)::float8 / COUNT(hba1c) FROM patients
-- reads
SELECT COUNT(CASE WHEN hba1c >= 6.5 THEN 1 END), COUNT(hba1c), COUNT(*) - COUNT(hba1c), COUNT(CASE WHEN hba1c >= 6.5 THEN 1 END) / COUNT(hba1c) FROM patients

-- postgres
SELECT sex, ward, grouping(sex, ward) AS g, count(*) FROM patients GROUP BY CUBE (sex, ward)

-- snowflake
SELECT TO_CHAR(DATE_TRUNC('MONTH', ADMITTED), 'MON-YYYY') AS M, COUNT(*) FROM PATIENTS WHERE ADMITTED >= DATEADD(MONTH, -6, '2024-06-01'::DATE) GROUP BY DATE_TRUNC('MONTH', ADMITTED) ORDER BY DATE_TRUNC('MONTH', ADMITTED)
-- reads
SELECT strftime(DATE_TRUNC('month', admitted), '%b-%Y'), COUNT(*) FROM patients WHERE admitted >= DATE '2023-12-01' GROUP BY DATE_TRUNC('month', admitted)

-- snowflake
SELECT REGION, WARD, COUNT(*) AS N FROM PATIENTS WHERE REGION IS NOT NULL AND WARD IS NOT NULL GROUP BY REGION, WARD QUALIFY DENSE_RANK() OVER (PARTITION BY REGION ORDER BY N DESC) = 1
-- reads
SELECT region, ward, COUNT(*) AS n FROM patients WHERE region IS NOT NULL AND ward IS NOT NULL GROUP BY region, ward QUALIFY DENSE_RANK() OVER (PARTITION BY region ORDER BY COUNT(*) DESC) = 1

-- snowflake
SELECT SUM(IFF(BMI > 30, 1, 0)) AS OBESE, SUM(IFF(BMI > 30, COST, 0)) AS OBESE_COST, OBESE_COST / NULLIF(OBESE, 0) AS PER_CAPITA FROM PATIENTS
-- reads
SELECT SUM(IF(bmi > 30, 1, 0)), SUM(IF(bmi > 30, cost, 0)), SUM(IF(bmi > 30, cost, 0)) / SUM(IF(bmi > 30, 1, 0)) FROM patients

-- bigquery
SELECT CAST(FLOOR(age / 10) * 10 AS STRING) AS decade, COUNT(*) AS n FROM registry.patients GROUP BY decade ORDER BY decade
-- reads
SELECT CAST((FLOOR(age / 10) * 10)::INT AS STRING), COUNT(*) FROM patients GROUP BY 1

-- bigquery
SELECT FORMAT_DATE('%A', admitted) AS weekday, COUNT(*) AS n, ROUND(COUNT(*) / SUM(COUNT(*)) OVER () * 100, 1) AS pct FROM registry.patients GROUP BY 1 ORDER BY n DESC
-- reads
SELECT dayname(admitted), COUNT(*), ROUND(COUNT(*) / SUM(COUNT(*)) OVER () * 1000) / 10 FROM patients GROUP BY 1

-- bigquery
SELECT DATE_TRUNC(admitted, QUARTER) q, APPROX_QUANTILES(los, 100)[OFFSET(50)] AS median_los, APPROX_QUANTILES(los, 100)[SAFE_OFFSET(90)] AS p90 FROM registry.patients GROUP BY q
-- reads
SELECT DATE_TRUNC('quarter', admitted)::DATE, quantile_disc(los, 0.5), quantile_disc(los, 0.9) FROM patients GROUP BY 1

-- bigquery
SELECT IF(GROUPING(region) = 1, 'ALL', region) AS region, COUNT(*) FROM registry.patients GROUP BY ROLLUP(region)
-- reads
SELECT IF(GROUPING(region) = 1, 'ALL', region), COUNT(*) FROM patients GROUP BY ROLLUP(region)

-- bigquery
SELECT IFNULL(sex, '?') AS sex, COUNTIF(age >= 65) / COUNT(*) AS share_65 FROM `registry`.`patients` GROUP BY sex
-- reads
SELECT COALESCE(sex, '?'), COUNT(*) FILTER (WHERE age >= 65) / COUNT(*) FROM patients GROUP BY 1

-- duckdb
SELECT ward, avg(los)::DECIMAL(10,2) AS los, quantile(los, 0.5) AS med FROM patients WHERE ward NOT LIKE 'M%' GROUP BY ALL
-- reads
SELECT ward, round(avg(los), 2), quantile_disc(los, 0.5) FROM patients WHERE ward NOT LIKE 'M%' GROUP BY ALL

-- duckdb
SELECT year(admitted) AS y, sum(cost) AS c, c / lag(c) OVER (ORDER BY y) - 1 AS yoy FROM patients WHERE admitted IS NOT NULL GROUP BY y
-- reads
WITH t AS (SELECT year(admitted) AS y, sum(cost) AS c FROM patients WHERE admitted IS NOT NULL GROUP BY 1) SELECT y, c, c / lag(c) OVER (ORDER BY y) - 1 FROM t

-- mysql
SELECT CASE WHEN TIMESTAMPDIFF(YEAR, birth_date, '2024-06-30') < 18 THEN 'minor' ELSE 'adult' END AS grp, COUNT(*) AS n FROM patients WHERE birth_date IS NOT NULL GROUP BY grp
-- reads
SELECT CASE WHEN datesub('year', birth_date, DATE '2024-06-30') < 18 THEN 'minor' ELSE 'adult' END, COUNT(*) FROM patients WHERE birth_date IS NOT NULL GROUP BY 1

-- mysql
SELECT LEFT(icd, 3) AS code, COUNT(*) AS n, SUM(deceased = 1) AS deaths, SUM(deceased = 1) / COUNT(*) AS cfr FROM patients GROUP BY LEFT(icd, 3) HAVING n > 10
-- reads
SELECT left(icd, 3), COUNT(*), COUNT(*) FILTER (WHERE deceased), COUNT(*) FILTER (WHERE deceased) / COUNT(*) FROM patients GROUP BY 1 HAVING COUNT(*) > 10

-- mysql
SELECT YEAR(admitted) yr, QUARTER(admitted) qtr, COUNT(*) FROM patients WHERE admitted IS NOT NULL GROUP BY yr, qtr ORDER BY yr, qtr
-- reads
SELECT YEAR(admitted), QUARTER(admitted), COUNT(*) FROM patients WHERE admitted IS NOT NULL GROUP BY 1, 2

-- tsql
SELECT CASE WHEN p.age IS NULL THEN 'Unknown' WHEN p.age < 65 THEN 'Under 65' ELSE '65 and over' END AS [Age Group], COUNT(*) AS [Admissions], AVG(CAST(p.los AS DECIMAL(10,2))) AS [ALOS] FROM [reg].[dbo].[patients] AS p WITH (NOLOCK) WHERE p.admitted BETWEEN '2023-04-01' AND '2024-03-31' GROUP BY CASE WHEN p.age IS NULL THEN 'Unknown' WHEN p.age < 65 THEN 'Under 65' ELSE '65 and over' END
-- reads
SELECT CASE WHEN age IS NULL THEN 'Unknown' WHEN age < 65 THEN 'Under 65' ELSE '65 and over' END, COUNT(*), AVG(los) FROM patients WHERE admitted BETWEEN '2023-04-01' AND '2024-03-31' GROUP BY 1

-- tsql
SELECT YEAR(admitted) AS Yr, SUM(IIF(sex = 'F', 1, 0)) AS Women, SUM(IIF(sex = 'M', 1, 0)) AS Men, COUNT(*) AS Total FROM patients GROUP BY YEAR(admitted)
-- reads
SELECT YEAR(admitted), COUNT(*) FILTER (WHERE sex = 'F'), COUNT(*) FILTER (WHERE sex = 'M'), COUNT(*) FROM patients GROUP BY 1

-- tsql
SELECT DATEDIFF(day, admitted, discharged) AS LOS, COUNT(*) AS n FROM patients WHERE DATEDIFF(day, admitted, discharged) BETWEEN 0 AND 14 GROUP BY DATEDIFF(day, admitted, discharged) ORDER BY LOS
-- reads
SELECT discharged - admitted, COUNT(*) FROM patients WHERE discharged - admitted BETWEEN 0 AND 14 GROUP BY 1

-- tsql rewritten
SELECT region, CONCAT(CAST(ROUND(100.0 * SUM(CASE WHEN smoker = 1 THEN 1 ELSE 0 END) / COUNT(*), 1) AS VARCHAR(10)), '%') AS smoking FROM patients GROUP BY region

-- spark
SELECT year(admitted) * 100 + month(admitted) AS ym, count(1) AS n FROM patients GROUP BY year(admitted) * 100 + month(admitted)

-- spark
SELECT CASE WHEN datediff(discharged, admitted) > 7 THEN 'long' ELSE 'short' END AS stay, count(*) AS n FROM patients WHERE discharged IS NOT NULL AND admitted IS NOT NULL GROUP BY 1
-- reads
SELECT CASE WHEN discharged - admitted > 7 THEN 'long' ELSE 'short' END, count(*) FROM patients WHERE discharged IS NOT NULL AND admitted IS NOT NULL GROUP BY 1
