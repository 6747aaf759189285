"""Runs of exports when several want them at once, or come too late."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest
from msgspec import structs

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.changes.positions import StartingPosition
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.values import Claim, Job
from app.features.exports.repository.exports import ExportStore
from app.features.exports.tasks import ExportFormat, ExportQuery
from app.features.exports.values import (
    Export,
    ExportDefinition,
    ExportRun,
    ExportState,
    FinishedRun,
    Manifest,
    ManifestSchema,
    NewExport,
    NewRun,
    Offsets,
    Schedule,
)
from app.features.retention.repository.references import ReferenceStore
from app.infra.identifiers import new_id
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.definition.settings import DEFAULT_TARGET_BYTES
from app.kernel.format.result_file import RunFile
from tests.support.lakehouse import RULES, commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

DEFINITION = ExportDefinition(
    name=None,
    query=ExportQuery.CHANGES,
    format=ExportFormat.CSV,
    form=ChangeForm.TWO_EVENT,
    columns=None,
    where=None,
    partitions=None,
    since=0,
    until=None,
    schedule=Schedule(every_seconds=10),
    target_bytes=DEFAULT_TARGET_BYTES,
)


@pytest.fixture
def exports(stores: Stores) -> ExportStore:
    return ExportStore(stores.database)


@pytest.fixture
def fed(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> Dataset:
    """A dataset of three changes."""
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message(0, changes=3)], read_version=0))
    return dataset


@pytest.fixture
def export(exports: ExportStore, tenant_id: str, fed: Dataset) -> Export:
    """An export whose first run waits for a worker."""
    return exports.create(tenant_id, _new(fed, DEFINITION))


def _new(dataset: Dataset, definition: ExportDefinition) -> NewExport:
    return NewExport(
        id=new_id(),
        dataset_id=dataset.id,
        schema_id=dataset.definition.schema.id,
        definition=definition,
        start=StartingPosition.EARLIEST,
        job_id=new_id(),
    )


def run_request(key: str | None = None, request_hash: str = "hash") -> NewRun:
    return NewRun(job_id=new_id(), idempotency_key=key, request_hash=request_hash)


def finished(export: Export, run: ExportRun, claim: Claim, path: str) -> FinishedRun:
    manifest = Manifest(
        export_id=export.id,
        number=run.number,
        dataset=export.dataset_id,
        dataset_name="orders",
        query=DEFINITION.query,
        form=DEFINITION.form,
        format=DEFINITION.format,
        offsets=Offsets(since=run.since, next_since=run.until),
        versions=None,
        schema=ManifestSchema(id=1, fields=()),
        files=(),
        rows=0,
        created_at=datetime.now(UTC),
    )
    file = RunFile(path=path, name="manifest.json", row_count=0, size_bytes=2, checksum="c")
    return FinishedRun(claim=claim, manifest=manifest, files=(file,))


def test_concurrent_run_requests_return_one_run(
    exports: ExportStore, stores: Stores, tenant_id: str, fed: Dataset
) -> None:
    export = exports.create(tenant_id, _new(fed, structs.replace(DEFINITION, schedule=None)))
    [job] = [stores.jobs.claim_task(tenant_id, fed.id, "worker", RULES)]
    assert job is not None
    assert exports.finish(tenant_id, finished(export, export.runs[0], job.claim, "a"))
    assert exports.get(tenant_id, export.id).state is ExportState.ENDED
    started = together([partial(exports.start, tenant_id, export.id, run_request()) for _ in range(8)])
    assert {(each.run.number, each.run.job.id) for each in started} == {(2, started[0].run.job.id)}
    assert not any(each.is_replay for each in started)
    assert len(exports.get(tenant_id, export.id).runs) == 2


def test_run_request_and_schedule_start_one_run(exports: ExportStore, tenant_id: str, fed: Dataset) -> None:
    export = exports.create(tenant_id, _new(fed, DEFINITION))
    calls = [partial(exports.start, tenant_id, export.id, run_request(f"{number}")) for number in range(3)]
    planned = [partial(exports.plan, tenant_id, export.id, new_id()) for _ in range(3)]
    together([*calls, *planned])
    (run,) = exports.get(tenant_id, export.id).runs
    # Each of their keys stands for it now.
    again = exports.start(tenant_id, export.id, run_request("1"))
    assert (again.is_replay, again.run.job.id) == (True, run.job.id)
    with pytest.raises(IdempotencyMismatch):
        exports.start(tenant_id, export.id, run_request("1", "another"))


def test_only_the_attempt_with_the_job_claim_publishes(
    exports: ExportStore, stores: Stores, tenant_id: str, export: Export
) -> None:
    (run,) = export.runs
    first = stores.jobs.claim_task(
        tenant_id, export.dataset_id, "first", structs.replace(RULES, lease_seconds=0)
    )
    second = stores.jobs.claim_task(tenant_id, export.dataset_id, "second", RULES)
    assert first is not None
    assert second is not None
    assert (first.id, first.epoch < second.epoch) == (second.id, True)
    assert not exports.finish(tenant_id, finished(export, run, first.claim, "late"))
    assert exports.run(tenant_id, export.id, 1).manifest is None
    assert exports.finish(tenant_id, finished(export, run, second.claim, "held"))
    assert not exports.finish(tenant_id, finished(export, run, second.claim, "again"))
    found = exports.get(tenant_id, export.id)
    assert (found.offset, found.state) == (3, ExportState.ACTIVE)
    assert exports.file(tenant_id, export.id, 1, "manifest.json").path == "held"
    references = ReferenceStore(stores.database)
    paths = ["late", "held", "again"]
    assert references.referenced(tenant_id, export.dataset_id, paths) == {"held"}


def test_racing_delete_and_publish_leave_nothing_behind(
    exports: ExportStore, stores: Stores, tenant_id: str, fed: Dataset
) -> None:
    for _ in range(5):
        export = exports.create(tenant_id, _new(fed, DEFINITION))
        job = stores.jobs.claim_task(tenant_id, fed.id, "worker", RULES)
        assert job is not None
        calls: list[Callable[[], object]] = [
            partial(exports.delete, tenant_id, export.id),
            partial(exports.finish, tenant_id, finished(export, export.runs[0], job.claim, new_id())),
        ]
        together(calls)
        with pytest.raises(NotFound):
            exports.get(tenant_id, export.id)
        assert stores.jobs.get(tenant_id, job.id).state.final
