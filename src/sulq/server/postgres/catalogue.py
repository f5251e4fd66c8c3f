"""pg_catalog and information_schema of the tables that a token reaches, from their public schemas.

A statement over the catalogue is parsed, held against lists of relations, functions and kinds of
nodes that it may use, rewritten, and run on an empty DuckDB in a process of its own
(`catalogue_process.py`). That process is told names and types and nothing else: hidden columns are
not among them, and there is no row to be found.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sulq.kernel.schema.columns import Schema
from sulq.server.postgres.protocol import Field, WireError
from sulq.server.postgres.types import (
    ARRAYS,
    BOOL,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    OID,
    TEXT,
    TIMESTAMP,
    type_of,
)

VERSION = "15.0"
FIRST_OID = 16_384
RECEIVE = 2_400
"""OID of the function that reads arrays; that of a type's own function is so much above its OID."""
WALL = 30.0
"""Seconds after which a silent process is ended; a statement has 0.2 s of the processor."""
MOST_BYTES = 4_000_000
MOST_NODES = 4_000

KINDS = {
    "o": "UINTEGER", "t": "VARCHAR", "b": "BOOLEAN", "i": "INTEGER", "s": "SMALLINT",
    "l": "BIGINT", "f": "DOUBLE", "d": "TIMESTAMP", "T": "VARCHAR[]", "S": "SMALLINT[]",
    "O": "UINTEGER[]",
}  # fmt: skip
TYPES = {
    BOOL: ("bool", "boolean", "BOOLEAN", 1, "B", 1000),
    INT2: ("int2", "smallint", "SMALLINT", 2, "N", 1005),
    INT4: ("int4", "integer", "INTEGER", 4, "N", 1007),
    INT8: ("int8", "bigint", "BIGINT", 8, "N", 1016),
    FLOAT8: ("float8", "double precision", "DOUBLE", 8, "N", 1022),
    TEXT: ("text", "text", "VARCHAR", -1, "S", 1009),
    DATE: ("date", "date", "DATE", 4, "D", 1182),
    TIMESTAMP: ("timestamp", "timestamp without time zone", "TIMESTAMP", 8, "D", 1115),
    OID: ("oid", "oid", "UINTEGER", 4, "N", 1028),
    19: ("name", "name", "VARCHAR", 64, "S", 1003),
    18: ("char", '"char"', "VARCHAR", 1, "Z", 1002),
    700: ("float4", "real", "FLOAT", 4, "N", 1021),
    1043: ("varchar", "character varying", "VARCHAR", -1, "S", 1015),
    1184: ("timestamptz", "timestamp with time zone", "TIMESTAMP", 8, "D", 1185),
    1700: ("numeric", "numeric", "DOUBLE", -1, "N", 1231),
    705: ("unknown", "unknown", "VARCHAR", -2, "X", 0),
}
"""OID: name, name for people, DuckDB's type, bytes, category, OID of its array."""

