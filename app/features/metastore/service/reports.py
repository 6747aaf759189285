"""The state of reports to the Hive metastore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.features.maintenance.values import ReconcilerRecord
from app.features.metastore.values import METASTORE_RECONCILER, MetastoreState

RecordOf: TypeAlias = Callable[[str, str, str], ReconcilerRecord | None]
"""What a reconciler has stored for a dataset, by tenant, dataset and name of the reconciler."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetastoreReports:
    """The reports of datasets. `record`: see `RecordOf`."""

    record: RecordOf

    def state(self, dataset: Dataset) -> MetastoreState:
        """The state of the reports to the present table. Raises NotFound if the dataset has none."""
        policy = dataset.definition.services.metastore
        if policy is None:
            raise NotFound(
                f"{dataset.definition.name!r} is not reported to a metastore: its services.metastore is null"
            )
        state = self._state(dataset)
        if state is None or (state.database, state.table) != (policy.database, policy.table):
            return MetastoreState(database=policy.database, table=policy.table)
        return state

    def _state(self, dataset: Dataset) -> MetastoreState | None:
        """None before the first report."""
        record = self.record(dataset.tenant_id, dataset.id, METASTORE_RECONCILER)
        if record is None or not record.memory:
            return None
        return msgspec.convert(record.memory, MetastoreState)
