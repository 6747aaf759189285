"""Tables of every kind whose files are put in order: no row, no offset and no change of the feed is another then."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from app.core.feature.reconcilers import Observation
from app.core.jobs.kinds.rewrite import ClusteringTask
from app.features.maintenance.service.clustering import Clustering
from app.features.maintenance.service.table_service import Measured
from app.features.maintenance.service.touched_groups import TouchedGroups
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit.clustering_plan import UnorderedGroup, due_groups, plan_clustering
from app.kernel.commit.compaction_plan import plan_compaction
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.clustering import ClusterBy, cluster_by
from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition
from app.kernel.format.definition.new_dataset import CreateBucket
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.operation import Operation
from app.kernel.format.policies import ClusteringPolicy, ClusterOrder, TableServices
from app.kernel.sql.read_order import ReadOrder, in_order
from tests.support.lake_table import LakeTable, Write, merged
from tests.support.versioned_tables import (
    DAYS,
    KINDS,
    VersionedTable,
    committed_at,
    comparable,
    kind_of,
    new_versioned_table,
    written_versioned_table,
)
from workers.engine.task_files import TaskResources

Row = dict[str, Any]
BY_N = ClusterBy(columns=("n", "id"))
CURVE = ClusterBy(columns=("n", "note"), order=ClusterOrder.Z_ORDER)
# Others are stored as one of these is.
ALIKE = ("copy_on_write, bloom", "merge_on_read input", "dynamic with logs", "postpone, fixed_now")
EVERY_KIND = pytest.mark.parametrize("kind", [name for name in KINDS if name not in ALIKE])


@pytest.fixture(scope="module")
def versioned_tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], VersionedTable]:
    storage = LocalStorage(tmp_path_factory.mktemp("storage"))
    return cache(lambda kind: written_versioned_table(storage, kind, writes=6, compacted=False))


def clustered(table: LakeTable, by: ClusterBy, *, memory: MemoryBudget | None = None, **chosen: Any) -> int:
    """Clusters the table; returns how many tasks that took."""
    resources = TaskResources.on(table.storage, memory or MemoryBudget(bytes_max=2**26))
    table.attempts += 1
    tasks = plan_clustering(
        table.dataset,
        table.files.values(),
        by,
        attempt=f"20260102030405000000-{table.attempts:06x}-1-0",
        data_prefix=table.name,
        **chosen,
    )
    table.commit((), merged(resources, tasks))
    return len(tasks)


def stored(table: LakeTable, file: DataFile) -> pa.Table:
    return table.reader.open(file).read()


def is_ordered(rows: pa.Table, by: ClusterBy) -> bool:
    shown = rows.select(by.columns)
    return bool(in_order(shown, [ReadOrder(column=name) for name in by.columns]).equals(shown))


def buckets(table: LakeTable) -> dict[tuple[Any, ...], tuple[str, int]]:
    """Where each key is, by the base files."""
    return {
        tuple(row[name] for name in table.dataset.record_key): (file.slot.partition_path, file.slot.bucket)
        for file in table.files.values()
        if file.kind is FileKind.BASE
        for row in stored(table, file).to_pylist()
    }


def changes_since(table: LakeTable, versioned: VersionedTable) -> list[Row]:
    """What the feed has since the past; which group comes first does not matter."""
    later = [change for change in table.changes() if change.offset >= versioned.table.next_offset]
    return comparable([{**change.row, "op": change.op} for change in later])


def waits(table: LakeTable) -> set[str]:
    """Groups with logs that will be delivered when they are folded: they wait for that."""
    if table.dataset.changelog.producer is not ChangelogProducer.DEFERRED:
        return set()
    return {file.file_group for file in table.files.values() if file.kind is FileKind.LOG}


@EVERY_KIND
def test_clustering_changes_no_row_and_no_change(
    versioned_tables: Callable[[str], VersionedTable], kind: str
) -> None:
    by = CURVE if "key_dynamic" in kind else BY_N
    versioned = versioned_tables(kind)
    table = versioned.table.fork()
    before, feed = comparable(table.rows(meta=True)), list(table.feed)
    postponed = {path for path, file in table.files.items() if file.kind is FileKind.POSTPONED}
    was = buckets(table) if table.dataset.keyed and not table.kinds() & {FileKind.LOG} else None
    left = waits(table)
    assert clustered(table, by) > 0
    assert comparable(table.rows(meta=True)) == before
    assert table.feed == feed
    assert {path for path, file in table.files.items() if file.kind is FileKind.POSTPONED} == postponed
    mark = by.mark(table.dataset.schema)
    for file in table.files.values():
        if file.kind is FileKind.POSTPONED or file.file_group in left:
            continue
        assert (file.kind, file.deletion_vector, file.clustered_by) == (FileKind.BASE, None, mark)
        assert by is CURVE or is_ordered(stored(table, file), by)
    if was is not None:
        assert {key: resources for key, resources in was.items() if key in buckets(table)} == buckets(table)
    assert clustered(table, by) == 0


@EVERY_KIND
def test_writes_after_clustering_match_their_rows(
    versioned_tables: Callable[[str], VersionedTable], kind: str
) -> None:
    versioned = versioned_tables(kind)
    table, plain = versioned.table.fork(), versioned.table.fork()
    clustered(table, BY_N)
    keyed = table.dataset.keyed
    again = [{**row, "n": 500 + at} for at, row in enumerate(versioned.rows[-1][::3])]
    gone = versioned.rows[-1][1::5]
    for each in (table, plain):
        each.run = versioned.table.run
        if keyed:
            each.write(Write(operation=Operation.UPSERT, rows=again))
            keys = [{name: row[name] for name in table.dataset.record_key} for row in gone]
            each.write(Write(operation=Operation.DELETE, rows=keys))
        else:
            each.write(Write(operation=Operation.INSERT, rows=again))
            each.write(Write(operation=Operation.DELETE, options=WriteOptions(where="n BETWEEN 40 AND 60")))
    assert comparable(table.rows()) == comparable(plain.rows())
    assert changes_since(table, versioned) == changes_since(plain, versioned)
    changed = {file.file_group for file in table.files.values() if file.clustered_by is None}
    untouched = {path: file for path, file in table.files.items() if file.file_group not in changed}
    clustered(table, BY_N)
    assert untouched.items() <= table.files.items() or not keyed


@pytest.mark.parametrize("kind", ["merge_on_read none", "key_dynamic with deletion vectors", "unaware"])
@pytest.mark.parametrize("by", [BY_N, CURVE], ids=["linear", "z_order"])
def test_memory_bounds_change_no_order(
    versioned_tables: Callable[[str], VersionedTable], tmp_path: Path, kind: str, by: ClusterBy
) -> None:
    versioned = versioned_tables(kind)
    little, plenty = versioned.table.fork(), versioned.table.fork()
    clustered(little, by, memory=MemoryBudget(bytes_max=1_000, scratch=tmp_path / "scratch"))
    clustered(plenty, by)
    assert list((tmp_path / "scratch").iterdir()) == []

    def contents(table: LakeTable) -> list[Any]:
        live = sorted(table.files.values(), key=lambda file: (file.slot, file.row_count))
        return [(file.slot, stored(table, file).select(by.columns).to_pylist()) for file in live]

    assert contents(little) == contents(plenty)
    assert comparable(little.rows(meta=True)) == comparable(plenty.rows(meta=True))


def appended(tmp_path: Path, batches: Sequence[Sequence[int]]) -> LakeTable:
    """A table without keys, in one partition, after these appends."""
    table = new_versioned_table(LocalStorage(tmp_path), kind_of("unaware")).table
    for numbers in batches:
        append(table, numbers)
    return table


def append(table: LakeTable, numbers: Sequence[int]) -> None:
    rows = [
        {
            "id": number,
            "day": DAYS[0],
            "n": number % 97,
            "note": str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))),
        }
        for number in numbers
    ]
    table.write(Write(operation=Operation.INSERT, rows=rows))


def test_keyless_groups_are_joined_once_unordered_rows_equal_the_ordered_ones(
    tmp_path: Path,
) -> None:
    table = appended(tmp_path, [range(at, at + 20) for at in range(0, 800, 20)])
    assert len(table.groups()) == 40
    assert clustered(table, BY_N) == 1
    [first] = table.files.values()
    assert first.row_count == 800
    append(table, range(800, 810))
    assert clustered(table, BY_N) == 1
    assert first.path in table.files, "what is ordered is not written anew for a few rows"
    assert len(table.files) == 2
    append(table, range(810, 2_000))
    assert clustered(table, BY_N) == 1
    [only] = table.files.values()
    assert only.row_count == 2_000
    assert sorted(row["id"] for row in table.rows()) == list(range(2_000))
    assert is_ordered(stored(table, only), BY_N)
    assert clustered(table, CURVE) == 1, "another order is another clustering"


def test_number_of_ordered_groups_is_logarithmic(tmp_path: Path) -> None:
    """Those of about a size are put in one, so that each is about twice as large as the next, or more."""
    storage = LocalStorage(tmp_path)
    table = new_versioned_table(
        storage, kind_of("merge_on_read full", bucket=CreateBucket(count=1), partition_by=[])
    ).table
    for number in range(14):
        rows = [
            {"id": at, "day": DAYS[0], "n": at % 97, "note": f"note {at}"}
            for at in range(300 * number, 300 * (number + 1))
        ]
        table.write(Write(operation=Operation.UPSERT, rows=rows))
        assert clustered(table, BY_N) == 1
        sizes = [file.row_count for file in table.files.values()]
        assert sum(sizes) == 300 * (number + 1)
        assert len(sizes) <= 1 + (number + 1).bit_length()
        assert all(is_ordered(stored(table, file), BY_N) for file in table.files.values())


def test_large_groups_are_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = appended(tmp_path, [range(at, at + 20) for at in range(0, 100, 20)])
    size = max(file.size_bytes for file in table.files.values())
    monkeypatch.setattr("app.kernel.commit.clustering_plan.TOGETHER_BYTES_MAX", 2 * size)
    assert clustered(table, BY_N) == 3
    assert sorted(len(files) for files in table.groups().values()) == [1, 1, 1]
    assert sorted(row["id"] for row in table.rows()) == list(range(100))


def test_only_requested_and_due_groups_are_clustered(
    versioned_tables: Callable[[str], VersionedTable],
) -> None:
    table = versioned_tables("copy_on_write").table.fork()
    mark = BY_N.mark(table.dataset.schema)
    clustered(table, BY_N, partitions=["day=*-21"])
    ordered = {file.slot.partition_path for file in table.files.values() if file.clustered_by}
    assert ordered == {f"day={DAYS[1]}"}
    left = {
        name: sum(file.size_bytes for file in files if file.clustered_by != mark)
        for name, files in table.groups().items()
    }
    assert {name for name, size in left.items() if size == 0} == {
        name for name in table.groups() if DAYS[1] in name
    }
    bound = sorted(left.values())[-2]
    due = due_groups(table.dataset, measured(table, BY_N), bound)
    assert due == sorted(name for name, size in left.items() if size >= bound)
    assert clustered(table, BY_N, file_groups=due) == len(due)
    assert due_groups(table.dataset, measured(table, BY_N), bound) == []


def measured(table: LakeTable, by: ClusterBy) -> list[UnorderedGroup]:
    """What the catalogue says of the table."""
    mark = by.mark(table.dataset.schema)
    found = []
    for name, files in table.groups().items():
        others = [file for file in files if file.clustered_by != mark and file.kind is not FileKind.POSTPONED]
        if others:
            found.append(
                UnorderedGroup(
                    file_group=name,
                    size_bytes=sum(file.size_bytes for file in others),
                    logs=any(file.kind is FileKind.LOG for file in others),
                )
            )
    return found


def test_deferred_logs_are_not_due(versioned_tables: Callable[[str], VersionedTable]) -> None:
    table = versioned_tables("merge_on_read deferred").table
    waiting = waits(table)
    due = due_groups(table.dataset, measured(table, BY_N), 1)
    assert waiting
    assert not waiting & set(due)


def test_keyless_partition_is_due_as_a_whole(tmp_path: Path) -> None:
    table = appended(tmp_path, [range(at, at + 20) for at in range(0, 100, 20)])
    total = sum(file.size_bytes for file in table.files.values())
    assert due_groups(table.dataset, measured(table, BY_N), total) == sorted(table.groups())
    assert due_groups(table.dataset, measured(table, BY_N), total + 1) == []
    clustered(table, BY_N)
    append(table, range(100, 150))
    due = due_groups(table.dataset, measured(table, BY_N), 1)
    assert len(due) == 1
    assert clustered(table, BY_N, file_groups=due) == 1
    assert len(table.files) == 1, "what is in order joins what is due"


def test_policy_clusters_its_due_groups(tmp_path: Path) -> None:
    policy = ClusteringPolicy(columns=["n"], order=ClusterOrder.Z_ORDER, unclustered_bytes=1)
    table = new_versioned_table(
        LocalStorage(tmp_path), kind_of("unaware", services=TableServices(clustering=policy))
    ).table
    append(table, range(10))
    append(table, range(10, 20))
    requested: list[Any] = []

    class Groups:
        def touched(
            self, *dataset: str, keyed: bool, since_version: int, after: str | None, limit: int
        ) -> list[str]:
            return ["day=x"]

        def unordered(
            self, tenant_id: str, dataset_id: str, names: Sequence[str], *, keyed: bool, mark: str
        ) -> list[UnorderedGroup]:
            requested.append((tenant_id, dataset_id, names, keyed, mark))
            return measured(table, cluster_by(table.dataset))

    def observed(definition: DatasetDefinition) -> Observation:
        dataset = structs.replace(VersionedTable(table=table).dataset, definition=definition)
        return Observation(dataset=dataset, since_version=0, memory={}, now=committed_at(9))

    service = Clustering(groups=TouchedGroups(names=Groups()), orders=Groups(), rewrite=None)  # type: ignore[arg-type]
    task = service.due(observed(table.dataset), Measured()).task
    assert requested == [("t", "d", ["day=x"], False, "z_order:3")]
    assert task == ClusteringTask(
        columns=("n",), order=ClusterOrder.Z_ORDER, file_groups=tuple(sorted(table.groups()))
    )
    files = list(table.files.values())
    [planned] = Clustering.plan(task, table.dataset, files, attempt="a", data_prefix="p", planned_at=None)
    assert len(planned.files) == 2
    less = structs.replace(policy, unclustered_bytes=10**9)
    easy = structs.replace(table.dataset, services=TableServices(clustering=less))
    assert service.due(observed(easy), Measured()).task is None
    # What is in the policy's order is left to it by compactions; what is beside it is not.
    clustered(table, cluster_by(table.dataset))
    assert plan_compaction(table.dataset, table.files.values(), attempt="a", data_prefix="p") == []
    append(table, range(20, 30))
    append(table, range(30, 40))
    [folded] = plan_compaction(table.dataset, table.files.values(), attempt="a", data_prefix="p")
    assert [file.clustered_by for file in folded.files] == [None, None]
