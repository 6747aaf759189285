"""Engines with a key that sees a part of a dataset read what the service shows that key, at each version."""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Never

import pyarrow.parquet as pq
import pytest

from app.features.iceberg.service import plans
from app.features.objects.service.keys import table_key
from app.features.rendered_files.errors import RenderingUnderWay
from app.features.rendered_files.service.files import RenderedFiles
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.engines import DUCKDB, PYICEBERG, Reader, started
from tests.open.facade import VendedTable, path_of, records
from tests.open.histories import played
from tests.open.test_grants import check_seen, narrowed
from tests.open.test_tables import check_versions
from tests.support.left_out import left_out
from tests.support.service import Service
from tests.support.waiting import until

Json = dict[str, Any]
_STAFF: Final = {
    "schema": {
        "fields": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "place", "type": "string", "nullable": False},
            {"name": "born", "type": "date"},
            {"name": "salary", "type": "int32", "nullable": False},
            {"name": "home", "type": "struct<city: string, numbers: list<int32>>"},
        ]
    },
    "record_key": ["id", "place"],
    "partition_by": ["place", "truncate(8, id)"],
}
_NOTES: Final = [{"name": "note", "type": "string"}]
_PLACES: Final = ("oslo", "rome", "hidden-place")
GRANTS: Final[dict[str, list[Json]]] = {
    "rows": [{"where": "salary < 1000"}],
    "partition": [{"where": "place = 'oslo'"}],
    "no rows": [{"where": "salary < 0"}],
    "value": [{"mask": ["salary"]}],
    "partition value": [{"mask": ["place"]}],
    "later column": [{"where": "note is not null"}],
    "nested": [{"mask": ["home", "born"], "where": "id >= 4"}],
    "two": [{"where": "place = 'oslo'", "mask": ["home"]}, {"where": "salary > 1000"}],
}


# Of one the first versions cannot be read.
_FITTING: Final = [name for name in GRANTS if name != "later column"]


_LONG: Final = left_out("OPEN", "test-open")
_FEW: Final = ("rows", "partition value", "two")


def some(names: Iterable[str]) -> list[Any]:
    """The names, of which a few are tried always."""
    return [name if name in _FEW else pytest.param(name, marks=_LONG) for name in names]


def row(number: int, salary: int | None = None) -> Json:
    """A row, of which every third is in a place and has a salary of its own."""
    return {
        "id": number,
        "place": _PLACES[number % 3],
        "born": f"{1990 + number % 2}-05-01",
        "salary": 7_770_000 + number if number % 3 == 2 else salary or number,
        "home": None if number % 4 == 0 else {"city": f"city {number}", "numbers": [number, None]},
    }


@pytest.fixture(scope="module")
def own(service: Service) -> Iterator[Tenant]:
    found = Tenant.new(service)
    yield found
    found.client.close()


@pytest.fixture(scope="module")
def staff(own: Tenant) -> OpenDataset:
    """Rows that are written, changed, deleted and compacted, under two schemas."""
    dataset = own.dataset("staff", **_STAFF)
    dataset.upsert(*map(row, range(12)))
    dataset.upsert(row(1, 2_000), row(3, 900), *map(row, range(12, 15)))
    dataset.delete({"id": 4, "place": row(4)["place"]}, {"id": 5, "place": row(5)["place"]})
    dataset.change({"kind": "add", "field": {"name": "note", "type": "string"}})
    dataset.upsert({**row(0), "note": "first"}, {**row(2), "note": "second"})
    dataset.succeed("compactions")
    dataset.succeed("writes", operation="delete", where="place = 'rome'")
    return dataset


def seen_by(dataset: OpenDataset, name: str) -> OpenDataset:
    """The dataset as a new key with these grants sees it."""
    grants = [{"datasets": dataset.name, "scopes": ["read"], **each} for each in GRANTS[name]]
    return narrow_key(dataset, name, grants)


