"""When a view is refreshed, and what of its inputs a refresh takes in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.consumers.followers import Consumer, ConsumerKind
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Accepted, Claim, Job, NewJob
from app.core.timeline.errors import OffsetExpired, VersionExpired
from app.core.timeline.service.version_pins import VersionPins
from app.features.views.service.refresh import DeriveView, FollowInputs
from app.features.views.service.views import new_refresh
from app.features.views.values import View, ViewDefinition, ViewInputStatus, ViewMode, follower_name
from app.infra.identifiers import new_id
from app.kernel.derivation.request import DeriveRequest, FeedInput, TableInput
from app.kernel.format.errors import Fault
from app.kernel.format.file_group import ChangelogFile, ChangelogSegment
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedFile
from app.kernel.sql.queries import bind_view, parse_view
from tests.support.lakehouse import definition

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SQL = "SELECT id, note FROM orders"


def fault(code: str) -> Fault:
    return Fault(code=code, title="", detail="")


FAULT = fault("derivation-failed")


def dataset(name: str, **settings: Any) -> Dataset:
    return Dataset(
        id=new_id(),
        tenant_id="tenant",
        definition=definition(name),
        created_at=NOW,
        **{"version": 0, "next_offset": 0, "committed_at": None} | settings,
    )


def view_of_orders(position: int = 5, **settings: Any) -> View:
    """A view that shows all of an input with 9 changes up to `position`, refreshed before by default."""
    orders = dataset("orders", version=4, next_offset=9, committed_at=NOW)
    return View(
        **{
            "dataset": dataset("shown", is_view=True),
            "definition": ViewDefinition(
                sql=SQL,
                plan=bind_view(parse_view(SQL), {"orders": definition()}),
                mode=ViewMode.ROW_BY_ROW,
            ),
            "inputs": (
                ViewInputStatus(relation="orders", dataset=orders, position=position, position_version=2),
            ),
            "paused": False,
            "revision": 1,
            "error": None,
            "failures": 0,
            "attempted_at": None,
            "attempted_ago_seconds": 0.0,
            "refreshed_at": NOW,
            "created_at": NOW,
        }
        | settings
    )


def failed(failures: int, ago_seconds: float, **settings: Any) -> View:
    return view_of_orders(
        error=FAULT,
        failures=failures,
        attempted_at=NOW + timedelta(seconds=1),
        attempted_ago_seconds=ago_seconds,
        **settings,
    )


@dataclass
class OneView:
    """A catalogue with one view, or none."""

    view: View | None
    queued: list[NewJob] = field(default_factory=list)
    decided: list[Operation] = field(default_factory=list)

    def get(self, tenant_id: str, reference: str) -> View:
        if self.view is None:
            raise NotFound(reference)
        assert (tenant_id, reference) == ("tenant", self.view.dataset.id)
        return self.view

    def refresh(self, tenant_id: str, new: NewJob, *, after_running: bool, slice_seconds: float) -> Accepted:
        assert not after_running
        assert slice_seconds == 60
        self.queued.append(new)
        return Accepted(job=job_of(new), is_replay=False)

    def decide(self, tenant_id: str, claim: Claim, request: WriteRequest) -> None:
        self.decided.append(request.operation)


def job_of(new: NewJob) -> Job:
    return Job(
        id=new.id,
        tenant_id="tenant",
        dataset_id=new.dataset_id,
        dataset_name="totals",
        instant_id=new.instant_id,
        request=new.request,
        **dict.fromkeys(("kind", "state", "progress", "rows", "created_at", "attempts"), None),
        **dict.fromkeys(
            ("committed_version", "first_offset", "last_offset", "error", "transaction_id"), None
        ),
        **dict.fromkeys(("started_at", "finished_at"), None),
        epoch=1,
    )


def follow(view: View | None) -> tuple[float | None, int]:
    """When the follower is due again, and how many refreshes it has queued."""
    catalogue = OneView(view)
    woken: list[bool] = []
    view_id = "gone" if view is None else view.dataset.id
    consumer = Consumer(
        dataset_id=new_id(),
        name=follower_name(view_id),
        kind=ConsumerKind.VIEW,
        position=5,
        revision=1,
        max_lag_rows=None,
        max_lag_seconds=None,
        member="worker",
        lease_epoch=1,
        lease_until=NOW,
        created_at=NOW,
        moved_at=NOW,
    )
    inputs = FollowInputs(views=catalogue, wake=lambda: woken.append(True), slice_seconds=60)
    after = inputs.follow("tenant", consumer)
    assert len(woken) == len(catalogue.queued)
    assert all(new.request.derived and new.dataset_id == view_id for new in catalogue.queued)
    return after, len(catalogue.queued)


def test_view_that_is_behind_is_refreshed() -> None:
    assert follow(view_of_orders()) == (60.0, 1)
    assert follow(view_of_orders(position=9, refreshed_at=None)) == (60.0, 1)


def test_current_view_waits_for_changes_and_a_deleted_one_for_nothing() -> None:
    assert follow(view_of_orders(position=9)) == (None, 0)
    assert follow(None) == (math.inf, 0)
    assert follow(view_of_orders(paused=True)) == (math.inf, 0)


@pytest.mark.parametrize(
    ("failures", "ago_seconds", "due"),
    [
        (1, 9.5, 0.5),
        (1, 10.0, None),
        (2, 10.0, 2.0),
        (2, 20.0, None),
        (4, 79.0, 1.0),
        (7, 599.0, 1.0),
        (7, 600.0, None),
        (10_000, 599.0, 1.0),
        (10_000, 600.0, None),
    ],
)
def test_failed_view_is_retried_after_growing_pauses(
    failures: int, ago_seconds: float, due: float | None
) -> None:
    """But it is checked every two seconds: an input may change."""
    assert follow(failed(failures, ago_seconds)) == ((60.0, 1) if due is None else (due, 0))


def test_failed_view_is_retried_once_an_input_has_changed() -> None:
    view = failed(9, 0.1)
    [source] = view.inputs
    later = replace(source.dataset, committed_at=NOW + timedelta(seconds=2))
    assert follow(replace(view, inputs=(replace(source, dataset=later),))) == (60.0, 1)


def test_view_that_has_killed_its_processes_is_not_refreshed_until_it_is_resumed() -> None:
    view = replace(failed_before_a_change(1), error=fault("process-killed"))
    assert follow(view) == (math.inf, 0)
    assert follow(replace(view, attempted_at=None)) == (60.0, 1)


def test_view_that_has_exceeded_its_time_limit_twice_is_not_refreshed_until_it_is_resumed() -> None:
    too_slow = fault("time-limit-exceeded")
    assert follow(replace(failed_before_a_change(1), error=too_slow)) == (60.0, 1)
    for failures in (2, 3):
        view = replace(failed_before_a_change(failures), error=too_slow)
        assert follow(view) == (math.inf, 0)
        assert follow(replace(view, attempted_at=None)) == (60.0, 1)


def failed_before_a_change(failures: int) -> View:
    [source] = view_of_orders().inputs
    later = replace(source.dataset, committed_at=NOW + timedelta(hours=2))
    return failed(failures, 10_000.0, inputs=(replace(source, dataset=later),))


@dataclass
class Recorder:
    """An engine, a timeline, a feed and leases that note what they are requested."""

    earliest: int = 0
    requests: list[DeriveRequest] = field(default_factory=list)
    queries: list[tuple[Any, ...]] = field(default_factory=list)
    pinned: list[tuple[str, int]] = field(default_factory=list)
    pinned_while_derived: list[tuple[str, int]] = field(default_factory=list)
    # How often a clean comes before a hold.
    expires: int = 0

    def derive(self, request: DeriveRequest, tag: str) -> tuple[StagedFile, ...]:
        self.requests.append(request)
        self.pinned_while_derived += self.pinned
        return ()

    def acquire(self, tenant_id: str, dataset_id: str, version: int, reader: str, seconds: float) -> None:
        if self.expires:
            self.expires -= 1
            raise VersionExpired("gone", version=version, earliest=version + 1)
        self.pinned.append((dataset_id, version))

    def release(self, tenant_id: str, dataset_id: str, reader: str) -> None:
        self.pinned = [each for each in self.pinned if each[0] != dataset_id]

    def live_files(self, *queries: Any) -> list[Any]:
        self.queries.append(queries)
        return []

    def segments(
        self, tenant_id: str, dataset_id: str, since: int, until: int, *, limit: int | None = None
    ) -> list[ChangelogSegment]:
        """One that reaches beyond both ends."""
        self.queries.append((tenant_id, dataset_id, since, until))
        if since < self.earliest:
            raise OffsetExpired("gone", since=since, earliest=self.earliest)
        first = since - 1
        file = ChangelogFile(
            path="c", size_bytes=1, checksum="", row_count=until - first + 1, schema_id=1, file_group=""
        )
        return [
            ChangelogSegment(
                file=file, row_count=file.row_count, first_offset=first, version=1, committed_at=NOW
            )
        ]


def derive(
    view: View, expires: int = 0, earliest: int | None = None
) -> tuple[Operation, Recorder, tuple[int, int]]:
    """What a refresh does, what it requests, and how far the position moves.

    `earliest`: the beginning of the feed, if it was cut since the view was read.
    """
    if earliest is None:
        earliest = view.inputs[0].dataset.earliest_offset
    recorder = Recorder(earliest=earliest, expires=expires)
    catalogue = OneView(view)
    job = job_of(new_refresh(view.dataset.id))
    pins = VersionPins(leases=recorder, lease_seconds=30, heartbeat_seconds=30)
    derive_view = DeriveView(views=catalogue, timeline=recorder, index=recorder, pins=pins, engine=recorder)
    derived = derive_view.stage(job, "prefix", "tag")
    assert recorder.pinned == [], "all holds have ended"
    assert [derived.job.write.operation] == catalogue.decided
    assert derived.job.id == job.id
    [advance] = derived.advances
    assert (advance.dataset_id, advance.name) == (
        view.inputs[0].dataset.id,
        follower_name(view.dataset.id),
    )
    return catalogue.decided[0], recorder, (advance.since, advance.next_since)


def test_row_by_row_view_applies_the_new_changes() -> None:
    view = view_of_orders()
    operation, recorder, moved = derive(view)
    assert (operation, moved) == (Operation.CHANGELOG, (5, 9))
    assert recorder.queries == [("tenant", view.inputs[0].dataset.id, 5, 9)]
    [request] = recorder.requests
    [(name, source)] = request.inputs.items()
    assert isinstance(source, FeedInput)
    assert (source.since, source.until) == (5, 9)
    assert name in request.sql
    assert "_hw_op" in request.sql


def cut(view: View) -> View:
    [source] = view.inputs
    return replace(view, inputs=(replace(source, dataset=replace(source.dataset, earliest_offset=6)),))


@pytest.mark.parametrize(
    "view",
    [
        view_of_orders(position=0, refreshed_at=None),
        failed(1, 10),
        cut(view_of_orders()),
        replace(
            view_of_orders(),
            definition=replace(view_of_orders().definition, mode=ViewMode.RECOMPUTE),
        ),
    ],
    ids=["at first", "after a failure", "where changes are gone", "anew each time"],
)
def test_recomputed_view_reads_all_rows(view: View) -> None:
    operation, recorder, moved = derive(view)
    assert operation is Operation.SNAPSHOT
    assert moved == (view.inputs[0].position, 9)
    assert recorder.queries[-1] == ("tenant", view.inputs[0].dataset.id, 4, None)
    assert isinstance(next(iter(recorder.requests[0].inputs.values())), TableInput)


def test_view_whose_changes_are_cut_meanwhile_reads_all_rows() -> None:
    operation, recorder, moved = derive(view_of_orders(), earliest=6)
    assert (operation, moved) == (Operation.SNAPSHOT, (5, 9))
    assert isinstance(next(iter(recorder.requests[0].inputs.values())), TableInput)


def test_inputs_are_pinned_while_their_rows_are_read() -> None:
    view = view_of_orders(position=0, refreshed_at=None)
    _, recorder, _ = derive(view)
    assert recorder.pinned_while_derived == [(view.inputs[0].dataset.id, 4)]


def test_expiry_before_the_pin_selects_the_version_again() -> None:
    _, recorder, moved = derive(view_of_orders(position=0, refreshed_at=None), expires=2)
    assert (len(recorder.requests), moved) == (1, (0, 9))


def test_refresh_without_new_changes_changes_nothing() -> None:
    """In any mode: an empty snapshot would take all rows out."""
    view = view_of_orders(position=9)
    for mode in ViewMode:
        each = replace(view, definition=replace(view.definition, mode=mode))
        operation, recorder, moved = derive(each)
        assert (operation, moved, recorder.requests) == (Operation.CHANGELOG, (9, 9), [])
