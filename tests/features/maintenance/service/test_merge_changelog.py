"""The policy `services.changelog`: when changelog files are merged, and the result of a merge that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from app.core.feature.reconcilers import Observation, ReconcileResult
from app.features.maintenance.service.merge_changelog import MergeChangelog
from app.infra.files.changelog_merge import ChangelogMerger
from app.infra.files.parquet_file import create_parquet
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.merge_plan import SmallFile
from app.kernel.format.file_group import StoredFile
from app.kernel.format.policies import ChangelogPolicy, TableServices
from tests.support.merged_feed import MergedFeed
from tests.support.versioned_tables import committed_at, written_versioned_table

LEAST = 5
POLICY = ChangelogPolicy(small_files=LEAST, seconds=60)


@dataclass(kw_only=True)
class Merging:
    """The feed of a table, its catalogue, and the reconciler that looks after it."""

    feed: MergedFeed
    policy: ChangelogPolicy | None = POLICY
    now: Any = field(default_factory=lambda: committed_at(10_000))
    memory: dict[str, Any] = field(default_factory=dict)
    refuses: bool = False
    large: int | None = None

    def small_files(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> list[SmallFile]:
        files = self.feed.files()
        if self.large is not None:
            del files[self.large]
        return [each for each in files if each.first_offset >= since][:limit]

    def replace(
        self, tenant_id: str, dataset_id: str, epoch: int, replaced: Sequence[SmallFile], merged: StoredFile
    ) -> bool:
        assert epoch == 7
        if self.refuses:
            return False
        self.feed.list_merged(replaced, merged)
        return True

    def reconcile(self) -> ReconcileResult:
        dataset = self.feed.dataset
        services = TableServices(changelog=self.policy)
        dataset = structs.replace(dataset, definition=structs.replace(dataset.definition, services=services))
        merger = ChangelogMerger(storage=self.feed.table.storage, reader=self.feed.table.reader)
        result = MergeChangelog(files=self, merger=merger).reconcile(
            Observation(dataset=dataset, since_version=0, memory=self.memory, now=self.now, epoch=7)
        )
        self.memory = result.memory
        return result

    def merged(self) -> int:
        """Merges until nothing is due; returns how many merges there were."""
        while self.reconcile().wake_after_seconds == 0.0:
            pass
        return int(self.memory["merges"])


@pytest.fixture
def merging(tmp_path: Path) -> Merging:
    return Merging(
        feed=MergedFeed(table=written_versioned_table(LocalStorage(tmp_path), "copy_on_write").table)
    )


def test_small_files_are_merged_until_few_are_left(merging: Merging, tmp_path: Path) -> None:
    before = [structs.replace(each, file=None, first_row=0) for each in merging.feed.listed]
    files = len(merging.feed.files())
    assert files > 2 * LEAST
    assert merging.merged() == 1
    assert len(merging.feed.files()) == 1
    assert merging.memory["files"] == files
    assert [structs.replace(each, file=None, first_row=0) for each in merging.feed.listed] == before
    assert len(list(tmp_path.glob("**/changes/merged-7-*.parquet"))) == 1
    # Nothing more is due, and the next look starts where files may still come.
    assert merging.reconcile().wake_after_seconds is None


def test_young_files_wait_for_their_age(merging: Merging) -> None:
    files = merging.feed.files()
    assert merging.policy is not None
    merging.now = files[LEAST - 1].committed_at + timedelta(seconds=merging.policy.seconds - 1)
    assert merging.reconcile().wake_after_seconds == merging.policy.seconds
    assert merging.feed.files() == files
    merging.now += timedelta(seconds=1)
    assert merging.reconcile().wake_after_seconds == 0.0
    assert len(merging.feed.files()) < len(files)


def test_young_files_before_a_large_one_wait_for_their_age(merging: Merging) -> None:
    """Nothing will be added to them, but they are not merged yet."""
    merging.large = LEAST + 1
    files = merging.feed.files()
    merging.now = files[0].committed_at
    assert merging.reconcile().wake_after_seconds is not None
    merging.now = committed_at(10_000)
    assert merging.reconcile().wake_after_seconds == 0.0
    assert merging.feed.files()[0].file.row_count == files[LEAST + 1].first_offset


def test_no_policy_merges_nothing(merging: Merging) -> None:
    files = merging.feed.files()
    merging.policy = None
    assert merging.reconcile() == ReconcileResult()
    assert merging.feed.files() == files
    # More files than there are: what the policy leaves is merged under another one.
    merging.policy = ChangelogPolicy(small_files=1_000)
    assert merging.merged() == 0
    merging.policy = ChangelogPolicy(small_files=2)
    assert merging.merged() >= 1


def test_lost_race_is_tried_again_later(merging: Merging) -> None:
    merging.refuses = True
    wake = merging.reconcile().wake_after_seconds
    assert wake is not None
    assert wake > 1
    merging.refuses = False
    assert merging.merged() == 1


def test_files_behind_a_damaged_one_are_merged(merging: Merging, tmp_path: Path) -> None:
    files = merging.feed.files()
    damaged = tmp_path / files[3].file.path
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    assert merging.merged() == 1
    assert [each.file.path for each in merging.feed.files()[:4]] == [each.file.path for each in files[:4]]
    assert len(merging.feed.files()) == 5


def test_files_before_and_behind_one_with_other_columns_are_merged(merging: Merging) -> None:
    files, feed = merging.feed.files(), merging.feed
    other, storage = files[LEAST].file, feed.table.storage
    rows = feed.table.reader.open(other).read()
    at = rows.schema.get_field_index("n")
    rows = rows.set_column(at, rows.schema.field(at).with_type(pa.int64()), rows.column(at).cast(pa.int64()))
    with create_parquet(storage, f"{other.path}.other", rows.schema, row_group_rows=100) as sink:
        sink.write(rows)
        sink.finish()
    feed.list_merged(files[LEAST : LEAST + 1], sink.stored(other.schema_id))
    assert merging.merged() == 2
    assert [each.first_offset for each in feed.files()] == [
        files[0].first_offset, files[LEAST].first_offset, files[LEAST + 1].first_offset,
    ]  # fmt: skip
    assert merging.reconcile().wake_after_seconds is None
