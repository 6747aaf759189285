"""What reports to a metastore are made of: partitions whose files came or went, and what was remembered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec import structs
from sqlalchemy import insert, text

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.features.maintenance.repository.maintenance import MaintenanceStore
from app.features.maintenance.tables import table_maintenance
from app.features.maintenance.values import ReconcilerRecord
from app.features.metastore.values import METASTORE_RECONCILER, MetastoreState
from app.features.partitions.repository.touched import TouchedPartitionStore
from app.kernel.format.file_group import DataFile, Slot
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores


def test_touched_partitions_are_listed_for_known_versions(
    stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    place = dataset.tenant_id, dataset.id

    def commit(path: str, *removed: DataFile) -> DataFile:
        made = message(removed=removed)
        slot = Slot(partition_path=path, bucket=0)
        added = structs.replace(made.added[0], slot=slot)
        version = stores.catalog.get(*place).version
        commit = commit_of([running()], [structs.replace(made, added=(added,))], read_version=version)
        stores.timeline.publish_one(dataset.tenant_id, commit)
        return added

    touched = TouchedPartitionStore(stores.database).touched
    first = commit("day=1")
    commit("day=2")
    commit("day=3", first)
    assert touched(*place, 0, 3) == {"day=1", "day=2", "day=3"}
    assert touched(*place, 1, 2) == {"day=2"}
    assert touched(*place, 2, 3) == {"day=1", "day=3"}
    assert touched(*place, 3, 3) == set()
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE heads SET earliest_version = 2"))
    assert touched(*place, 1, 3) is None
    assert touched(*place, 2, 3) == {"day=1", "day=3"}


def test_report_state_is_stored_under_its_reconciler_name(stores: Stores, dataset: Dataset) -> None:
    tables = MaintenanceStore(stores.database, stores.catalog.live)
    place = dataset.tenant_id, dataset.id
    assert tables.record(*place, METASTORE_RECONCILER) is None
    state = MetastoreState(
        database="lake", table="t", version=3, reported_at=datetime(2026, 11, 22, tzinfo=UTC)
    )
    memory = {
        "tags": ReconcilerRecord(),
        METASTORE_RECONCILER: ReconcilerRecord(memory=msgspec.to_builtins(state)),
    }
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(insert(table_maintenance).values(dataset_id=dataset.id, memory=memory))
    assert tables.record(*place, METASTORE_RECONCILER) == memory[METASTORE_RECONCILER]
    assert tables.record(*place, "compaction") is None
