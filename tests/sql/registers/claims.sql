-- postgres
SELECT claim_type, COUNT(*) AS claims, COUNT(DISTINCT member_id) AS members, SUM(paid) AS paid, SUM(paid) / COUNT(DISTINCT member_id) AS pmpm FROM claims WHERE status = 'paid' GROUP BY claim_type ORDER BY paid DESC
-- reads
SELECT claim_type, COUNT(*), COUNT(DISTINCT member_id), SUM(paid), SUM(paid) / COUNT(DISTINCT member_id) FROM claims WHERE status = 'paid' GROUP BY 1

-- postgres
SELECT date_trunc('month', service_date) AS svc_month, status, count(*) FROM "edw"."claims" GROUP BY 1, 2 ORDER BY 1, 2
-- reads
SELECT date_trunc('month', service_date)::date, status, count(*) FROM claims GROUP BY 1, 2

-- postgres
SELECT state, SUM(billed) billed, SUM(paid) paid, ROUND((1 - SUM(paid) / NULLIF(SUM(billed), 0)) * 100, 2) AS discount_pct FROM claims GROUP BY state
-- reads
SELECT state, SUM(billed), SUM(paid), ROUND((1 - SUM(paid) / NULLIF(SUM(billed), 0)) * 100, 2) FROM claims GROUP BY state

-- postgres
SELECT extract(dow from submitted_at) AS dow, extract(hour from submitted_at) AS hr, count(*) FROM claims GROUP BY 1, 2

-- postgres
SELECT plan, avg(submitted_at::date - service_date) AS lag_days FROM claims WHERE submitted_at::date >= service_date GROUP BY plan

-- postgres
SELECT COUNT(DISTINCT member_id) FILTER (WHERE is_emergency) AS ed_users, COUNT(DISTINCT member_id) AS users FROM claims

-- postgres
SELECT COUNT(DISTINCT CASE WHEN claim_type = 'inpatient' THEN member_id END) * 1000.0 / COUNT(DISTINCT member_id) AS admits_per_1000 FROM claims
-- reads
SELECT COUNT(DISTINCT CASE WHEN claim_type = 'inpatient' THEN member_id END) * 1000.0 / COUNT(DISTINCT member_id) FROM claims

-- postgres
SELECT state, plan, SUM(paid) AS paid, SUM(SUM(paid)) OVER (PARTITION BY state) AS state_paid, SUM(paid) / SUM(SUM(paid)) OVER () AS share FROM claims WHERE state IS NOT NULL AND plan IS NOT NULL GROUP BY state, plan

-- postgres
SELECT CASE WHEN paid = 0 THEN '0' WHEN paid < 100 THEN '<100' WHEN paid < 1000 THEN '<1000' ELSE '1000+' END AS paid_band, COUNT(*) FROM claims WHERE paid IS NOT NULL GROUP BY CASE WHEN paid = 0 THEN '0' WHEN paid < 100 THEN '<100' WHEN paid < 1000 THEN '<1000' ELSE '1000+' END

-- postgres
SELECT * FROM (SELECT state, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS rn FROM claims WHERE state IS NOT NULL GROUP BY state) t WHERE rn <= 3
-- reads
SELECT state, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS rn FROM claims WHERE state IS NOT NULL GROUP BY state QUALIFY rn <= 3

-- postgres impossible
SELECT member_id, SUM(paid) FROM claims GROUP BY member_id HAVING SUM(paid) > 10000

-- postgres refused
SELECT AVG(total) FROM (SELECT member_id, SUM(paid) AS total FROM claims GROUP BY member_id) t

-- postgres impossible
SELECT COUNT(*) FROM claims c WHERE EXISTS (SELECT 1 FROM claims d WHERE d.member_id = c.member_id AND d.service_date < c.service_date)

-- postgres
SELECT state, COUNT(*) FROM claims WHERE service_date > CURRENT_DATE - INTERVAL '3 years' GROUP BY state
-- reads
SELECT state, COUNT(*) FROM claims WHERE service_date > CURRENT_DATE - INTERVAL 3 YEAR GROUP BY state

-- postgres
SELECT avg(age) AS avg_age, avg(age) + 1.96 * stddev(age) / sqrt(count(age)) AS hi, avg(age) - 1.96 * stddev(age) / sqrt(count(age)) AS lo FROM claims
-- reads
SELECT avg(age), avg(age) + 1.96 * stddev(age) / sqrt(count(age)), avg(age) - 1.96 * stddev(age) / sqrt(count(age)) FROM claims

