"""Schemas of a dataset: each change is a version of its own, and no write goes by a schema that is gone."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier

import msgspec
import pytest

from app.access.errors import NotFound, PreconditionFailed
from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.values import Published
from app.infra.identifiers import new_instant_id
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.dataset import DatasetDefinition, Deletes, Retention
from app.kernel.format.definition.dataset_definition import with_changelog, with_services, with_settings
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField, CreateRetention
from app.kernel.format.definition.schema_change import AddField, UpdateChangelog, UpdateDataset
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.file_format import FileCompression
from app.kernel.format.instant import Action, InstantState
from app.kernel.format.policies import TableServices
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together


def with_field(definition: DatasetDefinition, name: str) -> DatasetDefinition:
    return evolve(definition, [AddField(field=CreateField(name=name, type="string"))])


def evolved(stores: Stores, dataset: Dataset, name: str) -> Dataset:
    """The dataset with one more field."""
    return stores.catalog.evolve(
        dataset.tenant_id,
        dataset.id,
        with_field(dataset.definition, name),
        version=dataset.version,
        instant_id=new_instant_id(),
    )


def test_schema_change_is_a_version_without_files_and_changes(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    first = stores.timeline.publish(tenant_id, [commit_of([running()], [message(changes=3)])])
    assert isinstance(first, tuple)
    before = stores.catalog.get(tenant_id, dataset.id)
    after = evolved(stores, before, "more")
    assert (after.version, after.next_offset) == (2, 3)
    assert after.definition == with_field(dataset.definition, "more")
    assert after == stores.catalog.get(tenant_id, dataset.id)
    assert before.committed_at is not None
    assert after.committed_at is not None
    assert after.committed_at > before.committed_at
    [entry, _] = stores.timeline.instants(tenant_id, dataset.id, page_size=10, page_token=None).items
    assert (entry.action, entry.operation, entry.state) == (Action.SCHEMA, "evolve", InstantState.COMPLETED)
    assert (entry.version, entry.job_id, entry.files_added, entry.first_offset) == (2, None, 0, None)
    assert entry.completed_at == after.committed_at
    assert stores.timeline.live_files(tenant_id, dataset.id, 2, None) == stores.timeline.live_files(
        tenant_id, dataset.id, 1, None
    )
    assert stores.timeline.version_at(tenant_id, dataset.id, after.committed_at) == 2


def test_every_version_has_its_schema(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    stores.timeline.publish(tenant_id, [commit_of([running()], [message()])])
    second = evolved(stores, stores.catalog.get(tenant_id, dataset.id), "a")
    third = evolved(stores, second, "b")
    found = [stores.timeline.schema_at(tenant_id, dataset.id, version) for version in range(4)]
    assert found == [
        dataset.definition.schema,
        dataset.definition.schema,
        second.definition.schema,
        third.definition.schema,
    ]
    assert [stores.catalog.schema(tenant_id, dataset.id, at).schema for at in (1, 2, 3)] == found[1:]
    page = stores.catalog.schemas(tenant_id, dataset.id, page_size=2, page_token=None)
    rest = stores.catalog.schemas(tenant_id, dataset.id, page_size=2, page_token=page.next_token)
    assert [item.schema for item in page.items + rest.items] == found[:0:-1]
    assert rest.next_token is None
    assert page.items[0].created_at > page.items[1].created_at


@pytest.mark.parametrize("schema_id", [0, -1, 2, 2**31, 2**63 - 1])
def test_unknown_schema_is_not_found(
    stores: Stores, tenant_id: str, dataset: Dataset, schema_id: int
) -> None:
    with pytest.raises(NotFound):
        stores.catalog.schema(tenant_id, dataset.id, schema_id)
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    with pytest.raises(NotFound):
        stores.catalog.schema(neighbour, dataset.id, 1)


@pytest.mark.parametrize("token", ["x", "oQA", "pTEuMjM", "2SA5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk"])
def test_invalid_page_token_of_schemas_is_refused(
    stores: Stores, tenant_id: str, dataset: Dataset, token: str
) -> None:
    with pytest.raises(InvalidRequest):
        stores.catalog.schemas(tenant_id, dataset.id, page_size=1, page_token=token)


def test_schema_change_of_another_version_is_refused(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    stores.timeline.publish(tenant_id, [commit_of([running()], [message()])])
    with pytest.raises(PreconditionFailed) as refusal:
        evolved(stores, dataset, "late")
    assert refusal.value.facts == {"version": 1}
    assert stores.catalog.get(tenant_id, dataset.id).definition == dataset.definition


def test_deleted_dataset_refuses_schema_changes(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        evolved(stores, dataset, "late")


def test_one_of_racing_schema_changes_wins(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    barrier = Barrier(4)

    def change(name: str) -> str:
        barrier.wait()
        try:
            return evolved(stores, dataset, name).definition.schema.fields[-1].name
        except PreconditionFailed:
            return "late"

    outcomes = together([lambda name=name: change(name) for name in "abcd"])
    assert outcomes.count("late") == 3
    found = stores.catalog.get(tenant_id, dataset.id)
    assert found.version == 1
    assert [found.definition.schema.fields[-1].name] == [name for name in outcomes if name != "late"]


def test_racing_schema_changes_and_commits_are_ordered(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """Versions are dense, and each commit stands behind no schema that it was not planned under."""
    job, barrier = running(), Barrier(2)

    def change() -> int:
        barrier.wait()
        for _ in range(100):
            try:
                return evolved(stores, stores.catalog.get(tenant_id, dataset.id), "raced").version
            except PreconditionFailed:
                continue
        raise AssertionError("never got its turn")

    def commit() -> object:
        barrier.wait()
        return stores.timeline.publish(tenant_id, [commit_of([job], [message()])])

    version, outcome = together([change, commit])
    if isinstance(outcome, Conflicted):
        assert (version, outcome.head_version) == (1, 1)
    else:
        assert outcome == (Published(version=1, first_offset=0, next_offset=1),)
        assert version == 2


def test_commit_planned_under_an_earlier_schema_conflicts(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job, planned = running(), [message(0), message(1)]
    after = evolved(stores, dataset, "more")
    refused = stores.timeline.publish(tenant_id, [commit_of([job], planned)])
    assert isinstance(refused, Conflicted)
    assert refused.file_groups == tuple(sorted(each.file_group for each in planned))
    assert refused.head_version == 1
    [entry] = [
        each
        for each in stores.timeline.instants(tenant_id, dataset.id, page_size=10, page_token=None).items
        if each.action is Action.SCHEMA
    ]
    assert refused.winner == entry.id
    # Read before the change was made, but planned under the schema that it made: nothing is in the way.
    again = msgspec.structs.replace(commit_of([job], planned), schema_id=after.definition.schema.id)
    assert stores.timeline.publish(tenant_id, [again]) == (
        Published(version=2, first_offset=0, next_offset=2),
    )


def test_commit_may_extend_the_schema(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    definition = with_field(dataset.definition, "more")
    commit = msgspec.structs.replace(commit_of([running()], [message()]), definition=definition)
    assert stores.timeline.publish(tenant_id, [commit]) == (
        Published(version=1, first_offset=0, next_offset=1),
    )
    assert stores.catalog.get(tenant_id, dataset.id).definition == definition
    assert stores.timeline.schema_at(tenant_id, dataset.id, 1) == definition.schema
    # Another that was planned before it, and would bring a schema of the same id, is made again.
    late = msgspec.structs.replace(
        commit_of([running()], [message(5)]), definition=with_field(dataset.definition, "other")
    )
    assert isinstance(stores.timeline.publish(tenant_id, [late]), Conflicted)
    assert stores.catalog.get(tenant_id, dataset.id).definition == definition


def test_schema_of_a_commit_without_rows_is_a_version(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    definition = with_field(dataset.definition, "more")
    commit = msgspec.structs.replace(commit_of([running()], []), definition=definition)
    assert stores.timeline.publish(tenant_id, [commit]) == (
        Published(version=1, first_offset=0, next_offset=0),
    )
    assert stores.catalog.get(tenant_id, dataset.id).definition == definition
    assert stores.timeline.schema_at(tenant_id, dataset.id, 1) == definition.schema


def test_commit_with_a_schema_keeps_settings_changed_meanwhile(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    """A write that brings a schema brings a whole definition, made of the one that it found."""
    brought = with_field(dataset.definition, "more")
    kept = with_changelog(dataset.definition, UpdateChangelog(retention=CreateRetention(seconds=60)))
    kept = with_services(kept, TableServices(compaction=None))
    kept = with_settings(kept, UpdateDataset(compression=FileCompression.LZ4))
    kept = msgspec.structs.replace(kept, deletes=Deletes(keep_seconds=7))
    stores.catalog.evolve(tenant_id, dataset.id, kept, version=0, instant_id=new_instant_id(), actor=None)
    commit = msgspec.structs.replace(commit_of([running()], [message(8)]), definition=brought)
    assert isinstance(stores.timeline.publish(tenant_id, [commit]), tuple)
    now = stores.catalog.get(tenant_id, dataset.id).definition
    assert now.schema == brought.schema
    assert (now.changelog.retention, now.services.compaction) == (Retention(seconds=60), None)
    assert now.compression is FileCompression.LZ4
    assert now.keep_seconds == 7