# Relations with their columns, as "name kind" pairs; those with rows are filled by `_rows`.
PG = {
    "pg_namespace": "oid o nspname t nspowner o nspacl T",
    "pg_class": "oid o relname t relnamespace o reltype o reloftype o relowner o relam o"
    " relfilenode o reltablespace o relpages i reltuples f relallvisible i reltoastrelid o"
    " relhasindex b relisshared b relpersistence t relkind t relnatts s relchecks s relhasrules b"
    " relhastriggers b relhassubclass b relrowsecurity b relforcerowsecurity b relispopulated b"
    " relreplident t relispartition b relrewrite o relacl T reloptions T relpartbound t"
    " relhasoids b",
    "pg_attribute": "attrelid o attname t atttypid o attstattarget i attlen s attnum s attndims i"
    " attcacheoff i atttypmod i attbyval b attalign t attstorage t attcompression t attnotnull b"
    " atthasdef b atthasmissing b attidentity t attgenerated t attisdropped b attislocal b"
    " attinhcount i attcollation o attacl T attoptions T attfdwoptions T",
    "pg_type": "oid o typname t typnamespace o typowner o typlen s typbyval b typtype t"
    " typcategory t typispreferred b typisdefined b typdelim t typrelid o typelem o typarray o"
    " typinput t typoutput t typreceive o typsend t typmodin t typmodout t typanalyze t"
    " typnotnull b typbasetype o typtypmod i typndims i typcollation o typdefault t typsubscript t"
    " typstorage t typalign t",
    "pg_database": "oid o datname t datdba o encoding i datistemplate b datallowconn b"
    " datconnlimit i dattablespace o datcollate t datctype t daticulocale t datlocprovider t"
    " datcollversion t datacl T daticurules t datlocale t",
    "pg_roles": "oid o rolname t rolsuper b rolinherit b rolcreaterole b rolcreatedb b"
    " rolcanlogin b rolreplication b rolconnlimit i rolvaliduntil d rolbypassrls b rolconfig T",
    "pg_user": "usename t usesysid o usecreatedb b usesuper b userepl b usebypassrls b",
    "pg_settings": "name t setting t unit t category t short_desc t vartype t context t source t",
    "pg_tables": "schemaname t tablename t tableowner t tablespace t hasindexes b hasrules b"
    " hastriggers b rowsecurity b",
    "pg_am": "oid o amname t amhandler t amtype t",
    "pg_description": "objoid o classoid o objsubid i description t",
    "pg_shdescription": "objoid o classoid o description t",
    "pg_index": "indexrelid o indrelid o indnatts s indnkeyatts s indisunique b indisprimary b"
    " indisexclusion b indimmediate b indisclustered b indisvalid b indcheckxmin b indisready b"
    " indislive b indisreplident b indkey S indcollation O indclass O indoption S indexprs t"
    " indpred t indnullsnotdistinct b",
    "pg_indexes": "schemaname t tablename t indexname t tablespace t indexdef t",
    "pg_constraint": "oid o conname t connamespace o contype t condeferrable b condeferred b"
    " convalidated b conrelid o contypid o conindid o conparentid o confrelid o confupdtype t"
    " confdeltype t confmatchtype t conislocal b coninhcount i connoinherit b conkey S confkey S"
    " conbin t consrc t",
    "pg_attrdef": "oid o adrelid o adnum s adbin t adsrc t",
    "pg_proc": "oid o proname t pronamespace o proowner o prolang o prokind t prosecdef b"
    " proretset b provolatile t pronargs s prorettype o proargtypes O proallargtypes O"
    " proargmodes T"
    " proargnames T prosrc t proisagg b",
    "pg_enum": "oid o enumtypid o enumsortorder f enumlabel t",
    "pg_range": "rngtypid o rngsubtype o rngmultitypid o rngcollation o",
    "pg_inherits": "inhrelid o inhparent o inhseqno i inhdetachpending b",
    "pg_depend": "classid o objid o objsubid i refclassid o refobjid o refobjsubid i deptype t",
    "pg_trigger": "oid o tgrelid o tgname t tgfoid o tgtype s tgenabled t tgisinternal b"
    " tgconstraint o tgconstrrelid o tgparentid o tgattr S tgargs t tgqual t",
    "pg_collation": "oid o collname t collnamespace o collprovider t collcollate t collctype t",
    "pg_extension": "oid o extname t extnamespace o extversion t extrelocatable b",
    "pg_available_extensions": "name t default_version t installed_version t comment t",
    "pg_views": "schemaname t viewname t viewowner t definition t",
    "pg_matviews": "schemaname t matviewname t matviewowner t tablespace t hasindexes b"
    " ispopulated b definition t",
    "pg_sequence": "seqrelid o seqtypid o seqstart l seqincrement l seqmax l seqmin l seqcache l"
    " seqcycle b",
    "pg_sequences": "schemaname t sequencename t sequenceowner t last_value l",
    "pg_tablespace": "oid o spcname t spcowner o",
    "pg_language": "oid o lanname t",
    "pg_foreign_table": "ftrelid o ftserver o ftoptions T",
    "pg_foreign_server": "oid o srvname t srvowner o srvfdw o srvtype t srvoptions T",
    "pg_foreign_data_wrapper": "oid o fdwname t",
    "pg_policy": "oid o polname t polrelid o polcmd t polpermissive b polroles O polqual t"
    " polwithcheck t",
    "pg_policies": "schemaname t tablename t policyname t",
    "pg_rewrite": "oid o rulename t ev_class o ev_type t ev_enabled t is_instead b",
    "pg_rules": "schemaname t tablename t rulename t definition t",
    "pg_publication": "oid o pubname t puballtables b",
    "pg_publication_rel": "oid o prpubid o prrelid o prqual t prattrs S",
    "pg_publication_namespace": "oid o pnpubid o pnnspid o",
    "pg_statistic_ext": "oid o stxrelid o stxname t stxnamespace o stxkind T stxstattarget i"
    " stxkeys S",
    "pg_partitioned_table": "partrelid o partstrat t partnatts s partdefid o partattrs S"
    " partexprs t",
    "pg_operator": "oid o oprname t oprnamespace o oprleft o oprright o oprresult o oprcode t",
    "pg_opclass": "oid o opcmethod o opcname t opcnamespace o opcintype o opcdefault b",
    "pg_cast": "oid o castsource o casttarget o castfunc o castcontext t castmethod t",
    "pg_aggregate": "aggfnoid o aggkind t",
    "pg_event_trigger": "oid o evtname t evtevent t evtenabled t",
    "pg_conversion": "oid o conname t connamespace o",
    "pg_auth_members": "roleid o member o grantor o admin_option b",
    "pg_default_acl": "oid o defaclrole o defaclnamespace o defaclobjtype t defaclacl T",
    "pg_db_role_setting": "setdatabase o setrole o setconfig T",
    "pg_seclabel": "objoid o classoid o objsubid i provider t label t",
    "pg_stat_user_tables": "relid o schemaname t relname t n_live_tup l n_dead_tup l",
    "pg_stat_activity": "datid o datname t pid i usename t application_name t state t query t",
    "pg_locks": "locktype t database o relation o pid i mode t granted b",
    "pg_timezone_names": "name t abbrev t is_dst b",
    "pg_ts_config": "oid o cfgname t cfgnamespace o",
    "pg_keywords": "word t catcode t barelabel b catdesc t baredesc t",
    "pg_replication_slots": "slot_name t plugin t slot_type t datoid o database t active b",
    "pg_stat_all_tables": "relid o schemaname t relname t n_live_tup l n_dead_tup l",
    "pg_stat_database": "datid o datname t numbackends i",
    "pg_stat_user_indexes": "relid o indexrelid o schemaname t relname t idx_scan l",
    "pg_statio_user_tables": "relid o schemaname t relname t heap_blks_read l",
    "pg_publication_tables": "pubname t schemaname t tablename t",
    "pg_subscription": "oid o subname t subdbid o",
    "pg_opfamily": "oid o opfmethod o opfname t opfnamespace o",
    "pg_ts_dict": "oid o dictname t dictnamespace o",
    "pg_ts_parser": "oid o prsname t prsnamespace o",
    "pg_ts_template": "oid o tmplname t tmplnamespace o",
    "pg_user_mappings": "umid o srvid o srvname t umuser o usename t umoptions T",
    "pg_group": "groname t grosysid o grolist O",
}  # fmt: skip
INFORMATION = {
    "schemata": "catalog_name t schema_name t schema_owner t default_character_set_catalog t"
    " default_character_set_schema t default_character_set_name t sql_path t",
    "tables": "table_catalog t table_schema t table_name t table_type t"
    " self_referencing_column_name t reference_generation t user_defined_type_catalog t"
    " user_defined_type_schema t user_defined_type_name t is_insertable_into t is_typed t"
    " commit_action t",
    "columns": "table_catalog t table_schema t table_name t column_name t ordinal_position i"
    " column_default t is_nullable t data_type t character_maximum_length i"
    " character_octet_length i numeric_precision i numeric_precision_radix i numeric_scale i"
    " datetime_precision i interval_type t interval_precision i character_set_catalog t"
    " character_set_schema t character_set_name t collation_catalog t collation_schema t"
    " collation_name t domain_catalog t domain_schema t domain_name t udt_catalog t udt_schema t"
    " udt_name t scope_catalog t scope_schema t scope_name t maximum_cardinality i"
    " dtd_identifier t is_self_referencing t is_identity t identity_generation t"
    " identity_start t identity_increment t identity_maximum t identity_minimum t"
    " identity_cycle t is_generated t generation_expression t is_updatable t",
    "views": "table_catalog t table_schema t table_name t view_definition t check_option t"
    " is_updatable t",
    "table_constraints": "constraint_catalog t constraint_schema t constraint_name t"
    " table_catalog t table_schema t table_name t constraint_type t is_deferrable t"
    " initially_deferred t enforced t",
    "key_column_usage": "constraint_catalog t constraint_schema t constraint_name t"
    " table_catalog t table_schema t table_name t column_name t ordinal_position i"
    " position_in_unique_constraint i",
    "constraint_column_usage": "table_catalog t table_schema t table_name t column_name t"
    " constraint_catalog t constraint_schema t constraint_name t",
    "referential_constraints": "constraint_catalog t constraint_schema t constraint_name t"
    " unique_constraint_catalog t unique_constraint_schema t unique_constraint_name t"
    " match_option t update_rule t delete_rule t",
    "check_constraints": "constraint_catalog t constraint_schema t constraint_name t"
    " check_clause t",
    "routines": "specific_catalog t specific_schema t specific_name t routine_catalog t"
    " routine_schema t routine_name t routine_type t data_type t routine_definition t",
    "parameters": "specific_catalog t specific_schema t specific_name t ordinal_position i"
    " parameter_mode t parameter_name t data_type t",
    "sequences": "sequence_catalog t sequence_schema t sequence_name t data_type t start_value t",
    "triggers": "trigger_catalog t trigger_schema t trigger_name t event_manipulation t"
    " event_object_schema t event_object_table t action_statement t action_timing t",
    "table_privileges": "grantor t grantee t table_catalog t table_schema t table_name t"
    " privilege_type t is_grantable t with_hierarchy t",
    "role_table_grants": "grantor t grantee t table_catalog t table_schema t table_name t"
    " privilege_type t is_grantable t with_hierarchy t",
    "column_privileges": "grantor t grantee t table_catalog t table_schema t table_name t"
    " column_name t privilege_type t is_grantable t",
    "domains": "domain_catalog t domain_schema t domain_name t data_type t",
    "element_types": "object_catalog t object_schema t object_name t object_type t data_type t",
    "enabled_roles": "role_name t",
    "applicable_roles": "grantee t role_name t is_grantable t",
    "character_sets": "character_set_catalog t character_set_schema t character_set_name t"
    " default_collate_name t",
    "collations": "collation_catalog t collation_schema t collation_name t pad_attribute t",
}  # fmt: skip