-- postgres
SELECT state, sum(paid) FROM claims WHERE (state, plan) IN (('CA', 'HMO'), ('TX', 'PPO')) GROUP BY state

-- postgres
SELECT a.state, a.n AS denied, b.n AS total, a.n::float / b.n AS rate FROM (SELECT state, COUNT(*) n FROM claims WHERE status = 'denied' GROUP BY state) a JOIN (SELECT state, COUNT(*) n FROM claims GROUP BY state) b ON a.state = b.state
-- reads
SELECT state, COUNT(*) FILTER (WHERE status = 'denied'), COUNT(*), COUNT(*) FILTER (WHERE status = 'denied') / COUNT(*) FROM claims WHERE state IS NOT NULL GROUP BY state

-- postgres
WITH m AS (SELECT date_trunc('month', service_date)::date AS mth, SUM(paid) AS paid FROM claims WHERE service_date BETWEEN '2024-01-01' AND '2024-06-30' GROUP BY 1) SELECT mth, paid, paid - LAG(paid, 1) OVER (ORDER BY mth) AS change, AVG(paid) OVER (ORDER BY mth ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS ma3 FROM m ORDER BY mth

-- postgres
SELECT percentile_disc(0.95) within group (order by paid) as p95, percentile_disc(0.99) within group (order by paid) as p99 from claims where status = 'paid'
-- reads
SELECT quantile_disc(paid, 0.95), quantile_disc(paid, 0.99) FROM claims WHERE status = 'paid'

-- postgres
SELECT to_char(submitted_at, 'HH24') AS hr, count(*) FROM claims GROUP BY to_char(submitted_at, 'HH24') ORDER BY 1
-- reads
SELECT strftime(submitted_at, '%H'), count(*) FROM claims GROUP BY 1

-- postgres
SELECT SUM(paid) AS "Sum of paid", SUM(paid) FILTER (WHERE plan = 'HMO') / SUM(paid) AS "HMO %", SUM(paid) FILTER (WHERE plan = 'PPO') / SUM(paid) AS "PPO %" FROM claims

-- snowflake refused
SELECT STATUS, AVG(DATEDIFF('hour', SERVICE_DATE, SUBMITTED_AT)) AS HRS FROM CLAIMS WHERE SUBMITTED_AT >= SERVICE_DATE GROUP BY STATUS
-- reads
SELECT status, AVG(DATE_DIFF('hour', service_date, submitted_at)) FROM claims WHERE submitted_at >= service_date GROUP BY status

-- snowflake
SELECT TO_VARCHAR(SERVICE_DATE, 'YYYY-MM') AS YM, SUM(BILLED)::NUMBER(18,2) AS BILLED FROM EDW.CLAIMS GROUP BY 1 ORDER BY 1
-- reads
SELECT strftime(service_date, '%Y-%m'), ROUND(SUM(billed), 2) FROM claims GROUP BY 1

-- snowflake unread
SELECT PLAN, HLL(STATE) AS STATES, BOOLOR_AGG(IS_EMERGENCY) AS ANY_ED FROM CLAIMS GROUP BY PLAN

-- snowflake
SELECT STATE, SUM(PAID) AS P, 100 * P / SUM(P) OVER () AS PCT FROM CLAIMS GROUP BY STATE ORDER BY P DESC
-- reads
SELECT state, SUM(paid), 100 * SUM(paid) / SUM(SUM(paid)) OVER () FROM claims GROUP BY state

-- snowflake
SELECT SUM(CASE WHEN STATUS = 'denied' THEN BILLED END) / NULLIFZERO(SUM(BILLED)) AS DENIED_SHARE FROM CLAIMS
-- reads
SELECT SUM(CASE WHEN status = 'denied' THEN billed END) / SUM(billed) FROM claims

-- snowflake
SELECT DATEADD('day', -DAYOFWEEKISO(SERVICE_DATE) + 1, SERVICE_DATE) AS WK, COUNT(*) FROM CLAIMS WHERE SERVICE_DATE >= '2024-06-01' GROUP BY WK
-- reads
SELECT DATE_TRUNC('week', service_date)::DATE, COUNT(*) FROM claims WHERE service_date >= '2024-06-01' GROUP BY 1

-- bigquery
SELECT claim_type, SUM(paid) AS paid, SUM(IF(status = 'denied', 1, 0)) / COUNT(*) AS denial_rate FROM `proj.edw.claims` WHERE DATE(submitted_at) >= DATE '2024-01-01' GROUP BY 1 HAVING denial_rate > 0.05
-- reads
SELECT claim_type, SUM(paid), SUM(IF(status = 'denied', 1, 0)) / COUNT(*) AS r FROM claims WHERE submitted_at::DATE >= DATE '2024-01-01' GROUP BY 1 HAVING r > 0.05

-- bigquery
SELECT state, APPROX_COUNT_DISTINCT(member_id) AS members FROM edw.claims GROUP BY state
-- reads
SELECT state, COUNT(DISTINCT member_id) FROM claims GROUP BY state

-- bigquery
SELECT SAFE_CAST(SUM(paid) AS INT64) AS paid, SAFE_CAST(AVG(age) AS NUMERIC) AS age FROM edw.claims
-- reads
SELECT CAST(SUM(paid) AS BIGINT), AVG(age) FROM claims

-- bigquery refused
SELECT TIMESTAMP_DIFF(submitted_at, TIMESTAMP(service_date), DAY) AS d, COUNT(*) FROM edw.claims WHERE submitted_at >= TIMESTAMP(service_date) GROUP BY d HAVING d < 30
-- reads
SELECT FLOOR(date_diff('second', service_date::TIMESTAMP, submitted_at) / 86400) AS d, COUNT(*) FROM claims WHERE submitted_at >= service_date GROUP BY 1 HAVING d < 30

-- bigquery
SELECT plan, AVG(LN(paid + 1)) AS log_mean, EXP(AVG(LN(paid + 1))) - 1 AS gm FROM edw.claims WHERE paid IS NOT NULL GROUP BY plan
-- reads
SELECT plan, AVG(LN(paid + 1)), EXP(AVG(LN(paid + 1))) - 1 FROM claims WHERE paid IS NOT NULL GROUP BY plan

-- bigquery
SELECT * EXCEPT (rn) FROM (SELECT state, plan, COUNT(*) AS n, RANK() OVER (PARTITION BY state ORDER BY COUNT(*) DESC) AS rn FROM edw.claims WHERE state IS NOT NULL AND plan IS NOT NULL GROUP BY state, plan) WHERE rn = 1
-- reads
SELECT state, plan, n FROM (SELECT state, plan, COUNT(*) AS n, RANK() OVER (PARTITION BY state ORDER BY COUNT(*) DESC) AS rn FROM claims WHERE state IS NOT NULL AND plan IS NOT NULL GROUP BY state, plan) WHERE rn = 1

-- duckdb rewritten
SELECT plan, approx_quantile(paid, 0.5), quantile_disc(paid, [0.1, 0.9]) FROM claims GROUP BY plan
-- reads
SELECT plan, quantile_disc(paid, 0.5), quantile_disc(paid, 0.1), quantile_disc(paid, 0.9) FROM claims GROUP BY plan

-- duckdb
SELECT time_bucket(INTERVAL '7 days', service_date) AS w, count(*) FROM claims WHERE service_date >= '2024-05-01' GROUP BY w ORDER BY w

-- duckdb
SELECT status, count(*)::DOUBLE / (SELECT count(*) FROM claims) AS share FROM claims GROUP BY status
-- reads
SELECT status, count(*) / (SELECT count(*) FROM claims) FROM claims GROUP BY status

-- duckdb
SELECT strftime(service_date, '%B') AS m, sum(paid) FROM claims WHERE service_date.year() = 2023 GROUP BY m
-- reads
SELECT strftime(service_date, '%B'), sum(paid) FROM claims WHERE year(service_date) = 2023 GROUP BY 1

-- mysql
SELECT YEAR(service_date) AS y, MONTH(service_date) AS m, SUM(paid) AS paid FROM claims WHERE status <> 'denied' GROUP BY y, m ORDER BY y DESC, m DESC LIMIT 6
-- reads
SELECT YEAR(service_date) AS y, MONTH(service_date) AS m, SUM(paid) FROM claims WHERE status <> 'denied' AND service_date IS NOT NULL GROUP BY y, m ORDER BY y DESC, m DESC LIMIT 6

-- mysql
SELECT state, SUM(paid) / SUM(billed) AS r FROM claims WHERE billed > 0 GROUP BY state HAVING r BETWEEN 0.2 AND 0.9 ORDER BY r
-- reads
SELECT state, SUM(paid) / SUM(billed) AS r FROM claims WHERE billed > 0 GROUP BY state HAVING r BETWEEN 0.2 AND 0.9

-- mysql
SELECT DAYNAME(submitted_at) AS d, HOUR(submitted_at) DIV 6 AS part, COUNT(*) FROM claims GROUP BY d, part
-- reads
SELECT DAYNAME(submitted_at), HOUR(submitted_at) // 6, COUNT(*) FROM claims GROUP BY 1, 2

-- mysql
SELECT FIELD(plan, 'HMO', 'PPO', 'EPO') AS ord, plan, COUNT(*) FROM claims GROUP BY plan ORDER BY FIELD(plan, 'HMO', 'PPO', 'EPO')
-- reads
SELECT CASE plan WHEN 'HMO' THEN 1 WHEN 'PPO' THEN 2 WHEN 'EPO' THEN 3 ELSE 0 END, plan, COUNT(*) FROM claims GROUP BY 1, 2

-- tsql rewritten
SELECT [state], SUM([paid]) AS [Paid], FORMAT(SUM([paid]) / SUM([billed]), 'P1') AS [Pct] FROM [edw].[claims] GROUP BY [state]

-- tsql
SELECT CONVERT(char(7), service_date, 120) AS ym, COUNT(*) AS n FROM claims GROUP BY CONVERT(char(7), service_date, 120)
-- reads
SELECT strftime(service_date, '%Y-%m'), COUNT(*) FROM claims GROUP BY 1

-- tsql
SELECT TOP 10 WITH TIES state, COUNT(*) AS n FROM claims GROUP BY state ORDER BY n DESC
-- reads
SELECT state, COUNT(*) FROM claims GROUP BY 1

-- tsql impossible
DECLARE @from date = '2024-01-01'; SELECT COUNT(*) FROM claims WHERE service_date >= @from

-- tsql
SELECT DATEADD(MONTH, DATEDIFF(MONTH, 0, service_date), 0) AS m, SUM(paid) AS paid FROM claims WHERE service_date >= '2024-01-01' GROUP BY DATEADD(MONTH, DATEDIFF(MONTH, 0, service_date), 0)
-- reads
SELECT DATE_TRUNC('month', service_date)::DATE, SUM(paid) FROM claims WHERE service_date >= '2024-01-01' GROUP BY 1

-- tsql
SELECT COUNT(*) AS n, SUM(CASE WHEN is_emergency = 1 AND status = 'denied' THEN 1 ELSE 0 END) * 1.0 / NULLIF(SUM(CASE WHEN is_emergency = 1 THEN 1 ELSE 0 END), 0) AS ed_denial FROM claims
-- reads
SELECT COUNT(*), SUM(CASE WHEN is_emergency AND status = 'denied' THEN 1 ELSE 0 END) * 1.0 / SUM(CASE WHEN is_emergency THEN 1 ELSE 0 END) FROM claims

-- spark rewritten
SELECT state, sum(paid) AS paid, percentile(paid, 0.5) AS p50, percentile(paid, array(0.25, 0.75)) AS iqr FROM claims GROUP BY state
-- reads
SELECT state, sum(paid), quantile_disc(paid, 0.5), quantile_disc(paid, 0.25), quantile_disc(paid, 0.75) FROM claims GROUP BY state

-- spark
SELECT claim_type, count_if(status = 'denied') AS denied, try_divide(count_if(status = 'denied'), count(*)) AS rate FROM claims GROUP BY claim_type
-- reads
SELECT claim_type, count_if(status = 'denied'), count_if(status = 'denied') / count(*) FROM claims GROUP BY claim_type

-- spark
SELECT date_trunc('WEEK', submitted_at) AS wk, count(DISTINCT member_id) AS members FROM claims WHERE submitted_at >= '2024-05-01' GROUP BY 1
-- reads
SELECT date_trunc('week', submitted_at)::DATE, count(DISTINCT member_id) FROM claims WHERE submitted_at >= '2024-05-01' GROUP BY 1

-- postgres
SELECT plan, SUM(paid) / NULLIF(COUNT(DISTINCT member_id), 0) AS per_member, COUNT(*)::float / NULLIF(COUNT(DISTINCT member_id), 0) AS claims_per_member FROM claims GROUP BY plan ORDER BY per_member DESC NULLS LAST
-- reads
SELECT plan, SUM(paid) / COUNT(DISTINCT member_id), COUNT(*) / COUNT(DISTINCT member_id) FROM claims GROUP BY plan

-- postgres
SELECT state, SUM(CASE WHEN claim_type = 'inpatient' THEN paid ELSE 0 END) AS ip, SUM(CASE WHEN claim_type = 'outpatient' THEN paid ELSE 0 END) AS op, SUM(CASE WHEN claim_type NOT IN ('inpatient', 'outpatient') THEN paid ELSE 0 END) AS other FROM claims GROUP BY state

-- postgres
SELECT date_part('year', service_date)::int AS yr, date_part('month', service_date)::int AS mo, sum(paid) FROM claims GROUP BY 1, 2 ORDER BY 1, 2

-- postgres
SELECT CASE WHEN submitted_at - service_date > INTERVAL '30 days' THEN 'late' ELSE 'on time' END AS timeliness, COUNT(*) FROM claims WHERE submitted_at IS NOT NULL AND service_date IS NOT NULL GROUP BY 1
-- reads
SELECT CASE WHEN submitted_at - service_date::timestamp > INTERVAL '30 days' THEN 'late' ELSE 'on time' END, COUNT(*) FROM claims WHERE submitted_at IS NOT NULL AND service_date IS NOT NULL GROUP BY 1

-- postgres
SELECT to_char(submitted_at, 'Dy') AS dow, count(*) FROM claims GROUP BY 1
-- reads
SELECT strftime(submitted_at, '%a'), count(*) FROM claims GROUP BY 1

-- postgres
SELECT status, count(*) * 100.0 / sum(count(*)) over () as pct, sum(count(*)) over (order by count(*) desc rows between unbounded preceding and current row) as running FROM claims WHERE status IS NOT NULL GROUP BY status ORDER BY count(*) DESC

-- postgres
SELECT COUNT(*) FROM claims WHERE date_trunc('month', submitted_at) = date_trunc('month', DATE '2024-03-15')

-- postgres
SELECT COUNT(*), COUNT(DISTINCT member_id), MIN(service_date), MAX(service_date) FROM claims

-- postgres
SELECT state FROM claims GROUP BY state HAVING SUM(paid) > 0.2 * (SELECT SUM(paid) FROM claims)

-- postgres unread
SELECT plan, state, SUM(billed) - SUM(paid) AS writeoff FROM claims GROUP BY plan, state ORDER BY SUM(billed) - SUM(paid) DESC LIMIT 5 OFFSET 0

-- snowflake impossible
SELECT STATE, SUM(PAID) OVER (PARTITION BY STATE) FROM CLAIMS

-- snowflake refused
SELECT PLAN, COUNT(DISTINCT MEMBER_ID) AS MEMBERS, SUM(PAID) AS PAID, PAID / MEMBERS AS PMPY FROM EDW.PUBLIC.CLAIMS WHERE YEAR(SERVICE_DATE) = 2024 GROUP BY 1 ORDER BY 4 DESC
-- reads
SELECT plan, COUNT(DISTINCT member_id), SUM(paid), SUM(paid) / COUNT(DISTINCT member_id) FROM claims WHERE YEAR(service_date) = 2024 GROUP BY 1

-- snowflake impossible
SELECT CLAIM_TYPE, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY PAID) AS P90, LISTAGG(STATE) FROM CLAIMS GROUP BY 1

