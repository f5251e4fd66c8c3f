"""Statements of the kind that BI programs send by themselves, written down in our own words."""

from __future__ import annotations

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
    ),
}
