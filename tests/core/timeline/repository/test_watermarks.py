"""The watermark of heads and commits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.jobs.values import Job
from app.core.timeline.values import Published
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.conflict import Conflicted
from app.kernel.commit.watermarks import Lateness
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
LATER = NOON + timedelta(microseconds=1)


def judged(
    before: datetime | None, watermark: datetime | None, bucket: int = 0, *, changes: int = 2
) -> CommitMessage:
    made = message(bucket, changes=changes)
    return msgspec.structs.replace(made, lateness=Lateness(before=before, watermark=watermark))


@pytest.fixture
def commit(stores: Stores, tenant_id: str, running: Callable[[], Job]) -> Callable[..., object]:
    def run(*messages: CommitMessage, read_version: int) -> object:
        made = commit_of([running()], messages, read_version=read_version)
        return stores.timeline.publish_one(tenant_id, made)

    return run


def test_watermark_of_a_version_is_the_greatest_up_to_it(
    stores: Stores, tenant_id: str, dataset: Dataset, commit: Callable[..., object]
) -> None:
    assert isinstance(commit(judged(None, None), read_version=0), Published)
    assert stores.catalog.get(tenant_id, dataset.id).watermark is None
    assert isinstance(commit(judged(None, NOON, 1), judged(None, LATER, 2), read_version=1), Published)
    assert isinstance(commit(judged(LATER, NOON, 3), read_version=2), Published)
    # A commit of rows that were not compared, such as a compaction.
    assert isinstance(commit(message(1), read_version=3), Published)
    assert stores.catalog.get(tenant_id, dataset.id).watermark == LATER
    entries = stores.timeline.instants(tenant_id, dataset.id, page_size=10, page_token=None).items
    assert sorted((entry.version, entry.watermark) for entry in entries) == [
        (1, None),
        (2, LATER),
        (3, LATER),
        (4, LATER),
    ]


def test_position_has_the_watermark_of_the_last_commit_that_ends_before_it(
    stores: Stores, tenant_id: str, dataset: Dataset, commit: Callable[..., object]
) -> None:
    commit(judged(None, NOON, changes=2), read_version=0)
    commit(judged(NOON, LATER, 1, changes=3), read_version=1)
    index = ChangelogStore(stores.database)
    found = [index.watermark(tenant_id, dataset.id, position) for position in range(6)]
    assert found == [None, None, NOON, NOON, NOON, LATER]


def test_rows_that_were_compared_with_an_earlier_watermark_are_planned_again(
    stores: Stores, tenant_id: str, dataset: Dataset, commit: Callable[..., object]
) -> None:
    commit(judged(None, NOON), read_version=0)
    # The commit wrote other file groups, so nothing else conflicts.
    lost = commit(judged(None, LATER, 1), message(2), read_version=0)
    assert isinstance(lost, Conflicted)
    assert sorted(lost.file_groups) == sorted({judged(None, None, 1).file_group, message(2).file_group})
    assert stores.catalog.get(tenant_id, dataset.id).version == 1
