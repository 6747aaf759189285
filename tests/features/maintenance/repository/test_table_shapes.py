"""What file groups consist of, as Postgres counts it, is what a walk over the live files counts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from msgspec import structs

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.features.maintenance.repository.table_shapes import TableShapeStore
from app.infra.identifiers import new_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.compaction_policy import GroupShape
from app.kernel.format.file_group import (
    DataFile,
    DeletionVector,
    FileKind,
    Slot,
    append_file_group,
    bucket_file_group,
    partition_of,
)
from tests.support.lakehouse import commit_of, data_file
from tests.support.store_fixtures import Stores

SMALL = 1_000
SLOTS = [
    Slot(partition_path=path, bucket=bucket) for path in ("", "day=1", "day=10", "ß/é") for bucket in (0, 1)
]


@pytest.fixture
def shapes(stores: Stores) -> TableShapeStore:
    return TableShapeStore(stores.database)


class Table:
    """A dataset that is committed to at random; knows what is live."""

    def __init__(self, stores: Stores, dataset: Dataset, running: Callable[[], Job]) -> None:
        self._stores, self._dataset, self._running = stores, dataset, running
        self.live: list[DataFile] = []
        self.touched: list[set[str]] = []

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile] = ()) -> int:
        version = len(self.touched)
        groups = {file.file_group for file in (*added, *removed)}
        messages = [
            CommitMessage(
                file_group=group,
                added=tuple(file for file in added if file.file_group == group),
                removed=tuple(file.path for file in removed if file.file_group == group),
                changelog=(),
            )
            for group in sorted(groups)
        ]
        self._stores.timeline.publish_one(
            self._dataset.tenant_id, commit_of([self._running()], messages, read_version=version)
        )
        self.touched.append({file.file_group for file in added})
        gone = {file.path for file in removed}
        live = self._stores.timeline.live_files(self._dataset.tenant_id, self._dataset.id, version + 1, None)
        assert {file.path for file in live} == ({file.path for file in self.live} - gone) | {
            file.path for file in added
        }
        self.live = live
        return version + 1


@pytest.fixture
def table(stores: Stores, dataset: Dataset, running: Callable[[], Job]) -> Table:
    return Table(stores, dataset, running)


def new_file(chance: random.Random, slot: Slot, group: str) -> DataFile:
    return structs.replace(
        data_file(rows=chance.randrange(1, 50)),
        slot=slot,
        file_group=group,
        size_bytes=chance.choice([10, SMALL - 1, SMALL, 5_000]),
        kind=chance.choice([FileKind.BASE, FileKind.BASE, *FileKind]),
    )


def with_vector(file: DataFile, rows: int) -> DataFile:
    vector = DeletionVector(path="deletes/1", offset=0, size_bytes=7, checksum="x", cardinality=rows)
    return structs.replace(file, added_version=None, deletion_vector=vector)


def counted(live: Sequence[DataFile], small: Callable[[DataFile], object]) -> dict[str, GroupShape]:
    """The shapes of all groups. `small`: where a small file of the group counts."""
    found: dict[str, GroupShape] = {}
    together = Counter(small(file) for file in live if file.kind is FileKind.BASE and file.size_bytes < SMALL)
    for group in {file.file_group for file in live}:
        mine = [file for file in live if file.file_group == group]
        base = [file for file in mine if file.kind is FileKind.BASE]
        logs = [file for file in mine if file.kind in (FileKind.LOG, FileKind.POSTPONED)]
        tombstones = Counter(file.slot for file in mine if file.kind is FileKind.TOMBSTONE)
        small_base = (together[small(file)] for file in base if file.size_bytes < SMALL)
        shape = GroupShape(
            file_group=group,
            logs=len(logs),
            log_bytes=sum(file.size_bytes for file in logs),
            oldest_log=min((file.written_version or 0 for file in logs), default=None),
            base_bytes=sum(file.size_bytes for file in base),
            base_rows=sum(file.row_count for file in base),
            deleted_rows=sum(file.row_count - file.live_rows for file in base),
            small_files=max([*small_base, *tombstones.values()], default=0),
            oldest_tombstones=min(
                (file.written_at for file in mine if file.kind is FileKind.TOMBSTONE and file.written_at),
                default=None,
            ),
        )
        if shape.logs or shape.deleted_rows or tombstones or shape.small_files > 1:
            found[group] = shape
    return found


def test_keyed_groups_are_measured_by_bucket(
    shapes: TableShapeStore, table: Table, tenant_id: str, dataset: Dataset
) -> None:
    chance = random.Random(7)
    # One group holds the rows of several partitions and buckets.
    groups = {slot: bucket_file_group(slot) for slot in SLOTS[:6]} | dict.fromkeys(SLOTS[6:], "bucket-00009")
    for _ in range(12):
        slots = chance.sample(SLOTS, 3)
        gone = chance.sample(table.live, min(len(table.live), chance.randrange(3)))
        again = [
            with_vector(file, 1) for file in gone if file.kind is FileKind.BASE and chance.random() < 0.7
        ]
        added = [
            new_file(chance, slot, groups[slot]) for slot in slots for _ in range(chance.randrange(1, 3))
        ]
        table.commit([*added, *again], gone)
        expected = counted(table.live, lambda file: (file.file_group, file.slot))
        names = sorted({file.file_group for file in table.live})
        found = shapes.shapes(tenant_id, dataset.id, names, keyed=True, small_below=SMALL)
        assert {shape.file_group: shape for shape in found} == expected
        assert [shape.file_group for shape in found] == sorted(expected)
    some = names[:2]
    found = shapes.shapes(tenant_id, dataset.id, some, keyed=True, small_below=SMALL)
    assert {shape.file_group for shape in found} == set(some) & set(expected)


def test_keyless_groups_are_measured_by_partition(
    shapes: TableShapeStore, table: Table, tenant_id: str, dataset: Dataset
) -> None:
    chance = random.Random(8)
    slots = [slot for slot in SLOTS if slot.bucket == 0]
    for number in range(10):
        added = []
        for slot in chance.sample(slots, 2):
            group = f"{slot.partition_path}/append-{number:05d}-1-0".lstrip("/")
            added += [
                structs.replace(new_file(chance, slot, group), kind=FileKind.BASE)
                for _ in range(chance.randrange(1, 3))
            ]
        gone = chance.sample(table.live, min(len(table.live), chance.randrange(2)))
        again = [with_vector(file, 1) for file in gone if chance.random() < 0.7]
        table.commit([*added, *again], gone)
        expected = counted(table.live, lambda file: file.slot)
        paths = sorted({file.slot.partition_path for file in table.live})
        found = shapes.shapes(tenant_id, dataset.id, paths, keyed=False, small_below=SMALL)
        assert {shape.file_group: shape for shape in found} == expected
    # `day=1` is no beginning of `day=10`, and the table's own groups are those of no other partition.
    for path in paths:
        found = shapes.shapes(tenant_id, dataset.id, [path], keyed=False, small_below=SMALL)
        mine = {file.file_group for file in table.live if file.slot.partition_path == path}
        assert {shape.file_group for shape in found} == mine & set(expected)


def test_touched_groups_are_those_that_commits_added_to(
    shapes: TableShapeStore, table: Table, tenant_id: str, dataset: Dataset
) -> None:
    chance = random.Random(9)
    for _ in range(6):
        slots = chance.sample(SLOTS, 2)
        gone = chance.sample(table.live, min(len(table.live), 1))
        table.commit([new_file(chance, slot, bucket_file_group(slot)) for slot in slots], gone)
    for since in range(1, 7):
        expected = sorted(set().union(*table.touched[since:]))
        for keyed in (True, False):
            wanted = expected if keyed else sorted({name.rpartition("/")[0] for name in expected})
            found: list[str] = []
            while True:
                page = shapes.touched(
                    tenant_id, dataset.id, keyed=keyed, since_version=since,
                    after=found[-1] if found else None, limit=2,
                )  # fmt: skip
                found += page
                if len(page) < 2:
                    break
            assert found == wanted
    everything = shapes.touched(tenant_id, dataset.id, keyed=True, since_version=0, after=None, limit=99)
    assert everything == sorted({file.file_group for file in table.live}), (
        "what is empty has nothing to compact"
    )


def test_groups_of_another_tenant_are_not_measured(
    stores: Stores, shapes: TableShapeStore, table: Table, dataset: Dataset
) -> None:
    table.commit([new_file(random.Random(1), SLOTS[0], "bucket-00000") for _ in range(3)])
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert shapes.touched(other, dataset.id, keyed=True, since_version=0, after=None, limit=9) == []
    assert shapes.shapes(other, dataset.id, ["bucket-00000"], keyed=True, small_below=SMALL) == []


@pytest.mark.parametrize("keyed", [True, False])
def test_unclustered_files_are_measured_by_group(
    shapes: TableShapeStore, table: Table, tenant_id: str, dataset: Dataset, keyed: bool
) -> None:
    chance = random.Random(5)
    added = []
    for number in range(40):
        slot = chance.choice(SLOTS)
        group = bucket_file_group(slot) if keyed else append_file_group(slot, f"2026-{number % 9}")
        mark = chance.choice([None, "linear:1", "linear:1,2", "z_order:1"])
        added.append(structs.replace(new_file(chance, slot, group), clustered_by=mark))
    table.commit(added)
    table.commit([], added[::7])
    expected: dict[str, tuple[int, bool]] = {}
    for file in table.live:
        if file.clustered_by != "linear:1" and file.kind in (FileKind.BASE, FileKind.LOG):
            size, logs = expected.get(file.file_group, (0, False))
            expected[file.file_group] = size + file.size_bytes, logs or file.kind is FileKind.LOG
    names = sorted({file.file_group if keyed else file.slot.partition_path for file in table.live})
    for requested in (names, names[::2], []):
        found = shapes.unordered(tenant_id, dataset.id, requested, keyed=keyed, mark="linear:1")
        assert {group.file_group: (group.size_bytes, group.logs) for group in found} == {
            name: counts
            for name, counts in expected.items()
            if (name if keyed else partition_of(name)) in requested
        }
