"""What the timeline has of an instant beside its commit: who asked, for what, and why it failed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Job, NewJob
from app.core.timeline.instants import EVERY_INSTANT, InstantFilter, InstantRecord
from app.core.timeline.values import Published
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.format.errors import Fault
from app.kernel.format.file_group import DeletionVector
from app.kernel.format.instant import Action, InstantState
from app.kernel.format.operation import Operation
from tests.support.lakehouse import claim_of, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores


def timeline(stores: Stores, dataset: Dataset, wanted: InstantFilter = EVERY_INSTANT) -> list[InstantRecord]:
    page = stores.timeline.instants(
        dataset.tenant_id, dataset.id, page_size=100, page_token=None, instant_filter=wanted
    )
    assert page.next_token is None
    return page.items


def test_instant_names_its_actor_and_parameters(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    key = stores.tenants.make_key(tenant_id, ["write"], name="loader")
    options = WriteOptions(on_error=OnError.QUARANTINE, writer_id="stream", batch_id=7)
    write = WriteRequest(operation=Operation.UPSERT, options=options)
    accepted = stores.jobs.accept(
        tenant_id,
        NewJob(
            id=new_id(), instant_id=new_instant_id(), dataset_id=dataset.id, request=write, actor=key.key_id
        ),
    )
    [waiting] = timeline(stores, dataset)
    assert accepted.job.actor == key.key_id
    assert (waiting.actor, waiting.actor_name) == (key.key_id, "loader")
    assert (waiting.writer_id, waiting.batch_id, waiting.started_at) == ("stream", 7, None)
    assert waiting.parameters == {"on_error": "quarantine"}


def test_instant_started_by_the_service_has_no_actor(
    stores: Stores, dataset: Dataset, accept: Callable[[], Job]
) -> None:
    accept()
    [entry] = timeline(stores, dataset)
    assert (entry.actor, entry.actor_name, entry.schema_id) == (None, None, None)


def test_schema_change_instant_names_its_actor(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    key = stores.tenants.make_key(tenant_id, ["write"], name="designer")
    stores.catalog.evolve(
        tenant_id, dataset.id, dataset.definition, version=0, instant_id=new_instant_id(), actor=key.key_id
    )
    [entry] = timeline(stores, dataset)
    assert (entry.action, entry.actor, entry.actor_name) == (Action.SCHEMA, key.key_id, "designer")
    assert (entry.version, entry.schema_id, entry.job_id, entry.parameters) == (1, 1, None, {})


def test_failed_instant_has_its_error(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    [begun] = timeline(stores, dataset)
    assert begun.state is InstantState.INFLIGHT
    assert begun.started_at is not None
    fault = Fault(code="storage-full", title="The storage is full", detail="no room", facts={"path": "a"})
    assert stores.jobs.fail(tenant_id, claim_of(job), fault)
    [ended] = timeline(stores, dataset)
    assert (ended.state, ended.error) == (InstantState.ROLLED_BACK, fault)


def test_bytes_added_and_removed_sum_to_the_live_bytes(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """Also where a file is listed again for its deletion vector, as which it neither comes nor goes."""

    def publish(*messages: CommitMessage) -> None:
        version = stores.catalog.get(tenant_id, dataset.id).version
        result = stores.timeline.publish_one(
            tenant_id, commit_of([running()], messages, read_version=version)
        )
        assert isinstance(result, Published), result

    first, other = message(0, rows=9), message(1, rows=4)
    publish(first, other)
    [live] = stores.timeline.live_files(tenant_id, dataset.id, 1, [first.file_group])
    vector = DeletionVector(path="v", offset=0, size_bytes=8, checksum="xxh3:0", cardinality=3)
    again = msgspec.structs.replace(live, deletion_vector=vector, added_version=None)
    publish(CommitMessage(file_group=live.file_group, removed=(live.path,), added=(again,)))
    publish(message(0, removed=[live], rows=5), message(1, removed=other.added, rows=1))
    entries = list(reversed(timeline(stores, dataset)))
    assert [(each.bytes_added, each.bytes_removed) for each in entries] == [(1300, 0), (0, 0), (600, 1300)]
    assert [(each.files_added, each.files_removed) for each in entries] == [(2, 0), (1, 1), (2, 2)]
    for number, each in enumerate(entries, start=1):
        files = stores.timeline.live_files(tenant_id, dataset.id, number, None)
        come_and_gone = sum(entry.bytes_added - entry.bytes_removed for entry in entries[:number])
        assert (each.version, come_and_gone) == (number, sum(file.size_bytes for file in files))


def test_filter_selects_timeline_entries(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Callable[[], Job], running: Callable[[], Job]
) -> None:
    job = running()
    stores.timeline.publish_one(tenant_id, commit_of([job], [message(0)]))
    task = CompactionTask()
    stores.jobs.accept(
        tenant_id, NewJob(id=new_id(), instant_id=new_instant_id(), dataset_id=dataset.id, request=task)
    )
    accept()
    every = timeline(stores, dataset)
    assert [each.action for each in every] == [Action.COMMIT, Action.COMPACTION, Action.COMMIT]
    middle = every[1].requested_at
    filters = {
        (0, 1, 2): EVERY_INSTANT,
        (1,): InstantFilter(actions=(Action.COMPACTION, Action.CLEAN)),
        (2,): InstantFilter(states=(InstantState.COMPLETED,)),
        (0, 1): InstantFilter(since=middle),
        (1, 2): InstantFilter(until=middle + timedelta(microseconds=1)),
        (0,): InstantFilter(actions=(Action.COMMIT,), states=(InstantState.REQUESTED,)),
        (): InstantFilter(actions=()),
    }
    for places, wanted in filters.items():
        assert timeline(stores, dataset, wanted) == [every[place] for place in places]
        assert [each for each in every if wanted.selects(each)] == [every[place] for place in places]


def test_timeline_of_another_tenant_is_empty(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    """Nor the name of its keys, were a key of another tenant ever an actor."""
    stranger = stores.tenants.add_tenant(f"tenant-{new_id()}")
    key = stores.tenants.make_key(stranger, ["write"], name="theirs")
    stores.jobs.accept(tenant_id, msgspec.structs.replace(new_job(dataset.id), actor=key.key_id))
    [entry] = timeline(stores, dataset)
    assert (entry.actor, entry.actor_name) == (key.key_id, None)
    own = stores.catalog.create(stranger, new_id(), definition())
    assert timeline(stores, own) == []
    assert stores.timeline.instants(stranger, dataset.id, page_size=9, page_token=None).items == []