OF_KINDS = {"o": OID, "b": BOOL, "i": INT4, "s": INT4, "l": INT8, "f": FLOAT8, "d": TIMESTAMP}


def type_of_column(name: str) -> int:
    """Return the OID of the type of a column of the catalogue, for a parameter beside it."""
    for columns in (*PG.values(), *INFORMATION.values()):
        words = columns.split()
        if name in words[::2]:
            return OF_KINDS.get(words[2 * words[::2].index(name) + 1], TEXT)
    return TEXT


MACROS = {
    "regclass_of(n)": "coalesce(try_cast(n AS UINTEGER), (SELECT max(k.oid) FROM pg.pg_class k JOIN"
    " pg.pg_namespace s ON k.relnamespace = s.oid WHERE n IN (k.relname, s.nspname || '.' ||"
    " k.relname)))",
    "regclass_name(o)": "coalesce((SELECT max(k.relname) FROM pg.pg_class k WHERE k.oid = o),"
    " CAST(o AS VARCHAR))",
    "regproc_name(o)": "coalesce((SELECT max(f.proname) FROM pg.pg_proc f WHERE f.oid = o), '-')",
    "regtype_of(n)": "(SELECT max(y.oid) FROM pg.pg_type y JOIN pg.type_labels p ON y.oid = p.oid"
    " WHERE n IN (y.typname, p.label))",
    "regnamespace_of(n)": "(SELECT max(s.oid) FROM pg.pg_namespace s WHERE s.nspname = n)",
    "regnamespace_name(o)": "coalesce((SELECT max(s.nspname) FROM pg.pg_namespace s WHERE s.oid ="
    " o), CAST(o AS VARCHAR))",
    "format_type(t, m)": "coalesce((SELECT p.label FROM pg.type_labels p WHERE p.oid = t), CASE"
    " WHEN t IS NULL THEN NULL ELSE '???' END)",
    "pg_get_userbyid(o)": "CASE WHEN o = 10 THEN 'sulq' ELSE 'unknown (OID=' || o || ')' END",
    "pg_table_is_visible(o)": "EXISTS (SELECT 1 FROM pg.pg_class k WHERE k.oid = o AND"
    " k.relnamespace IN (11, 2200))",
    "pg_type_is_visible(o)": "true",
    "pg_function_is_visible(o)": "true",
    "pg_operator_is_visible(o)": "true",
    "pg_collation_is_visible(o)": "true",
    "pg_opclass_is_visible(o)": "true",
    "pg_conversion_is_visible(o)": "true",
    "pg_statistics_obj_is_visible(o)": "true",
    "pg_ts_config_is_visible(o)": "true",
    "to_regtype(n)": "f_regtype_of(n)",
    "to_regclass(n)": "f_regclass_of(n)",
    "to_regnamespace(n)": "f_regnamespace_of(n)",
    "pg_get_expr(a, b, c := false)": "CAST(NULL AS VARCHAR)",
    "pg_get_constraintdef(a, b := false)": "CAST(NULL AS VARCHAR)",
    "pg_get_indexdef(a, b := 0, c := false)": "CAST(NULL AS VARCHAR)",
    "pg_get_viewdef(a, b := false)": "CAST(NULL AS VARCHAR)",
    "pg_get_ruledef(a, b := false)": "CAST(NULL AS VARCHAR)",
    "pg_get_triggerdef(a, b := false)": "CAST(NULL AS VARCHAR)",
    "pg_get_partkeydef(a)": "CAST(NULL AS VARCHAR)",
    "pg_get_function_result(a)": "CAST(NULL AS VARCHAR)",
    "pg_get_function_arguments(a)": "CAST(NULL AS VARCHAR)",
    "pg_get_function_identity_arguments(a)": "CAST(NULL AS VARCHAR)",
    "pg_get_serial_sequence(a, b)": "CAST(NULL AS VARCHAR)",
    "pg_get_statisticsobjdef_columns(a)": "CAST(NULL AS VARCHAR)",
    "pg_relation_is_publishable(a)": "false",
    "obj_description(a, b := '')": "CAST(NULL AS VARCHAR)",
    "col_description(a, b)": "CAST(NULL AS VARCHAR)",
    "shobj_description(a, b)": "CAST(NULL AS VARCHAR)",
    "pg_encoding_to_char(a)": "'UTF8'",
    "pg_char_to_encoding(a)": "6",
    "getdatabaseencoding()": "'UTF8'",
    "pg_client_encoding()": "'UTF8'",
    "pg_backend_pid()": "0",
    "pg_is_in_recovery()": "false",
    "pg_my_temp_schema()": "0",
    "pg_is_other_temp_schema(a)": "false",
    "pg_postmaster_start_time()": "TIMESTAMP '2000-01-01 00:00:00'",
    "pg_advisory_unlock_all()": "CAST(NULL AS VARCHAR)",
    "pg_database_size(a)": "CAST(0 AS BIGINT)",
    "pg_relation_size(a, b := '')": "CAST(0 AS BIGINT)",
    "pg_table_size(a)": "CAST(0 AS BIGINT)",
    "pg_total_relation_size(a)": "CAST(0 AS BIGINT)",
    "pg_size_pretty(a)": "'0 bytes'",
    "pg_tablespace_location(a)": "''",
    "txid_current()": "CAST(0 AS BIGINT)",
    "has_schema_privilege(a, b, c := '')": "true",
    "has_table_privilege(a, b, c := '')": "lower(CASE WHEN c = '' THEN b ELSE c END) = 'select'",
    "has_any_column_privilege(a, b, c := '')": "lower(CASE WHEN c = '' THEN b ELSE c END) ="
    " 'select'",
    "has_column_privilege(a, b, c := '', d := '')": "lower(CASE WHEN d = '' THEN c ELSE d END) ="
    " 'select'",
    "has_database_privilege(a, b, c := '')": "true",
    "has_function_privilege(a, b, c := '')": "false",
    "has_sequence_privilege(a, b, c := '')": "false",
    "pg_has_role(a, b, c := '')": "true",
    "current_schemas(implicit)": "CASE WHEN implicit THEN ['pg_catalog', 'public'] ELSE ['public']"
    " END",
    "pg_expandarray(a)": "{'x': CAST(NULL AS SMALLINT), 'n': CAST(NULL AS INTEGER)}",
    "array_upper(a, b)": "len(a)",
    "array_lower(a, b)": "CASE WHEN len(a) > 0 THEN 1 END",
    "pg_get_keywords()": "CAST(NULL AS VARCHAR)",
    "pg_partition_ancestors(a)": "CAST(NULL AS UINTEGER)",
    "pg_stat_get_numscans(a)": "CAST(0 AS BIGINT)",
    "pg_stat_get_live_tuples(a)": "CAST(NULL AS BIGINT)",
    "parse_ident(a, b := true)": "string_split(replace(a, '\"', ''), '.')",
    "quote_ident(a)": "CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_$]*') THEN a ELSE '\"' ||"
    " replace(a, '\"', '\"\"') || '\"' END",
    "quote_literal(a)": "'''' || replace(a, '''', '''''') || ''''",
}
"""Functions of PostgreSQL's catalogue, written for DuckDB as macros `f_...`."""

