"""Plans of scans: they have the files that may have matching rows, in as many responses as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from pyroaring import FrozenBitMap

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.core.timeline.service import live_groups
from app.core.timeline.values import Published
from app.features.iceberg.plans import PlanRequest, ScanTasks
from app.features.iceberg.service import plans
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.manifests import list_name
from app.features.iceberg.service.plans import PlanScans
from app.features.objects.ports import ServedTable
from app.features.rendered_files.values import RenderedFile
from app.features.retention.repository.history import HistoryStore
from app.infra.files.deletion_vector_file import VectorReader, write_vectors
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.file_group import ColumnStatistics, DataFile, Slot
from app.kernel.format.paths import data_folder, dataset_prefix
from app.kernel.format.policies import HistoryPolicy
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.kernel.iceberg.tables import avro_records
from tests.kernel.iceberg.test_expressions import holds
from tests.support.iceberg_tables import (
    known_files,
    served,
    snapshot_manifests,
    table_forms,
    visible_files,
)
from tests.support.lakehouse import RULES, commit_of, data_file, new_job
from tests.support.store_fixtures import Stores

DAYS = 6
EACH = 5
VARIANTS = pytest.mark.parametrize("variant", ["v3", "v2"])


@pytest.fixture
def planning(stores: Stores, tmp_path: Path) -> PlanScans:
    return PlanScans(
        planner=known_files(stores),
        timeline=stores.timeline,
        forms=table_forms(stores),
        deletes=DeleteFiles(vectors=VectorReader(LocalStorage(tmp_path))),
        visible=visible_files(stores, one_row),
    )


@pytest.fixture
def table(stores: Stores, tenant_id: str) -> Dataset:
    """A partitioned table of files with a row each: its day, a number and a name. One file of a day has no row left."""
    fields = [
        CreateField(name=name, type=kind) for name, kind in (("d", "int32"), ("n", "int64"), ("s", "string"))
    ]
    made = stores.catalog.create(
        tenant_id,
        new_id(),
        define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields), partition_by=["d"])),
    )
    folder = data_folder(dataset_prefix(tenant_id, made.id))
    messages = []
    for day in range(DAYS):
        group = f"d={day}/append-{day}"
        added = tuple(file_of(folder, group, day, number) for number in range(EACH))
        messages.append(CommitMessage(file_group=group, removed=(), added=added, changelog=()))
    stores.jobs.accept(tenant_id, new_job(made.id))
    [job] = stores.jobs.claim(tenant_id, made.id, "worker", RULES)
    assert isinstance(stores.timeline.publish_one(tenant_id, commit_of([job], messages)), Published)
    return stores.catalog.get(tenant_id, made.id)


def file_of(folder: str, group: str, day: int, number: int) -> DataFile:
    values = [day, day * EACH + number, f"name {number}"]
    [vector] = write_vectors(LocalStorage(Path()), "v", {"a": FrozenBitMap([0])}).values()
    return msgspec.structs.replace(
        data_file(rows=1),
        path=f"{folder}/d={day}/{number}.parquet",
        slot=Slot(partition_path=f"d={day}", bucket=0),
        file_group=group,
        statistics={
            str(place): ColumnStatistics(minimum=value, maximum=value, null_count=0)
            for place, value in enumerate(values, 1)
        },
        deletion_vector=vector if number == 2 else None,
    )


def rows_of() -> dict[str, dict[str, Any]]:
    """The row of each file, by the end of its path."""
    return {
        f"d={day}/{number}.parquet": {"d": day, "n": day * EACH + number, "s": f"name {number}"}
        for day in range(DAYS)
        for number in range(EACH)
    }


def predicate(random: Random, depth: int = 2) -> dict[str, Any]:
    if depth and random.random() < 0.6:
        kind = random.choice(["and", "or", "not"])
        if kind == "not":
            return {"type": kind, "child": predicate(random, depth - 1)}
        return {"type": kind, **{side: predicate(random, depth - 1) for side in ("left", "right")}}
    term, value = random.choice(
        [
            ("d", random.randrange(DAYS)),
            ("n", random.randrange(DAYS * EACH)),
            ("s", f"name {random.randrange(EACH)}"),
        ]
    )
    kind = random.choice(["eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq", "in", "not-in"])
    if kind.endswith("in"):
        return {"type": kind, "term": term, "values": [value]}
    return {"type": kind, "term": term, "value": value}


def whole(
    planning: PlanScans, table: Dataset, variant: str, request: PlanRequest
) -> tuple[set[str], set[str]]:
    """The files and the deleted rows of a whole plan, by the end of their paths. Each response is consistent."""
    part: ScanTasks = planning.plan(served(table, variant), request)
    files: list[str] = []
    deletes: list[str] = []
    while True:
        for task in part.file_scan_tasks:
            files.append(task.data_file.file_path)
            for place in task.delete_file_references:
                assert part.delete_files[place].referenced_data_file == task.data_file.file_path
        deletes += [each.file_path for each in part.delete_files]
        if not part.plan_tasks:
            break
        [name] = part.plan_tasks
        part = planning.tasks(served(table, variant), name)
    assert len(files) == len(set(files))
    return (
        {path[path.index("d=") :] for path in files},
        {path[path.index("d=") :].rpartition(".")[0] for path in deletes},
    )


@VARIANTS
def test_planned_files_have_the_rows_that_match(planning: PlanScans, table: Dataset, variant: str) -> None:
    random = Random(5)
    rows = rows_of()
    for _ in range(40):
        node = predicate(random)
        files, deletes = whole(planning, table, variant, PlanRequest(filter=node))
        # Each file has one row, so its bounds are exact.
        assert files == {path for path, row in rows.items() if holds(node, row)}, node
        assert deletes == {path for path in files if path.endswith("/2.parquet")}


@VARIANTS
def test_plan_without_a_filter_has_what_the_manifests_list(
    stores: Stores, planning: PlanScans, table: Dataset, variant: str, tmp_path: Path
) -> None:
    manifests = snapshot_manifests(stores, tmp_path)
    form = planning.forms.of(served(table, variant))
    plan = planning.plan(served(table, variant), PlanRequest())
    planned = {each.data_file.file_path: each.data_file for each in plan.file_scan_tasks}
    planned |= {each.file_path: each for each in plan.delete_files}
    _, listed = avro_records(manifests.find(served(table, variant), list_name(form, 1)))
    count = 0
    for record in listed:
        name = record["manifest_path"].rpartition("/")[2]
        for entry in avro_records(manifests.find(served(table, variant), name))[1]:
            file, mine = entry["data_file"], planned[entry["data_file"]["file_path"]]
            assert mine.file_size_in_bytes == file["file_size_in_bytes"]
            assert mine.record_count == file["record_count"]
            assert mine.spec_id == record["partition_spec_id"]
            assert list(mine.partition) == list(file["partition"].values())
            assert mine.referenced_data_file == file.get("referenced_data_file")
            assert mine.content_offset == file.get("content_offset")
            assert mine.content_size_in_bytes == file.get("content_size_in_bytes")
            count += 1
    assert count == len(planned) == DAYS * (EACH + 1)


def test_large_plan_is_continued_by_tasks(
    planning: PlanScans, table: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_groups, "_FILES_MIN", 2)
    monkeypatch.setattr(live_groups, "_FILES_MAX", 2)
    monkeypatch.setattr(plans, "TASKS_MAX", 4)
    plan = planning.plan(served(table), PlanRequest())
    assert len(plan.file_scan_tasks) == EACH
    assert len(whole(planning, table, "v3", PlanRequest())[0]) == DAYS * EACH
    assert planning.plan_again(served(table), plan.plan_id) == plan


def expired(stores: Stores, table: Dataset) -> Dataset:
    """The dataset after all of its files were replaced, and its first version has expired."""
    place = table.tenant_id, table.id
    live = stores.timeline.live_files(*place, 1, None)
    messages = [
        CommitMessage(file_group=group, removed=tuple(file.path for file in mine), added=(), changelog=())
        for group, mine in by_group(live).items()
    ]
    stores.jobs.accept(table.tenant_id, new_job(table.id))
    jobs = stores.jobs.claim(*place, "worker", RULES)
    commit = commit_of(jobs, messages, read_version=1)
    assert isinstance(stores.timeline.publish_one(table.tenant_id, commit), Published)
    history = HistoryStore(stores.database)
    history.advance_start(*place, HistoryPolicy(versions=1))
    history.expire_files(*place, 0, 1_000)
    found = stores.catalog.get(*place)
    assert found.earliest_version == 2
    return found


def by_group(files: Sequence[DataFile]) -> dict[str, list[DataFile]]:
    groups: dict[str, list[DataFile]] = {}
    for file in files:
        groups.setdefault(file.file_group, []).append(file)
    return groups


@pytest.mark.parametrize("access", [EVERYTHING, RowAccess(masked=("s",))], ids=["whole", "part"])
def test_plan_goes_on_after_its_version_has_expired_as_long_as_its_files_are_known(
    stores: Stores, planning: PlanScans, table: Dataset, access: RowAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "TASKS_MAX", 4)
    monkeypatch.setattr(live_groups, "_FILES_MIN", 2)
    node = {"type": "gt-eq", "term": "d", "value": 1}
    requests = [PlanRequest(snapshot_id=1), PlanRequest(snapshot_id=1, filter=node)]
    before = [parts(planning, served(table, access=access), request) for request in requests]
    assert [sum(len(part.file_scan_tasks) for part in plan) for plan in before] == [
        DAYS * EACH,
        (DAYS - 1) * EACH,
    ]
    later = served(expired(stores, table), access=access)
    # Another process has not planned it before.
    fresh = replace(planning, visible=visible_files(stores, one_row))
    assert [parts(fresh, later, request) for request in requests] == before
    for plan in before:
        [name] = plan[0].plan_tasks
        assert fresh.tasks(later, name) == plan[1]
    HistoryStore(stores.database).remove_files(table.tenant_id, table.id, unused_seconds=0, limit=1)
    fresh = replace(planning, visible=visible_files(stores, one_row))
    [name] = before[0][0].plan_tasks
    with pytest.raises(VersionExpired, match="version 1 is not kept any more"):
        fresh.tasks(later, name)


def one_row(dataset: Dataset, file: DataFile) -> RenderedFile:
    """A row of each file."""
    return RenderedFile(
        view="0" * 16,
        content=blake2b(file.path.encode(), digest_size=16).hexdigest(),
        size_bytes=100,
        row_count=1,
        statistics=file.statistics,
        source=file,
        schema_id=dataset.definition.schema.id,
    )


def parts(planning: PlanScans, table: ServedTable, request: PlanRequest) -> list[ScanTasks]:
    """The responses of a whole plan."""
    found: list[ScanTasks] = [planning.plan(table, request)]
    while found[-1].plan_tasks:
        [name] = found[-1].plan_tasks
        found.append(planning.tasks(table, name))
    return found


def test_filter_that_is_large_makes_responses_of_fewer_files(
    planning: PlanScans, table: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = {"type": "in", "term": "n", "values": list(range(DAYS * EACH))}
    monkeypatch.setattr(plans, "FILTER_BYTES_MAX", 2 * len(msgspec.json.encode(node)))
    plan = planning.plan(served(table), PlanRequest(filter=node))
    assert len(plan.file_scan_tasks) == EACH
    assert len(whole(planning, table, "v3", PlanRequest(filter=node))[0]) == DAYS * EACH
    assert len(planning.plan(served(table), PlanRequest()).file_scan_tasks) == DAYS * EACH


def test_response_compares_a_bounded_number_of_files(
    planning: PlanScans, table: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "COMPARISONS_MAX", EACH)
    # Postgres does not compare texts of this form, so that it leaves out no file.
    node = {"type": "and", "left": {"type": "starts-with", "term": "s", "value": "name"},
            "right": {"type": "gt-eq", "term": "n", "value": 0}}  # fmt: skip
    plan = planning.plan(served(table), PlanRequest(filter=node))
    assert (len(plan.file_scan_tasks), len(plan.plan_tasks)) == (EACH, 1)
    assert len(whole(planning, table, "v3", PlanRequest(filter=node))[0]) == DAYS * EACH


def test_what_cannot_be_planned_is_refused(stores: Stores, planning: PlanScans, table: Dataset) -> None:
    for request in (PlanRequest(start_snapshot_id=1, end_snapshot_id=1), PlanRequest(filter={"type": "xor"})):
        with pytest.raises(InvalidRequest):
            planning.plan(served(table), request)
    for number in (0, -1, 2, 2**63):
        with pytest.raises(NotFound):
            planning.plan(served(table), PlanRequest(snapshot_id=number))
    for name in ("", "x", "completed", "é", "A" * 10_000):
        with pytest.raises(NotFound):
            planning.tasks(served(table), name)
    empty = stores.catalog.create(
        table.tenant_id, new_id(), msgspec.structs.replace(table.definition, name="empty")
    )
    assert planning.plan(served(empty), PlanRequest()).file_scan_tasks == ()