-- snowflake unread
SELECT DAYNAME(SUBMITTED_AT) AS D, HOUR(SUBMITTED_AT) AS H, COUNT(*) AS N FROM CLAIMS GROUP BY D, H ORDER BY N DESC LIMIT 10

-- bigquery
SELECT EXTRACT(YEAR FROM submitted_at) AS y, EXTRACT(QUARTER FROM submitted_at) AS q, SUM(billed) AS billed, SUM(paid) AS paid, 1 - SAFE_DIVIDE(SUM(paid), SUM(billed)) AS gap FROM edw.claims GROUP BY y, q ORDER BY y, q
-- reads
SELECT YEAR(submitted_at), QUARTER(submitted_at), SUM(billed), SUM(paid), 1 - SUM(paid) / SUM(billed) FROM claims GROUP BY 1, 2

-- bigquery
SELECT plan, COUNT(DISTINCT IF(is_emergency, member_id, NULL)) AS ed_members FROM edw.claims GROUP BY plan
-- reads
SELECT plan, COUNT(DISTINCT member_id) FILTER (WHERE is_emergency) FROM claims GROUP BY plan

-- bigquery unread
SELECT state, SUM(paid) AS paid FROM edw.claims GROUP BY state ORDER BY paid DESC LIMIT 3 OFFSET 1

