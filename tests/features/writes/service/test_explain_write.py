"""Explanations of writes, held to what the writes then do."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from app.core.timeline.service.name_winner import NameWinner
from app.core.timeline.values import Winner
from app.features.reads.service.rows import ReadTable, RowQuery
from app.features.writes.explanation import ExplainedFile, ExplainedKey, WriteExplanation
from app.features.writes.service.explain import ROWS_MAX, ExplainWrite
from app.features.writes.values import Body, IncomingWrite
from app.infra.files.lookups.key_search import KeySearch
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.slices.table_walk import TableWalk
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_effect import WriteEffect
from app.kernel.commit.write_options import Overwrite, OverwriteScope, WriteOptions
from app.kernel.format.dataset import BucketMode, DatasetDefinition, IndexType
from app.kernel.format.definition.new_dataset import CreateBucket, CreateIndex
from app.kernel.format.errors import InvalidRequest, SchemaMismatch
from app.kernel.format.file_group import DataFile, bucket_slot
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import Format
from tests.support.lake_table import Write
from tests.support.retained_versions import versions_of
from tests.support.sealed_places import SEALED_PLACES
from tests.support.shares import share
from tests.support.table_feed import later_corrections_of
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    kind_of,
    new_versioned_table,
    written_versioned_table,
)

Row = dict[str, Any]
KEYED_KINDS = [name for name in KINDS if kind_of(name).keyed]
EVERY_KEYED_KIND = pytest.mark.parametrize("kind", KEYED_KINDS)
MEMORY = MemoryBudget(bytes_max=2**26)
WRITES = {
    "upsert": (Operation.UPSERT, WriteOptions()),
    "insert": (Operation.INSERT, WriteOptions(drop_duplicates=True)),
    "delete": (Operation.DELETE, WriteOptions()),
    "delete by filter": (Operation.DELETE, WriteOptions(where="n < 40")),
    "snapshot": (Operation.SNAPSHOT, WriteOptions()),
    "overwrite partitions": (
        Operation.OVERWRITE,
        WriteOptions(overwrite=Overwrite(scope=OverwriteScope.PARTITIONS)),
    ),
}


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The table of each kind, before its last compaction."""

    @cache
    def versioned(kind: str) -> VersionedTable:
        found = written_versioned_table(
            LocalStorage(tmp_path_factory.mktemp("storage")), kind, compacted=False
        )
        assert found.files[-1]
        return found

    return versioned


class NoWinner:
    """A timeline without commits."""

    def winner_of_instant(self, tenant_id: str, dataset_id: str, instant_id: str) -> Winner | None:
        return None

    def winner_since(self, tenant_id: str, dataset_id: str, version: int) -> Winner | None:
        return None

    def winner_with_rows(self, tenant_id: str, dataset_id: str, version: int) -> Winner | None:
        return None


def explain(versioned: VersionedTable) -> ExplainWrite:
    return ExplainWrite(
        timeline=versioned,
        winners=NameWinner(timeline=NoWinner()),
        search=KeySearch(versioned.table.storage, versioned.table.reader, MEMORY),
    )


def explained(
    versioned: VersionedTable, operation: Operation, options: WriteOptions, rows: Sequence[Row]
) -> WriteExplanation:
    source = (
        None
        if options.where
        else Body(content=json.dumps(rows).encode(), format=Format.JSON_ROWS, in_envelope=True)
    )
    incoming = IncomingWrite(operation=operation, options=options, source=source)
    return explain(versioned).write(versioned.dataset, incoming)


def keys_of(explanation: WriteExplanation) -> list[ExplainedKey]:
    return [key for group in explanation.file_groups for key in group.keys]


def files_of(explanation: WriteExplanation) -> list[ExplainedFile]:
    return [file for group in explanation.file_groups for file in group.files]


def some_rows(seed: int, count: int = 8) -> list[Row]:
    """Rows with different keys, some of them new."""
    chance = random.Random(seed)
    return [
        {"id": number, "day": chance.choice(DAYS), "n": chance.randrange(100), "note": "explained"}
        for number in chance.sample(range(30), count)
    ]


