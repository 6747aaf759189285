"""What a compaction rewrites: as little as is worth it, and all that a log may touch."""

from __future__ import annotations

import msgspec
import pytest

from app.kernel.commit.compaction_plan import plan_compaction
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import DataFile, DeletionVector, FileKind, Slot, bucket_file_group

TARGET = 100
MARKED = DeletionVector(path="v", offset=0, size_bytes=1, checksum="", cardinality=1)

# files: name:kind and size, in the order of their commits. m is one with a deletion vector, l a log, b a base file,
# t a file of tombstones, e one of which some have ended;
# a file of a keyed dataset is in group 0, one without a key in a group of its own. tasks: what is rewritten together
PLANS = """
keyed  files                  tasks
yes    a:b10                  -
yes    a:b10 b:b10            a,b
yes    a:b90 b:b10 c:b10      b,c
yes    a:b90 b:b90            -
yes    a:b90 b:m90            b
yes    a:b90 b:b10 c:m90      b,c
yes    a:b90 b:b10 c:l10      a,b,c
yes    c:l10                  c
yes    a:t10                  -
yes    a:t10 b:t90            a,b
yes    a:e90                  a
yes    a:b10 b:t10            -
yes    a:b10 b:b10 c:t10      a,b
yes    a:b10 b:b10 c:e10      a,b,c
yes    a:b90 b:t10 c:l10      a,b,c
no     a:b10                  -
no     a:b10 b:b90 c:b10      a,c
no     a:m90                  a
no     a:b24 b:b24 c:b24 d:b24 e:b24 f:b24      a,b,c,d,e
no     a:b24 b:b24 c:b24 d:b24 e:b24 f:b24 g:b24   a,b,c,d,e f,g
"""


def dataset(*, keyed: bool) -> DatasetDefinition:
    fields = [CreateField(name="id", type="int64"), CreateField(name="p", type="string")]
    new = CreateDataset(
        name="t",
        schema=CreateSchema(fields=fields),
        record_key=["id", "p"] if keyed else [],
        partition_by=["p"],
    )
    return msgspec.structs.replace(define_dataset(new), target_bytes=TARGET)


def file_of(text: str, version: int, *, keyed: bool, partition: str = "p=a") -> DataFile:
    name, kind = text.split(":")
    slot = Slot(partition_path=partition, bucket=0)
    return DataFile(
        path=name,
        size_bytes=int(kind[1:]),
        checksum="",
        row_count=10,
        schema_id=1,
        file_group=bucket_file_group(slot) if keyed else f"{partition}/append-{name}",
        slot=slot,
        kind={"l": FileKind.LOG, "t": FileKind.TOMBSTONE, "e": FileKind.TOMBSTONE}.get(
            kind[0], FileKind.BASE
        ),
        added_version=version,
        deletion_vector=MARKED if kind[0] in "me" else None,
    )


@pytest.mark.parametrize("line", PLANS.strip().splitlines()[1:])
def test_compaction_folds_the_expected_files(line: str) -> None:
    keyed, *words = line.split()
    files = [file_of(word, at, keyed=keyed == "yes") for at, word in enumerate(words) if ":" in word]
    expected = [word for word in words if ":" not in word and word != "-"]
    tasks = plan_compaction(dataset(keyed=keyed == "yes"), files, attempt="now", data_prefix="d")
    assert [",".join(file.path for file in task.files) for task in tasks] == expected
    assert all(task.compact for task in tasks)
    if keyed == "no":
        groups = [task.file_group for task in tasks]
        assert len(set(groups)) == len(groups)
        assert all(name.startswith("p=a/append-now") for name in groups)


def test_tombstone_files_are_joined_within_their_bucket() -> None:
    files = [
        msgspec.structs.replace(
            file_of(f"{number}:t1", number, keyed=True), slot=Slot(partition_path="p=a", bucket=bucket)
        )
        for number, bucket in enumerate([0, 0, 1, 2])
    ]
    [task] = plan_compaction(dataset(keyed=True), files, attempt="now", data_prefix="d")
    assert [file.path for file in task.files] == ["0", "1"]


@pytest.mark.parametrize("keyed", [True, False])
def test_compaction_is_restricted_to_the_requested_partitions_and_groups(keyed: bool) -> None:
    files = [
        file_of(f"{partition}{number}:b10", number, keyed=keyed, partition=f"p={partition}")
        for partition in "ab"
        for number in range(3)
    ]

    def files_of_plan(**request: object) -> list[str]:
        tasks = plan_compaction(dataset(keyed=keyed), files, attempt="now", data_prefix="d", **request)
        return sorted(file.path for task in tasks for file in task.files)

    assert files_of_plan(partitions=("p=b",)) == ["b0", "b1", "b2"]
    assert files_of_plan(partitions=("p=*",)) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    groups = {file.file_group for file in files if file.path in ("a0", "a1")}
    assert files_of_plan(file_groups=groups) == (["a0", "a1", "a2"] if keyed else ["a0", "a1"])
    assert files_of_plan(file_groups=groups, partitions=("p=b",)) == []


@pytest.mark.parametrize("keyed", [True, False])
def test_policy_leaves_few_small_files_and_rewrites_a_row_a_few_times(keyed: bool) -> None:
    """Writes of ten rows, and a compaction by policy whenever 32 files of the partition are small."""
    dataset_of_test = msgspec.structs.replace(dataset(keyed=keyed), target_bytes=256 * 1024 * 1024)
    files: dict[str, DataFile] = {}
    rewritten, writes = 0, 5_000
    for number in range(writes):
        new = file_of(f"w{number}:b2400", number, keyed=keyed)
        files[new.path] = new
        if len(files) < 32:
            continue
        groups = {file.file_group for file in files.values()}
        [task] = plan_compaction(
            dataset_of_test, files.values(), file_groups=groups, attempt=f"c{number}", data_prefix="d"
        )
        rows = sum(files.pop(file.path).row_count for file in task.files)
        rewritten += rows
        joined = msgspec.structs.replace(
            new, path=f"c{number}", row_count=rows, size_bytes=60 * rows, file_group=task.file_group
        )
        files[joined.path] = joined
        assert len(files) <= 16
    assert sum(file.row_count for file in files.values()) == 10 * writes
    assert rewritten <= 7 * 10 * writes


def test_requested_compaction_joins_all_small_files() -> None:
    sizes = [1, 5, 20]
    files = [
        msgspec.structs.replace(file_of(f"a{size}:b{size}", size, keyed=False), row_count=size * 100)
        for size in sizes
    ]
    [task] = plan_compaction(dataset(keyed=False), files, attempt="now", data_prefix="d")
    assert len(task.files) == 3
    groups = {file.file_group for file in files}
    by_policy = plan_compaction(
        dataset(keyed=False), files, file_groups=groups, attempt="now", data_prefix="d"
    )
    assert by_policy == [], "a file of 100 rows is not worth the rewrite of one of 500"