_PLAIN = """
    coalesce nullif count max min sum avg lower upper length concat concat_ws replace
    substring substr left right trim ltrim rtrim position strpos split_part array_agg
    string_agg group_concat array_to_string array_length cardinality array unnest explode
    generate_series generateseries exists case if and or not cast trycast in any all between
    like ilike greatest least abs round row_number rank dense_rank bool_or bool_and logical_or
    logical_and now current_timestamp current_date currentdate currenttimestamp to_char
    regexp_replace regexplike regexpilike regexp_like regexpreplace array_append array_cat
    array_concat arrayconcat array_position array_contains arraycontainsall
    generate_subscripts posexplode struct dpipe safeconcat bracket xor paren reverse lag lead
    first_value last_value mod initcap extract date_trunc timestamptrunc str_position
    strposition stringtoarray string_to_array arraytostring array_concat_agg arrayagg
    groupconcat arraysize chr ascii md5 ceil floor json_object jsonobject localtimestamp
    exploding_generate_series
"""
PLAIN = frozenset(_PLAIN.split())
"""Functions that DuckDB has under the same name, or sqlglot translates."""

NODES = (
    exp.Command, exp.Create, exp.Insert, exp.Update, exp.Delete, exp.Into, exp.Drop, exp.Alter,
    exp.Copy, exp.Attach, exp.Detach, exp.Pragma, exp.Set, exp.Use, exp.Lock, exp.Merge,
    exp.Parameter, exp.Placeholder, exp.SessionParameter,
)  # fmt: skip
"""What no statement over the catalogue may hold; parameters are filled in before."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What one connection sees: tables by name, and the words of its session."""

    tables: Mapping[str, Schema]
    database: str
    user: str

    @property
    def statements(self) -> list[str]:
        """What makes it, in DuckDB's SQL."""
        return [*_FIXED, *_own(self)]

    @property
    def name(self) -> str:
        """Names it to the process: the same tables, the same catalogue."""
        return hashlib.sha256("\n".join(_own(self)).encode()).hexdigest()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
    return _quoted(str(value))