def live_rows(versioned: VersionedTable) -> dict[tuple[Any, ...], Row]:
    """The rows with their meta columns by key, as readers see them."""
    tables = TableReader(versioned.table.storage, versioned.table.reader, MEMORY)
    reading = ReadTable(
        places=SEALED_PLACES,
        catalog=versioned,
        timeline=versioned,
        versions=versions_of(versioned),
        walk=TableWalk(groups=tables),
        later=later_corrections_of(versioned),
    )
    page = reading.page(versioned.dataset, RowQuery(limit=1_000, meta=True))
    return {
        tuple(row[name] for name in versioned.table.dataset.record_key): row for row in page.rows.to_pylist()
    }


def _kinds_and_writes() -> Iterator[tuple[str, str]]:
    """Each kind with the writes that it takes."""
    for kind in KINDS:
        for write in WRITES:
            needs_key = write in ("upsert", "delete")
            # Keys cannot be refused before the compaction that finds their buckets.
            refuses_late = kind == "postpone" and write == "insert"
            if not refuses_late and (kind in KEYED_KINDS or not needs_key):
                yield kind, write


@share(4)
@pytest.mark.parametrize(("kind", "write"), list(_kinds_and_writes()))
@pytest.mark.parametrize("seed", [1, 2])
def test_write_touches_the_groups_of_its_explanation(
    versioned_tables: Any, kind: str, write: str, seed: int
) -> None:
    versioned = versioned_tables(kind)
    operation, options = WRITES[write]
    definition = versioned.table.dataset
    if not definition.keyed and write == "insert":
        options = WriteOptions()
    rows = [] if options.where else some_rows(seed)
    explanation = explained(versioned, operation, options, rows)
    assert explanation.version == versioned.dataset.version

    table = versioned.table.fork()
    before = dict(table.files)
    plan = table.fork().plan(Write(operation=operation, rows=rows, options=options))
    by_group = {group.file_group: group for group in explanation.file_groups}
    if definition.keyed:
        assert {task.file_group for task in plan} == set(by_group)
    else:
        assert len(plan) == len(by_group)
    table.write(Write(operation=operation, rows=rows, options=options))
    gone = {path for path in before if path not in table.files}
    changed = {path for path in before if path in table.files and table.files[path] != before[path]}
    new = [file for path, file in table.files.items() if path not in before]
    read = {file.path for file in files_of(explanation) if file.read}
    marked = {path for group in explanation.file_groups for path in group.marked_files}
    rewritten = {file.path for group in explanation.file_groups for file in group.files
                 if file.read and (group.storing.value == "rewrite" or file.answer.value == "small_file")}  # fmt: skip
    assert gone | changed <= read
    if write in ("upsert", "delete"):
        assert gone | changed >= marked
        assert {path for path in gone if path not in rewritten} <= marked
    for path in gone & rewritten:
        assert before[path].size_bytes <= sum(group.rewritten_bytes for group in by_group.values())
    assert {file.file_group for file in new} <= set(by_group) or not definition.keyed
    _check_stored_as_explained(explanation, new, rows)


def _check_stored_as_explained(
    explanation: WriteExplanation, new: Sequence[DataFile], rows: Sequence[Row]
) -> None:
    """Where new files lie, there is a row that was announced there, or an old one that was written again."""
    kinds = {"append": "base", "mark": "base", "rewrite": "base", "log": "log", "postpone": "postponed"}
    storings = {group.file_group: group.storing.value for group in explanation.file_groups}
    slots = {(key.partition_path, key.bucket) for key in keys_of(explanation)}
    slots |= {(file.partition_path, file.bucket) for file in files_of(explanation) if file.read}
    # A part of a bucket that is halved has other rows of its files.
    slots |= {
        (group.partition_path, group.number) for group in explanation.file_groups if "halved" in group.reason
    }
    for file in new:
        storing = storings.get(file.file_group, "append")
        assert file.kind.value == kinds.get(storing)
        if storing in ("mark", "rewrite") and storings.get(file.file_group):
            assert (file.slot.partition_path, file.slot.bucket) in slots


