"""Files, partitions and sums of a table agree with the files of its timeline, at every version."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import groupby

import msgspec
import pytest

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.values import Job, NewJob
from app.core.timeline.errors import VersionExpired
from app.core.timeline.values import Published
from app.features.overview.repository import SIZE_BOUNDS, OverviewStore
from app.features.overview.values import FileQuery, KindTotals, PartitionRecord
from app.features.retention.repository.history import HistoryStore
from app.infra.identifiers import new_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.file_group import (
    DataFile,
    DeletionVector,
    FileKind,
    IndexFile,
    IndexKind,
    Slot,
    bucket_file_group,
)
from app.kernel.format.instant import Action
from app.kernel.format.policies import HistoryPolicy
from tests.support.lakehouse import commit_of, data_file, definition, message
from tests.support.store_fixtures import Stores

EVERY = FileQuery()


@pytest.fixture
def overview(stores: Stores) -> OverviewStore:
    return OverviewStore(stores.database)


def new_file(chance: random.Random, slot: Slot, kind: FileKind) -> DataFile:
    path = f"data/{slot.partition_path}/{chance.randrange(2**40):011x}.parquet"
    index = IndexFile(path=f"{path}.i", size_bytes=11, checksum="xxh3:1", kind=IndexKind.BLOOM)
    return msgspec.structs.replace(
        data_file(rows=chance.randrange(1, 50)),
        path=path,
        size_bytes=chance.choice([10, 70_000, 2**24, 2**30, 2**31]),
        kind=kind,
        slot=slot,
        file_group=bucket_file_group(slot),
        index_file=index if chance.random() < 0.5 else None,
    )


@pytest.fixture
def history(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> list[list[DataFile]]:
    """The files at each version: some came, some went, some lost rows to deletion vectors."""
    chance = random.Random(5)
    slots = [
        Slot(partition_path=f"day={day}", bucket=bucket) for day in ("a", "b", "ß/c") for bucket in (0, 1)
    ]
    ended = Slot(partition_path="day=ended", bucket=0)
    versions: list[list[DataFile]] = [[]]
    for version in range(1, 12):
        live = versions[-1]
        messages = []
        for slot in chance.sample(slots, 2):
            mine = [file for file in live if file.slot == slot]
            gone = chance.sample(mine, min(len(mine), chance.randrange(3)))
            again = [
                msgspec.structs.replace(
                    file,
                    added_version=None,
                    deletion_vector=DeletionVector(
                        path=f"deletes/{version}", offset=0, size_bytes=7, checksum="xxh3:2", cardinality=1
                    ),
                )
                for file in gone
                if file.kind is FileKind.BASE and chance.random() < 0.7
            ]
            new = [
                new_file(chance, slot, chance.choice([FileKind.BASE, FileKind.BASE, *FileKind]))
                for _ in range(chance.randrange(1, 4))
            ]
            messages.append(
                CommitMessage(
                    file_group=bucket_file_group(slot),
                    removed=tuple(file.path for file in gone),
                    added=(*again, *new),
                )
            )
        if version == 3:
            only = new_file(chance, ended, FileKind.TOMBSTONE)
            messages.append(CommitMessage(file_group=only.file_group, added=(only,)))
        commit = commit_of([running()], messages, read_version=version - 1)
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)
        versions.append(stores.timeline.live_files(tenant_id, dataset.id, version, None))
    assert any(file.deletion_vector for file in versions[-1])
    assert {file.kind for file in versions[-1]} == set(FileKind)
    return versions


def walk(overview: OverviewStore, dataset: Dataset, version: int, query: FileQuery = EVERY) -> list[DataFile]:
    found: list[DataFile] = []
    while True:
        page = overview.files(dataset.tenant_id, dataset.id, version, query, skip=len(found), limit=3)
        found += page
        if len(page) < 3:
            return found


def totals_of(files: list[DataFile]) -> KindTotals:
    return KindTotals(
        files=len(files),
        rows=sum(file.row_count for file in files),
        deleted_rows=sum(file.row_count - file.live_rows for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        vector_bytes=sum(file.deletion_vector.size_bytes for file in files if file.deletion_vector),
        index_bytes=sum(file.index_file.size_bytes for file in files if file.index_file),
    )


def test_file_pages_equal_the_timeline_at_every_version(
    overview: OverviewStore, dataset: Dataset, history: list[list[DataFile]]
) -> None:
    for version, files in enumerate(history):
        assert walk(overview, dataset, version) == files


def test_files_are_filtered_by_partition_and_kind(
    overview: OverviewStore, dataset: Dataset, history: list[list[DataFile]]
) -> None:
    for kind in (None, *FileKind):
        for partition in (None, "day=ß/c", "day=a", "day="):
            query = FileQuery(partition=partition, kind=kind)
            assert walk(overview, dataset, 11, query) == [
                file
                for file in history[11]
                if kind in (None, file.kind) and partition in (None, file.slot.partition_path)
            ]


def test_partition_and_total_sums_equal_the_files_at_every_version(
    stores: Stores, overview: OverviewStore, dataset: Dataset, history: list[list[DataFile]]
) -> None:
    times = stores.timeline.commit_times(dataset.tenant_id, dataset.id, range(12))
    for version, files in enumerate(history):
        totals = overview.totals(dataset.tenant_id, dataset.id, version, small_below=80_000)
        base = [file for file in files if file.kind is FileKind.BASE]
        assert totals.kinds == {
            kind: totals_of([file for file in files if file.kind is kind]) for kind in FileKind
        }
        assert totals.small_files == sum(file.size_bytes < 80_000 for file in base)
        assert totals.file_groups == len({file.file_group for file in files})
        assert [(each.files, each.size_bytes) for each in totals.sizes] == [
            (len(inside), sum(inside))
            for low, high in zip((0, *SIZE_BOUNDS), (*SIZE_BOUNDS, 2**63), strict=True)
            for inside in [[file.size_bytes for file in base if low <= file.size_bytes < high]]
        ]
        found: list[PartitionRecord] = []
        while page := overview.partitions(dataset.tenant_id, dataset.id, version, skip=len(found), limit=2):
            found += page
        by_path = sorted(files, key=lambda file: file.slot.partition_path)
        groups = {path: list(group) for path, group in groupby(by_path, lambda f: f.slot.partition_path)}
        # Tombstones are no rows of a partition.
        groups = {path: group for path, group in groups.items() if any(f.kind.holds_rows for f in group)}
        assert [each.path for each in found] == list(groups)
        assert totals.partitions == len(groups)
        for each in found:
            mine = groups[each.path]
            kinds = {kind: totals_of([file for file in mine if file.kind is kind]) for kind in FileKind}
            assert (each.base_files, each.logs, each.postponed, each.tombstone_files) == tuple(
                kinds[kind].files for kind in FileKind
            )
            assert each.rows == kinds[FileKind.BASE].rows - kinds[FileKind.BASE].deleted_rows
            assert (each.log_rows, each.postponed_rows) == (
                kinds[FileKind.LOG].rows,
                kinds[FileKind.POSTPONED].rows,
            )
            assert each.size_bytes == sum(file.size_bytes for file in mine)
            assert each.written_version == max(file.added_version or 0 for file in mine)
            assert each.written_at == times[each.written_version]


def test_base_statistics_are_returned_with_their_schemas(
    overview: OverviewStore, dataset: Dataset, history: list[list[DataFile]]
) -> None:
    found = list(overview.base_statistics(dataset.tenant_id, dataset.id, 11))
    expected = [file for file in history[11] if file.kind is FileKind.BASE]
    assert sorted(each.row_count for each in found) == sorted(file.row_count for file in expected)
    # Also of strings that hold what a database's own JSON functions refuse.
    assert {each.statistics["2"].minimum for each in found} == {"\0"}
    assert overview.schemas(dataset.tenant_id, dataset.id) == {1: dataset.definition.schema}


def test_totals_count_commits_changes_and_jobs(
    stores: Stores, overview: OverviewStore, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    empty = overview.totals(tenant_id, dataset.id, 0, small_below=1)
    assert (empty.commits, empty.changelog.files, empty.service_times, empty.lag) == ((), 0, {}, None)
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message(0, rows=2, changes=5)]))
    second = commit_of([running()], [message(1, rows=3, changes=2)], read_version=1)
    stores.timeline.publish_one(tenant_id, msgspec.structs.replace(second, action=Action.COMPACTION))
    task = NewJob(
        id=new_id(), instant_id=f"{'9' * 20}-abcdef", dataset_id=dataset.id, request=CompactionTask()
    )
    stores.jobs.accept(tenant_id, task)
    running()
    found = overview.totals(tenant_id, dataset.id, 2, small_below=1)
    assert [(each.action, each.commits, each.added_bytes) for each in found.commits] == [
        (Action.COMMIT, 1, 200),
        (Action.COMPACTION, 1, 300),
    ]
    assert found.service_times == {Action.COMPACTION: found.commits[1].committed_at}
    assert (found.changelog.files, found.changelog.size_bytes) == (2, 100)
    assert (found.queued_jobs, found.running_jobs, found.consumers) == (1, 1, 0)
    # At an earlier version only what was there then, but for what is about now.
    assert overview.totals(tenant_id, dataset.id, 1, small_below=1).changelog.files == 1


def test_version_that_expires_meanwhile_has_no_pages(
    stores: Stores, tenant_id: str, overview: OverviewStore, dataset: Dataset, history: list[list[DataFile]]
) -> None:
    """Some of its files may be gone."""
    place = tenant_id, dataset.id
    assert overview.files(*place, 5, EVERY, skip=0, limit=99)
    HistoryStore(stores.database).advance_start(*place, HistoryPolicy(versions=2))
    for version in (5, 9):
        with pytest.raises(VersionExpired):
            overview.files(*place, version, EVERY, skip=0, limit=99)
        with pytest.raises(VersionExpired):
            overview.partitions(*place, version, skip=0, limit=99)
    assert len(overview.files(*place, 10, EVERY, skip=0, limit=99)) == len(history[10])


def test_files_and_totals_of_another_tenant_are_empty(
    stores: Stores, overview: OverviewStore, dataset: Dataset, history: list[list[DataFile]]
) -> None:
    stranger = stores.tenants.add_tenant(f"tenant-{new_id()}")
    stores.catalog.create(stranger, new_id(), definition())
    assert history[11]
    with pytest.raises(NotFound):
        overview.files(stranger, dataset.id, 11, EVERY, skip=0, limit=9)
    with pytest.raises(NotFound):
        overview.partitions(stranger, dataset.id, 11, skip=0, limit=9)
    assert list(overview.base_statistics(stranger, dataset.id, 11)) == []
    assert overview.schemas(stranger, dataset.id) == {}
    nothing = overview.totals(stranger, dataset.id, 11, small_below=1)
    assert (nothing.commits, nothing.partitions, nothing.queued_jobs) == ((), 0, 0)
    assert set(nothing.kinds.values()) == {KindTotals()}
