"""Refreshes of views: when one is due, and what it reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import msgspec

from app.access.errors import NotFound
from app.core.changes.repository import ChangelogStore
from app.core.consumers.followers import Consumer
from app.core.feature.stagers import StagedInput
from app.core.jobs.kinds.write import InputRange
from app.core.jobs.values import Job
from app.core.timeline.errors import OffsetExpired, VersionExpired
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.version_pins import VersionPins
from app.core.timeline.values import Advance
from app.features.views.refresh_plan import changes_sql, fitted_plan, rows_sql
from app.features.views.repository.views import ViewStore
from app.features.views.values import (
    View,
    ViewInputStatus,
    ViewMode,
    ViewState,
    follower_name,
    new_refresh,
    view_of,
)
from app.kernel.derivation.engine import Derivation
from app.kernel.derivation.request import DeriveInput, DeriveRequest, FeedInput, TableInput, relation_of
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedFile

# A commit wakes the followers of its dataset, and the end of a refresh the view; the poll covers lost wake-ups.
_POLL_SECONDS: Final = 60.0
# After a failure: the interval at which new input is noticed, and the pause before a retry without new input.
_RETRY_POLL_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 10.0
_RETRY_SECONDS_MAX: Final = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowInputs:
    """The follower of a view's inputs: queues a refresh when one has changes that the view does not show yet."""

    views: ViewStore
    wake: Callable[[], None]
    slice_seconds: float

    def follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        """See `Follower.follow`. The end of a refresh makes the consumer due again, if it is still behind."""
        try:
            view = self.views.get(tenant_id, view_of(consumer.name))
            if view.state is ViewState.PAUSED:
                return math.inf
            if not view.behind:
                return None
            pause = _pause_seconds(view)
            if pause > 0:
                return min(pause, _RETRY_POLL_SECONDS)
            self.views.refresh(
                tenant_id,
                new_refresh(view.dataset.id),
                after_running=False,
                slice_seconds=self.slice_seconds,
            )
        except NotFound:
            return math.inf
        self.wake()
        return _POLL_SECONDS


def _pause_seconds(view: View) -> float:
    """The pause before the retry of a failed view in seconds. It grows, unless an input has changed since."""
    attempted_at = view.attempted_at
    if attempted_at is None:
        return 0.0
    if any(
        each.dataset.committed_at is not None and each.dataset.committed_at > attempted_at
        for each in view.inputs
    ):
        return 0.0
    pause: float = min(_RETRY_SECONDS * 2.0 ** min(view.failures - 1, 16), _RETRY_SECONDS_MAX)
    return pause - view.attempted_ago_seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class DeriveView:
    """Computes the rows of refreshes."""

    views: ViewStore
    timeline: VersionReader
    index: ChangelogStore
    pins: VersionPins
    engine: Derivation

    def stage(self, job: Job, prefix: str, tag: str) -> StagedInput:
        """Computes the rows from the inputs as they are now. Paths of the staged files start with `prefix`.

        Raises InvalidView if a column of an input is lost or of another type, DerivationFailed, VersionExpired (the
        process was suspended for long), NotFound, CorruptFile, StorageFull, EngineStopped.
        """
        with ExitStack() as stack:
            return self._stage(job, self._pinned_view(job, tag, stack), prefix, tag)

    def _pinned_view(self, job: Job, tag: str, stack: ExitStack) -> View:
        """The view, with the versions of its inputs pinned."""
        while True:
            view = self.views.get(job.tenant_id, job.dataset_id)
            versions = (
                [(each.dataset.id, each.dataset.version) for each in view.inputs] if view.behind else []
            )
            try:
                stack.enter_context(self.pins.pin(job.tenant_id, versions, tag))
            except VersionExpired:
                # An input was written and cleaned between the two reads, so its version has changed.
                continue
            return view

    def _stage(self, job: Job, view: View, prefix: str, tag: str) -> StagedInput:
        plan = fitted_plan(view.definition, {each.relation: each.dataset.definition for each in view.inputs})
        changes = self._changes(view)
        operation = Operation.SNAPSHOT if changes is None else Operation.CHANGELOG
        request = msgspec.structs.replace(job.write, operation=operation, inputs=_ranges(view))
        job = msgspec.structs.replace(job, request=request)
        self.views.decide(job.tenant_id, job.claim, request)
        files: tuple[StagedFile, ...] = ()
        if view.behind:
            attempt = relation_of(job.id, job.epoch)
            relations = {
                each.relation: f"{attempt}_{number}" for number, each in enumerate(view.inputs, start=1)
            }
            key = view.dataset.definition.record_key
            inputs = self._rows(view) if changes is None else changes
            files = self.engine.derive(
                DeriveRequest(
                    sql=rows_sql(plan, relations, key) if changes is None else changes_sql(plan, relations),
                    inputs={relations[name]: source for name, source in inputs.items()},
                    view=view.dataset.definition,
                    operation=operation,
                    prefix=prefix,
                ),
                tag,
            )
        return StagedInput(job=job, files=files, advances=_advances(view))

    def _changes(self, view: View) -> dict[str, DeriveInput] | None:
        """The new changes, if the view follows changes and all of them can still be read; otherwise None.

        After a failure all rows are computed: the change that failed may have been corrected since, or a name in the
        SQL be that of another column.
        """
        if not view.behind:
            # Without changes the view does not change, also one that is computed from all rows.
            return {}
        if view.definition.mode is not ViewMode.ROW_BY_ROW or view.refreshed_at is None or view.failures:
            return None
        inputs: dict[str, DeriveInput] = {}
        for source in view.inputs:
            dataset, since = source.dataset, source.position
            try:
                # It may also have been cut since its bounds were read.
                segments = self.index.segments(dataset.tenant_id, dataset.id, since, dataset.next_offset)
            except OffsetExpired:
                return None
            if since < dataset.earliest_offset or not segments or segments[0].first_offset > since:
                return None
            inputs[source.relation] = FeedInput(
                dataset=dataset.definition,
                since=since,
                until=dataset.next_offset,
                segments=tuple(segments),
                columns=_read(view, source),
            )
        return inputs

    def _rows(self, view: View) -> dict[str, DeriveInput]:
        """All rows of the inputs."""
        inputs: dict[str, DeriveInput] = {}
        for source in view.inputs:
            dataset = source.dataset
            live = self.timeline.live_files(dataset.tenant_id, dataset.id, dataset.version, None)
            files = sorted(live, key=lambda file: (file.added_version or 0, file.path))
            inputs[source.relation] = TableInput(
                dataset=dataset.definition, files=tuple(files), columns=_read(view, source)
            )
        return inputs


def _read(view: View, source: ViewInputStatus) -> tuple[str, ...]:
    """The columns of an input that the view reads."""
    [plan_source] = [each for each in view.definition.plan.sources if each.name == source.relation]
    return tuple(plan_source.columns)


def _ranges(view: View) -> tuple[InputRange, ...]:
    """The changes of the inputs that a refresh takes in."""
    return tuple(
        InputRange(
            dataset_id=each.dataset.id,
            dataset=each.dataset.definition.name,
            since=each.position,
            until=each.dataset.next_offset,
        )
        for each in view.inputs
    )


def _advances(view: View) -> tuple[Advance, ...]:
    """The positions of the inputs when the view was read."""
    name = follower_name(view.dataset.id)
    return tuple(
        Advance(
            dataset_id=each.dataset.id,
            name=name,
            since=each.position,
            next_since=each.dataset.next_offset,
            schema_id=each.dataset.definition.schema.id,
        )
        for each in view.inputs
    )
