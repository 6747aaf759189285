"""Restores of tables of every kind, against what their rows were."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import BucketMode, ChangelogProducer, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateChangelog, CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import AddField, DropField, WidenField
from app.kernel.format.file_group import FileKind
from app.kernel.format.instant import Action
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import fold
from tests.conformance.kinds import FIELDS, MERGES
from tests.support.lake_table import COMPACT, Write
from tests.support.restore_runs import Restorer
from tests.support.shares import share
from tests.support.versioned_tables import (
    KINDS,
    VersionedTable,
    comparable,
    kind_of,
    new_versioned_table,
    put_rows,
    random_row,
    written_versioned_table,
)

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def has_full_feed(versioned: VersionedTable) -> bool:
    producer = versioned.table.dataset.changelog.producer
    return producer is ChangelogProducer.FULL or (
        producer is ChangelogProducer.DEFERRED and FileKind.LOG not in versioned.table.kinds()
    )


def check(versioned: VersionedTable) -> None:
    """The table has the rows that its past says, and its feed folds to them."""
    assert comparable(versioned.table.rows()) == comparable(versioned.rows[-1])
    if has_full_feed(versioned):
        emitted = [(change.op, change.row) for change in versioned.table.changes()]
        assert comparable(fold(emitted, versioned.table.dataset.record_key)) == comparable(versioned.rows[-1])


def write(versioned: VersionedTable, rows: list[dict[str, Any]]) -> None:
    definition = versioned.table.dataset
    operation = Operation.UPSERT if definition.keyed else Operation.INSERT
    versioned.write(Write(operation=operation, rows=rows), put_rows(definition, versioned.rows[-1], rows))


@share(3)
@EVERY_KIND
def test_restore_returns_the_rows_of_any_version_of_every_kind(tmp_path: Path, kind: str) -> None:
    versioned = written_versioned_table(LocalStorage(tmp_path), kind, seed=3, writes=5)
    restorer, chance = Restorer(versioned=versioned), random.Random(kind)
    first = versioned.table.version
    for version in [*chance.sample(range(first), 2), first]:
        restorer.to(version)
        check(versioned)
        if versioned.table.dataset.bucket.mode is not BucketMode.POSTPONE:
            write(versioned, [random_row(chance, version) for _ in range(3)])
            check(versioned)
    assert restorer.pinned
    assert restorer.kept.readers == {}
    # Nothing that a restore left behind comes up later.
    before = versioned.rows[-1]
    versioned.write(COMPACT, before)
    if versioned.table.dataset.bucket.mode is not BucketMode.POSTPONE:
        check(versioned)


@EVERY_KIND
def test_restore_of_the_current_version_changes_nothing(tmp_path: Path, kind: str) -> None:
    versioned = written_versioned_table(LocalStorage(tmp_path), kind, writes=5)
    version, restorer = versioned.table.version, Restorer(versioned=versioned)
    commit = restorer.to(version)
    assert commit.action is Action.RESTORE
    assert (commit.messages, list(restorer.engine.tasks)) == ((), [])
    assert versioned.table.version == version


def test_restore_reads_only_the_differing_files(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("copy_on_write"))
    days = [{"id": number, "day": f"2026-11-{number:02}", "n": 1, "note": None} for number in range(1, 10)]
    versioned.write(Write(operation=Operation.UPSERT, rows=days), days)
    changed = [*days[:-1], {**days[-1], "n": 2}]
    versioned.write(Write(operation=Operation.UPSERT, rows=changed[-1:]), changed)
    restorer = Restorer(versioned=versioned)
    commit = restorer.to(1)
    assert [file.slot.partition_path for task in restorer.engine.tasks for [file] in task.groups] == [
        "day=2026-11-09"
    ]
    assert [message.counts[0].updated for message in commit.messages] == [1]
    check(versioned)


def test_restore_to_version_0_empties_the_table(tmp_path: Path) -> None:
    versioned = written_versioned_table(LocalStorage(tmp_path), "unaware")
    Restorer(versioned=versioned).to(0)
    assert versioned.table.rows() == []
    check(versioned)


def test_restore_drops_later_postponed_writes_and_returns_earlier_ones(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("postpone"))
    rows = [{"id": number, "day": "2026-11-20", "n": number, "note": None} for number in range(4)]

    def put(*chosen: int) -> None:
        versioned.write(
            Write(operation=Operation.UPSERT, rows=[rows[number] for number in chosen]), versioned.rows[-1]
        )

    put(0)
    put(1)
    waiting = versioned.table.version
    versioned.write(COMPACT, rows[:2])
    put(2)
    restorer = Restorer(versioned=versioned)
    restorer.to(waiting)
    assert versioned.table.rows() == []
    put(3)
    versioned.write(COMPACT, [rows[0], rows[1], rows[3]])
    check(versioned)
    # Undoing a write that no reader has seen delivers nothing.
    put(2)
    emitted = len(versioned.table.changes())
    restorer.to(versioned.table.version - 1)
    versioned.write(COMPACT, [rows[0], rows[1], rows[3]])
    assert len(versioned.table.changes()) == emitted
    check(versioned)


def test_restore_returns_old_rows_under_the_current_schema(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("merge_on_read none"))
    row = {"id": 1, "day": "2026-11-20", "n": 7, "note": "a"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[row]), [row])
    versioned.table.dataset = evolve(
        versioned.table.dataset,
        [
            DropField(name="note"),
            WidenField(name="n", type_="int64"),
            AddField(field=CreateField(name="more", type="string")),
        ],
    )
    new = {"id": 1, "day": "2026-11-20", "n": 2**40, "more": "b"}
    versioned.write(Write(operation=Operation.UPSERT, rows=[new]), [new])
    Restorer(versioned=versioned).to(1)
    assert versioned.table.rows() == [{"id": 1, "day": "2026-11-20", "n": 7, "more": None}]


def test_restore_stays_within_its_memory_bound(tmp_path: Path) -> None:
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("merge_on_read none"))
    many = [{"id": number, "day": "2026-11-20", "n": 1, "note": str(number)} for number in range(3_000)]
    versioned.write(Write(operation=Operation.UPSERT, rows=many), many)
    versioned.write(
        Write(operation=Operation.DELETE, rows=[{"id": n, "day": "2026-11-20"} for n in range(3_000)]), []
    )
    Restorer(versioned=versioned, memory=MemoryBudget(bytes_max=2**16, scratch=tmp_path / "spill")).to(1)
    check(versioned)


@pytest.mark.parametrize("table_type", TableType)
@pytest.mark.parametrize(
    "mode", [mode for mode in MERGES if mode not in ("(default)", "aggregate, sum of int32")]
)
def test_restore_returns_stored_rows_in_every_merge_mode(
    tmp_path: Path, mode: str, table_type: TableType
) -> None:
    producer = ChangelogProducer.NONE if table_type is TableType.MERGE_ON_READ else ChangelogProducer.FULL
    registration = CreateDataset(
        name="t",
        schema=CreateSchema(fields=FIELDS),
        record_key=["id"],
        table_type=table_type,
        changelog=CreateChangelog(producer=producer),
        **MERGES[mode],
    )
    versioned = new_versioned_table(LocalStorage(tmp_path), define_dataset(registration))
    chance = random.Random(mode)
    for number in range(4):
        rows = [row_of_all_modes(chance, number) for _ in range(5)]
        versioned.table.write(Write(operation=Operation.UPSERT, rows=rows))
        if versioned.table.version == len(versioned.rows):
            versioned.note(versioned.table.rows())
    restorer, last = Restorer(versioned=versioned), versioned.table.version
    for version in (1, last, max(1, last - 1)):
        restorer.to(version)
        check(versioned)


def row_of_all_modes(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "p": "a",
        "id": chance.randrange(4),
        "ts": chance.randrange(9),
        "seen": chance.randrange(9),
        "name": chance.choice([None, "x", "y"]),
        "n": chance.randrange(100),
        "total": chance.choice([None, 0.5, 1.25]),
        "tags": chance.choice([None, ["t"], ["u", "v"]]),
        "gone": number > 1 and chance.random() < 0.3,
    }
