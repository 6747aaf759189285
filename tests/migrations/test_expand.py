"""An `expand` migration takes nothing from the release before it, which runs until all its processes are replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from app.access.tenants.bootstrap import migrate
from migrations import revisions
from tests.support.postgres import TestServer

ROLES: Final = ("headwater_app", "headwater_relay", "headwater_admin", "headwater_monitor")
_ROLES: Final = f"ARRAY{list(ROLES)}"

# Each query returns names, and what the code of a release relies on under the name.
QUERIES: Final = {
    "column": """
        SELECT c.relname || '.' || a.attname, jsonb_build_object(
            'type', format_type(a.atttypid, a.atttypmod), 'collation', a.attcollation::regcollation::text,
            'required', a.attnotnull, 'filled', a.atthasdef OR a.attidentity <> '')
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "right": f"""
        SELECT r.role || ' ' || p.privilege || ' ' || c.relname || '.' || a.attname, 'true'::jsonb
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid,
             unnest({_ROLES}) AS r(role),
             unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS p(privilege)
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
              AND EXISTS (SELECT FROM pg_roles WHERE rolname = r.role)
              AND has_column_privilege(r.role, c.oid, a.attnum, p.privilege)
        UNION ALL
        SELECT r.role || ' DELETE ' || c.relname, 'true'::jsonb
        FROM pg_class c, unnest({_ROLES}) AS r(role)
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
              AND EXISTS (SELECT FROM pg_roles WHERE rolname = r.role)
              AND has_table_privilege(r.role, c.oid, 'DELETE')
    """,
    "policy": """
        SELECT tablename || ' ' || policyname,
               jsonb_build_object('permissive', permissive, 'roles', roles::text, 'command', cmd, 'using', qual,
                                  'check', with_check)
        FROM pg_policies WHERE schemaname = 'public'
    """,
    # What refuses rows; and unique indexes also as the targets of ON CONFLICT.
    "constraint": """
        SELECT conrelid::regclass::text || ' ' || conname, to_jsonb(pg_get_constraintdef(oid))
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'x')
    """,
    "unique index": """
        SELECT c.relname || ' ' || regexp_replace(pg_get_indexdef(i.indexrelid, 0, true), '^.* USING ', ''),
               'true'::jsonb
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        WHERE c.relnamespace = 'public'::regnamespace AND i.indisunique
    """,
}

Schema = dict[str, dict[str, Any]]

# Migrations that change what the code before them relies on, and why that code runs on in spite of it.
REVIEWED: Final = {
    "0003": "the key of files has one more column, which is unique with the others; new columns have defaults",
    "0004": "the checks allow what they allowed, and jobs of the new kind",
    "0005": "the checks allow what they allowed, and more kinds of jobs and consumers",
    "0007": "the policies refuse to delete rows that the code before did not delete",
    "0008": "keys and tenants were made by the operator's command only, which belongs to the release",
    "0013": "the check allows more states",
    "0019": "paths of changelog files may occur in several rows: the code before reads each row for itself",
    "0024": "the check allows what it allowed, and messages of rows: no release before registers a webhook with them",
    "0035": "the check allows what it allowed, and tombstones, which only datasets of the release have",
    "0044": "ranges of exports are unique as before, by an index; only exports of the release have snapshots",
}


def schema_of(connection: Connection) -> Schema:
    return {kind: dict(map(tuple, connection.execute(text(query)))) for kind, query in QUERIES.items()}


def table_of(name: str) -> str:
    """The table of a name: `table.column`, `table constraint`, `role RIGHT table.column`."""
    words = name.split(" ")
    return (words[2] if words[0] in ROLES else words[0]).partition(".")[0]


def faults(before: Schema, after: Schema) -> list[str]:
    """What a process of the earlier release can no longer do."""
    existed = {table_of(name) for name in before["column"]}
    found = []
    for kind in ("column", "right", "unique index", "policy"):
        found += [f"{kind} {name} is gone" for name in before[kind].keys() - after[kind].keys()]
    found += column_faults(before, after, existed)
    for kind in ("constraint", "policy"):
        for name, definition in after[kind].items():
            if table_of(name) in existed and before[kind].get(name) != definition:
                # A permissive policy of another name adds rows, a restrictive one takes some.
                if kind == "policy" and name not in before[kind] and definition["permissive"] == "PERMISSIVE":
                    continue
                found.append(f"{kind} {name} is {'another' if name in before[kind] else 'new'}")
    for name in after["unique index"].keys() - before["unique index"].keys():
        if table_of(name) in existed:
            found.append(f"unique index {name} is new")
    return sorted(found)


