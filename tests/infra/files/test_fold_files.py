"""Files against their changelog: what was damaged is found, wherever it is, with however little memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import xxhash

from app.infra.files.errors import CorruptFile
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.verification import Difference, DifferenceKind, check_verifiable
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.dataset import BucketMode, ChangelogProducer, DatasetDefinition, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.definition.schema_change import AddField, DropField, WidenField
from app.kernel.format.errors import NotVerifiable
from app.kernel.format.file_group import StoredFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from tests.support.lake_table import LakeTable, Row, Write, merged
from tests.support.verification import verified
from workers.engine.task_files import TaskResources

Edit = Callable[[pa.Table], pa.Table]


def defined(**parts: Any) -> DatasetDefinition:
    fields = [
        CreateField(name="p", type="string"),
        CreateField(name="id", type="int64"),
        CreateField(name="n", type="int32"),
        CreateField(name="tags", type="list<string>"),
    ]
    return define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields), **parts))


KINDS = {
    "copy_on_write": {
        "record_key": ["p", "id"],
        "partition_by": ["p"],
        "table_type": TableType.COPY_ON_WRITE,
        "bucket": CreateBucket(count=2),
    },
    "merge_on_read": {
        "record_key": ["id"],
        "table_type": TableType.MERGE_ON_READ,
        "bucket": CreateBucket(count=2),
    },
    "key_dynamic": {
        "record_key": ["id"],
        "partition_by": ["p"],
        "bucket": CreateBucket(mode=BucketMode.KEY_DYNAMIC, count=2, target_rows=100),
    },
    "no key": {"partition_by": ["p"]},
}


def row(number: int, n: int | None = 0) -> Row:
    return {"p": "ab"[number % 2], "id": number, "n": n, "tags": ["x", None] if number % 3 else None}


@pytest.fixture(scope="module", params=list(KINDS))
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, LakeTable]:
    """Forty rows, ten of them updated and five deleted; without a key, some of them are there twice."""
    root = tmp_path_factory.mktemp("written")
    table = on(root, LakeTable(storage=LocalStorage(root), dataset=defined(**KINDS[request.param])))
    table.write(Write(operation=Operation.INSERT, rows=[row(number) for number in range(40)]))
    if table.dataset.keyed:
        table.write(Write(operation=Operation.UPSERT, rows=[row(number, 1) for number in range(10)]))
        table.write(Write(operation=Operation.DELETE, rows=[row(number) for number in range(35, 40)]))
    else:
        table.write(Write(operation=Operation.INSERT, rows=[row(number) for number in range(10)]))
        table.write(Write(operation=Operation.SNAPSHOT, rows=[row(number) for number in (*range(35), 3, 3)]))
    return root, table


def on(root: Path, table: LakeTable) -> LakeTable:
    """The table on a storage of its own."""
    storage = LocalStorage(root)
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=2**26))
    return replace(table.fork(), storage=storage, run=partial(merged, resources))


@pytest.fixture
def table(written: tuple[Path, LakeTable], tmp_path: Path) -> LakeTable:
    """A copy of it, to be damaged."""
    shutil.copytree(written[0], tmp_path / "copy")
    return on(tmp_path / "copy", written[1])


def rewrite(table: LakeTable, file: StoredFile, edit: Edit) -> StoredFile:
    """Damages a file so that neither its checksum nor its row count shows it."""
    rows = edit(pq.read_table(table.storage.open(file.path)))
    out = BytesIO()
    pq.write_table(rows, out, compression="zstd")
    content = out.getvalue()
    table.storage.delete([file.path])
    with table.storage.create(file.path) as target:
        target.write(content)
    return msgspec.structs.replace(
        file,
        size_bytes=len(content),
        checksum=xxhash.xxh3_128_hexdigest(content),
        row_count=rows.num_rows,
    )


def damage_feed(table: LakeTable, offset: int, edit: Edit) -> None:
    for at, (version, first, file) in enumerate(table.feed):
        if first <= offset < first + file.row_count:
            table.feed[at] = (version, first, rewrite(table, file, edit))


def damage_data(table: LakeTable, row_id: int, edit: Edit) -> None:
    """The file in which a row with this id is live."""
    for path, file in table.files.items():
        if row_id in pq.read_table(table.storage.open(path)).column("id").to_pylist():
            table.files[path] = rewrite(table, file, edit)


def setting(name: str, number: int, value: Any) -> Edit:
    """Gives the rows with an id another value."""

    def edit(rows: pa.Table) -> pa.Table:
        column = rows.column(name)
        other = pa.scalar(value, column.type)
        changed = pc.if_else(pc.equal(rows.column("id"), number), other, column)
        return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), changed)

    return edit


def offset_of(table: LakeTable, number: int, op: Op) -> int:
    """The offset of the last change of that kind to an id."""
    return next(
        change.offset
        for change in reversed(table.changes())
        if change.op == op and change.row["id"] == number
    )


def first(table: LakeTable, **how: Any) -> Difference:
    found = verified(table, **how)
    assert found.differences
    assert found.first is not None
    return found.first


@pytest.mark.parametrize("memory_bytes", [500, 2**26])
def test_undamaged_table_is_verified_without_differences(
    table: LakeTable, tmp_path: Path, memory_bytes: int
) -> None:
    scratch = tmp_path / "scratch"
    found = verified(table, memory=MemoryBudget(bytes_max=memory_bytes, scratch=scratch))
    assert (found.differences, found.first) == (0, None)
    assert found.rows == len(table.rows())
    assert found.changes == table.next_offset
    assert not scratch.is_dir() or not list(scratch.iterdir())


@pytest.mark.parametrize("memory_bytes", [500, 2**26])
def test_row_changed_in_a_data_file_is_reported(table: LakeTable, memory_bytes: int) -> None:
    damage_data(table, 12, setting("n", 12, 7))
    found = first(table, memory=MemoryBudget(bytes_max=memory_bytes))
    assert found.offset == offset_of(table, 12, Op.APPEND)
    if table.dataset.keyed:
        assert found.kind is DifferenceKind.DIFFERENT
        assert found.key["id"] == 12
        assert found.in_feed is not None
        assert found.in_table is not None
        assert (found.in_feed["n"], found.in_table["n"]) == (0, 7)
        assert verified(table).differences == 1
    else:
        assert found.kind is DifferenceKind.MISSING
        assert found.in_feed == row(12)
        assert verified(table).differences == 2


def test_row_removed_from_a_data_file_is_reported(table: LakeTable) -> None:
    damage_data(table, 12, lambda rows: rows.filter(pc.not_equal(rows.column("id"), 12)))
    found = first(table)
    assert (found.kind, found.in_feed, found.in_table) == (DifferenceKind.MISSING, row(12), None)


def test_row_added_to_a_data_file_is_reported(table: LakeTable) -> None:
    def edit(rows: pa.Table) -> pa.Table:
        return pa.concat_tables([rows, setting("id", 12, 99)(rows.filter(pc.equal(rows.column("id"), 12)))])

    damage_data(table, 12, edit)
    found = first(table)
    assert (found.kind, found.offset, found.in_feed) == (DifferenceKind.UNEXPECTED, None, None)
    assert found.in_table is not None
    assert found.in_table["id"] == 99


def test_value_changed_in_a_changelog_file_is_reported(table: LakeTable) -> None:
    offset = offset_of(table, 12, Op.APPEND)
    damage_feed(table, offset, setting("tags", 12, ["x", "y"]))
    found = first(table)
    assert found.offset == offset
    assert found.in_feed is not None
    assert found.in_feed["tags"] == ["x", "y"]
    assert found.kind is (DifferenceKind.DIFFERENT if table.dataset.keyed else DifferenceKind.MISSING)


def test_retraction_of_other_values_is_reported_at_its_offset(table: LakeTable) -> None:
    offset = offset_of(table, 37, Op.RETRACT)
    damage_feed(table, offset, setting("n", 37, 7))
    found = first(table)
    assert (found.kind, found.offset, found.op) == (DifferenceKind.ILLEGAL_CHANGE, offset, "-R")


def test_unknown_op_raises_corrupt_file(table: LakeTable) -> None:
    def edit(rows: pa.Table) -> pa.Table:
        ops = pa.array([9] * rows.num_rows, pa.uint8())
        return rows.set_column(0, rows.schema.field(OP_COLUMN), ops)

    damage_feed(table, 0, edit)
    with pytest.raises(CorruptFile, match="op 9"):
        verified(table)


def test_missing_column_raises_corrupt_file(table: LakeTable) -> None:
    damage_data(table, 12, lambda rows: rows.drop_columns(["n"]))
    with pytest.raises(CorruptFile, match="columns with ids"):
        verified(table)


def test_unknown_schema_raises_corrupt_file(table: LakeTable) -> None:
    path, file = next(iter(table.files.items()))
    table.files[path] = msgspec.structs.replace(file, schema_id=3)
    with pytest.raises(CorruptFile, match="schema 3"):
        verified(table)


@pytest.mark.parametrize("written", [name for name in KINDS if name != "no key"], indirect=True)
def test_null_key_raises_corrupt_file(table: LakeTable) -> None:
    def edit(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index("id")
        nulls = pa.nulls(rows.num_rows, pa.int64())
        return rows.set_column(at, rows.schema.field(at).with_nullable(True), nulls)

    damage_feed(table, offset_of(table, 12, Op.APPEND), edit)
    with pytest.raises(CorruptFile, match="null"):
        verified(table)


def test_fold_may_start_with_the_rows_of_an_earlier_version(table: LakeTable) -> None:
    start = table.fork()
    table.write(Write(operation=Operation.INSERT, rows=[row(number) for number in range(50, 60)]))
    found = verified(table, start)
    assert (found.differences, found.changes, found.rows) == (0, 10, len(table.rows()))


def test_starting_rows_of_a_fold_are_compared(table: LakeTable) -> None:
    start = table.fork()
    table.write(Write(operation=Operation.DELETE, options=WriteOptions(where="id = 12")))
    assert verified(table, start).differences == 0
    table.files = dict(start.files)
    found = verified(table, start)
    assert (found.differences, found.changes, found.first and found.first.kind) == (
        1,
        1,
        DifferenceKind.UNEXPECTED,
    )


def test_changes_of_an_earlier_schema_are_folded_under_the_latest(table: LakeTable) -> None:
    earlier = table.dataset.schema
    table.dataset = evolve(
        table.dataset,
        [
            DropField(name="tags"),
            AddField(field=CreateField(name="tags", type="list<string>")),
            WidenField(name="n", type_="int64"),
        ],
    )
    table.write(Write(operation=Operation.INSERT, rows=[row(number) for number in range(50, 60)]))
    found = verified(table, schemas=[earlier])
    assert (found.differences, found.rows) == (0, len(table.rows()))


@pytest.mark.parametrize(
    ("producer", "parts", "verifiable"),
    [
        (ChangelogProducer.FULL, {"record_key": ["id"]}, True),
        (ChangelogProducer.INPUT, {"record_key": ["id"]}, False),
        (ChangelogProducer.INPUT, {}, True),
        (ChangelogProducer.DEFERRED, {"record_key": ["id"], "table_type": TableType.MERGE_ON_READ}, True),
        (ChangelogProducer.NONE, {}, False),
    ],
)
def test_only_a_feed_of_its_table_is_verifiable(
    producer: ChangelogProducer, parts: dict[str, Any], verifiable: bool
) -> None:
    dataset = defined(changelog=CreateChangelog(producer=producer), **parts)
    if verifiable:
        check_verifiable(dataset)
    else:
        with pytest.raises(NotVerifiable) as refused:
            check_verifiable(dataset)
        assert refused.value.facts == {"producer": producer.value}
