"""What a machine has on its disk once a file is acknowledged: the content, and each folder entry that leads to it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, schema_of
from app.kernel.format.operation import Operation
from tests.support.lake_table import LakeTable, Write, merged
from workers.engine.task_files import TaskResources

DATASET = define_dataset(CreateDataset(name="rows", schema=schema_of({"id": "int64"}), record_key=["id"]))


@dataclass
class Disk:
    """Notes what is synced, by the path under the root: of files also how many bytes they had then."""

    root: Path
    synced: list[tuple[str, int | None]] = field(default_factory=list)

    def fsync(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        [path] = [
            path for path in (self.root, *self.root.rglob("*")) if os.path.samestat(path.stat(), status)
        ]
        self.synced.append((str(path.relative_to(self.root)), None if path.is_dir() else status.st_size))


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(tmp_path)
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return disk


def test_file_is_synced_with_all_its_bytes_and_then_its_folder(disk: Disk) -> None:
    with LocalStorage(disk.root).create("file") as file:
        file.write(b"12345")
        assert disk.synced == []
    assert disk.synced == [("file", 5), (".", None)]


def test_file_that_can_be_made_again_is_not_synced(disk: Disk) -> None:
    with LocalStorage(disk.root).create("file", durable=False) as file:
        file.write(b"12345")
    assert disk.synced == []
    assert (disk.root / "file").read_bytes() == b"12345"


def test_files_that_are_synced_together_are_synced_on_leaving_and_their_folder_once(disk: Disk) -> None:
    with LocalStorage(disk.root).synced_together() as storage:
        for name in ("a", "b"):
            with storage.create(name) as file:
                file.write(b"12345")
        with storage.create("c", durable=False):
            pass
        assert disk.synced == []
    assert disk.synced == [("a", 5), ("b", 5), (".", None)]


def test_many_files_that_are_synced_together_are_open_in_part(disk: Disk) -> None:
    with LocalStorage(disk.root).synced_together() as storage:
        for number in range(200):
            with storage.create(f"{number:03}"):
                pass
            assert _open_files() < 200
    assert [name for name, size in disk.synced if size == 0] == [f"{number:03}" for number in range(200)]


def test_files_that_are_synced_together_are_left_unsynced_by_an_exception(disk: Disk) -> None:
    opened = _open_files()

    def half() -> None:
        with LocalStorage(disk.root).synced_together() as storage:
            with storage.create("a"):
                pass
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        half()
    assert disk.synced == []
    assert _open_files() == opened


@pytest.mark.parametrize("table_type", list(TableType))
@pytest.mark.parametrize("buckets", [1, 3])
def test_files_of_a_merge_are_synced_before_it_ends(disk: Disk, table_type: TableType, buckets: int) -> None:
    dataset = define_dataset(
        CreateDataset(
            name="rows",
            schema=schema_of({"id": "int64"}),
            record_key=["id"],
            table_type=table_type,
            bucket=CreateBucket(count=buckets),
        )
    )
    storage = LocalStorage(disk.root)
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=2**24))
    table = LakeTable(storage=storage, dataset=dataset)
    for operation in (Operation.UPSERT, Operation.DELETE):
        write = Write(operation=operation, rows=[{"id": number} for number in range(50)])
        tasks = table.plan(write)
        messages = merged(resources, tasks)
        made = [path for message in messages for file in message.added for path in file.paths]
        made += [file.path for message in messages for file in message.changelog]
        assert made
        for path in made:
            assert (path, storage.size(path)) in disk.synced
            assert (str(Path(path).parent), None) in disk.synced
        table.commit([write], messages)


def test_rows_that_the_api_stages_are_synced(disk: Disk) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    staged = StagedFileStore(LocalStorage(disk.root)).stage(DATASET, Operation.UPSERT, rows, "staged")
    assert staged is not None
    assert ("staged", staged.size_bytes) in disk.synced


def test_new_folder_is_synced_into_its_parent(disk: Disk) -> None:
    storage = LocalStorage(disk.root)
    with storage.create("a/b/file"):
        assert disk.synced == [(".", None), ("a", None)]
    assert disk.synced[2:] == [("a/b/file", 0), ("a/b", None)]
    disk.synced.clear()
    with storage.create("a/c/file"):
        assert disk.synced == [("a", None)]


def test_folder_made_by_another_process_is_synced_once(disk: Disk) -> None:
    (disk.root / "a" / "b").mkdir(parents=True)
    storage = LocalStorage(disk.root)
    with storage.create("a/b/file"):
        assert disk.synced == [(".", None), ("a", None)]
    disk.synced.clear()
    with storage.create("a/b/other"):
        assert disk.synced == []


def test_unfinished_file_is_removed_and_not_synced(disk: Disk) -> None:
    def half() -> None:
        with LocalStorage(disk.root).create("half") as file:
            file.write(b"half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        half()
    assert disk.synced == []
    assert list(disk.root.iterdir()) == []
