"""Plans: which file groups a write touches, with which of their files, and which files a scope reaches."""

from __future__ import annotations

import msgspec
import pytest

from app.kernel.commit.write_options import Overwrite, OverwriteScope, SaveMode, WriteOptions
from app.kernel.commit.write_plan import (
    APPEND_BYTES_MAX,
    MergeTask,
    WriteIntent,
    WriteScope,
    WrittenGroups,
    plan_merge,
    touched_groups,
)
from app.kernel.commit.write_scope import has_scope, read_scope, scope_of
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import (
    ColumnStatistics,
    DataFile,
    FileKind,
    Slot,
    append_file_group,
    bucket_file_group,
    bucket_slot,
)
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedBatch, StagedFile
from app.kernel.sql.conditions.parse import parse_filter

FIELDS = [CreateField(name="day", type="string"), CreateField(name="id", type="int64")]


def dataset(**settings: object) -> DatasetDefinition:
    return define_dataset(
        CreateDataset(name="t", schema=CreateSchema(fields=FIELDS), partition_by=["day"], **settings)  # type: ignore[arg-type]
    )


KEYED = dataset(record_key=["day", "id"], bucket=CreateBucket(count=2))
HALVED = dataset(record_key=["day", "id"], bucket=CreateBucket(target_rows=50))
APPENDS = dataset()


def live_file(group: str, slot: Slot, *, low: int = 0, high: int = 9, **settings: object) -> DataFile:
    bounds = {"2": ColumnStatistics(minimum=low, maximum=high, null_count=0)}
    return DataFile(
        path=f"{group}/{low}-{high}", size_bytes=1, checksum="c", row_count=10, schema_id=1, file_group=group,
        slot=slot, statistics=bounds, **settings,  # type: ignore[arg-type]
    )  # fmt: skip


def in_bucket(day: str, bucket: int, **settings: object) -> DataFile:
    slot = Slot(partition_path=f"day={day}", bucket=bucket)
    return live_file(bucket_file_group(slot), slot, **settings)  # type: ignore[arg-type]


def appended(day: str, attempt: str, **settings: object) -> DataFile:
    slot = Slot(partition_path=f"day={day}", bucket=0)
    return live_file(append_file_group(slot, attempt), slot, **settings)  # type: ignore[arg-type]


def staged(path: str, *slots: tuple[str, int], size_bytes: int = 100) -> StagedFile:
    batches = tuple(
        StagedBatch(slot=Slot(partition_path=f"day={day}", bucket=bucket), index=index, rows=5)
        for index, (day, bucket) in enumerate(slots)
    )
    return StagedFile(path=path, size_bytes=size_bytes, checksum="c", rows=5 * len(slots), batches=batches)


def plan(
    definition: DatasetDefinition,
    writes: dict[int, list[StagedFile]],
    live: list[DataFile],
    *,
    operation: Operation = Operation.UPSERT,
    scope: WriteScope | None = None,
    done: tuple[str, ...] = (),
) -> list[MergeTask]:
    intents = {number: WriteIntent(operation=operation) for number in writes}
    return plan_merge(
        definition, writes, intents, live, scope=scope, done_groups=done, attempt="at", data_prefix="p"
    )


def summary(tasks: list[MergeTask]) -> list[tuple[str, int, int]]:
    """Group, files and segments of each task."""
    return [(task.file_group, len(task.files), len(task.segments)) for task in tasks]


def where(text: str) -> WriteScope:
    return WriteScope(where=parse_filter(text, KEYED.schema))


@pytest.mark.parametrize("path", ["", "day=a", "day=bucket-00001/x=1"])
def test_bucket_group_name_encodes_its_slot(path: str) -> None:
    slot = Slot(partition_path=path, bucket=17)
    assert bucket_slot(bucket_file_group(slot)) == slot


