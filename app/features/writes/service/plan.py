"""Plans the writes of one dataset: reads the live files, and makes the tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.core.catalog.ports import DatasetLookup
from app.core.jobs.values import Job
from app.core.timeline.errors import VersionExpired
from app.core.timeline.ports import VersionReader
from app.features.writes.attempt import Basis, Claimed, Decoded, Plan, Planned, Replan, basis_of
from app.features.writes.service.touched_files import touched_files
from app.kernel.commit.write_options import OnError
from app.kernel.commit.write_plan import MergeTask, WriteIntent, plan_merge
from app.kernel.commit.write_rules import applies_by_arrival
from app.kernel.commit.write_scope import has_scope, is_no_op, read_scope, scope_of
from app.kernel.format.file_group import DataFile
from app.kernel.format.paths import dataset_prefix
from app.kernel.format.rows.staged import StagedFile


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanWrites:
    """Plans at the head, or at the version up to which the messages of a part are valid."""

    catalog: DatasetLookup
    timeline: VersionReader

    def run(self, tenant_id: str, part: Decoded | Replan, attempt: str) -> Planned | Decoded | Claimed:
        """A task for each file group of the part that has no message yet.

        Decoded if the version has expired, Claimed if the input has to be read again. Raises NotFound, DataExists.
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
        tasks = [] if plan.noop else _tasks(basis, plan, live, groups, attempt)
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
    basis: Basis, plan: Plan, live: Sequence[DataFile], groups: Collection[str], attempt: str
) -> list[MergeTask]:
    return plan_merge(
        plan.dataset.definition,
        _writes(basis.decoded),
        {number: _intent(job) for number, job in enumerate(basis.decoded.jobs)},
        live,
        scope=plan.scope,
        done_groups=basis.messages,
        beside=groups,
        attempt=attempt,
        data_prefix=dataset_prefix(plan.dataset.tenant_id, plan.dataset.id),
        # Restored rows were judged when they were written.
        checks_lateness=plan.dataset.definition.watermark is not None and basis.decoded.restored is None,
        watermark=plan.dataset.watermark,
    )


def _writes(part: Decoded) -> dict[int, tuple[StagedFile, ...]]:
    """The input by the numbers of the writes in tasks."""
    return {number: staged_input.files for number, staged_input in enumerate(part.inputs)}


def _intent(job: Job) -> WriteIntent:
    options = job.write.options
    return WriteIntent(
        operation=job.write.operation,
        drop_duplicates=options.drop_duplicates,
        quarantine=options.on_error is OnError.QUARANTINE,
        accept_late=options.accept_late,
        by_arrival=applies_by_arrival(job.write.operation, options),
    )