def narrow_key(dataset: OpenDataset, name: str, grants: list[Json]) -> OpenDataset:
    """The dataset as a new key sees it."""
    own = dataset.tenant
    body = {"name": name, "scopes": ["read"], "grants": grants}
    api_key = answered(own.client.post("/keys", json=body), 201).json()["api_key"]
    client = own.service.client(api_key)
    tenant = Tenant(service=own.service, api_key=api_key, client=client)
    return OpenDataset(tenant=tenant, name=dataset.name, path=dataset.path, registration=dataset.registration)


@pytest.fixture(scope="module")
def part(staff: OpenDataset) -> Callable[[str], OpenDataset]:
    return cache(lambda name: seen_by(staff, name))


@pytest.fixture
def duckdb(tmp_path: Path) -> Iterator[Reader]:
    """A process for one key: DuckDB finds keys for files by the location of the table, which all keys have."""
    running = started(DUCKDB, tmp_path)
    yield running
    running.stop()


@pytest.mark.parametrize("name", some(_FITTING))
def test_duckdb_reads_what_the_key_sees(
    duckdb: Reader, part: Callable[[str], OpenDataset], name: str
) -> None:
    check_versions(duckdb, part(name))


@_LONG
@pytest.mark.parametrize("name", _FITTING)
@pytest.mark.parametrize("planning", ["client", "server"])
def test_pyiceberg_reads_what_the_key_sees(
    reader: Readers, part: Callable[[str], OpenDataset], name: str, planning: str
) -> None:
    running, dataset = reader(PYICEBERG), part(name)
    for version in dataset.kept_versions():
        for where in (None, "id >= 6"):
            expected = dataset.rows(version, where=where)
            found = running.read(dataset.address, version=version, where=where, planning=planning)
            assert found.num_rows == expected.num_rows
    check_versions(running, dataset)


def test_duckdb_reads_what_a_key_sees_of_a_history(
    few_histories: Sequence[OpenDataset], duckdb: Reader
) -> None:
    dataset = few_histories[0]
    check_seen(duckdb, next(narrowed(dataset, f"in part {dataset.name}")))


