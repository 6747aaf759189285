"""Reports datasets to a Hive metastore after commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.features.metastore.report import FileFigures, HivePartition, HiveReport, HiveTable, MetastoreRefused
from app.features.metastore.values import Metastore, MetastoreState, PartitionIndex, TouchedPartitions
from app.features.overview.values import PartitionRecord
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.hive_table import hive_columns, hive_values
from app.kernel.format.paths import data_folder, dataset_prefix
from app.kernel.format.policies import MetastorePolicy

_PAGE: Final = 1_000
# Less than the two minutes for which the dataset is claimed.
_SECONDS_MAX: Final = 30.0
# A dataset that is always written to is reported, too.
_IDLE_TIMES_MAX: Final = 10
_RETRY_SECONDS: Final = 15.0
_RETRY_SECONDS_MAX: Final = 3_600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class MetastoreReconciler:
    """Carries out `services.metastore`.

    The version that was reported is read from the metastore, so a table that was dropped is created again, and a report
    that a worker did not finish is repeated. A failure is retried here; it does not delay other reconcilers.
    """

    metastore: Metastore
    overview: PartitionIndex
    touched: TouchedPartitions

    def reconcile(self, observation: Observation) -> ReconcileResult:
        """Reports the dataset as it is now. See `Reconciler`."""
        policy = observation.dataset.definition.services.metastore
        if policy is None:
            return ReconcileResult()
        before = _state(observation, policy)
        if before.retry_at is not None and before.retry_at > observation.now:
            return _result(before, (before.retry_at - observation.now).total_seconds())
        before, wait = _waiting(observation, before, policy)
        if wait is not None:
            return _result(before, wait)
        try:
            after = self._report(observation, before, policy)
        except (MetastoreRefused, ValueError) as error:
            pause = min(_RETRY_SECONDS * 2.0 ** min(before.failures, 16), _RETRY_SECONDS_MAX)
            after = msgspec.structs.replace(
                before,
                error=str(error),
                failures=before.failures + 1,
                retry_at=observation.now + timedelta(seconds=pause),
            )
            return _result(after, pause)
        unfinished = after.begun is not None or after.version not in (None, observation.dataset.version)
        return _result(after, 0.0 if unfinished else None)

    def _report(
        self, observation: Observation, before: MetastoreState, policy: MetastorePolicy
    ) -> MetastoreState:
        """Reports what changed since the last report, or all partitions where that is unknown. Returns the state."""
        dataset = observation.dataset
        table = hive_table(dataset, policy)
        since = self.metastore.reported(table)
        reported = MetastoreState(
            database=policy.database, table=policy.table, version=dataset.version, reported_at=observation.now
        )
        if since == dataset.version:
            return reported
        resumed = msgspec.structs.replace(before, error=None, failures=0, retry_at=None)
        records_by_path = {record.path: record for record in self._partitions(dataset)}
        if since is None:
            if not records_by_path:
                # The metastore would create the folder as its own user, and writers could not write to it.
                return resumed
            resumed = msgspec.structs.replace(resumed, begun=None, after=None)
        elif resumed.begun is None and (changed := self._changed(dataset, since)) is not None:
            complete = self._report_changed(dataset, table, records_by_path, changed)
            return reported if complete else _begun(resumed, dataset.version, None)
        # All partitions, as of the version at which the first of them was reported.
        begun = dataset.version if resumed.begun is None else resumed.begun
        after, complete = self._report_all(dataset, table, records_by_path, begun, resumed.after)
        # Partitions that were reported first may have changed since: the next report has these.
        return msgspec.structs.replace(reported, version=begun) if complete else _begun(resumed, begun, after)

    def _changed(self, dataset: Dataset, since: int) -> set[str] | None:
        """The paths of the partitions that changed after a version that was reported; None if that is unknown."""
        if since > dataset.version:
            # It was reported from another state of the catalogue.
            return None
        return self.touched.touched(dataset.tenant_id, dataset.id, since, dataset.version)

    def _report_changed(
        self,
        dataset: Dataset,
        table: HiveTable,
        records_by_path: Mapping[str, PartitionRecord],
        changed: set[str],
    ) -> bool:
        """Reports the partitions of these paths. Returns whether there was time for all of them."""
        # Logs that are in no partition have the empty path.
        report = _report_of(dataset, table, records_by_path, sorted(changed - {""}), None)
        return self.metastore.report(report, seconds_max=_SECONDS_MAX) == len(report.partitions)

    def _report_all(
        self,
        dataset: Dataset,
        table: HiveTable,
        records_by_path: Mapping[str, PartitionRecord],
        begun: int,
        after: str | None,
    ) -> tuple[str | None, bool]:
        """Reports the partitions with paths after `after`, as of version `begun`; those before were reported.

        Returns the path up to which all are reported now, and whether there was time for all of them.
        """
        paths = sorted(path for path in records_by_path if path)
        behind = [path for path in paths if after is None or path > after]
        retained = [hive_values(dataset.definition, path) for path in paths[: len(paths) - len(behind)]]
        report = _report_of(dataset, table, records_by_path, behind, retained)
        number = self.metastore.report(
            msgspec.structs.replace(report, version=begun), seconds_max=_SECONDS_MAX
        )
        if number is None:
            return None, False
        return behind[number - 1] if number else after, number == len(report.partitions)

    def _partitions(self, dataset: Dataset) -> Iterator[PartitionRecord]:
        skip = 0
        while True:
            page = self.overview.partitions(
                dataset.tenant_id, dataset.id, dataset.version, skip=skip, limit=_PAGE
            )
            yield from page
            if len(page) < _PAGE:
                return
            skip += len(page)


def hive_table(dataset: Dataset, policy: MetastorePolicy) -> HiveTable:
    """The Hive table of a dataset. Raises ValueError for columns whose names are the same in Hive."""
    return HiveTable(
        database=policy.database,
        table=policy.table,
        tenant_id=dataset.tenant_id,
        dataset_id=dataset.id,
        dataset=dataset.definition.name,
        schema_id=dataset.definition.schema.id,
        columns=hive_columns(dataset.definition),
        folder=data_folder(dataset_prefix(dataset.tenant_id, dataset.id)),
    )


def _state(observation: Observation, policy: MetastorePolicy) -> MetastoreState:
    """The state of the reports to the present table; that of an earlier table is dropped."""
    if observation.memory:
        state = msgspec.convert(observation.memory, MetastoreState)
        if (state.database, state.table) == (policy.database, policy.table):
            return state
    return MetastoreState(database=policy.database, table=policy.table)


def _waiting(
    observation: Observation, state: MetastoreState, policy: MetastorePolicy
) -> tuple[MetastoreState, float | None]:
    """The state, and the seconds for which the dataset is not reported; None if it is now."""
    dataset, idle = observation.dataset, policy.idle_seconds
    if (
        idle is None
        or dataset.committed_at is None
        or dataset.version == state.version
        or state.begun is not None
    ):
        return state, None
    since = state.waits_since or dataset.committed_at
    due = min(
        dataset.committed_at + timedelta(seconds=idle), since + timedelta(seconds=idle * _IDLE_TIMES_MAX)
    )
    left = (due - observation.now).total_seconds()
    if left <= 0:
        return msgspec.structs.replace(state, waits_since=None), None
    return msgspec.structs.replace(state, waits_since=since), left


def _result(state: MetastoreState, wake_after_seconds: float | None) -> ReconcileResult:
    return ReconcileResult(memory=msgspec.to_builtins(state), wake_after_seconds=wake_after_seconds)


def _begun(state: MetastoreState, begun: int, after: str | None) -> MetastoreState:
    return msgspec.structs.replace(state, begun=begun, after=after)


def _report_of(
    dataset: Dataset,
    table: HiveTable,
    records_by_path: Mapping[str, PartitionRecord],
    paths: Sequence[str],
    retained: Sequence[tuple[str, ...]] | None,
) -> HiveReport:
    """The report of these partitions."""
    definition = dataset.definition
    partitioned = bool(definition.partition_by)
    return HiveReport(
        table=table,
        version=dataset.version,
        committed_at=dataset.committed_at,
        figures=None if partitioned else _figures(records_by_path.get("")),
        partitions=[_partition(definition, path, records_by_path.get(path)) for path in paths if partitioned],
        retained=retained,
    )


def _partition(dataset: DatasetDefinition, path: str, record: PartitionRecord | None) -> HivePartition:
    figures = None if record is None else _figures(record)
    return HivePartition(values=hive_values(dataset, path), folder=path, figures=figures)


def _figures(record: PartitionRecord | None) -> FileFigures:
    if record is None:
        return FileFigures(files=0, rows=0, size_bytes=0, written_at=None)
    return FileFigures(
        files=record.base_files + record.logs + record.postponed,
        rows=record.rows,
        size_bytes=record.size_bytes,
        written_at=record.written_at,
    )
