"""How far datasets were reported to the Hive metastore, for their users."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.values import Dataset
from app.format.errors import NotFound
from app.metastore.values import MetastoreState, MetastoreStates


@dataclass(frozen=True, kw_only=True, slots=True)
class MetastoreReports:
    """The reports of a tenant's datasets."""

    states: MetastoreStates

    def state(self, dataset: Dataset) -> MetastoreState:
        """Of the table that is named now. Raises NotFound if the dataset names none."""
        policy = dataset.definition.services.metastore
        if policy is None:
            raise NotFound(
                f"{dataset.definition.name!r} is reported to no metastore: services.metastore is null"
            )
        state = self.states.state(dataset.tenant_id, dataset.id)
        if state is None or (state.database, state.table) != (policy.database, policy.table):
            return MetastoreState(database=policy.database, table=policy.table)
        return state
