"""One tenant's rows are out of every other's reach, whatever statement is sent, and out of the relay's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Table, insert, select, text
from sqlalchemy.exc import DBAPIError

from app.access.audit.tables import audit
from app.access.tenants.tables import api_keys, tenant_deletions, tenants
from app.access.tenants.values import KeyScope, NewKey, key_digest, new_api_key
from app.core.catalog.values import Dataset
from app.core.jobs.tables import jobs
from app.core.jobs.values import Job
from app.features.maintenance.tables import table_maintenance
from app.infra.db.session import (
    ADMINISTRATOR_ROLE,
    APPLICATION_ROLE,
    MONITOR_ROLE,
    RELAY_ROLE,
    Database,
)
from app.infra.identifiers import new_id
from app.process.tables import metadata
from tests.support.lakehouse import commit_of, message
from tests.support.populated_tenant import populate
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores

TENANT_TABLES = [table for table in metadata.sorted_tables if "tenant_id" in table.c]
SHARED_TABLES = [table for table in metadata.sorted_tables if "tenant_id" not in table.c]
ADMINISTERED = (tenants, api_keys, audit, tenant_deletions)
READABLE = [table for table in TENANT_TABLES if table.name != "outbox"]


@pytest.fixture
def populated(stores: Stores, administration: Database) -> Callable[[], str]:
    """Makes a tenant with rows in every table, the deletion of a tenant included."""

    def make() -> str:
        tenant_id = populate(stores)
        with administration.administration() as connection:
            connection.execute(insert(tenant_deletions).values(tenant_id=tenant_id, name="", rows_deleted={}))
        return tenant_id

    return make


@pytest.fixture
def victim(populated: Callable[[], str]) -> str:
    return populated()


@pytest.fixture
def owner(postgres: TestServer, database_url: str) -> Iterator[Database]:
    """The door, entered with a superuser's login: it must be no wider."""
    database = Database(postgres.owner_url(database_url.rsplit("/", 1)[1]), application_name="owner")
    yield database
    database.close()


def refused(connection: Connection, statement: str) -> str:
    """The SQLSTATE with which Postgres refuses the statement."""
    with pytest.raises(DBAPIError) as refusal, connection.begin_nested():
        connection.execute(text(statement))
    return str(getattr(refusal.value.orig, "sqlstate", None))


def count(connection: Connection, table: Table) -> int:
    return connection.execute(text(f"SELECT count(*) FROM {table.name}")).scalar_one()


INSUFFICIENT_PRIVILEGE = "42501"


@pytest.mark.parametrize("table", READABLE, ids=str)
def test_foreign_tenant_sees_and_changes_nothing(
    stores: Stores, owner: Database, victim: str, tenant_id: str, table: Table
) -> None:
    with stores.database.tenant(victim) as connection:
        own = count(connection, table)
        assert own > 0
    for database in (stores.database, owner):
        with database.tenant(tenant_id) as connection:
            assert count(connection, table) == (1 if table is tenants else 0)
            everything = f"SELECT count(*) FROM {table.name} WHERE tenant_id = '{victim}' OR true"
            assert connection.execute(text(everything)).scalar_one() == count(connection, table)
    with stores.database.tenant(victim) as connection:
        assert count(connection, table) == own


@pytest.mark.parametrize("table", READABLE, ids=str)
def test_session_without_a_tenant_sees_no_rows(stores: Stores, victim: str, table: Table) -> None:
    with stores.database.credential(bytes(32)) as connection:
        assert count(connection, table) == 0


def test_tenant_setting_ends_with_its_transaction(stores: Stores, victim: str) -> None:
    """The connections go back to the pool; the next transaction on them starts as no one."""
    with stores.database.tenant(victim) as connection:
        assert count(connection, jobs) == 2
    with stores.database.credential(bytes(32)) as connection:
        assert connection.execute(
            text("SELECT current_setting('headwater.tenant_id', true)")
        ).scalar_one() in ("", None)
        assert count(connection, jobs) == 0


