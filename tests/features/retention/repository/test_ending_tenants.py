"""Deletion of a tenant with rows in every table."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.access.audit.repository import AuditStore
from app.access.audit.values import AccessOutcome, AuditFilter, Caller, NewEntry, RequestedOperation
from app.access.tenants.errors import TenantDeleted, TenantProtected, WrongConfirmation
from app.access.tenants.values import (
    DEFAULT_TENANT_ID,
    KeyScope,
    NewKey,
    Principal,
    TenantChange,
    TenantState,
)
from app.features.retention.repository.ending_tenants import EndingTenantStore
from app.features.retention.service.end_tenants import EndTenants
from app.infra.db.session import Database
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.process.tables import metadata
from tests.support.populated_tenant import populate
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores

OPERATOR = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset({KeyScope.OPERATE}))
REMAINING = {"tenants", "tenant_deletions", "audit"}


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    root = tmp_path / "storage"
    root.mkdir()
    return LocalStorage(root)


@pytest.fixture
def end(stores: Stores, storage: LocalStorage) -> EndTenants:
    return EndTenants(
        tenants=EndingTenantStore(stores.database),
        catalog=stores.catalog,
        storage=storage,
        lease_seconds=0,
        grace_seconds=3_600,
    )


def rows_of(postgres: TestServer, database_url: str, tenant_id: str) -> dict[str, int]:
    """The rows of a tenant in all tables, as a superuser counts them."""
    with postgres.administration(database_url.rsplit("/", 1)[1]) as connection:
        return {
            table.name: connection.execute(
                f"SELECT count(*) FROM {table.name} WHERE tenant_id = %s", [uuid.UUID(tenant_id)]
            ).fetchall()[0][0]
            for table in metadata.sorted_tables
            if "tenant_id" in table.c
        }


def store_file(storage: LocalStorage, tenant_id: str, name: str) -> None:
    with storage.create(f"{tenant_id}/{new_id()}/data/{name}") as file:
        file.write(b"x" * 10)


def drain(stores: Stores) -> None:
    while stores.outbox.relay(lambda messages: None, 100):
        pass


def test_nothing_of_a_deleted_tenant_is_left_and_another_is_untouched(
    stores: Stores, storage: LocalStorage, end: EndTenants, postgres: TestServer, database_url: str
) -> None:
    tenant_id, other = populate(stores), populate(stores)
    for each in (tenant_id, other):
        for name in ("1", "2"):
            store_file(storage, each, name)
    name = stores.tenants.tenant(tenant_id).name
    drain(stores)
    kept = rows_of(postgres, database_url, other)
    before = rows_of(postgres, database_url, tenant_id)
    assert {table for table, rows in before.items() if not rows} == {"outbox", "tenant_deletions"}

    with pytest.raises(WrongConfirmation):
        stores.tenants.begin_deletion(tenant_id, confirmation="another", actor=OPERATOR)
    begun = stores.tenants.begin_deletion(name, confirmation=name, actor=OPERATOR)
    assert begun.state is TenantState.DELETING
    assert stores.tenants.begin_deletion(name, confirmation=name, actor=OPERATOR) == begun
    assert stores.tenants.finish_deletions() == 0
    with pytest.raises(TenantDeleted):
        stores.tenants.add_key(tenant_id, NewKey(name="late", scopes=()))
    with pytest.raises(TenantDeleted):
        stores.tenants.change(tenant_id, TenantChange(state=TenantState.ACTIVE))

    end.run()
    # What cancelled jobs have announced is a message until a relay has sent it.
    drain(stores)
    end.run()
    assert stores.tenants.finish_deletions() == 1

    after = rows_of(postgres, database_url, tenant_id)
    assert {table for table, rows in after.items() if rows} == REMAINING
    assert rows_of(postgres, database_url, other) == kept
    assert list(storage.list(tenant_id)) == []
    assert len(list(storage.list(other))) == 2
    tombstone, report = stores.tenants.tenant(tenant_id), stores.tenants.deletion(tenant_id)
    assert report is not None
    assert (tombstone.state, tombstone.name, report.name) == (TenantState.DELETED, tenant_id, name)
    # The rows of a view, those of a source, and the places of a dataset in shares end with the dataset.
    assert {table: rows for table, rows in report.rows_deleted.items() if rows} == {
        table: rows
        for table, rows in before.items()
        if rows
        and table not in REMAINING | {"views", "view_inputs", "sources", "source_items", "shared_datasets"}
    }
    assert report.rows_left is not None
    assert set(report.rows_left) == set(before) - REMAINING
    assert set(report.rows_left.values()) == {0}
    assert (report.files_deleted, report.bytes_deleted, report.files_left) == (2, 20, 0)
    assert stores.tenants.add_tenant(name) != tenant_id

    # A request that had begun before stores its file late.
    store_file(storage, tenant_id, "late")
    end.run()
    assert list(storage.list(tenant_id)) == []


def test_deletion_that_fails_is_tried_and_logged_rarely_and_delays_no_other(
    stores: Stores, storage: LocalStorage, end: EndTenants, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = 0
    end = replace(end, clock=lambda: seconds)
    failing, other = populate(stores), populate(stores)
    for each in (failing, other):
        stores.tenants.begin_deletion(each, confirmation=stores.tenants.tenant(each).name, actor=OPERATOR)
    # A file in place of the folder of the tenant cannot be listed.
    (storage.root / failing).write_bytes(b"")
    for seconds in range(0, 300, 5):
        end.run()
        if seconds < 10:
            drain(stores)
    assert cleared(stores, other)
    logged = [each for each in caplog.records if failing in each.getMessage()]
    assert [each.exc_info is not None for each in logged] == [True] + [False] * (len(logged) - 1)
    assert len(logged) == 5
    assert "8 times" in logged[-1].getMessage()
    assert not cleared(stores, failing)

    (storage.root / failing).unlink()
    seconds += 60
    end.run()
    assert cleared(stores, failing)


def cleared(stores: Stores, tenant_id: str) -> bool:
    report = stores.tenants.deletion(tenant_id)
    assert report is not None
    return report.cleared_at is not None


def test_deletion_does_not_end_while_the_storage_is_away(
    stores: Stores, storage: LocalStorage, end: EndTenants
) -> None:
    tenant_id = populate(stores)
    store_file(storage, tenant_id, "1")
    stores.tenants.begin_deletion(
        tenant_id, confirmation=stores.tenants.tenant(tenant_id).name, actor=OPERATOR
    )
    away = storage.root.rename(storage.root.with_name("away"))
    for _ in range(2):
        end.run()
        drain(stores)
    assert not cleared(stores, tenant_id)
    away.rename(storage.root)
    replace(end, failing={}).run()
    assert cleared(stores, tenant_id)
    assert list(storage.list(tenant_id)) == []


def test_deletion_waits_for_jobs_that_may_still_run(
    stores: Stores, storage: LocalStorage, end: EndTenants, postgres: TestServer, database_url: str
) -> None:
    tenant_id = populate(stores)
    name = stores.tenants.tenant(tenant_id).name
    stores.tenants.begin_deletion(name, confirmation=name, actor=OPERATOR)
    patient = EndTenants(
        tenants=EndingTenantStore(stores.database),
        catalog=stores.catalog,
        storage=storage,
        lease_seconds=60,
        grace_seconds=0,
    )
    patient.run()
    waiting = rows_of(postgres, database_url, tenant_id)
    assert waiting["files"] > 0
    assert stores.catalog.list(tenant_id, page_size=9, page_token=None).items == []
    end.run()
    assert rows_of(postgres, database_url, tenant_id)["files"] == 0


def test_first_tenant_and_that_of_the_operator_cannot_be_deleted(stores: Stores, tenant_id: str) -> None:
    own = Principal(tenant_id=tenant_id, actor=new_id(), scopes=OPERATOR.scopes)
    for reference in (DEFAULT_TENANT_ID, tenant_id):
        name = stores.tenants.tenant(reference).name
        with pytest.raises(TenantProtected):
            stores.tenants.begin_deletion(reference, confirmation=name, actor=own)
        assert stores.tenants.tenant(reference).state is TenantState.ACTIVE


def test_old_entries_of_the_audit_expire_and_recent_ones_cannot_be_deleted(
    stores: Stores, database: Database, tenant_id: str
) -> None:
    audit = AuditStore(database)
    days = 86_400.0
    for age in (0, 10 * days, 31 * days, 500 * days):
        entry = NewEntry(
            caller=Caller(),
            operation=RequestedOperation(id=f"{age / days:g}", method="GET", path="/"),
            outcome=AccessOutcome.ALLOWED,
            status=200,
            age_seconds=age,
            first_age_seconds=age,
        )
        audit.add(tenant_id, [entry])

    def left() -> list[str]:
        page = audit.entries(tenant_id, AuditFilter(until=datetime.now(UTC)), page_size=9, page_token=None)
        return [each.operation for each in page.items]

    assert audit.expire(tenant_id, keep_seconds=400 * days, limit=100) == 1
    # The newest first, in whichever order they were added.
    assert left() == ["0", "10", "31"]
    # The database keeps 30 days, whatever the request.
    assert audit.expire(tenant_id, keep_seconds=0, limit=100) == 1
    assert left() == ["0", "10"]