def test_grouped_writes_go_to_the_buckets_of_their_rows() -> None:
    writes = {0: [staged("x", ("a", 0), ("b", 1))], 1: [staged("y", ("a", 0))]}
    live = [in_bucket("a", 0), in_bucket("a", 1)]
    tasks = plan(KEYED, writes, live)
    assert summary(tasks) == [("day=a/bucket-00000", 1, 2), ("day=b/bucket-00001", 0, 1)]
    assert [sorted(task.intents) for task in tasks] == [[0, 1], [0]]
    assert touched_groups(KEYED, writes).names == tuple(task.file_group for task in tasks)
    assert touched_groups(KEYED, writes, {"day=a/bucket-00000"}).names == ("day=b/bucket-00001",)
    assert touched_groups(APPENDS, writes) == WrittenGroups()
    assert summary(plan(KEYED, writes, live, done=("day=a/bucket-00000",))) == [("day=b/bucket-00001", 0, 1)]


def test_files_of_a_group_are_ordered_by_commit() -> None:
    files = [in_bucket("a", 0, low=low, added_version=version) for low, version in ((1, 3), (2, 1), (3, 2))]
    [task] = plan(KEYED, {0: [staged("x", ("a", 0))]}, files)
    assert [file.added_version for file in task.files] == [1, 2, 3]


SCOPES = [
    (WriteScope(), ["a0", "a1", "b0"]),
    (WriteScope(partitions=("day=b",)), ["b0"]),
    (WriteScope(partitions=()), []),
    (where("id > 9"), ["a1"]),
    (where("day = 'b'"), ["b0"]),
    (where("day = 'c'"), []),
    (WriteScope(partitions=("day=a",), where=where("id > 9").where), ["a1"]),
]


@pytest.mark.parametrize(("scope", "reached"), SCOPES)
def test_scope_selects_the_buckets_that_may_hold_its_rows(scope: WriteScope, reached: list[str]) -> None:
    live = [in_bucket("a", 0), in_bucket("a", 1, low=5, high=20), in_bucket("b", 0)]
    tasks = plan(KEYED, {0: []}, live, operation=Operation.DELETE, scope=scope)
    assert [f"{task.slot.partition_path[-1]}{task.slot.bucket}" for task in tasks] == reached
    assert all(task.scope == scope and task.intents for task in tasks)


def test_selected_bucket_includes_all_its_files() -> None:
    live = [in_bucket("a", 0, low=0, high=4), in_bucket("a", 0, low=5, high=9)]
    [task] = plan(KEYED, {0: []}, live, operation=Operation.DELETE, scope=where("id = 7"))
    assert len(task.files) == 2


def test_log_is_selected_regardless_of_its_bounds() -> None:
    live = [in_bucket("a", 0, kind=FileKind.LOG)]
    assert plan(KEYED, {0: []}, live, operation=Operation.DELETE, scope=where("id = 99"))


def test_key_dynamic_scope_searches_a_partition_in_every_group() -> None:
    moving = dataset(record_key=["id"], bucket=CreateBucket(mode=BucketMode.KEY_DYNAMIC, count=2))
    group = bucket_file_group(Slot(partition_path="", bucket=1))
    live = [live_file(group, Slot(partition_path=f"day={day}", bucket=1)) for day in "ab"]
    [task] = plan(
        moving, {0: []}, live, operation=Operation.DELETE_PARTITION, scope=WriteScope(partitions=("day=b",))
    )
    assert (task.slot, len(task.files)) == (Slot(partition_path="", bucket=1), 2)
    assert not plan(moving, {0: []}, live[:1], scope=WriteScope(partitions=("day=b",)))


def test_overwrite_includes_the_buckets_of_its_rows() -> None:
    writes = {0: [staged("x", ("c", 0))]}
    tasks = plan(KEYED, writes, [in_bucket("a", 0)], operation=Operation.OVERWRITE, scope=WriteScope())
    assert summary(tasks) == [("day=a/bucket-00000", 1, 0), ("day=c/bucket-00000", 0, 1)]