@_LONG
def test_engines_read_what_keys_see_of_many_histories(
    service: Service, reader: Readers, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """`OPEN_HISTORIES`: how many. `OPEN_SEED`: the first one. Each failure names its seed and engine."""
    first, many = int(os.environ.get("OPEN_SEED", "0")), int(os.environ.get("OPEN_HISTORIES", "20"))
    faults: list[str] = []
    tenant = Tenant.new(service)
    for number in range(first, first + many):
        for narrow in narrowed(played(tenant, f"in part {number}"), number):
            own = started(DUCKDB, tmp_path)
            for each in (own, reader(PYICEBERG)):
                try:
                    check_seen(each, narrow)
                except Exception as error:
                    faults.append(f"history {number}, {each.engine.name}: {str(error)[:400]}")
            own.stop()
    record_property("open", f"{many} histories with grants from {first}: {len(faults)} faults")
    assert not faults, "\n".join(faults[:50])


def served_bytes(table: VendedTable) -> Iterator[tuple[str, bytes]]:
    """All that is served of a table, by its place: each encoded part of Avro and Parquet files is plain, too."""
    yield "document", json.dumps(table.document).encode()
    plan = table.client.post(f"{path_of(table.address.table, table.warehouse)}/plan", json={})
    yield "plan", answered(plan).content
    for place in {*table.objects(), *table.listing()}:
        content = table.content(place)
        yield place, place.encode() + content
        if place.endswith(".avro"):
            yield place, json.dumps(records(content), default=repr).encode()
        if place.endswith(".parquet"):
            file = pq.ParquetFile(io.BytesIO(content))
            yield place, f"{file.metadata.to_dict()} {file.read().to_pylist()}".encode()


HIDDEN: Final = {
    "rows": ("hidden-place", "777000"),
    "partition": ("hidden-place", "777000", "rome"),
    "no rows": (*_PLACES, "777000", "city ", "second"),
    "value": ("777000",),
    "partition value": _PLACES,
    "nested": ("city ", "1990-05-01", "datetime.date"),
    "two": ("city 6", "city 9"),
}


@pytest.mark.parametrize("warehouse", ["v3", pytest.param("v2", marks=_LONG)])
@pytest.mark.parametrize("name", some(HIDDEN))
def test_nothing_that_is_served_has_a_hidden_value(
    part: Callable[[str], OpenDataset], name: str, warehouse: str
) -> None:
    dataset = part(name)
    table = VendedTable.loaded(dataset.client, dataset.address, warehouse)
    found = dict(served_bytes(table))
    assert len(found) > len(table.snapshots())
    for place, content in found.items():
        for text in HIDDEN[name]:
            assert text.encode() not in content, (place, text)


@pytest.mark.parametrize("name", some(GRANTS))
def test_counts_are_those_of_visible_rows(part: Callable[[str], OpenDataset], name: str) -> None:
    dataset = part(name)
    table = VendedTable.loaded(dataset.client, dataset.address)
    for snapshot in table.snapshots():
        assert snapshot["summary"] == {"operation": "overwrite"}
        expected = dataset.rows(snapshot["snapshot-id"])
        manifests = records(table.content(snapshot["manifest-list"]))
        counts = [each["added_rows_count"] + each["existing_rows_count"] for each in manifests]
        files = [entry["data_file"] for entry in table.entries(snapshot)]
        assert sum(counts) == sum(file["record_count"] for file in files) == expected.num_rows
        assert all(file["record_count"] for file in files)
        for file in files:
            content = table.content(file["file_path"])
            assert len(content) == file["file_size_in_bytes"]
            assert pq.ParquetFile(io.BytesIO(content)).metadata.num_rows == file["record_count"]


def test_masked_column_determines_no_partition(part: Callable[[str], OpenDataset]) -> None:
    dataset = part("partition value")
    metadata = VendedTable.loaded(dataset.client, dataset.address).document["metadata"]
    [spec] = [each for each in metadata["partition-specs"] if each["spec-id"]]
    assert [each["name"] for each in spec["fields"]] == ["id_trunc"]
    for schema in metadata["schemas"]:
        required = {each["name"]: each["required"] for each in schema["fields"]}
        assert (required["place"], required["id"]) == (False, True)


def test_versions_that_the_grant_does_not_fit_are_no_snapshots(part: Callable[[str], OpenDataset]) -> None:
    dataset = part("later column")
    table = VendedTable.loaded(dataset.client, dataset.address)
    assert [each["snapshot-id"] for each in table.snapshots()] == dataset.kept_versions()[3:]
    assert dataset.client.get(f"{dataset.path}/rows", params={"version": 3}).status_code == 403
    plan = dataset.client.post(f"{path_of(dataset.name)}/plan", json={"snapshot-id": 3})
    assert plan.status_code == 403


def planned(dataset: OpenDataset, **request: Any) -> list[Json]:
    answer = answered(dataset.client.post(f"{path_of(dataset.name)}/plan", json=request))
    return [task["data-file"] for task in answer.json()["file-scan-tasks"]]


def test_plan_is_made_of_what_is_visible(part: Callable[[str], OpenDataset]) -> None:
    dataset = part("rows")
    assert planned(dataset)
    # Hidden rows have these values.
    for value in ("hidden-place", "rome"):
        expression = {"type": "eq", "term": "place", "value": value}
        assert planned(dataset, filter=expression, **{"snapshot-id": 6}) == []
    assert planned(dataset, filter={"type": "gt", "term": "salary", "value": 1_000}) == []
    assert planned(dataset, filter={"type": "eq", "term": "place", "value": "oslo"})


def test_plan_by_a_masked_column_is_refused(part: Callable[[str], OpenDataset]) -> None:
    for name, column in (("value", "salary"), ("partition value", "place")):
        dataset = part(name)
        expression = {"type": "not-null", "term": column}
        answer = dataset.client.post(f"{path_of(dataset.name)}/plan", json={"filter": expression})
        assert answer.status_code == 403
        assert "is masked" in answer.json()["error"]["message"]


def test_objects_of_others_are_not_found(staff: OpenDataset, part: Callable[[str], OpenDataset]) -> None:
    seen = [staff, *map(part, ("rows", "value", "partition value", "later column"))]
    tables = [VendedTable.loaded(each.client, each.address) for each in seen]
    objects = [table.objects() for table in tables]
    for table, own in zip(tables, objects, strict=True):
        foreign = sorted(set().union(*objects) - own)
        assert len(foreign) > 20
        # 403: its grant does not fit the version.
        chosen = random.Random(len(foreign)).sample(foreign, 10)
        assert {table.object(place).status_code for place in chosen} <= {403, 404}


def test_rows_that_are_equal_are_read_from_each_file(
    own: Tenant, duckdb: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = own.dataset("equals", schema={"fields": [{"name": "id", "type": "int64"}, *_NOTES]})
    for note in ("a", "b"):
        dataset.succeed(
            "writes", operation="insert", source={"kind": "rows", "rows": [{"id": 1, "note": note}]}
        )
    grant = {"datasets": "equals", "scopes": ["read"], "mask": ["note"]}
    narrow = narrow_key(dataset, "equals", [grant])
    assert narrow.rows().to_pylist() == [{"id": 1, "note": None}] * 2
    check_versions(duckdb, narrow)
    monkeypatch.setattr(plans, "TASKS_MAX", 1)
    assert len(planned(narrow)) == 2


def test_reader_has_to_wait_while_files_are_rendered(
    own: Tenant, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = own.dataset("slow", schema={"fields": [{"name": "id", "type": "int64"}, *_NOTES]})
    for number in (1, 2):
        rows = [{"id": number, "note": "a"}]
        dataset.succeed("writes", operation="insert", source={"kind": "rows", "rows": rows})
    narrow = narrow_key(dataset, "slow", [{"datasets": "slow", "scopes": ["read"], "mask": ["note"]}])
    table = VendedTable.loaded(narrow.client, narrow.address)

    def wait(*_: Any) -> Never:
        raise RenderingUnderWay(1, 2, 3)

    with monkeypatch.context() as patch:
        patch.setattr(RenderedFiles, "require", wait)
        first = table.object(table.snapshots()[0]["manifest-list"])
        assert (first.status_code, first.headers["retry-after"]) == (503, "3")
        assert "<Code>SlowDown</Code>" in first.text
        # What was rendered is used.
        assert table.object(table.snapshots()[1]["manifest-list"]).status_code == 200
        dataset.succeed("writes", operation="insert", source={"kind": "rows", "rows": [{"id": 3}]})
        for answer in (
            narrow.client.get(path_of("slow")),
            narrow.client.post(f"{path_of('slow')}/plan", json={}),
        ):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
            assert answer.json()["error"]["type"] == "ServiceUnavailableException"
    assert table.object(table.snapshots()[0]["manifest-list"]).status_code == 200
    assert narrow.client.get(path_of("slow")).status_code == 200


def test_revoked_key_opens_nothing_more(own: Tenant, staff: OpenDataset) -> None:
    narrow = seen_by(staff, "rows")
    table = VendedTable.loaded(narrow.client, narrow.address)
    places = table.objects()
    assert {table.object(place).status_code for place in places} == {200}
    [key_id] = [
        each["id"]
        for each in answered(own.client.get("/keys", params={"page_size": 1_000})).json()["items"]
        if each["name"] == "rows" and each["revoked_at"] is None and each["id"] == key_of(table)
    ]
    answered(own.client.delete(f"/keys/{key_id}"), 204)
    place = next(iter(places))
    until(lambda: table.object(place).status_code == 403, "refusal", seconds_max=30)
    assert {table.object(place).status_code for place in places} == {403}
    assert narrow.client.get(path_of(staff.name)).status_code == 401


def key_of(table: VendedTable) -> str:
    """The id of the API key that a table was loaded with."""
    return table_key(table.config["s3.access-key-id"]).actor_id
