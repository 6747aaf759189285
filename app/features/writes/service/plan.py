"""Plans the writes of one dataset: reads the live files, and makes the tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.core.timeline.ports import VersionReader
from app.features.writes.attempt import Basis, Claimed, Decoded, Plan, Planned, Replan, basis_of
from app.features.writes.service.touched_files import touched_files
from app.kernel.commit.write_effect import compares_with_tombstones, keep_seconds
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.commit.write_plan import MergeTask, WriteIntent, plan_merge
from app.kernel.commit.write_rules import applies_by_arrival, row_order
from app.kernel.commit.write_scope import has_scope, is_no_op, read_scope, scope_of
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.paths import dataset_prefix
from app.kernel.format.rows.staged import StagedFile


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanWrites:
    """Plans at the head, or at the version up to which the messages of a part are valid."""

    catalog: DatasetLookup
    timeline: VersionReader

    def run(self, tenant_id: str, part: Decoded | Replan, attempt: str) -> Planned | Decoded | Claimed:
        """A task for each file group of the part that has no message yet.

        Decoded if the version has expired, Claimed if the input has to be read again. Raises NotFound, DataExists,
        InvalidRequest.
        """
        basis = basis_of(part, self.catalog.get(tenant_id, part.dataset_id))
        if isinstance(basis, Claimed):
            return basis
        try:
            files = self._live(basis)
        except VersionExpired:
            return basis.decoded.from_the_head()
        restore = basis.decoded.restored
        live = files if restore is None else restore.plan.in_scope(files)
        # A write with a scope runs by itself, so the first is the only one.
        first, dataset = basis.decoded.inputs[0], basis.dataset
        operation, options = first.job.write.operation, first.job.write.options
        scope = scope_of(operation, options, dataset.definition, first.files, live)
        plan = Plan(
            dataset=dataset,
            version=basis.version,
            scope=scope,
            read_scope=read_scope(operation, options, scope),
            noop=is_no_op(
                options,
                holds_rows=any(file.live_rows for file in live if file.kind.holds_rows),
                version=basis.version,
            ),
        )
        groups = {file.file_group for file in files}
        tasks = [] if plan.noop else self._tasks(basis, plan, live, groups, attempt)
        return Planned(decoded=basis.decoded, plan=plan, tasks=tuple(tasks), messages=basis.messages)

    def _live(self, basis: Basis) -> list[DataFile]:
        """The live files of the file groups to merge, or of the whole table if a write reads more than its keys."""
        dataset, first = basis.dataset, basis.decoded.jobs[0].write
        if has_scope(first.operation, first.options, dataset.definition):
            return self.timeline.live_files(dataset.tenant_id, dataset.id, basis.version, None)
        return touched_files(
            self.timeline, dataset, basis.version, _writes(basis.decoded), basis.messages.keys()
        )

    def _tasks(
        self, basis: Basis, plan: Plan, live: Sequence[DataFile], groups: Collection[str], attempt: str
    ) -> list[MergeTask]:
        dataset = plan.dataset
        committed_at = least_commit_time(self.timeline, dataset, live)
        return plan_merge(
            dataset.definition,
            _writes(basis.decoded),
            {
                number: intent_of(job.write.operation, job.write.options, dataset.definition, committed_at)
                for number, job in enumerate(basis.decoded.jobs)
            },
            live,
            scope=plan.scope,
            # A write that specifies an order runs by itself.
            cluster=row_order(basis.decoded.jobs[0].write.options, dataset.definition),
            done_groups=basis.messages,
            beside=groups,
            attempt=attempt,
            data_prefix=dataset_prefix(dataset.tenant_id, dataset.id),
            # Restored rows were judged when they were written.
            checks_lateness=dataset.definition.watermark is not None and basis.decoded.restored is None,
            watermark=dataset.watermark,
        )


def _writes(part: Decoded) -> dict[int, tuple[StagedFile, ...]]:
    """The input by the numbers of the writes in tasks."""
    return {number: staged_input.files for number, staged_input in enumerate(part.inputs)}


def least_commit_time(timeline: VersionReader, dataset: Dataset, live: Iterable[DataFile]) -> datetime | None:
    """The least time of a commit that is planned now; None if no row is compared with a tombstone. Raises NotFound."""
    if not compares_with_tombstones(dataset.definition, live):
        return None
    return timeline.next_commit_time(dataset.tenant_id, dataset.id)


def intent_of(
    operation: Operation, options: WriteOptions, dataset: DatasetDefinition, committed_at: datetime | None
) -> WriteIntent:
    """The intent of a write to the dataset, which is committed at this time or later."""
    return WriteIntent(
        operation=operation,
        drop_duplicates=options.drop_duplicates,
        quarantine=options.on_error is OnError.QUARANTINE,
        accept_late=options.accept_late,
        by_arrival=applies_by_arrival(operation, options),
        keep_seconds=keep_seconds(operation, options, dataset),
        committed_at=committed_at,
    )