def test_small_appends_share_a_group() -> None:
    small = {number: [staged(f"s{number}", ("a", 0))] for number in range(5)}
    assert summary(plan(APPENDS, small, [], operation=Operation.INSERT)) == [("day=a/append-at", 0, 5)]
    parts = [staged(f"l{number}", ("a", 0), size_bytes=APPEND_BYTES_MAX * 2 // 3) for number in range(3)]
    large = plan(APPENDS, {0: parts}, [], operation=Operation.INSERT)
    assert summary(large) == [(f"day=a/append-at{end}", 0, 1) for end in ("", "-1", "-2")]
    shuffled = dataset(bucket=CreateBucket(shuffle_by_partition=True))
    assert summary(plan(shuffled, {0: parts}, [], operation=Operation.INSERT)) == [("day=a/append-at", 0, 3)]


@pytest.mark.parametrize("operation", [Operation.OVERWRITE, Operation.SNAPSHOT])
def test_keyless_replacement_makes_one_group_per_partition(operation: Operation) -> None:
    live = [appended("a", "1"), appended("a", "2", low=20, high=30), appended("b", "3")]
    writes = {0: [staged("x", ("a", 0), ("c", 0)), staged("y", ("a", 0))]}
    tasks = plan(APPENDS, writes, live, operation=operation, scope=WriteScope())
    assert summary(tasks) == [
        ("day=a/append-at", 2, 2), ("day=b/append-at", 1, 0), ("day=c/append-at", 0, 1)
    ]  # fmt: skip
    filtered = plan(APPENDS, writes, live, operation=operation, scope=where("id = 25"))
    assert summary(filtered) == [("day=a/append-at", 1, 2), ("day=c/append-at", 0, 1)]


def test_merged_buckets_are_taken_in_a_plan_of_the_others() -> None:
    batch = StagedBatch(slot=Slot(partition_path="day=a", bucket=0, of=1), index=0, rows=5)
    writes = {0: [StagedFile(path="x", size_bytes=1, checksum="c", rows=5, batches=(batch,))]}
    assert summary(plan(HALVED, writes, [])) == [("day=a/bucket-00000-of-1", 0, 1)]
    again = plan(HALVED, writes, [], done=("day=a/bucket-00001-of-2",))
    assert summary(again) == [("day=a/bucket-00000-of-2", 0, 1)]
    assert touched_groups(HALVED, writes) == WrittenGroups(partitions=("day=a",))


def test_few_keys_read_the_buckets_of_all_sizes_that_may_have_them() -> None:
    batch = StagedBatch(slot=Slot(partition_path="day=a", bucket=0, of=1), index=0, rows=2, numbers=(1, 5))
    writes = {0: [StagedFile(path="x", size_bytes=1, checksum="c", rows=2, batches=(batch,))]}
    touched = touched_groups(HALVED, writes, done_groups=("day=a/bucket-00001-of-8",))
    assert not touched.partitions
    assert {bucket_slot(name) for name in touched.names} == {
        Slot(partition_path="day=a", bucket=number % of, of=of)
        for number in (1, 5)
        for of in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    } - {Slot(partition_path="day=a", bucket=1, of=8)}
    first, whole = "day=a/bucket-00001-of-8", "day=a/bucket-00001-of-4"
    assert touched.open_partitions([]) == touched.open_partitions([first]) == ("day=a",)
    assert (
        touched.open_partitions([first, "day=a/bucket-00005-of-8"]) == touched.open_partitions([whole]) == ()
    )


def test_many_keys_read_all_buckets_of_their_partition() -> None:
    batch = StagedBatch(
        slot=Slot(partition_path="day=a", bucket=0, of=1), index=0, rows=300, numbers=tuple(range(300))
    )
    writes = {0: [StagedFile(path="x", size_bytes=1, checksum="c", rows=300, batches=(batch,))]}
    assert touched_groups(HALVED, writes) == WrittenGroups(partitions=("day=a",))


def test_rows_of_each_staged_bucket_are_read_in_the_order_of_their_file() -> None:
    numbers = (3, 1, 0, 2, 0, 1)
    batches = tuple(
        StagedBatch(slot=Slot(partition_path="day=a", bucket=number, of=4), index=index, rows=30)
        for index, number in enumerate(numbers)
    )
    file = StagedFile(path="x", size_bytes=1, checksum="c", rows=180, batches=batches)
    tasks = plan(HALVED, {0: [file], 1: [file]}, [], done=("day=a/bucket-00000-of-2",))
    assert [task.file_group for task in tasks] == [
        f"day=a/bucket-{number:05d}-of-8" for number in (1, 3, 5, 7)
    ]
    read = [[(part.job, part.batch_indices) for part in task.segments] for task in tasks]
    assert read == [[(0, (1, 5)), (1, (1, 5))], [(0, (0,)), (1, (0,))]] * 2


def test_keyless_delete_rewrites_each_group() -> None:
    live = [appended("a", "1"), appended("a", "2", low=20, high=30), appended("b", "3")]
    tasks = plan(APPENDS, {0: []}, live, operation=Operation.DELETE, scope=where("id < 10"))
    assert summary(tasks) == [("day=a/append-1", 1, 0), ("day=b/append-3", 1, 0)]


LIVE = [appended("2026-01", "1"), appended("2026-02", "2"), appended("2027-01", "3")]
FILTER = Overwrite(scope=OverwriteScope.FILTER, where="id=1")
OF_WRITES = [
    (Operation.UPSERT, {}, None, None),
    (Operation.DELETE, {}, None, None),
    (Operation.SNAPSHOT, {}, WriteScope(), WriteScope()),
    (Operation.OVERWRITE, {}, WriteScope(), WriteScope()),
    (Operation.OVERWRITE, {"overwrite": FILTER}, where("id = 1"), WriteScope()),
    (
        Operation.OVERWRITE,
        {"overwrite": Overwrite(scope=OverwriteScope.PARTITIONS)},
        WriteScope(partitions=("day=x",)),
        WriteScope(partitions=("day=x",)),
    ),
    (Operation.DELETE, {"where": "id = 1"}, where("id = 1"), WriteScope()),
    (
        Operation.DELETE_PARTITION,
        {"partitions": ("day=2026-*", "day=9*")},
        WriteScope(partitions=("day=2026-01", "day=2026-02")),
        WriteScope(),
    ),
    (Operation.INSERT, {"mode": SaveMode.IGNORE}, None, WriteScope()),
    (Operation.INSERT, {"mode": SaveMode.ERROR_IF_EXISTS}, None, WriteScope()),
]


@pytest.mark.parametrize(("operation", "options", "scope", "read"), OF_WRITES)
def test_write_scope_and_its_read_scope_are_derived_from_options(
    operation: Operation, options: dict[str, object], scope: WriteScope | None, read: WriteScope | None
) -> None:
    write_options = WriteOptions(**options)  # type: ignore[arg-type]
    found = scope_of(operation, write_options, APPENDS, [staged("x", ("x", 0))], LIVE)
    assert found == scope
    assert read_scope(operation, write_options, found) == read
    assert has_scope(operation, write_options, APPENDS) is (read is not None)
    # Equal scopes are the same filter.
    assert msgspec.msgpack.encode(found) == msgspec.msgpack.encode(scope)


def test_scope_leaves_tombstones_alone() -> None:
    """A write that removes rows without naming keys has nothing to do with keys that are gone."""
    live = [in_bucket("a", 0, kind=FileKind.TOMBSTONE), in_bucket("a", 1)]
    [task] = plan(KEYED, {0: []}, live, operation=Operation.DELETE, scope=WriteScope())
    assert task.slot.bucket == 1
    # A task for rows of the bucket gets them, as all files of the group.
    tasks = plan(KEYED, {0: []}, [*live, in_bucket("a", 0)], operation=Operation.DELETE, scope=WriteScope())
    assert [len(task.files) for task in tasks] == [2, 1]
