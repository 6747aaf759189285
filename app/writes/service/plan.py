"""Planning the writes of one dataset: what they find there, and the tasks that it takes."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.catalog.ports import Catalog
from app.catalog.values import Dataset
from app.commit.write_options import OnError
from app.commit.write_plan import MergeTask, WriteIntent, plan_merge, touched_groups
from app.commit.write_scope import has_scope, is_no_op, read_scope, scope_of
from app.format.paths import dataset_prefix
from app.jobs.values import Job
from app.timeline.ports import Timeline
from app.writes.service.group import Part, Plan


class SchemaMoved(Exception):
    """The dataset has another schema than when the write's own was made of it: its input is to be read again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanWrites:
    """Plans at the version that a part has read, the head if none."""

    catalog: Catalog
    timeline: Timeline

    def run(self, tenant_id: str, part: Part, attempt: str) -> list[MergeTask]:
        """Gives the part its plan, and returns a task for each of its file groups that has no message yet.

        Raises NotFound, DataExists, SchemaMoved.
        """
        dataset = _under_its_schema(self.catalog.get(tenant_id, part.dataset_id), part)
        version = dataset.version if part.read_version is None else part.read_version
        if part.restored is not None:
            # What its rows are to replace was found there.
            version = part.restored.read_version
        first = part.jobs[0].write
        # A write that looks at more than the keys it brings runs by itself, so the first is the only one.
        whole = has_scope(first.operation, first.options)
        live = self.timeline.live_files(
            tenant_id, part.dataset_id, version, None if whole else self._groups(dataset, part)
        )
        if part.restored is not None:
            live = part.restored.plan.in_scope(live)
        scope = scope_of(
            first.operation, first.options, dataset.definition, part.staged[part.jobs[0].id], live
        )
        part.plan = Plan(
            dataset=dataset,
            version=version,
            scope=scope,
            read_scope=read_scope(first.operation, first.options, scope),
            noop=is_no_op(first.options, holds_rows=any(file.live_rows for file in live), version=version),
        )
        if part.plan.noop:
            return []
        return plan_merge(
            dataset.definition,
            part.writes,
            {number: _intent(job) for number, job in enumerate(part.jobs)},
            live,
            scope=scope,
            done=part.messages,
            attempt=attempt,
            data_prefix=dataset_prefix(tenant_id, part.dataset_id),
        )

    def _groups(self, dataset: Dataset, part: Part) -> list[str]:
        if not dataset.definition.keyed:
            return []
        return [group for group in touched_groups(part.writes) if group not in part.messages]


def _under_its_schema(dataset: Dataset, part: Part) -> Dataset:
    """The dataset under the schema that the part plans with. Messages made under an earlier one are made again."""
    if part.plan is not None and part.plan.dataset.definition.schema.id < dataset.definition.schema.id:
        part.reset()
    if part.evolved is None:
        return dataset
    if part.evolved.schema.id <= dataset.definition.schema.id:
        part.reset()
        raise SchemaMoved
    return msgspec.structs.replace(dataset, definition=part.evolved)


def _intent(job: Job) -> WriteIntent:
    options = job.write.options
    return WriteIntent(
        operation=job.write.operation,
        drop_duplicates=options.drop_duplicates,
        quarantine=options.on_error is OnError.QUARANTINE,
    )