@pytest.mark.parametrize("table", TENANT_TABLES, ids=str)
def test_rows_cannot_be_inserted_for_or_moved_to_another_tenant(
    stores: Stores, populated: Callable[[], str], victim: str, table: Table
) -> None:
    with stores.database.tenant(populated()) as connection:
        if table.name == "outbox":
            forged = (
                f"INSERT INTO outbox (tenant_id, topic, dataset_id) VALUES ('{victim}', 'work', '{new_id()}')"
            )
        else:
            copied = ", ".join(
                column.name for column in table.c if column.name != "tenant_id" and not column.identity
            )
            comma = ", " if copied else ""
            forged = (
                f"INSERT INTO {table.name} (tenant_id{comma}{copied}) "
                f"SELECT '{victim}'{comma}{copied} FROM {table.name} LIMIT 1"
            )
        assert refused(connection, forged) == INSUFFICIENT_PRIVILEGE
        assert (
            refused(connection, f"UPDATE {table.name} SET tenant_id = '{victim}'") == INSUFFICIENT_PRIVILEGE
        )


ESCAPES = {
    "SET row_security = off; SELECT * FROM jobs": INSUFFICIENT_PRIVILEGE,
    "ALTER TABLE jobs DISABLE ROW LEVEL SECURITY": INSUFFICIENT_PRIVILEGE,
    "ALTER TABLE jobs NO FORCE ROW LEVEL SECURITY": INSUFFICIENT_PRIVILEGE,
    "DROP POLICY tenant ON jobs": INSUFFICIENT_PRIVILEGE,
    "CREATE POLICY mine ON jobs USING (true)": INSUFFICIENT_PRIVILEGE,
    "CREATE TABLE mine (id int)": INSUFFICIENT_PRIVILEGE,
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'": INSUFFICIENT_PRIVILEGE,
    "DROP TABLE jobs": INSUFFICIENT_PRIVILEGE,
    "TRUNCATE jobs": INSUFFICIENT_PRIVILEGE,
    "UPDATE tenant_deletions SET finished_at = now()": INSUFFICIENT_PRIVILEGE,
    "DELETE FROM tenant_deletions": INSUFFICIENT_PRIVILEGE,
    "UPDATE commits SET version = 2": INSUFFICIENT_PRIVILEGE,
    "UPDATE files SET path = 'mine'": INSUFFICIENT_PRIVILEGE,
    "UPDATE audit SET count = 0": INSUFFICIENT_PRIVILEGE,
    "SELECT * FROM outbox": INSUFFICIENT_PRIVILEGE,
    "SELECT * FROM alembic_version": INSUFFICIENT_PRIVILEGE,
    "ALTER ROLE headwater_app BYPASSRLS": INSUFFICIENT_PRIVILEGE,
    "SET ROLE headwater_owner": INSUFFICIENT_PRIVILEGE,
    "COPY jobs TO PROGRAM 'cat'": INSUFFICIENT_PRIVILEGE,
    "SELECT pg_read_file('/etc/passwd')": INSUFFICIENT_PRIVILEGE,
}


@pytest.mark.parametrize("statement", ESCAPES)
def test_application_role_cannot_widen_its_rights(stores: Stores, tenant_id: str, statement: str) -> None:
    with stores.database.tenant(tenant_id) as connection, connection.begin_nested() as harmless:
        *before, last = statement.split("; ")
        for each in before:
            connection.execute(text(each))
        assert refused(connection, last) == ESCAPES[statement]
        harmless.rollback()


