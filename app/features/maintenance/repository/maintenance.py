"""Claims of datasets whose maintenance policies are due. All time is the database's clock.

A commit marks the head as not reconciled, unless it is marked already; a claim removes the mark before the policies
run. So the datasets that are due are found in an index of these alone, however many datasets there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    Double,
    Text,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import NotFound
from app.core.catalog.repository.live_datasets import LiveDatasets
from app.core.catalog.tables import heads
from app.features.maintenance.tables import table_maintenance
from app.features.maintenance.values import ClaimedTable, ReconcilerRecord
from app.infra.db.claims import ClaimColumns, tenants_in_turn
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

_CLAIMS: Final = ClaimColumns(
    due_at=table_maintenance.c.wake_at,
    owner=table_maintenance.c.owner,
    epoch=table_maintenance.c.epoch,
    until=table_maintenance.c.lease_until,
)
_IS_DUE: Final = or_(
    _CLAIMS.is_due(),
    exists().where(heads.c.dataset_id == table_maintenance.c.dataset_id, heads.c.unkept_since.is_not(None)),
)


class MaintenanceStore:
    """Claims of datasets for maintenance, in Postgres."""

    def __init__(self, database: Database, datasets: LiveDatasets) -> None:
        self._database = database
        self._datasets = datasets

    def due(self, limit: int, *, settled_seconds: float = 0.0) -> list[tuple[str, str]]:
        """Tenants and datasets that are not claimed: up to `limit` with versions that have not been reconciled for so
        many seconds, and up to `limit` whose time has come. The first of every tenant come before the second of any,
        each the oldest first.
        """
        held = (
            select(table_maintenance.c.dataset_id)
            .where(
                table_maintenance.c.tenant_id == heads.c.tenant_id,
                table_maintenance.c.dataset_id == heads.c.dataset_id,
                ~_CLAIMS.is_free(),
            )
            .exists()
        )
        unreconciled = select(heads.c.tenant_id, heads.c.dataset_id).where(
            heads.c.unkept_since <= seconds_ago(settled_seconds), ~held
        )
        # A claimed dataset is due when its lease ends. So one whose worker died is found.
        awake = select(table_maintenance.c.tenant_id, table_maintenance.c.dataset_id).where(
            table_maintenance.c.wake_at <= func.now()
        )
        rows = union_all(
            tenants_in_turn(unreconciled, heads.c.tenant_id, heads.c.unkept_since, limit),
            tenants_in_turn(awake, table_maintenance.c.tenant_id, table_maintenance.c.wake_at, limit),
        )
        with self._database.relay() as connection:
            return list(dict.fromkeys((row[0], row[1]) for row in connection.execute(rows)))

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> ClaimedTable | None:
        """The dataset, now claimed by `owner`; None if it is not due, claimed, being committed to, or gone."""
        with self._database.tenant(tenant_id) as connection:
            # The head is locked first, in the order of commits and of the deletion of a dataset. Until this transaction
            # is durable nothing is committed, and later commits mark the head again. It does not wait for a running
            # commit.
            if connection.execute(_LOCK_HEAD, {"dataset": dataset_id}).first() is None:
                return None
            row = _hold(connection, dataset_id, owner, lease_seconds)
            if row is None:
                return None
            connection.execute(_UNMARK, {"dataset": dataset_id})
            try:
                dataset = self._datasets.find(connection, dataset_id)
            except NotFound:
                connection.execute(
                    delete(table_maintenance).where(table_maintenance.c.dataset_id == dataset_id)
                )
                return None
            return ClaimedTable(dataset=dataset, epoch=row.epoch, now=row.now, memory=row.memory)

    def record(self, tenant_id: str, dataset_id: str, reconciler: str) -> ReconcilerRecord | None:
        """What a reconciler has stored for the dataset; None before its first run."""
        query = select(table_maintenance.c.memory).where(table_maintenance.c.dataset_id == dataset_id)
        with self._database.tenant(tenant_id) as connection:
            memory = connection.execute(query).scalar_one_or_none()
        found: ReconcilerRecord | None = (memory or {}).get(reconciler)
        return found

    def settle(
        self,
        tenant_id: str,
        held: ClaimedTable,
        memory: Mapping[str, ReconcilerRecord],
        wake_at: datetime | None,
    ) -> bool:
        """Releases the claim, and stores the states and when the dataset is due again without a commit.

        False, and nothing is changed, if the claim was lost meanwhile.
        """
        values = {"dataset": held.dataset.id, "held": held.epoch, "states": dict(memory), "wake": wake_at}
        with self._database.tenant(tenant_id) as connection:
            settled = connection.execute(_SETTLE, values)
            return bool(settled.rowcount)

    def end_claims(self, owner: str) -> None:
        """Frees the datasets of every tenant that a worker has claimed: it has ended."""
        _CLAIMS.end_of(self._database, owner)


def _hold(connection: Connection, dataset_id: str, owner: str, lease_seconds: float) -> Any:
    """Claims the dataset's row, which is inserted if missing; None if the dataset is not due, or claimed."""
    connection.execute(_ADD, {"dataset": dataset_id})
    values = {"dataset": dataset_id, "by": owner, "seconds": lease_seconds}
    return connection.execute(_HOLD, values).one_or_none()


_DATASET: Final = bindparam("dataset", type_=heads.c.dataset_id.type)
# The statements of each claim, made once.
_LOCK_HEAD: Final = (
    select(heads.c.version).where(heads.c.dataset_id == _DATASET).with_for_update(skip_locked=True)
)
_UNMARK: Final = update(heads).where(heads.c.dataset_id == _DATASET).values(unkept_since=None)
_ADD: Final = insert_unless(table_maintenance).values(dataset_id=_DATASET, memory={}).on_conflict_do_nothing()
_HOLD: Final = (
    update(table_maintenance)
    .where(table_maintenance.c.dataset_id == _DATASET, _CLAIMS.is_free(), _IS_DUE)
    .values(_CLAIMS.claimed(bindparam("by", type_=Text), bindparam("seconds", type_=Double)))
    .returning(table_maintenance.c.epoch, table_maintenance.c.memory, func.clock_timestamp().label("now"))
)
_SETTLE: Final = (
    update(table_maintenance)
    .where(
        table_maintenance.c.dataset_id == _DATASET,
        _CLAIMS.is_held(bindparam("held", type_=BigInteger)),
        table_maintenance.c.lease_until.is_not(None),
    )
    .values(
        memory=bindparam("states"),
        **_CLAIMS.released(bindparam("wake", type_=table_maintenance.c.wake_at.type)),
    )
)