def column_faults(before: Schema, after: Schema, existed: set[str]) -> list[str]:
    found = []
    for name, column in after["column"].items():
        if table_of(name) not in existed:
            continue
        old: Mapping[str, Any] = before["column"].get(name, column | {"required": False})
        if any(old[fact] != column[fact] for fact in ("type", "collation")):
            found.append(f"column {name} has another type")
        if (
            column["required"]
            and not old["required"]
            and not (name not in before["column"] and column["filled"])
        ):
            found.append(f"column {name} is required")
        if old["filled"] and not column["filled"]:
            found.append(f"column {name} has no default")
    return found


@contextmanager
def connection_to(server: TestServer, name: str) -> Iterator[Connection]:
    url = make_url(server.owner_url(name)).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        yield connection


def test_expand_migrations_take_nothing_from_the_release_before(postgres: TestServer) -> None:
    found: dict[str, list[str]] = {}
    with postgres.fresh_database(template="template0") as name, connection_to(postgres, name) as connection:
        known = revisions()
        migrate(connection, known[0])
        before = schema_of(connection)
        connection.commit()
        for revision in known[1:]:
            migrate(connection, revision)
            after = schema_of(connection)
            connection.commit()
            found[revision] = faults(before, after)
            before = after
    assert {revision for revision, each in found.items() if each} == set(REVIEWED), found


FAULTS: Final = {
    "DROP TABLE read_leases": "column read_leases.reader is gone",
    "ALTER TABLE jobs DROP COLUMN outages": "column jobs.outages is gone",
    "ALTER TABLE jobs RENAME COLUMN outages TO breaks": "column jobs.outages is gone",
    "ALTER TABLE jobs ALTER COLUMN outages TYPE integer": "column jobs.outages has another type",
    "ALTER TABLE jobs ALTER COLUMN outages DROP DEFAULT": "column jobs.outages has no default",
    "ALTER TABLE jobs ALTER COLUMN owner SET NOT NULL": "column jobs.owner is required",
    "ALTER TABLE jobs ADD COLUMN new text NOT NULL": "column jobs.new is required",
    "REVOKE INSERT ON jobs FROM headwater_app": "right headwater_app INSERT jobs.seq is gone",
    "REVOKE DELETE ON jobs FROM headwater_app": "right headwater_app DELETE jobs is gone",
    "DROP POLICY relay ON jobs": "policy jobs relay is gone",
    "ALTER POLICY relay ON jobs USING (state = 'queued')": "policy jobs relay is another",
    "CREATE POLICY new ON jobs AS RESTRICTIVE USING (outages < 3)": "policy jobs new is new",
    "ALTER TABLE jobs ADD CONSTRAINT new CHECK (outages < 3)": "constraint jobs new is new",
    "CREATE UNIQUE INDEX new ON jobs (seq)": "unique index jobs btree (seq) is new",
    "DROP INDEX datasets_live_name": (
        "unique index datasets btree (tenant_id, name) WHERE deleted_at IS NULL is gone"
    ),
}
ALLOWED: Final = (
    "ALTER TABLE jobs ADD COLUMN new text",
    "ALTER TABLE jobs ADD COLUMN new bigint NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ALTER COLUMN kind DROP NOT NULL",
    "CREATE TABLE new (id bigint PRIMARY KEY, name text NOT NULL CHECK (name <> ''))",
    "CREATE INDEX new ON jobs (outages)",
    "CREATE POLICY new ON jobs FOR SELECT TO headwater_relay USING (true)",
    "GRANT DELETE ON heads TO headwater_relay",
    "ALTER INDEX datasets_live_name RENAME TO datasets_name",
)


def test_what_an_earlier_release_cannot_live_with_is_found(postgres: TestServer) -> None:
    with postgres.fresh_database() as name, connection_to(postgres, name) as connection:
        before = schema_of(connection)

        def after(statement: str) -> list[str]:
            connection.execute(text(statement))
            found = faults(before, schema_of(connection))
            connection.rollback()
            return found

        for statement, fault in FAULTS.items():
            assert fault in after(statement), statement
        for statement in ALLOWED:
            assert after(statement) == [], statement
