"""Writes that read more than the keys they bring: alone in their commit, and in conflict with all that they read."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.repository.publish import InconsistentCommit
from app.core.timeline.values import NewCommit, Published
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.conflict import Conflicted
from app.kernel.commit.write_options import WriteOptions
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.errors import CommitConflict
from app.kernel.format.file_group import DataFile, Slot, append_file_group
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from tests.support.lakehouse import commit_of, data_file, message, new_job
from tests.support.store_fixtures import Stores

Publish = Callable[..., object]
Claim = Callable[..., list[Job]]


@pytest.fixture
def publish(stores: Stores, tenant_id: str, running: Callable[[], Job]) -> Publish:
    """Publishes messages for one more job."""

    def run(*messages: CommitMessage, read_version: int, **settings: object) -> object:
        commit = commit_of([running()], messages, read_version=read_version)
        return stores.timeline.publish_one(tenant_id, msgspec.structs.replace(commit, **settings))

    return run


def appended(partition: str, number: int) -> CommitMessage:
    """Rows without a key, in a group of their own."""
    slot = Slot(partition_path=partition, bucket=0)
    group = append_file_group(slot, f"attempt-{number}")
    file: DataFile = msgspec.structs.replace(data_file(), slot=slot, file_group=group)
    return CommitMessage(file_group=group, added=(file,))


def test_exclusive_write_shares_no_group(
    stores: Stores, tenant_id: str, dataset: Dataset, claim: Claim
) -> None:
    def accept(operation: Operation) -> Job:
        new = new_job(dataset.id)
        request = msgspec.structs.replace(new.request, operation=operation)
        return stores.jobs.accept(tenant_id, msgspec.structs.replace(new, request=request)).job

    wanted = [Operation.UPSERT, Operation.DELETE, Operation.OVERWRITE, Operation.SNAPSHOT, Operation.UPSERT]
    accepted = [accept(operation) for operation in wanted]
    groups = []
    while group := claim():
        groups.append([job.id for job in group])
        stores.timeline.publish_one(tenant_id, commit_of(group, []))
    first, second, third, fourth, fifth = [job.id for job in accepted]
    assert groups == [[first, second], [third], [fourth], [fifth]]


def test_write_that_sorts_its_files_shares_no_group(
    stores: Stores, tenant_id: str, dataset: Dataset, claim: Claim
) -> None:
    def accept(*columns: str) -> str:
        new = new_job(dataset.id)
        options = WriteOptions(sort_by=columns)
        request = msgspec.structs.replace(new.request, operation=Operation.BULK_INSERT, options=options)
        return stores.jobs.accept(tenant_id, msgspec.structs.replace(new, request=request)).job.id

    first, second, third, fourth = accept(), accept(), accept("id"), accept("note")
    groups = []
    while group := claim():
        groups.append([job.id for job in group])
        stores.timeline.publish_one(tenant_id, commit_of(group, []))
    assert groups == [[first, second], [third], [fourth]]


@pytest.mark.parametrize(
    ("scope", "conflicts"),
    [
        (None, False),
        (WriteScope(), True),
        (WriteScope(partitions=("day=2",)), True),
        (WriteScope(partitions=("day=3", "day=2")), True),
        (WriteScope(partitions=("day=3",)), False),
        (WriteScope(partitions=()), False),
    ],
)
def test_later_change_in_the_scope_conflicts(
    publish: Publish, scope: WriteScope | None, conflicts: bool
) -> None:
    publish(appended("day=1", 1), read_version=0)
    publish(appended("day=2", 2), read_version=1)
    outcome = publish(message(7), read_version=1, scope=scope)
    assert isinstance(outcome, Conflicted) is conflicts
    # What was there when the write looked is no conflict.
    if conflicts:
        assert isinstance(outcome, Conflicted)
        assert outcome.head_version == 2


def test_earlier_change_in_the_scope_does_not_conflict(publish: Publish) -> None:
    publish(appended("day=1", 1), read_version=0)
    assert isinstance(publish(message(7), read_version=1, scope=WriteScope()), Published)


def test_removal_in_the_scope_conflicts(publish: Publish) -> None:
    old = appended("day=1", 1)
    publish(old, read_version=0)
    removal = CommitMessage(file_group=old.file_group, removed=(old.added[0].path,))
    publish(removal, read_version=1)
    assert isinstance(
        publish(message(7), read_version=1, scope=WriteScope(partitions=("day=1",))), Conflicted
    )


def test_files_of_other_groups_are_removed_only_within_the_scope(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Publish
) -> None:
    olds = [appended("day=1", 1), appended("day=1", 2), appended("day=2", 3)]
    publish(*olds, read_version=0)
    paths = tuple(old.added[0].path for old in olds)
    new = msgspec.structs.replace(appended("day=1", 4), removed=paths)
    for scope in (None, WriteScope(partitions=("day=1",))):
        with pytest.raises(InconsistentCommit):
            publish(new, read_version=1, scope=scope)
        for job in stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None).items:
            if job.state.value == "inflight":
                stores.jobs.cancel(tenant_id, job.job_id)
    assert isinstance(publish(new, read_version=1, scope=WriteScope()), Published)
    live = stores.timeline.live_files(tenant_id, dataset.id, 2, None)
    assert [file.path for file in live] == [new.added[0].path]


def test_write_with_another_expected_version_is_refused(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Publish, running: Callable[[], Job]
) -> None:
    publish(message(1), read_version=0)
    assert isinstance(publish(message(2), read_version=1, expected_version=1), Published)
    job = running()
    for expected in (1, 3):
        for messages in ([], [message(3)]):
            commit: NewCommit = msgspec.structs.replace(
                commit_of([job], messages, read_version=2), expected_version=expected
            )
            with pytest.raises(CommitConflict) as refused:
                stores.timeline.publish(tenant_id, [commit])
            assert refused.value.facts == {
                "dataset_id": dataset.id,
                "expected_version": expected,
                "head_version": 2,
                "retryable": False,
            }
    assert stores.catalog.get(tenant_id, dataset.id).version == 2


def test_quarantined_records_are_stored_without_changes(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    file = QuarantineFile(path="q/1.parquet", size_bytes=1, checksum="c", row_count=2)
    commit = commit_of([job], [], counts=[RowCounts(quarantined=2)])
    outcome = msgspec.structs.replace(commit.outcomes[0], quarantine_files=(file,))
    published = stores.timeline.publish_one(tenant_id, msgspec.structs.replace(commit, outcomes=(outcome,)))
    assert published == Published(version=0, first_offset=0, next_offset=0)
    assert stores.jobs.get(tenant_id, job.id).rows.quarantined == 2
    with stores.database.tenant(tenant_id) as connection:
        found = connection.exec_driver_sql("SELECT path, job_id::text, row_count FROM quarantine_files").all()
    assert [tuple(row) for row in found] == [("q/1.parquet", job.id, 2)]