-- bigquery
WITH monthly AS (SELECT DATE_TRUNC(service_date, MONTH) AS m, SUM(paid) AS paid FROM edw.claims GROUP BY m) SELECT AVG(paid) AS avg_month, MAX(paid) AS best, MIN(paid) AS worst FROM monthly WHERE m IS NOT NULL AND m < '2024-12-01'
-- reads
WITH monthly AS (SELECT DATE_TRUNC('month', service_date) AS m, SUM(paid) AS paid FROM claims GROUP BY m) SELECT AVG(paid), MAX(paid), MIN(paid) FROM monthly WHERE m IS NOT NULL AND m < '2024-12-01'

-- duckdb
SELECT status, sum(paid) FILTER (plan = 'HMO') AS hmo, sum(paid) FILTER (plan = 'PPO') AS ppo FROM claims GROUP BY status

-- duckdb
SELECT hour(submitted_at) // 6 AS part_of_day, count(*) FROM claims GROUP BY 1

-- mysql
SELECT DATE(submitted_at) AS d, COUNT(*) AS n FROM claims WHERE submitted_at >= '2024-06-01' AND submitted_at < '2024-06-15' GROUP BY DATE(submitted_at) ORDER BY d
-- reads
SELECT submitted_at::DATE, COUNT(*) FROM claims WHERE submitted_at >= '2024-06-01' AND submitted_at < '2024-06-15' GROUP BY 1