def test_application_role_deletes_only_what_has_ended(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    running()
    with stores.database.tenant(tenant_id) as connection:
        for table in ("changelog_files", "files", "instants"):
            connection.execute(text(f"DELETE FROM {table}"))
        for table in ("commits", "heads", "schema_versions", "datasets"):
            assert connection.execute(text(f"DELETE FROM {table}")).rowcount == 0, table
        assert connection.execute(text("DELETE FROM jobs")).rowcount == 1
        connection.rollback()


def test_credential_session_reads_only_its_own_key(stores: Stores, victim: str) -> None:
    key, other = new_api_key(), new_api_key()
    for each in (key, other):
        stores.tenants.add_key(victim, NewKey(name="", scopes=(KeyScope.READ,)), api_key=each)
    with stores.database.credential(key_digest(key)) as connection:
        assert connection.execute(api_keys.select()).one().digest == key_digest(key)
        assert connection.execute(tenants.select()).one().tenant_id == victim
        assert connection.execute(text("UPDATE api_keys SET last_used_at = now()")).rowcount == 0


def test_session_with_the_name_of_a_tenant_reads_only_that_tenant(stores: Stores, victim: str) -> None:
    name = stores.tenants.tenant(victim).name
    with stores.database.named(name) as connection:
        assert connection.execute(tenants.select()).one().tenant_id == victim
        assert not any(count(connection, table) for table in READABLE if table is not tenants)
        assert refused(connection, "UPDATE tenants SET state = 'active'") == INSUFFICIENT_PRIVILEGE
    with stores.database.credential(bytes(32)) as connection:
        assert count(connection, tenants) == 0


ADMINISTERING = [
    "INSERT INTO tenants (name) VALUES ('mine')",
    "UPDATE tenants SET state = 'active'",
    "UPDATE tenants SET quotas = '{}'",
    "DELETE FROM tenants",
    "INSERT INTO api_keys (id, digest, scopes, name) SELECT gen_random_uuid(), sha256('x'), scopes, '' FROM api_keys",
    "UPDATE api_keys SET scopes = '{operate}'",
    "UPDATE api_keys SET grants = NULL",
    "UPDATE api_keys SET expires_at = NULL",
    "UPDATE api_keys SET revoked_at = NULL",
    "UPDATE api_keys SET digest = sha256('x')",
    "DELETE FROM api_keys",
    "SET LOCAL ROLE headwater_admin",
    "SET SESSION AUTHORIZATION headwater_admin",
    "GRANT headwater_admin TO headwater_app",
]


@pytest.mark.parametrize("statement", ADMINISTERING)
def test_login_of_the_service_cannot_administer(stores: Stores, victim: str, statement: str) -> None:
    with stores.database.tenant(victim) as connection:
        assert refused(connection, statement) == INSUFFICIENT_PRIVILEGE
    with pytest.raises(DBAPIError), stores.database.administration():
        pass


def test_administration_sees_tenants_and_keys_and_none_of_their_data(
    administration: Database, victim: str
) -> None:
    with administration.administration() as connection:
        for table in ADMINISTERED:
            found = select(table.c.tenant_id).where(table.c.tenant_id == victim)
            assert connection.execute(found).scalars().all() == [victim]
        for table in READABLE:
            if table not in ADMINISTERED:
                assert refused(connection, f"SELECT * FROM {table.name}") == INSUFFICIENT_PRIVILEGE
    for session in (administration.tenant(victim), administration.relay()):
        with pytest.raises(DBAPIError), session as connection:
            connection.execute(text("SELECT * FROM datasets"))


# Who has work, and since when; never what the work is.
RELAY_COLUMNS = {
    "jobs": {
        "tenant_id",
        "dataset_id",
        "state",
        "kind",
        "lane",
        "owner",
        "lease_until",
        "not_before",
        "created_at",
        "seq",
    },
    "consumers": {
        "tenant_id",
        "dataset_id",
        "name",
        "kind",
        "position",
        "snapshot",
        "member",
        "lease_until",
        "wake_at",
        "moved_at",
    },
    "alert_followers": {"tenant_id", "webhook_id", "member", "lease_until", "wake_at", "moved_at"},
    "heads": {"tenant_id", "dataset_id", "next_offset", "unkept_since"},
    table_maintenance.name: {"tenant_id", "dataset_id", "wake_at", "owner", "lease_until"},
}
RELAYED = [column for name in RELAY_COLUMNS for column in metadata.tables[name].c]


@pytest.mark.parametrize("column", RELAYED, ids=str)
def test_relay_reads_only_the_columns_of_pending_work(
    stores: Stores, victim: str, column: Column[Any]
) -> None:
    table = column.table.name
    with stores.database.relay() as connection:
        if column.name in RELAY_COLUMNS[table]:
            connection.execute(text(f"SELECT {column.name} FROM {table}")).all()
        else:
            assert refused(connection, f"SELECT {column.name} FROM {table}") == INSUFFICIENT_PRIVILEGE


def test_relay_sees_followers_and_no_readers(stores: Stores, victim: str) -> None:
    with stores.database.tenant(victim) as connection:
        connection.execute(
            text(
                "INSERT INTO consumers (dataset_id, name, kind, position) "
                "SELECT dataset_id, 'webhook:1', 'webhook', 0 FROM heads LIMIT 1"
            )
        )
    with stores.database.relay() as connection:
        found = connection.execute(
            text("SELECT name FROM consumers WHERE tenant_id = :tenant"), {"tenant": victim}
        )
        assert found.scalars().all() == ["webhook:1"]


def test_relay_sees_unfinished_jobs_and_tenant_ids(stores: Stores, victim: str) -> None:
    with stores.database.relay() as connection:
        found = connection.execute(
            text("SELECT state FROM jobs WHERE tenant_id = :tenant"), {"tenant": victim}
        )
        assert found.scalars().all() == ["queued"]
        assert victim in connection.execute(text("SELECT tenant_id::text FROM tenants")).scalars().all()


BEYOND_RELAY = [
    "SELECT name FROM tenants",
    "INSERT INTO outbox (tenant_id, topic, dataset_id) SELECT tenant_id, topic, dataset_id FROM outbox",
    "UPDATE outbox SET topic = 'x'",
    "UPDATE outbox SET id = DEFAULT",
    "UPDATE jobs SET state = 'cancelled'",
    "DELETE FROM jobs",
    "UPDATE consumers SET position = 0",
    "DELETE FROM consumers",
    "UPDATE heads SET next_offset = 0",
    "DELETE FROM changelog_files",
    *(f"SELECT * FROM {table.name}" for table in READABLE if table.name not in ("tenants", "jobs")),
]


@pytest.mark.parametrize("statement", BEYOND_RELAY)
def test_relay_may_not_write_or_read_further_tables(stores: Stores, victim: str, statement: str) -> None:
    with stores.database.relay() as connection:
        assert refused(connection, statement) == INSUFFICIENT_PRIVILEGE


# Numbers, states and names; no row, no value, no secret, and no definition.
MONITOR_COLUMNS = {
    "tenants": {"tenant_id", "name", "state", "quotas"},
    "datasets": {"tenant_id", "id", "name", "created_at", "deleted_at", "expected_every_seconds"},
    "heads": {"tenant_id", "dataset_id", "version", "next_offset", "committed_at"},
    "commits": {"tenant_id", "dataset_id", "version", "action", "next_offset", "committed_at"},
    "jobs": {
        "tenant_id",
        "dataset_id",
        "id",
        "lane",
        "state",
        "kind",
        "created_at",
        "not_before",
        "finished_at",
    },
    "consumers": {
        "tenant_id",
        "dataset_id",
        "name",
        "kind",
        "position",
        "moved_at",
        "max_lag_rows",
        "max_lag_seconds",
    },
    "sources": {"tenant_id", "dataset_id", "id", "name", "state", "failures"},
    "views": {"tenant_id", "dataset_id", "failures"},
    "webhooks": {"tenant_id", "dataset_id", "id", "state", "failures", "error"},
    "webhook_deliveries": {"tenant_id", "webhook_id", "state", "attempts"},
    "quarantine_files": {"tenant_id", "dataset_id", "path", "row_count", "size_bytes", "written_at"},
    "rendered_files": {"tenant_id", "path", "size_bytes"},
    "quarantine_redrives": {"tenant_id", "dataset_id", "path", "job_id"},
    "storage_samples": {"tenant_id", "stored_bytes", "sampled_at"},
    "usage_days": {"tenant_id", "day", "dataset_id", "stored_bytes", "rows_written", "bytes_written"},
    "dataset_hours": {"tenant_id", "dataset_id", "hour", "writes", "rows_written"},
    "dataset_samples": {
        "tenant_id",
        "dataset_id",
        "version",
        "milliseconds",
        "size_bytes",
        "write_gap_seconds",
        "sampled_at",
    },
}


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_monitor_reads_the_numbers_of_all_tenants_and_no_other_column(
    stores: Stores, victim: str, table: Table
) -> None:
    with stores.database.monitor() as connection:
        for column in table.c:
            query = f"SELECT {column.name} FROM {table.name}"
            if column.name not in MONITOR_COLUMNS.get(table.name, ()):
                assert refused(connection, query) == INSUFFICIENT_PRIVILEGE
            elif "tenant_id" in table.c:
                seen = f"{query} WHERE tenant_id = '{victim}'"
                assert connection.execute(text(seen)).all()


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_monitor_changes_nothing(stores: Stores, victim: str, table: Table) -> None:
    first = next(iter(table.c)).name
    with stores.database.monitor() as connection:
        for statement in (f"DELETE FROM {table.name}", f"UPDATE {table.name} SET {first} = {first}"):
            # Refused by the role; where it may read, by the transaction.
            assert refused(connection, statement) in {INSUFFICIENT_PRIVILEGE, "25006"}


@pytest.mark.parametrize("table", SHARED_TABLES, ids=str)
def test_tables_without_a_tenant_are_closed_to_the_application(
    stores: Stores, tenant_id: str, table: Table
) -> None:
    with stores.database.tenant(tenant_id) as connection:
        assert refused(connection, f"SELECT * FROM {table.name}") == INSUFFICIENT_PRIVILEGE


def test_every_table_forces_row_security_and_its_keys_start_with_the_tenant(
    postgres: TestServer, database_url: str
) -> None:
    with postgres.administration(database_url.rsplit("/", 1)[1]) as connection:
        tables = connection.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class "
            "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'm', 'v')"
        ).fetchall()
        keys = connection.execute(
            "SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, a.attname FROM pg_index i "
            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
            "WHERE i.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace) "
            "AND i.indisunique"
        ).fetchall()
        foreign = connection.execute(
            "SELECT c.conname, a.attname FROM pg_constraint c "
            "JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] WHERE c.contype = 'f'"
        ).fetchall()
    unprotected = {name for name, protected in tables if not protected}
    assert unprotected == {"alembic_version"}
    assert {name for name, _ in tables} == {*metadata.tables, "alembic_version"}
    # Why these reach across tenants is documented where the tables are defined.
    digests = {
        f"{table}_digest_key" for table in ("api_keys", "share_tokens", "console_sessions", "console_links")
    }
    across = {"tenants_name_key", *digests}
    shared = {"alembic_version", *map(str, SHARED_TABLES)}
    astray = {key for table, key, first in keys if first != "tenant_id" and table not in shared} - across
    assert not astray
    assert {first for _, first in foreign} == {"tenant_id"}


def test_roles_have_no_attributes_and_no_login_inherits_them(postgres: TestServer) -> None:
    with postgres.administration() as connection:
        for role in (APPLICATION_ROLE, RELAY_ROLE, ADMINISTRATOR_ROLE, MONITOR_ROLE):
            attributes = connection.execute(
                "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles "
                "WHERE rolname = %s",
                (role,),
            ).fetchone()
            assert attributes == (False,) * 5
        inherited = connection.execute(
            "SELECT member::regrole::text FROM pg_auth_members "
            "WHERE roleid::regrole::text LIKE 'headwater_%' AND inherit_option"
        ).fetchall()
        assert inherited == []