@EVERY_KEYED_KIND
def test_explained_keys_are_live_where_reads_find_them(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    definition = versioned.table.dataset
    live = live_rows(versioned)
    rows = some_rows(3, 20)
    found = keys_of(explained(versioned, Operation.UPSERT, WriteOptions(), rows))
    assert sorted(key.row for key in found) == list(range(20))
    seen = set()
    for key in found:
        row = live.get(tuple(rows[key.row][name] for name in definition.record_key))
        assert key.key == {name: rows[key.row][name] for name in definition.record_key}
        assert (key.live is not None) == (row is not None)
        if kind != "postpone":
            assert key.effect is (WriteEffect.INSERT if row is None else WriteEffect.MERGE)
        if key.live is None or row is None:
            seen.add("new")
            continue
        seen.add("live")
        version, _, offset = row["_hw_commit_seqno"].partition("-")
        assert key.live.version == int(version)
        assert key.live.offset == (int(offset) if offset else None)
        name = key.live.file and key.live.file.rsplit("/", 1)[1]
        assert name == row["_hw_file_name"]
        assert (key.live.position is None) == (name is None)
    assert seen == {"new", "live"}


@EVERY_KEYED_KIND
def test_explanation_of_keys_equals_that_of_a_batch(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    definition = versioned.table.dataset
    rows = some_rows(4)
    texts = [json.dumps({name: row[name] for name in definition.record_key}) for row in rows]
    by_keys = explain(versioned).keys(versioned.dataset, texts)
    batch = explained(versioned, Operation.UPSERT, WriteOptions(), rows)
    assert [group.files for group in by_keys.file_groups] == [group.files for group in batch.file_groups]
    for one, other in zip(keys_of(by_keys), keys_of(batch), strict=True):
        assert (one.row, one.key, one.hash, one.live, one.effect) == (
            other.row, other.key, other.hash, other.live, other.effect,
        )  # fmt: skip
        if definition.bucket.mode is not BucketMode.KEY_DYNAMIC:
            assert (one.partition_path, one.bucket) == (other.partition_path, other.bucket)


# The rows of the others have no bucket yet.
@pytest.mark.parametrize("kind", [name for name in KEYED_KINDS if name != "postpone"])
def test_rows_are_stored_where_their_explanation_states(versioned_tables: Any, kind: str) -> None:
    versioned = versioned_tables(kind)
    definition = versioned.table.dataset
    rows = some_rows(5, 12)
    explained_keys = {
        key.row: key for key in keys_of(explained(versioned, Operation.UPSERT, WriteOptions(), rows))
    }
    again = new_versioned_table_of(versioned)
    again.write(Write(operation=Operation.UPSERT, rows=rows), [])
    files = {file.path.rsplit("/", 1)[1]: file for file in again.files[-1]}
    live = live_rows(again)
    lookups = 0
    for number, row in enumerate(rows):
        stored = live[tuple(row[name] for name in definition.record_key)]
        name = stored["_hw_file_name"]
        key = explained_keys[number]
        if name is None:
            continue
        lookups += 1
        assert (key.partition_path, key.bucket) == (files[name].slot.partition_path, files[name].slot.bucket)
    assert lookups == (len(rows) if definition.looks_up else 0)


def new_versioned_table_of(versioned: VersionedTable) -> VersionedTable:
    """Another table with the same past."""
    return VersionedTable(
        table=versioned.table.fork(),
        files=list(versioned.files),
        rows=list(versioned.rows),
        schemas=dict(versioned.schemas),
    )


def test_group_number_follows_the_bucket_rule(versioned_tables: Any) -> None:
    versioned = versioned_tables("merge_on_read full")
    explanation = explained(versioned, Operation.UPSERT, WriteOptions(), some_rows(6))
    assert explanation.bucket.key == ("day", "id")
    for group in explanation.file_groups:
        assert bucket_slot(group.file_group).bucket == group.number
        for key in group.keys:
            assert int(key.hash or "", 16) % explanation.bucket.count == group.number


def test_every_index_explains_why_a_file_is_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    answers, chance = {}, random.Random(7)
    for index in ("bucket", "simple", "bloom", "record"):
        versioned = new_versioned_table(LocalStorage(tmp_path_factory.mktemp("storage")), indexed(index))
        for number in range(3):
            # Files of a size at which no more rows are put to them.
            rows = [
                {"id": number * 10_000 + at, "day": DAYS[0], "n": 0, "note": chance.randbytes(20).hex()}
                for at in range(2_000)
            ]
            versioned.write(Write(operation=Operation.UPSERT, rows=rows), [])
        assert len(versioned.files[-1]) == (2 if index == "bucket" else 3)
        found = explain(versioned).keys(versioned.dataset, ['{"day": "2026-11-20", "id": 7}'])
        answers[index] = {file.answer.value for file in files_of(found)}
        (key,) = keys_of(found)
        assert key.live is not None
        assert next(file for file in files_of(found) if file.path == key.live.file).read
    assert answers == {
        "bucket": {"bucket"},
        "simple": {"scan_found", "scan_found_none"},
        "bloom": {"bloom_may_hold", "bloom_holds_none"},
        "record": {"record_found", "record_found_none"},
    }


@pytest.mark.parametrize(
    ("texts", "pointer"),
    [
        ([], "/key"),
        (["1"], "/key"),
        (['{"id": 1'], "/key"),
        (['{"id": 1}, {"id": 2}'], "/key"),
        (['{"day": "2026-11-20", "id": 1}'] * 101, "/key"),
        (['{"id": 1}'], "/key/0/day"),
        (['{"day": "2026-11-20", "id": 1}', '{"day": "2026-11-20", "id": "x"}'], "/key/1/id"),
        (['{"day": "2026-11-20", "id": 1, "n": 5}'], "/key/0/n"),
    ],
    ids=str,
)
def test_invalid_keys_are_refused(versioned_tables: Any, texts: list[str], pointer: str) -> None:
    versioned = versioned_tables("copy_on_write")
    with pytest.raises((InvalidRequest, SchemaMismatch)) as error:
        explain(versioned).keys(versioned.dataset, texts)
    assert error.value.facts["errors"][0]["pointer"] == pointer


def test_keyless_dataset_refuses_an_explanation_of_keys(versioned_tables: Any) -> None:
    versioned = versioned_tables("unaware")
    with pytest.raises(InvalidRequest, match="append-only"):
        explain(versioned).keys(versioned.dataset, ['{"id": 1}'])


def test_explanation_requires_a_sample_in_the_request(versioned_tables: Any) -> None:
    versioned = versioned_tables("copy_on_write")
    rows = [{"id": number, "day": DAYS[0], "n": 1, "note": None} for number in range(ROWS_MAX + 1)]
    with pytest.raises(InvalidRequest, match="sample"):
        explained(versioned, Operation.UPSERT, WriteOptions(), rows)
    from_body = IncomingWrite(operation=Operation.UPSERT, source=Body(content=b"", format=Format.CSV))
    with pytest.raises(InvalidRequest) as error:
        explain(versioned).write(versioned.dataset, from_body)
    assert error.value.facts["errors"][0]["pointer"] == "/source/kind"


def indexed(index: str) -> DatasetDefinition:
    """Buckets of 2,000 rows, each a file, found by this index; one bucket for the index that knows no others."""
    sized = CreateBucket(mode=BucketMode.DYNAMIC, count=1, target_rows=2_000)
    return kind_of(
        "copy_on_write",
        bucket=CreateBucket(count=1) if index == "bucket" else sized,
        index=CreateIndex(type_=IndexType(index)),
        target_bytes=64 * 1024,
    )