def _insert(schema: str, relation: str, rows: Sequence[Mapping[str, object]]) -> list[str]:
    if not rows:
        return []
    names = list(rows[0])
    values = ", ".join("(" + ", ".join(_literal(row[name]) for name in names) + ")" for row in rows)
    return [f"INSERT INTO {schema}.{relation} ({', '.join(names)}) VALUES {values}"]  # noqa: S608


def _fixed() -> list[str]:
    """Return the statements that are the same for every catalogue."""
    made = ["CREATE SCHEMA pg", "CREATE SCHEMA info", "CREATE SCHEMA public"]
    for schema, relations in (("pg", PG), ("info", INFORMATION)):
        for name, columns in relations.items():
            words = columns.split()
            typed = ", ".join(
                f"{column} {KINDS[kind]}"
                for column, kind in zip(words[::2], words[1::2], strict=True)
            )
            made.append(f"CREATE TABLE {schema}.{name} ({typed})")
    made.append("CREATE TABLE pg.type_labels (oid UINTEGER, label VARCHAR)")
    made += [f"CREATE MACRO f_{head} AS {body}" for head, body in MACROS.items()]
    for oid, (name, label, _, size, category, array) in TYPES.items():
        common = {"typnamespace": 11, "typowner": 10, "typtype": "b", "typisdefined": True}
        common |= {"typdelim": ",", "typrelid": 0, "typbasetype": 0, "typtypmod": -1}
        common |= {"typndims": 0, "typnotnull": False, "typcollation": 0, "typispreferred": False}
        own = {"oid": oid, "typname": name, "typlen": size, "typcategory": category}
        ends = {"typinput": f"{name}in", "typoutput": f"{name}out", "typreceive": RECEIVE + oid}
        receives = {"oid": RECEIVE + oid, "proname": f"{name}recv", "pronamespace": 11}
        made += _insert("pg", "pg_proc", [receives])
        made += _insert(
            "pg", "pg_type", [{**own, **ends, **common, "typelem": 0, "typarray": array}]
        )
        made += _insert("pg", "type_labels", [{"oid": oid, "label": label}])
        if array:
            own = {"oid": array, "typname": f"_{name}", "typlen": -1, "typcategory": "A"}
            ends = {"typinput": "array_in", "typoutput": "array_out", "typreceive": RECEIVE}
            made += _insert(
                "pg", "pg_type", [{**own, **ends, **common, "typelem": oid, "typarray": 0}]
            )
            made += _insert("pg", "type_labels", [{"oid": array, "label": f"{label}[]"}])
    arrays = {"oid": RECEIVE, "proname": "array_recv", "pronamespace": 11}
    made += _insert("pg", "pg_proc", [arrays])  # Npgsql knows arrays by it
    made += _insert("pg", "pg_am", [{"oid": 2, "amname": "heap", "amtype": "t"}])
    made += _insert("pg", "pg_tablespace", [{"oid": 1663, "spcname": "pg_default", "spcowner": 10}])
    made += _insert("pg", "pg_language", [{"oid": 14, "lanname": "sql"}])
    return made


_FIXED = _fixed()
_FALSE = ("relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass",
          "relrowsecurity", "relforcerowsecurity", "relispartition", "relhasoids")  # fmt: skip
_ZERO = ("reloftype", "relam", "relfilenode", "reltablespace", "relpages", "relallvisible",
         "reltoastrelid", "relchecks", "relrewrite", "reltype")  # fmt: skip


def _own(catalogue: Catalogue) -> list[str]:
    """Return the statements that fill in the tables and names of one connection."""
    database, user = catalogue.database, catalogue.user
    spaces = {"pg_catalog": 11, "information_schema": 13_000, "public": 2_200}
    made = _insert(
        "pg",
        "pg_namespace",
        [{"oid": oid, "nspname": name, "nspowner": 10} for name, oid in spaces.items()],
    )
    made += _insert(
        "info",
        "schemata",
        [
            {"catalog_name": database, "schema_name": name, "schema_owner": "sulq"}
            for name in spaces
        ],
    )
    facts: dict[str, object] = {"oid": 5, "datname": database, "datdba": 10, "encoding": 6}
    facts |= {
        "datistemplate": False,
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": 1663,
    }
    made += _insert("pg", "pg_database", [{**facts, "datcollate": "C", "datctype": "C"}])
    role: dict[str, object] = {"rolsuper": False, "rolinherit": True, "rolcreaterole": False}
    role |= {"rolcreatedb": False, "rolcanlogin": True, "rolreplication": False}
    role |= {"rolconnlimit": -1, "rolbypassrls": False}
    names = [(10, "sulq"), (16_383, user)]
    made += _insert(
        "pg", "pg_roles", [{"oid": oid, "rolname": name, **role} for oid, name in names]
    )
    made += _insert(
        "pg",
        "pg_user",
        [{"usename": user, "usesysid": 16_383, "usecreatedb": False, "usesuper": False}],
    )
    made += _insert(
        "pg",
        "pg_settings",
        [{"name": name, "setting": value, "context": "user"} for name, value in DEFAULTS.items()],
    )
    for number, name in enumerate(sorted(catalogue.tables)):
        made += _table(name, FIRST_OID + number, catalogue.tables[name], database)
    return made


