"""Many publishers at once: no gap in the versions, none in the offsets, and no version before its offsets."""

from __future__ import annotations

import random
import threading
from functools import partial
from itertools import chain

import msgspec

from app.core.catalog.values import Dataset
from app.core.timeline.values import Published
from app.kernel.commit.conflict import Conflicted
from tests.support.lakehouse import RULES, commit_of, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

PUBLISHERS = 8
COMMITS_EACH = 12
BUCKETS = 5


def test_offsets_are_dense_under_concurrent_publishers(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    rules = msgspec.structs.replace(RULES, group_jobs_max=1, dataset_writers_max=PUBLISHERS)
    for _ in range(PUBLISHERS * COMMITS_EACH):
        stores.jobs.accept(tenant_id, new_job(dataset.id))
    done = threading.Event()

    def publish(seed: int) -> list[Published]:
        choice = random.Random(seed)
        published = []
        while job := next(iter(stores.jobs.claim(tenant_id, dataset.id, f"worker-{seed}", rules)), None):
            bucket, changes = choice.randrange(BUCKETS), choice.randrange(4)
            while True:
                read = stores.catalog.get(tenant_id, dataset.id).version
                group = message(bucket).file_group
                base = stores.timeline.live_files(tenant_id, dataset.id, read, [group])
                assert len(base) <= 1
                commit = commit_of([job], [message(bucket, removed=base, changes=changes)], read_version=read)
                result = stores.timeline.publish_one(tenant_id, commit)
                if isinstance(result, Conflicted):
                    assert result.file_groups == (group,)
                    continue
                assert isinstance(result, Published)
                published.append(result)
                break
        return published

    def check_feed() -> list[Published]:
        """What a follower sees: every offset below the head has its file already."""
        while not done.is_set():
            bounds = stores.changelog.bounds(tenant_id, dataset.id)
            segments = stores.changelog.segments(tenant_id, dataset.id, 0, bounds.next_offset)
            assert sum(segment.file.row_count for segment in segments) == bounds.next_offset
        return []

    def publish_all() -> list[Published]:
        try:
            return [*chain(*together([partial(publish, seed) for seed in range(PUBLISHERS)]))]
        finally:
            done.set()

    published = sorted(chain(*together([publish_all, check_feed])), key=lambda each: each.version)
    assert [each.version for each in published] == list(range(1, PUBLISHERS * COMMITS_EACH + 1))
    ends = [0, *(each.next_offset for each in published)]
    assert [each.first_offset for each in published] == ends[:-1]
    segments = stores.changelog.segments(tenant_id, dataset.id, 0, ends[-1])
    expected = 0
    for segment in segments:
        assert segment.first_offset == expected
        expected += segment.file.row_count
    assert expected == ends[-1] == stores.catalog.get(tenant_id, dataset.id).next_offset
    live = stores.timeline.live_files(tenant_id, dataset.id, len(published), None)
    assert len({file.file_group for file in live}) == len(live) == BUCKETS