-- mysql
SELECT IF(HOUR(submitted_at) BETWEEN 9 AND 17, 'office', 'off hours') AS slot, COUNT(*) FROM claims WHERE submitted_at IS NOT NULL GROUP BY slot
-- reads
SELECT IF(HOUR(submitted_at) BETWEEN 9 AND 17, 'office', 'off hours'), COUNT(*) FROM claims WHERE submitted_at IS NOT NULL GROUP BY 1

-- mysql
SELECT CONCAT(YEAR(service_date), '-', LPAD(MONTH(service_date), 2, '0')) AS ym, SUM(paid) FROM claims WHERE service_date IS NOT NULL GROUP BY ym
-- reads
SELECT strftime(service_date, '%Y-%m'), SUM(paid) FROM claims WHERE service_date IS NOT NULL GROUP BY 1

-- tsql
SELECT TOP (3) state, SUM(paid) AS total FROM dbo.claims WHERE status = N'paid' AND state IS NOT NULL GROUP BY state ORDER BY total DESC
-- reads
SELECT state, SUM(paid) AS total FROM claims WHERE status = 'paid' AND state IS NOT NULL GROUP BY state ORDER BY total DESC LIMIT 3

-- tsql
SELECT DATEPART(hour, submitted_at) AS h, COUNT(*) AS n, CAST(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS decimal(5, 2)) AS pct FROM claims GROUP BY DATEPART(hour, submitted_at)
-- reads
SELECT hour(submitted_at), COUNT(*), ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (), 2) FROM claims GROUP BY 1

-- spark
SELECT plan, avg(if(status = 'denied', 1.0, 0.0)) AS denial, sum(paid) / sum(billed) AS ratio FROM claims WHERE status IS NOT NULL GROUP BY plan
-- reads
SELECT plan, avg(if(status = 'denied', 1.0, 0.0)), sum(paid) / sum(billed) FROM claims WHERE status IS NOT NULL GROUP BY plan

-- spark
SELECT date_format(submitted_at, 'E') AS d, count(*) FROM claims GROUP BY date_format(submitted_at, 'E')
-- reads
SELECT strftime(submitted_at, '%a'), count(*) FROM claims GROUP BY 1