def _table(name: str, oid: int, schema: Schema, database: str) -> list[str]:
    columns = list(schema.columns)
    where = {"table_catalog": database, "table_schema": "public", "table_name": name}
    facts: dict[str, object] = {"oid": oid, "relname": name, "relnamespace": 2_200, "relowner": 10}
    facts |= dict.fromkeys(_FALSE, False) | dict.fromkeys(_ZERO, 0)
    facts |= {"reltuples": -1, "relpersistence": "p", "relkind": "r", "relnatts": len(columns)}
    facts |= {"relispopulated": True, "relreplident": "d"}
    made = _insert("pg", "pg_class", [facts])
    made += _insert(
        "pg",
        "pg_tables",
        [{"schemaname": "public", "tablename": name, "tableowner": "sulq", "hasindexes": False}],
    )
    made += _insert(
        "info",
        "tables",
        [{**where, "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}],
    )
    granted = {"grantor": "sulq", "grantee": "PUBLIC", **where}
    for relation in ("table_privileges", "role_table_grants"):
        made += _insert("info", relation, [{**granted, "privilege_type": "SELECT"}])
    attributes, listed, typed = [], [], []
    for place, column in enumerate(columns, 1):
        kind = type_of(column)
        called, label, duck, size, _, _ = TYPES[kind]
        typed.append(f"{_identifier(column.name)} {duck}")
        attributes.append(
            {"attrelid": oid, "attname": column.name, "atttypid": kind, "attlen": size}
            | {"attnum": place, "attndims": 0, "atttypmod": -1, "attnotnull": False}
            | {"atthasdef": False, "attidentity": "", "attgenerated": "", "attisdropped": False}
            | {"attislocal": True, "attinhcount": 0, "attcollation": 0, "attstorage": "p"}
            | {"attstattarget": -1, "attcompression": "", "atthasmissing": False}
        )
        listed.append(
            {**where, "column_name": column.name, "ordinal_position": place, "is_nullable": "YES"}
            | {"data_type": label, "udt_catalog": database, "udt_schema": "pg_catalog"}
            | {"udt_name": called, "dtd_identifier": str(place), "is_self_referencing": "NO"}
            | {"is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO"}
            | {"numeric_precision": {INT8: 64, FLOAT8: 53}.get(kind), "identity_cycle": "NO"}
            | {"numeric_precision_radix": 2 if kind in (INT8, FLOAT8) else None}
            | {"numeric_scale": 0 if kind == INT8 else None}
            | {"datetime_precision": {DATE: 0, TIMESTAMP: 6}.get(kind)}
        )
    made += _insert("pg", "pg_attribute", attributes) + _insert("info", "columns", listed)
    return [*made, f"CREATE TABLE public.{_identifier(name)} ({', '.join(typed)})"]


DEFAULTS = {
    "server_version": VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "default_transaction_read_only": "on",
    "transaction_read_only": "on",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "search_path": '"$user", public',
    "application_name": "",
    "extra_float_digits": "1",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "bytea_output": "hex",
    "client_min_messages": "notice",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "row_security": "on",
    "session_authorization": "sulq",
}
"""What SHOW says; a session may set others."""
REPORTED = (
    "server_version", "server_encoding", "client_encoding", "DateStyle", "IntervalStyle",
    "TimeZone", "integer_datetimes", "standard_conforming_strings", "is_superuser",
    "in_hot_standby", "default_transaction_read_only", "application_name",
)  # fmt: skip
"""What a client is told when it connects."""
VERSION_TEXT = f"PostgreSQL {VERSION} (sulq)"


# --- from PostgreSQL's words to DuckDB's ----------------------------------------------------------


def refused(text: str) -> WireError:
    return WireError(
        "0A000",
        text,
        "statements over pg_catalog and information_schema may use the relations and functions"
        " that drivers use to list tables; nothing was charged",
    )


@dataclass(slots=True)
class Rewriting:
    """One statement over the catalogue, or over no relation at all, for DuckDB."""

    catalogue: Catalogue
    settings: Mapping[str, str]
    rows: bool = False
    """True if it names a table of rows, which is empty here: see `statements.RowProbe`."""
    ctes: set[str] = field(default_factory=set)

    def sql(self, tree: exp.Expr) -> str:
        """Return the statement in DuckDB's SQL, or refuse it."""
        if sum(1 for _ in tree.walk()) > MOST_NODES:
            raise refused(f"a statement over the catalogue has at most {MOST_NODES:,} words")
        self.ctes = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
        try:
            made = self._rewritten(tree.copy())
            self._check(made)
            return made.sql("duckdb")
        except (SqlglotError, RecursionError, AttributeError, ValueError, TypeError, LookupError):
            raise refused("this statement over the catalogue cannot be read") from None

    def _rewritten(self, tree: exp.Expr) -> exp.Expr:
        """Return the tree with every node held against the lists, the innermost first."""
        _name_items(tree)
        for node in reversed(list(tree.walk(bfs=False))):
            made = self._node(node)
            if made is not node:
                if node is tree:
                    return made
                node.replace(made)
        return tree

    def _check(self, tree: exp.Expr) -> None:
        """Look a second time, at what was made: nothing else goes to the process."""
        for node in tree.walk():
            if isinstance(node, exp.Table) and not isinstance(node.this, exp.Func):
                known = node.db in ("pg", "info") or (self.rows and node.db == "public")
                if not known and (node.db or node.name.casefold() not in self.ctes):
                    raise refused("this statement over the catalogue cannot be read")
            elif isinstance(node, exp.Table) and node.db:
                raise refused("this statement over the catalogue cannot be read")
            elif isinstance(node, exp.Func) and not _is_plain(node):
                own = isinstance(node, exp.Anonymous) and node.name.startswith("f_")
                if not own or not any(h.startswith(f"{node.name[2:]}(") for h in MACROS):
                    raise refused("this statement over the catalogue cannot be read")

    def _node(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, NODES):
            raise refused(f"{node.key.upper()} has no place in a statement over the catalogue")
        match node:
            case exp.Table():
                return self._relation(node)
            case exp.Column():
                for part in ("db", "catalog"):
                    node.set(part, None)
                if node.name == "typreceive" and _is_item(node):
                    return exp.alias_(_function_name(node), "typreceive")
                return self._session_word(node)
            case exp.Collate(this=exp.Expr() as inner):
                return inner
            case exp.Operator():
                return _operator(node)
            case exp.Dot(this=exp.Identifier()):
                if node.this.name.casefold() not in ("pg_catalog", "information_schema"):
                    raise refused(f"there is no function {node.sql('postgres')[:60]!r} here")
                made: exp.Expr = node.expression
                return made
            case exp.Cast():
                return self._cast(node)
            case exp.Func():
                return self._function(node)
        return node

    def _relation(self, node: exp.Table) -> exp.Expr:
        if isinstance(node.this, exp.Func):  # FROM generate_series(...) s
            if node.db.casefold() not in ("", "pg_catalog", "information_schema"):
                raise refused(f"there is no function {node.sql('postgres')[:60]!r} here")
            node.set("db", None)
            return _table_function(node)
        name, schema = node.name, node.db.casefold()
        if not schema and name.casefold() in self.ctes:
            return node
        lower = name.casefold()
        if schema in ("", "pg_catalog") and lower in PG:
            return _moved(node, "pg", lower)
        if schema == "information_schema" and lower in INFORMATION:
            return _moved(node, "info", lower)
        own = {known.casefold(): known for known in self.catalogue.tables}
        if self.rows and schema in ("", "public") and lower in own:
            return _moved(node, "public", own[lower])
        raise WireError(
            "42P01",
            f'relation "{node.sql("postgres")[:80]}" does not exist',
            "\\dt lists the tables that this token reaches",
        )

    def _session_word(self, node: exp.Column) -> exp.Expr:
        """Return current_user and the like, which PostgreSQL writes without brackets."""
        if node.table or not isinstance(node.this, exp.Identifier) or node.this.quoted:
            return node
        said = self._said(node.name.casefold())
        return node if said is None else exp.alias_(said, node.name) if _is_item(node) else said

    def _said(self, name: str) -> exp.Expr | None:
        match name:
            case (
                "current_user"
                | "currentuser"
                | "session_user"
                | "sessionuser"
                | "user"
                | "current_role"
            ):
                return exp.Literal.string(self.catalogue.user)
            case "current_database" | "currentdatabase" | "current_catalog" | "currentcatalog":
                return exp.Literal.string(self.catalogue.database)
            case "current_schema" | "currentschema":
                return exp.Literal.string("public")
            case "version" | "current_version":
                return exp.Literal.string(VERSION_TEXT)
            case "inet_server_addr" | "inet_client_addr" | "inet_server_port" | "inet_client_port":
                return exp.Null()
        return None

    def _function(self, node: exp.Func) -> exp.Expr:
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).casefold()
        arguments = list(node.expressions) if isinstance(node, exp.Anonymous) else []
        said = self._said(name)
        if said is not None:
            return _named_like(node, said, name)
        if name == "current_setting" and arguments:
            found = self._setting(arguments[0].name)
            return _named_like(node, found, name)
        if name == "set_config" and len(arguments) == 3:
            return _named_like(node, arguments[1], name)
        if name == "json_build_object":
            return _named_like(node, exp.Anonymous(this="json_object", expressions=arguments), name)
        macro = name.removeprefix("_")
        if any(head.startswith(f"{macro}(") for head in MACROS):
            given = arguments or list(node.iter_expressions())
            return _named_like(node, exp.Anonymous(this=f"f_{macro}", expressions=given), name)
        if not _is_plain(node):
            raise refused(f"there is no function {name[:60]}() here")
        return node

    def _setting(self, name: str) -> exp.Expr:
        known = {each.casefold(): value for each, value in {**DEFAULTS, **self.settings}.items()}
        found = known.get(name.casefold())
        return exp.Null() if found is None else exp.Literal.string(found)

    def _cast(self, node: exp.Cast) -> exp.Expr:
        wanted = node.to.sql("postgres").casefold().rpartition(".")[2].strip('"')
        literal = isinstance(node.this, exp.Literal) and node.this.is_string
        if wanted in ("regclass", "regtype", "regnamespace"):
            inner: exp.Expr = node.this
            if literal:
                inner = exp.Literal.string(inner.name.replace('"', "").removeprefix("pg_catalog."))
                return exp.Anonymous(this=f"f_{wanted}_of", expressions=[inner])
            if _is_oid(node.parent):  # x::regclass::oid
                return inner
            if wanted == "regtype":
                return exp.Anonymous(this="f_format_type", expressions=[inner, exp.Null()])
            return exp.Anonymous(this=f"f_{wanted}_name", expressions=[inner])
        if isinstance(node.this, exp.Column) and node.this.name == "typreceive":
            return node.this if wanted in ("oid", "int8", "bigint") else _function_name(node.this)
        if literal and wanted.endswith("[]") and _LIST.fullmatch(node.this.name):
            members = [each for each in node.this.name[1:-1].split(",") if each]
            listed = exp.Array(expressions=[exp.Literal.string(each) for each in members])
            node.set("this", listed)
        target = DUCK_TYPES.get(wanted)
        if target is None and wanted.endswith("[]"):
            target = DUCK_TYPES.get(wanted.removesuffix("[]"), "VARCHAR") + "[]"
        node.set("to", exp.DataType.build(target or "VARCHAR", dialect="duckdb"))
        return node


_LIST = re.compile(r'\{[^{}"\\]*\}')
"""An array written as text, without quotes inside."""
UNNAMED = "?column?"
DUCK_TYPES = {
    "oid": "UINTEGER", "xid": "UINTEGER", "int": "INTEGER", "int4": "INTEGER",
    "integer": "INTEGER", "bigint": "BIGINT", "int8": "BIGINT", "smallint": "SMALLINT",
    "int2": "SMALLINT", "boolean": "BOOLEAN", "bool": "BOOLEAN", "double precision": "DOUBLE",
    "float8": "DOUBLE", "real": "FLOAT", "numeric": "DOUBLE", "decimal": "DOUBLE", "date": "DATE",
    "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP", "information_schema.cardinal_number": "INTEGER",
    "cardinal_number": "INTEGER",
}  # fmt: skip
"""What a type of a CAST is in DuckDB; every other one is text."""


def _function_name(node: exp.Expr) -> exp.Expr:
    """Return the name of a function that a column names by its OID, as PostgreSQL shows it."""
    return exp.Anonymous(this="f_regproc_name", expressions=[node.copy()])


def _is_plain(node: exp.Func) -> bool:
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).casefold()
    return name in PLAIN or type(node).__name__.casefold() in PLAIN


