"""Commits to buckets that are halved: their parts replace them together, and plans of another size conflict."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.values import Published
from app.kernel.commit.commit_message import CommitMessage, Reads
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.file_group import Slot, bucket_file_group
from tests.support.lakehouse import commit_of, data_file
from tests.support.store_fixtures import Stores

Publish = Callable[..., object]
PARTITION = "day=1"


@pytest.fixture
def publish(stores: Stores, tenant_id: str, running: Callable[[], Job]) -> Publish:
    """Publishes messages for one more job."""

    def run(*messages: CommitMessage, read_version: int) -> object:
        return stores.timeline.publish_one(
            tenant_id, commit_of([running()], messages, read_version=read_version)
        )

    return run


def bucket(number: int, of: int, partition: str = PARTITION) -> Slot:
    return Slot(partition_path=partition, bucket=number, of=of)


def written(slot: Slot, *removed: str) -> CommitMessage:
    """A new file in the bucket."""
    group = bucket_file_group(slot)
    file = msgspec.structs.replace(data_file(), slot=slot, file_group=group)
    return CommitMessage(file_group=group, added=(file,), removed=removed)


def halved(whole: CommitMessage, of: int = 2) -> list[CommitMessage]:
    """The parts of a bucket of 1: each of them removes its file."""
    return [written(bucket(number, of), whole.added[0].path) for number in range(of)]


def test_parts_replace_the_file_of_their_bucket(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Publish
) -> None:
    whole, other = written(bucket(0, 1)), written(bucket(0, 1, "day=10"))
    publish(whole, other, read_version=0)
    assert isinstance(publish(*halved(whole), read_version=1), Published)
    live = stores.timeline.live_files(tenant_id, dataset.id, 2, (), [PARTITION])
    assert sorted(file.slot for file in live) == [bucket(0, 2), bucket(1, 2)]
    assert [file.slot for file in stores.timeline.live_files(tenant_id, dataset.id, 1, (), [PARTITION])] == [
        bucket(0, 1)
    ]
    assert len(stores.timeline.live_files(tenant_id, dataset.id, 2, None)) == 3
    named = stores.timeline.live_files(tenant_id, dataset.id, 2, [other.file_group], [])
    assert [file.slot for file in named] == [bucket(0, 1, "day=10")]


@pytest.mark.parametrize("reads", Reads)
def test_plan_of_a_bucket_conflicts_once_it_is_halved(publish: Publish, reads: Reads) -> None:
    whole = written(bucket(0, 1))
    publish(whole, read_version=0)
    publish(*halved(whole), read_version=1)
    late = msgspec.structs.replace(written(bucket(0, 1)), reads=reads)
    other = written(bucket(0, 1, "day=2"))
    outcome = publish(late, other, read_version=1)
    assert isinstance(outcome, Conflicted)
    assert outcome.file_groups == (late.file_group,)


def test_parts_conflict_with_a_later_change_of_their_bucket(publish: Publish) -> None:
    whole = written(bucket(0, 1))
    publish(whole, read_version=0)
    publish(written(bucket(0, 1)), read_version=1)
    parts = halved(whole, 4)
    outcome = publish(*parts, read_version=1)
    assert isinstance(outcome, Conflicted)
    assert outcome.file_groups == tuple(sorted(part.file_group for part in parts))


def test_buckets_of_different_sizes_without_common_keys_do_not_conflict(publish: Publish) -> None:
    publish(written(bucket(0, 2)), read_version=0)
    publish(written(bucket(1, 4)), read_version=1)
    assert isinstance(publish(written(bucket(3, 4)), read_version=0), Published)


def test_first_files_of_buckets_of_different_sizes_conflict(publish: Publish) -> None:
    publish(written(bucket(5, 8)), read_version=0)
    outcome = publish(written(bucket(0, 1)), read_version=0)
    assert isinstance(outcome, Conflicted)
