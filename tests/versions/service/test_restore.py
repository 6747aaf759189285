"""Restores of tables of every kind, against what their rows were."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from app.files.slices.slice_merge import MemoryBudget
from app.files.storage import LocalStorage
from app.format.dataset import BucketMode, ChangelogProducer, TableType
from app.format.definition.dataset_definition import define_dataset
from app.format.definition.evolution import evolve
from app.format.definition.new_dataset import CreateChangelog, CreateDataset, CreateField, CreateSchema
from app.format.definition.schema_change import AddField, DropField, WidenField
from app.format.file_group import FileKind
from app.format.instant import Action
from app.format.operation import Operation
from app.format.rows.changelog import fold
from tests.conformance.kinds import FIELDS, MERGES
from tests.support.lake_table import COMPACT, Write
from tests.support.past_tables import (
    KINDS,
    Past,
    comparable,
    kind_of,
    new_past,
    put_rows,
    random_row,
    written_past,
)
from tests.support.restoring import Restorer

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def feed_tells_all(past: Past) -> bool:
    producer = past.table.dataset.changelog.producer
    return producer is ChangelogProducer.FULL or (
        producer is ChangelogProducer.DEFERRED and FileKind.LOG not in past.table.kinds()
    )


def check(past: Past) -> None:
    """The table has the rows that its past says, and its feed folds to them."""
    assert comparable(past.table.rows()) == comparable(past.rows[-1])
    if feed_tells_all(past):
        told = [(change.op, change.row) for change in past.table.changes()]
        assert comparable(fold(told, past.table.dataset.record_key)) == comparable(past.rows[-1])


def write(past: Past, rows: list[dict[str, Any]]) -> None:
    definition = past.table.dataset
    operation = Operation.UPSERT if definition.keyed else Operation.INSERT
    past.write(Write(operation=operation, rows=rows), put_rows(definition, past.rows[-1], rows))


@EVERY_KIND
def test_restore_brings_back_the_rows_of_any_version_of_every_kind(tmp_path: Path, kind: str) -> None:
    past = written_past(LocalStorage(tmp_path), kind, seed=3, writes=5)
    restorer, chance = Restorer(past=past), random.Random(kind)
    first = past.table.version
    for version in [*chance.sample(range(first), 2), first]:
        restorer.to(version)
        check(past)
        if past.table.dataset.bucket.mode is not BucketMode.POSTPONE:
            write(past, [random_row(chance, version) for _ in range(3)])
            check(past)
    assert restorer.held
    assert restorer.kept.readers == {}
    # Nothing that a restore left behind comes up later.
    before = past.rows[-1]
    past.write(COMPACT, before)
    if past.table.dataset.bucket.mode is not BucketMode.POSTPONE:
        check(past)


@EVERY_KIND
def test_restore_of_what_is_there_changes_nothing(tmp_path: Path, kind: str) -> None:
    past = written_past(LocalStorage(tmp_path), kind, writes=5)
    version, restorer = past.table.version, Restorer(past=past)
    commit = restorer.to(version)
    assert commit.action is Action.RESTORE
    assert (commit.messages, restorer.tasks) == ((), [])
    assert past.table.version == version


def test_restore_reads_only_what_differs(tmp_path: Path) -> None:
    past = new_past(LocalStorage(tmp_path), kind_of("copy_on_write"))
    days = [{"id": number, "day": f"2026-11-{number:02}", "n": 1, "note": None} for number in range(1, 10)]
    past.write(Write(operation=Operation.UPSERT, rows=days), days)
    changed = [*days[:-1], {**days[-1], "n": 2}]
    past.write(Write(operation=Operation.UPSERT, rows=changed[-1:]), changed)
    restorer = Restorer(past=past)
    commit = restorer.to(1)
    assert [file.slot.partition_path for task in restorer.tasks for [file] in task.groups] == [
        "day=2026-11-09"
    ]
    assert [message.counts[0].updated for message in commit.messages] == [1]
    check(past)


def test_restore_to_the_beginning_empties_the_table(tmp_path: Path) -> None:
    past = written_past(LocalStorage(tmp_path), "unaware")
    Restorer(past=past).to(0)
    assert past.table.rows() == []
    check(past)


def test_restore_leaves_writes_that_were_postponed_since_and_brings_back_those_before(tmp_path: Path) -> None:
    past = new_past(LocalStorage(tmp_path), kind_of("postpone"))
    rows = [{"id": number, "day": "2026-11-20", "n": number, "note": None} for number in range(4)]

    def put(*chosen: int) -> None:
        past.write(Write(operation=Operation.UPSERT, rows=[rows[number] for number in chosen]), past.rows[-1])

    put(0)
    put(1)
    waiting = past.table.version
    past.write(COMPACT, rows[:2])
    put(2)
    restorer = Restorer(past=past)
    restorer.to(waiting)
    assert past.table.rows() == []
    put(3)
    past.write(COMPACT, [rows[0], rows[1], rows[3]])
    check(past)
    # Undoing a write that nobody has seen tells nobody of anything.
    put(2)
    told = len(past.table.changes())
    restorer.to(past.table.version - 1)
    past.write(COMPACT, [rows[0], rows[1], rows[3]])
    assert len(past.table.changes()) == told
    check(past)


def test_restore_shows_old_rows_under_the_schema_of_now(tmp_path: Path) -> None:
    past = new_past(LocalStorage(tmp_path), kind_of("merge_on_read none"))
    row = {"id": 1, "day": "2026-11-20", "n": 7, "note": "a"}
    past.write(Write(operation=Operation.UPSERT, rows=[row]), [row])
    past.table.dataset = evolve(
        past.table.dataset,
        [
            DropField(name="note"),
            WidenField(name="n", type_="int64"),
            AddField(field=CreateField(name="more", type="string")),
        ],
    )
    new = {"id": 1, "day": "2026-11-20", "n": 2**40, "more": "b"}
    past.write(Write(operation=Operation.UPSERT, rows=[new]), [new])
    Restorer(past=past).to(1)
    assert past.table.rows() == [{"id": 1, "day": "2026-11-20", "n": 7, "more": None}]


def test_restore_takes_little_memory(tmp_path: Path) -> None:
    past = new_past(LocalStorage(tmp_path), kind_of("merge_on_read none"))
    many = [{"id": number, "day": "2026-11-20", "n": 1, "note": str(number)} for number in range(3_000)]
    past.write(Write(operation=Operation.UPSERT, rows=many), many)
    past.write(
        Write(operation=Operation.DELETE, rows=[{"id": n, "day": "2026-11-20"} for n in range(3_000)]), []
    )
    Restorer(past=past, memory=MemoryBudget(bytes_max=2**16, scratch=tmp_path / "spill")).to(1)
    check(past)


@pytest.mark.parametrize("table_type", TableType)
@pytest.mark.parametrize(
    "mode", [mode for mode in MERGES if mode not in ("(default)", "aggregate, sum of int32")]
)
def test_restore_puts_rows_back_as_they_were_whatever_the_merge_mode(
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
    past = new_past(LocalStorage(tmp_path), define_dataset(registration))
    chance = random.Random(mode)
    for number in range(4):
        rows = [row_of_all_modes(chance, number) for _ in range(5)]
        past.table.write(Write(operation=Operation.UPSERT, rows=rows))
        if past.table.version == len(past.rows):
            past.note(past.table.rows())
    restorer, last = Restorer(past=past), past.table.version
    for version in (1, last, max(1, last - 1)):
        restorer.to(version)
        check(past)


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