def _name_items(tree: exp.Expr) -> None:
    """Give the items of the outermost SELECT the names that PostgreSQL gives them."""
    if not isinstance(tree, exp.Select):
        return
    for item in tree.expressions:
        if not isinstance(item, exp.Alias | exp.Column | exp.Star):
            item.replace(exp.alias_(item.copy(), _item_name(item), quoted=True))


def _item_name(item: exp.Expr) -> str:
    match item:
        case exp.Dot():
            return _item_name(item.expression)
        case exp.Identifier() | exp.Column():
            return str(item.name)
        case exp.Anonymous():
            return item.name.casefold()
        case exp.Cast():
            inner = _item_name(item.this)
            return item.to.sql("postgres").casefold() if inner == UNNAMED else inner
        case exp.Case():
            return "case"
        case exp.Subquery(this=exp.Select()) if len(item.this.expressions) == 1:
            only = item.this.expressions[0]
            return str(only.alias) or _item_name(only)
        case exp.Func() if not isinstance(item, exp.Binary | exp.And | exp.Or):
            return {"current_version": "version"}.get(
                item.sql_name().casefold(), item.sql_name().casefold()
            )
    return UNNAMED


def _is_oid(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Cast) and node.to.sql("postgres").casefold() in (
        "oid",
        "int8",
        "bigint",
    )


