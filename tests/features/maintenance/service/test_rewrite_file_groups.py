"""A table service with writers between its plan and its commit: what they change is neither lost nor done again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.timeline.values import Fenced, GroupFiles, NewCommit
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit import small_files
from app.kernel.commit.conflict import Conflicted
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.operation import Operation
from tests.support.lake_table import LakeTable, Row, Write, merged
from tests.support.table_services import ServedTable, result_of
from tests.support.verification import verified
from workers.engine.task_files import TaskResources

KEYED = {"record_key": ["id"], "bucket": {"count": 1}, "merge_mode": "commit_time"}
APPENDED = {"record_key": [], "bucket": None, "merge_mode": None}
LOGS = {"table_type": "merge_on_read", "changelog": {"producer": "input"}}
MARKED = {"table_type": "merge_on_read", "rewrites_small_files": False}
NewTable = Callable[..., LakeTable]


@pytest.fixture
def new_table(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> NewTable:
    resources = TaskResources.on(LocalStorage(tmp_path), MemoryBudget(bytes_max=2**26))

    def make(*, rewrites_small_files: bool = True, **members: Any) -> LakeTable:
        fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
        new = {"name": "t", "schema": {"fields": fields}, **KEYED, **members}
        definition = define_dataset(msgspec.convert(new, CreateDataset))
        if not rewrites_small_files:
            # Writes mark old rows in every file, however small it is.
            monkeypatch.setattr(small_files, "_ROWS_MAX", 0)
        return LakeTable(storage=resources.storage, dataset=definition, run=partial(merged, resources))

    return make


def upsert(table: LakeTable, note: str, *ids: int) -> None:
    table.write(Write(operation=Operation.UPSERT, rows=[{"id": number, "note": note} for number in ids]))


def append(table: LakeTable, note: str, *ids: int) -> None:
    table.write(Write(operation=Operation.INSERT, rows=[{"id": number, "note": note} for number in ids]))


def delete(table: LakeTable, *ids: int) -> None:
    table.write(Write(operation=Operation.DELETE, rows=[{"id": number} for number in ids]))


def delete_where(table: LakeTable, where: str) -> None:
    table.write(Write(operation=Operation.DELETE, options=WriteOptions(where=where)))


def notes(table: LakeTable) -> dict[int, str]:
    rows: list[Row] = table.rows()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["note"] for row in rows}


def plans(served: ServedTable) -> int:
    return len({task.attempt for task in served.tasks})


def test_rows_deleted_during_the_service_are_deleted_from_its_files(new_table: NewTable) -> None:
    table = new_table(**MARKED)
    for note, ids in (("a", range(8)), ("b", range(6, 12)), ("c", range(20, 24))):
        upsert(table, note, *ids)
    served = ServedTable(table=table)
    served.meanwhile = lambda: upsert(table, "new", 3, 7, 30)
    served.in_slot = _once(lambda: delete(table, 3, 21))
    commit = served.serve()
    assert plans(served) == 1
    [message] = commit.messages
    assert [file.deletion_vector.cardinality for file in message.added if file.deletion_vector] == [3]
    expected = {**dict.fromkeys(range(6), "a"), **dict.fromkeys(range(6, 12), "b")}
    expected |= {**dict.fromkeys(range(20, 24), "c"), 7: "new", 30: "new"}
    assert notes(table) == {key: note for key, note in expected.items() if key not in (3, 21)}
    assert verified(table).differences == 0


def test_service_of_a_partition_lists_the_files_of_this_partition(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(**MARKED, partition_by=["note"], record_key=["note", "id"])
    for note in ("a", "b", "c"):
        upsert(table, note, 1, 2)
        upsert(table, note, 2, 3)
    listed: list[DataFile] = []
    found = ServedTable.files_of_groups

    def files_of_groups(*arguments: Any) -> GroupFiles:
        part = found(*arguments)
        listed.extend(part.files)
        return part

    monkeypatch.setattr(ServedTable, "files_of_groups", files_of_groups)
    commit = ServedTable(table=table).serve(CompactionTask(partitions=("note=b",)))
    assert {file.slot.partition_path for file in listed} == {"note=b"}
    assert {message.file_group for message in commit.messages} == {file.file_group for file in listed}
    assert verified(table).differences == 0


@pytest.mark.parametrize("in_slot", [False, True])
def test_rows_of_files_that_a_write_rewrites_meanwhile_are_deleted_from_its_files(
    new_table: NewTable, in_slot: bool
) -> None:
    table = new_table(table_type="merge_on_read")
    for note, ids in (("a", range(100)), ("b", range(98, 104)), ("c", range(110, 114))):
        upsert(table, note, *ids)
    small = {path for path, file in table.files.items() if file.live_rows < 50}
    served = ServedTable(table=table)
    fold = _once(lambda: upsert(table, "new", 3, 99, 111, 120, 121))
    if in_slot:
        served.in_slot = fold
    else:
        served.meanwhile = fold
    commit = served.serve()
    assert plans(served) == 1
    [message] = commit.messages
    assert not small & {*message.removed, *table.files}
    [added] = message.added
    assert added.deletion_vector is not None
    # Row 3, and all of the small file.
    assert added.deletion_vector.cardinality == 1 + 6 + 4
    expected = {**dict.fromkeys(range(98), "a"), **dict.fromkeys(range(98, 104), "b")}
    expected |= {**dict.fromkeys(range(110, 114), "c"), **dict.fromkeys((3, 99, 111, 120, 121), "new")}
    assert notes(table) == expected
    assert verified(table).differences == 0


@pytest.mark.parametrize("in_slot", [False, True])
def test_bucket_that_is_halved_during_the_service_stays_halved(new_table: NewTable, in_slot: bool) -> None:
    table = new_table(table_type="merge_on_read", bucket={"target_rows": 16})
    upsert(table, "a", *range(8))
    upsert(table, "b", *range(6, 12))
    served = ServedTable(table=table)
    grow = _once(lambda: upsert(table, "new", *range(20, 30)))
    if in_slot:
        served.in_slot = grow
    else:
        served.meanwhile = grow
    commit = served.serve()
    assert commit.messages == ()
    assert set(table.groups()) == {"bucket-00000-of-2", "bucket-00001-of-2"}
    expected = {**dict.fromkeys(range(6), "a"), **dict.fromkeys(range(6, 12), "b")}
    assert notes(table) == expected | dict.fromkeys(range(20, 30), "new")
    assert verified(table).differences == 0


def test_file_without_live_rows_is_not_added(new_table: NewTable) -> None:
    table = new_table(table_type="merge_on_read")
    upsert(table, "a", *range(4))
    upsert(table, "b", *range(2, 6))
    served = ServedTable(table=table, meanwhile=lambda: None)
    served.meanwhile = lambda: delete(table, *range(6))
    # Nothing is left of the files, so there is nothing to rebase on.
    commit = served.serve()
    assert commit.messages == ()
    assert notes(table) == {}


def fold_and_log(table: LakeTable) -> None:
    """A write with a scope folds the logs that there are, and another comes on top."""
    delete_where(table, "id = 5")
    upsert(table, "c", 1, 7)


def test_logs_folded_during_the_service_are_planned_again(new_table: NewTable) -> None:
    table = new_table(**LOGS)
    upsert(table, "a", *range(6))
    upsert(table, "b", 0)
    served = ServedTable(table=table, meanwhile=_once(lambda: fold_and_log(table)))
    result = result_of(served.serve())
    assert (plans(served), result["file_groups"], result["file_groups_left"]) == (2, 1, 0)
    assert {file.kind for file in table.files.values()} == {FileKind.BASE}
    assert notes(table) == {0: "b", 1: "c", 2: "a", 3: "a", 4: "a", 7: "c"}


@pytest.mark.parametrize("producer", ["input", "deferred", "none"])
def test_logs_written_during_the_service_stay_on_top(new_table: NewTable, producer: str) -> None:
    table = new_table(table_type="merge_on_read", changelog={"producer": producer})
    upsert(table, "a", *range(6))
    upsert(table, "b", *range(3))

    def write() -> None:
        upsert(table, "c", 1, 9)
        delete(table, 2, 4)
        upsert(table, "again", 4)

    served = ServedTable(table=table, meanwhile=write)
    commit = served.serve()
    assert plans(served) == 1
    expected = {0: "b", 1: "c", 3: "a", 4: "again", 5: "a", 9: "c"}
    assert notes(table) == expected
    kinds = [file.kind for file in table.groups()["bucket-00000"]]
    # The base file is listed later than logs that are merged on top of it.
    assert sorted(kinds) == [FileKind.BASE, *[FileKind.LOG] * 3]
    assert bool(commit.messages[0].changelog) is (producer == "deferred")
    if producer == "deferred":
        assert verified(table).differences == 0
    table.compact()
    assert notes(table) == expected
    if producer == "deferred":
        assert verified(table).differences == 0


def test_writes_postponed_during_the_service_wait_for_the_next(new_table: NewTable) -> None:
    table = new_table(bucket={"mode": "postpone"})
    upsert(table, "a", 1, 2)
    served = ServedTable(table=table, meanwhile=lambda: upsert(table, "b", 2, 3))
    served.serve()
    assert notes(table) == {1: "a", 2: "a"}
    served.meanwhile = lambda: None
    served.serve()
    assert notes(table) == {1: "a", 2: "b", 3: "b"}
    assert verified(table).differences == 0


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_small_keyless_files_are_joined_beside_appends_and_deletes(
    new_table: NewTable, table_type: str
) -> None:
    table = new_table(**APPENDED, table_type=table_type)
    for number in range(5):
        append(table, "a", number * 2, number * 2 + 1)
    served = ServedTable(table=table, meanwhile=lambda: append(table, "b", 20))
    commit = served.serve()
    assert plans(served) == 1
    assert result_of(commit) | {"bytes": 0} == {
        "file_groups": 1, "file_groups_left": 0, "files_added": 1, "files_removed": 5, "bytes": 0,
    }  # fmt: skip
    assert len(table.files) == 2
    served.meanwhile = _once(lambda: delete_where(table, "id = 4"))
    served.tasks.clear()
    served.serve()
    # What was marked is marked in the new file; a file that was written again is folded as it is now.
    assert plans(served) == (1 if table_type == "merge_on_read" else 2)
    assert notes(table) == {**dict.fromkeys([0, 1, 2, 3, *range(5, 10)], "a"), 20: "b"}
    assert verified(table).differences == 0


def test_groups_changed_by_writers_every_time_are_skipped(new_table: NewTable) -> None:
    table = new_table(**LOGS)
    upsert(table, "a", *range(6))
    served = ServedTable(table=table, meanwhile=lambda: fold_and_log(table))
    commit = served.serve(replans_max=2)
    assert plans(served) == 3
    assert commit.messages == ()
    assert result_of(commit)["file_groups_left"] == 1
    assert notes(table) == {0: "a", 1: "c", 2: "a", 3: "a", 4: "a", 7: "c"}


def test_lost_claim_changes_nothing(new_table: NewTable) -> None:
    table = new_table(**LOGS)
    upsert(table, "a", 1)
    served = _LostClaim(table=table)
    with pytest.raises(ValueError, match="not enough"):
        served.serve()
    assert (table.version, served.ended) == (1, 1)


def test_service_waits_for_running_writes_and_releases_its_slot(new_table: NewTable) -> None:
    table = new_table(**LOGS)
    upsert(table, "a", 1)
    served = ServedTable(table=table, waits=5)
    served.serve()
    assert (table.version, served.waits, served.ended) == (2, 0, 1)


def test_service_without_work_ends_without_a_version(new_table: NewTable) -> None:
    table = new_table()
    upsert(table, "a", 1)
    commit = ServedTable(table=table).serve()
    assert commit.messages == ()
    assert table.version == 1


class _LostClaim(ServedTable):
    def publish_in_slot(self, tenant_id: str, commit: NewCommit, slot_seconds: float) -> Fenced | Conflicted:
        return Fenced(valid_ids=frozenset())


def _once(act: Callable[[], None]) -> Callable[[], None]:
    left = [act]

    def run() -> None:
        if left:
            left.pop()()

    return run
