"""Statements that programs send by themselves, written down in our own words.

They follow what public logs of servers and the tests of other databases show of these programs:
Metabase 0.55, DBeaver 25, Npgsql 3 to 8 (Power BI, Excel), Grafana, pgAdmin, psql 15 to 17, ADBC.
Those of Tableau follow its ODBC driver. Superset is driven itself: tests/server/test_superset.py.
"""

from __future__ import annotations

METABASE_RIGHTS = (
    "WITH table_privileges AS (SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table,"
    " pg_catalog.has_any_column_privilege(current_user, '\"' || replace(t.schemaname, '\"',"
    " '\"\"') || '\".\"' || t.objectname || '\"', 'update') AS update,"
    " pg_catalog.has_any_column_privilege(current_user, t.objectname, 'select') AS select,"
    " pg_catalog.has_table_privilege(current_user, t.objectname, 'delete') AS delete FROM (SELECT"
    " schemaname, tablename AS objectname FROM pg_catalog.pg_tables UNION SELECT schemaname,"
    " viewname AS objectname FROM pg_catalog.pg_views UNION SELECT schemaname, matviewname AS"
    " objectname FROM pg_catalog.pg_matviews) t WHERE t.schemaname !~ '^pg_' AND"
    " pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')) SELECT t.* FROM"
    " table_privileges t"
)
"""Which tables may be read: columns called select, update and delete."""
NPGSQL_4 = (
    "/*** types ***/ SELECT ns.nspname, a.typname, a.oid, a.typrelid, a.typbasetype, CASE WHEN"
    " pg_proc.proname = 'array_recv' THEN 'a' ELSE a.typtype END AS type, CASE WHEN pg_proc.proname"
    " = 'array_recv' THEN a.typelem WHEN a.typtype = 'r' THEN rngsubtype ELSE 0 END AS elemoid,"
    " CASE WHEN pg_proc.proname IN ('array_recv', 'oidvectorrecv') THEN 3 WHEN a.typtype = 'r' THEN"
    " 2 ELSE 0 END AS ord FROM pg_type AS a JOIN pg_namespace AS ns ON (ns.oid = a.typnamespace)"
    " JOIN pg_proc ON pg_proc.oid = a.typreceive LEFT OUTER JOIN pg_class AS cls ON (cls.oid ="
    " a.typrelid) LEFT OUTER JOIN pg_type AS b ON (b.oid = a.typelem) LEFT OUTER JOIN pg_range ON"
    " (pg_range.rngtypid = a.oid) WHERE a.typtype IN ('b', 'r', 'e', 'd') OR (a.typtype = 'c' AND"
    " cls.relkind = 'c') OR (pg_proc.proname = 'array_recv' AND b.typtype = 'b') ORDER BY ord"
)
"""The types that Npgsql 4, the driver in Power BI, learns when it connects."""
NPGSQL_8 = (
    "SELECT ns.nspname, found.*, CASE WHEN typtype IN ('b', 'e', 'p') THEN 0 WHEN typtype = 'a'"
    " THEN 4 END AS ord FROM (SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype,"
    " typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, CASE WHEN"
    " elemproc.proname = 'array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype FROM (SELECT"
    " typ.oid, typnamespace, typname, typrelid, relkind, CASE WHEN proc.proname = 'array_recv' THEN"
    " 'a' ELSE typ.typtype END AS typtype, CASE WHEN proc.proname = 'array_recv' THEN typ.typelem"
    " WHEN typ.typtype = 'r' THEN rngsubtype END AS elemtypoid FROM pg_type AS typ LEFT JOIN"
    " pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid ="
    " typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)) AS typ LEFT JOIN pg_type"
    " AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_proc AS elemproc ON elemproc.oid ="
    " elemtyp.typreceive) AS found JOIN pg_namespace AS ns ON (ns.oid = typnamespace) WHERE typtype"
    " IN ('b', 'r', 'e', 'd') OR (typtype = 'a' AND elemtyptype IN ('b', 'r', 'e', 'd')) ORDER BY"
    " ord"
)
"""The same of Npgsql 5 and later."""
SEARCHED = (
    "SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE trim(s[i]) END FROM generate_series("
    "array_lower(string_to_array(current_setting('search_path'), ','), 1),"
    " array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,"
    " string_to_array(current_setting('search_path'), ',') s"
)
PROBES: dict[str, tuple[str, ...]] = {
    "Metabase": (
        "SHOW TIMEZONE",
        "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <>"
        " 'information_schema'",
        "SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN"
        " 'TABLE' WHEN 'v' THEN 'VIEW' END AS type, d.description AS description,"
        " c.reltuples AS estimated_row_count FROM pg_catalog.pg_class AS c INNER JOIN"
        " pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid LEFT JOIN"
        " pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0 AND"
        " d.classoid = 'pg_class'::regclass WHERE c.relnamespace = n.oid AND n.nspname !~"
        " '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v',"
        " 'f', 'm') ORDER BY type, schema, name",
        "SELECT c.column_name AS name, c.udt_name AS database_type, c.ordinal_position -"
        " 1 AS position, c.table_schema AS schema, c.table_name AS name2, pk.column_name"
        " IS NOT NULL AS pk FROM information_schema.columns AS c LEFT JOIN (SELECT"
        " tc.table_schema, tc.table_name, kc.column_name FROM"
        " information_schema.table_constraints AS tc INNER JOIN"
        " information_schema.key_column_usage AS kc ON tc.constraint_name ="
        " kc.constraint_name WHERE tc.constraint_type = 'PRIMARY KEY') AS pk ON"
        " c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND"
        " c.column_name = pk.column_name WHERE c.table_schema !~"
        " '^information_schema|catalog_history|pg_' ORDER BY 4, 5, 3",
        '-- Metabase\nSELECT "public"."people"."age" AS "age", "public"."people"."city"'
        ' AS "city" FROM "public"."people" LIMIT 2000',
        'SELECT TRUE AS "_" FROM "public"."people" WHERE 1 <> 1 LIMIT 0',
        "SELECT t.tablename, has_table_privilege(current_user, 'people', 'SELECT') AS"
        " selects FROM pg_catalog.pg_tables t WHERE t.schemaname = 'public'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        'SELECT nspname AS "TABLE_SCHEM", current_database() AS "TABLE_CATALOG" FROM'
        " pg_catalog.pg_namespace WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_' OR"
        ' nspname = (pg_catalog.current_schemas(true))[1]) ORDER BY "TABLE_SCHEM"',
        METABASE_RIGHTS,
        'SELECT "c"."relname" AS "name", "stat"."n_live_tup" AS "rows" FROM'
        ' "pg_catalog"."pg_class" AS "c" LEFT JOIN "pg_stat_user_tables" AS "stat" ON'
        ' "c"."relname" = "stat"."relname" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON'
        ' ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = \'0\') AND ("d"."classoid" ='
        " 'pg_class'::regclass) WHERE c.relkind IN ('r', 'p', 'v', 'f', 'm')",
    ),
    "Superset": (
        "SELECT pg_catalog.version()",
        "SELECT current_schema()",
        "SHOW transaction isolation level",
        "SHOW standard_conforming_strings",
        "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname",
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')",
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'public' AND c.relkind = 'm'",
        "SELECT blood AS blood FROM public.people GROUP BY blood LIMIT 1000",
        "SELECT * FROM public.people LIMIT 101",
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'people')",
    ),
    "Power BI": (
        "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE"
        " table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY table_schema,"
        " table_name",
        "SELECT column_name, ordinal_position, is_nullable, CASE WHEN (data_type LIKE"
        " '%unsigned%') THEN data_type || ' unsigned' ELSE data_type END AS data_type"
        " FROM information_schema.columns WHERE table_schema = 'public' AND table_name ="
        " 'people' ORDER BY table_schema, table_name, ordinal_position",
        "SELECT pkcol.column_name AS pk_column_name, fkcol.table_schema AS"
        " fk_table_schema FROM information_schema.referential_constraints rc INNER JOIN"
        " information_schema.key_column_usage fkcol ON rc.constraint_name ="
        " fkcol.constraint_name INNER JOIN information_schema.key_column_usage pkcol ON"
        " rc.unique_constraint_name = pkcol.constraint_name WHERE pkcol.table_name ="
        " 'people'",
        "SELECT i.constraint_schema || '_' || i.constraint_name AS index_name,"
        " ii.column_name, ii.ordinal_position, CASE WHEN i.constraint_type = 'PRIMARY"
        " KEY' THEN 'Y' ELSE 'N' END AS primary_key FROM"
        " information_schema.table_constraints i INNER JOIN"
        " information_schema.key_column_usage ii ON i.constraint_schema ="
        " ii.constraint_schema AND i.constraint_name = ii.constraint_name WHERE"
        " i.table_name = 'people' ORDER BY 1, 3",
        "SELECT character_set_name FROM information_schema.character_sets",
        NPGSQL_4,
        NPGSQL_8,
        "SELECT typ.oid, att.attname, att.atttypid FROM pg_type AS typ JOIN pg_class AS cls ON"
        " (cls.oid = typ.typrelid) JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid) WHERE"
        " typ.typtype = 'c' AND attnum > 0 AND NOT attisdropped ORDER BY typ.oid, att.attnum",
        "SELECT pg_type.oid, enumlabel FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid ORDER"
        " BY oid, enumsortorder",
        "SELECT current_setting('max_index_keys')",
        "DISCARD ALL",
        'SELECT "$Table"."age" AS "age", "$Table"."city" AS "city" FROM "public"."people"'
        ' "$Table" LIMIT 200',
        'SELECT "rows"."blood" AS "blood" FROM (SELECT "_"."blood" FROM "public"."people"'
        ' "_") "rows" LIMIT 501',
    ),
    "DBeaver": (
        "SET extra_float_digits = 3",
        "SET application_name = 'DBeaver 23'",
        "SELECT current_schema(), session_user",
        "SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN"
        " pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND"
        " d.classoid = 'pg_namespace'::regclass ORDER BY nspname",
        "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT"
        " datistemplate ORDER BY db.datname",
        "SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod)"
        " AS base_type_name, d.description FROM pg_catalog.pg_type t LEFT OUTER JOIN"
        " pg_catalog.pg_type et ON et.oid = t.typelem LEFT OUTER JOIN pg_catalog.pg_class"
        " c ON c.oid = t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid ="
        " d.objoid WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')"
        " AND (et.typcategory IS NULL OR et.typcategory <> 'C')",
        "SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid)"
        " AS partition_expr, pg_catalog.pg_get_partkeydef(c.oid) AS partition_key FROM"
        " pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid ="
        " c.oid AND d.objsubid = 0 WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i',"
        " 'I', 'c')",
        "SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS"
        " def_value, dsc.description, dep.objid FROM pg_catalog.pg_attribute a INNER JOIN"
        " pg_catalog.pg_class c ON (a.attrelid = c.oid) LEFT OUTER JOIN"
        " pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)"
        " LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND"
        " a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep ON dep.refobjid ="
        " a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum WHERE NOT"
        " a.attisdropped AND c.oid = 16384 ORDER BY a.attnum",
        "SELECT c.oid, c.*, t.relname AS tabrelname FROM pg_catalog.pg_constraint c INNER"
        " JOIN pg_catalog.pg_class t ON t.oid = c.conrelid WHERE c.conrelid = 16384 ORDER"
        " BY c.oid",
        "SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam,"
        " c.reltablespace, tc.relname AS tabrelname, pg_catalog.pg_get_expr(i.indpred,"
        " i.indrelid) AS pred_expr FROM pg_catalog.pg_index i INNER JOIN"
        " pg_catalog.pg_class c ON c.oid = i.indexrelid INNER JOIN pg_catalog.pg_class tc"
        " ON tc.oid = i.indrelid WHERE i.indrelid = 16384 ORDER BY c.relname",
        "SELECT x.* FROM public.people x",
        "SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL"
        " ('{a,abs,zone}'::text[])",
        "SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM"
        " pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE"
        " t.oid = 1034",
        "SELECT typinput = 'pg_catalog.array_in'::regproc AS is_array, typtype, typname,"
        " pg_type.oid FROM pg_catalog.pg_type LEFT JOIN (SELECT ns.oid AS nspoid, ns.nspname, r.r"
        " FROM pg_namespace AS ns JOIN (SELECT s.r, (current_schemas(false))[s.r] AS nspname FROM"
        " generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)) AS r USING (nspname))"
        " AS sp ON sp.nspoid = typnamespace WHERE pg_type.oid = 1016 ORDER BY sp.r, pg_type.oid",
        "SHOW search_path",
        "SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'",
        "SELECT * FROM pg_catalog.pg_enum WHERE 1 <> 1 LIMIT 1",
        "SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid), pg_catalog.pg_relation_size(c.oid)"
        " FROM pg_class c WHERE c.relnamespace = 2200",
        "SELECT i.*, pg_catalog.pg_relation_size(i.indexrelid), pg_catalog.pg_stat_get_numscans("
        "i.indexrelid) FROM pg_catalog.pg_index i WHERE i.indrelid = 16384",
    ),
    "Tableau": (
        "SET DateStyle = 'ISO'; SET extra_float_digits = 2; SHOW max_identifier_length",
        "SELECT relname, nspname, relkind FROM pg_catalog.pg_class c,"
        " pg_catalog.pg_namespace n WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND"
        " nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1')"
        " AND n.oid = relnamespace ORDER BY nspname, relname",
        "SELECT n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum,"
        " a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid,"
        " pg_get_expr(d.adbin, d.adrelid), CASE t.typtype WHEN 'd' THEN t.typbasetype"
        " ELSE 0 END, t.typtypmod, c.relhasoids FROM (((pg_catalog.pg_class c INNER JOIN"
        " pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND c.relname = 'people'"
        " AND n.nspname = 'public') INNER JOIN pg_catalog.pg_attribute a ON (NOT"
        " a.attisdropped) AND a.attnum > 0 AND a.attrelid = c.oid) INNER JOIN"
        " pg_catalog.pg_type t ON t.oid = a.atttypid) LEFT OUTER JOIN pg_attrdef d ON"
        " a.atthasdef AND d.adrelid = a.attrelid AND d.adnum = a.attnum ORDER BY"
        " n.nspname, c.relname, attnum",
        "SELECT ta.attname, ia.attnum, ic.relname, n.nspname, tc.relname FROM"
        " pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, pg_catalog.pg_class tc,"
        " pg_catalog.pg_index i, pg_catalog.pg_namespace n, pg_catalog.pg_class ic WHERE"
        " tc.relname = 'people' AND n.nspname = 'public' AND tc.oid = i.indrelid AND"
        " n.oid = tc.relnamespace AND i.indisprimary = 't' AND ia.attrelid = i.indexrelid"
        " AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum - 1] AND (NOT"
        " ta.attisdropped) AND ic.oid = i.indexrelid ORDER BY ia.attnum",
        'SELECT * FROM "public"."people" LIMIT 1',
        'SELECT "people"."blood" AS "blood" FROM "public"."people" "people" GROUP BY 1'
        " ORDER BY 1 ASC NULLS FIRST",
        'SELECT * FROM (SELECT * FROM "public"."people" LIMIT 0) "t" LIMIT 1',
        'BEGIN; DECLARE "SQL_CUR0x7f" CURSOR WITH HOLD FOR SELECT CAST("people"."blood" AS TEXT) AS'
        ' "blood" FROM "public"."people" "people" LIMIT 1000; FETCH 2048 IN "SQL_CUR0x7f"; CLOSE'
        ' "SQL_CUR0x7f"; COMMIT',
    ),
    "Grafana": (
        f"SELECT CASE WHEN quote_ident(table_schema) IN ({SEARCHED}) THEN quote_ident(table_name)"
        " ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS \"table\" FROM"
        f" information_schema.tables ORDER BY CASE WHEN quote_ident(table_schema) IN ({SEARCHED})"
        " THEN 0 ELSE 1 END, 1",
        'SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM'
        " information_schema.columns WHERE CASE WHEN array_length(parse_ident('people'), 1) = 2"
        " THEN quote_ident(table_schema) = (parse_ident('people'))[1] ELSE quote_ident(table_name)"
        f" = 'people' AND quote_ident(table_schema) IN ({SEARCHED}) END",
    ),
    "pgAdmin": (
        "SELECT CASE WHEN (SELECT count(extname) FROM pg_catalog.pg_extension WHERE extname ="
        " 'bdr') > 0 THEN 'pgd' WHEN (SELECT COUNT(*) FROM pg_replication_slots) > 0 THEN 'log'"
        " ELSE NULL END AS type",
        "SELECT nsp.nspname FROM pg_catalog.pg_namespace nsp WHERE nsp.nspname = 'pg_catalog' AND"
        " EXISTS (SELECT 1 FROM pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid"
        " LIMIT 1)",
    ),
    "psql": (
        'SELECT d.datname AS "Name", d.daticulocale AS "Locale", d.daticurules AS "Rules", CASE'
        " WHEN pg_catalog.array_length(d.datacl, 1) = 0 THEN '(none)' ELSE"
        " pg_catalog.array_to_string(d.datacl, E'\\n') END AS \"Rights\" FROM"
        " pg_catalog.pg_database d ORDER BY 1",
        "SELECT conname, conrelid::pg_catalog.regclass FROM pg_catalog.pg_constraint c WHERE"
        " confrelid IN (SELECT pg_catalog.pg_partition_ancestors('16384') UNION ALL VALUES"
        " ('16384'::pg_catalog.regclass)) AND contype = 'f'",
    ),
    "ADBC": (
        "SELECT attname, atttypid FROM pg_catalog.pg_class AS cls INNER JOIN"
        " pg_catalog.pg_attribute AS attr ON cls.oid = attr.attrelid INNER JOIN pg_catalog.pg_type"
        " AS typ ON attr.atttypid = typ.oid WHERE attr.attnum >= 0 AND cls.oid ="
        " 'people'::regclass::oid ORDER BY attr.attnum",
        "SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type"
        " WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT !="
        " 'array_recv' ORDER BY oid",
    ),
}