def _is_item(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Select) and node.arg_key == "expressions"


def _named_like(node: exp.Expr, made: exp.Expr, name: str) -> exp.Expr:
    """Return what stands for a function; an item of SELECT keeps its name."""
    outer = node.parent if isinstance(node.parent, exp.Dot) else node
    return exp.alias_(made, name) if _is_item(outer) else made


IN_FROM = (exp.GenerateSeries, exp.ExplodingGenerateSeries, exp.Unnest, exp.Explode)
"""Functions that DuckDB has in FROM; another one has one row there."""


def _table_function(node: exp.Table) -> exp.Expr:
    """Return a function in FROM, whose one column has the name of its alias."""
    named, called = node.args.get("alias"), node.this
    if called.name == "f_pg_get_keywords":
        return _moved(node, "pg", "pg_keywords")
    if named is None or named.args.get("columns"):
        return node
    if isinstance(called, IN_FROM):
        named.set("columns", [named.this.copy()])
        return node
    only = exp.select(exp.alias_(called.copy(), named.this.copy()))
    return only.subquery(named.this.copy())


def _moved(node: exp.Table, schema: str, name: str) -> exp.Table:
    if not node.alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    node.set("catalog", None)
    node.set("db", exp.to_identifier(schema))
    node.set("this", exp.to_identifier(name, quoted=True))
    return node


OPERATORS: dict[str, type[exp.Expr]] = {
    "~": exp.RegexpLike, "=": exp.EQ, "<>": exp.NEQ, "~~": exp.Like, "<": exp.LT, ">": exp.GT,
}  # fmt: skip


def _operator(node: exp.Expr) -> exp.Expr:
    """Return OPERATOR(pg_catalog.~) as the operator itself."""
    word = str(node.args["operator"]).rpartition(".")[2].strip()
    made = OPERATORS.get(word)
    if made is None:
        raise refused(f"there is no operator {word[:20]} here")
    return made(this=node.this, expression=node.expression)


# --- the process ----------------------------------------------------------------------------------

OIDS = {
    "BOOLEAN": BOOL, "TINYINT": INT2, "SMALLINT": INT2, "UTINYINT": INT2, "USMALLINT": INT4,
    "INTEGER": INT4, "BIGINT": INT8, "UINTEGER": OID, "UBIGINT": INT8, "HUGEINT": FLOAT8,
    "FLOAT": FLOAT8, "DOUBLE": FLOAT8, "DATE": DATE, "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMP,
}  # fmt: skip


def oid_of(duck: str) -> int:
    """Return the OID of one of DuckDB's types; whatever has none is text."""
    if duck.endswith("[]"):
        return ARRAYS.get(oid_of(duck.removesuffix("[]")), ARRAYS[TEXT])
    return FLOAT8 if duck.startswith("DECIMAL") else OIDS.get(duck, TEXT)


class CatalogueProcess:
    """The process that statements over the catalogue are run in, started when first needed.

    One statement at a time. It is ended and started anew where it does not answer. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, catalogue: Catalogue, statement: str) -> tuple[list[Field], list[list[Any]]]:
        """Return the columns and rows of a statement that `Rewriting` has let through."""
        with self._lock:
            reply = self._told({"name": catalogue.name, "run": statement})
            if reply.get("error") == "unknown":
                made = {"name": catalogue.name, "make": catalogue.statements, "run": statement}
                reply = self._told(made)
        match reply.get("error"):
            case None:
                fields = [Field(name, oid_of(duck)) for name, duck in reply["columns"]]
                return fields, reply["rows"]
            case "slow":
                raise WireError("57014", "a statement over the catalogue may take 200 ms")
            case "large":
                raise WireError("53200", "a statement over the catalogue may take 64 MB")
        raise refused("the catalogue does not answer this statement")

    def _told(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            return dict(json.loads(_line(process.stdout.fileno())))
        except (OSError, ValueError):
            self._end()
            return {"error": "slow"}

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            program = Path(__file__).with_name("catalogue_process.py")
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", str(program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": "/nonexistent"},
                start_new_session=True,
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            self._process = None

    def close(self) -> None:
        with self._lock:
            self._end()


def _line(source: int) -> bytes:
    """Return a line of a pipe that comes within `WALL` seconds."""
    found = bytearray()
    while not found.endswith(b"\n"):
        if not select.select([source], [], [], WALL)[0]:
            raise OSError
        came = os.read(source, 65_536)
        if not came or len(found) > MOST_BYTES:
            raise OSError
        found += came
    return bytes(found)
