"""Scans through the typed client, and tables that are read by them."""

from __future__ import annotations

import asyncio
import io
import random
from decimal import Decimal
from pathlib import Path

import httpx2
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.access.tenants.values import Grant, KeyScope
from headwater_client import AsyncHeadwater, DamagedDownload, Headwater, NewDataset, NewField
from headwater_client.calls.reading import scans as client_scans
from headwater_client.spark.part_file import PartFile


@pytest.fixture(autouse=True)
def worker(service):
    with service.working():
        yield


@pytest.fixture
def written(headwater, orders):
    """Two buckets, one of which has a row less than its file."""
    headwater.write_rows(orders, [{"id": number, "note": f"{number}"} for number in range(20)], wait=30)
    headwater.write_rows(orders, [{"id": 7}], operation="delete", wait=30)
    return orders


def read_jobs(headwater):
    return list(headwater.jobs(kinds=["read"]))


def test_parts_are_downloaded_and_verified(headwater, written, tmp_path):
    scan = headwater.scan(written)
    assert sorted(part.format for part in scan.parts) == ["arrow", "parquet"]
    found = []
    for part in scan.parts:
        path = headwater.download_scan_part(part, tmp_path / part.format)
        if part.format == "parquet":
            found += pq.read_table(path).column("id").to_pylist()
        else:
            with pa.ipc.open_stream(path) as stream:
                found += stream.read_all().column("id").to_pylist()
    assert sorted(found) == [number for number in range(20) if number != 7]
    [file] = [part for part in scan.parts if part.format == "parquet"]
    for damaged in ({"checksum": "xxh3-128:00"}, {"size_bytes": file.size_bytes + 1}):
        wrong = msgspec.structs.replace(file, **damaged)
        with pytest.raises(DamagedDownload):
            headwater.download_scan_part(wrong, tmp_path / "damaged")
        with pytest.raises(DamagedDownload):
            headwater.read_scan(msgspec.structs.replace(scan, parts=(wrong,)))
    assert not (tmp_path / "damaged").exists()


def test_columns_of_a_file_are_read_in_ranges(headwater, orders, service, api_key):
    class Counting(httpx2.HTTPTransport):
        """Counts what is sent of a file."""

        received = 0

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            response = super().handle_request(request)
            type(self).received += (
                int(response.headers.get("content-length", "0")) if "range" in request.headers else 0
            )
            return response

    rows = [{"id": number, "note": random.Random(number).randbytes(30).hex()} for number in range(20_000)]
    headwater.write_rows(orders, rows, wait=60)
    parts = headwater.scan(orders, columns=["id"]).parts
    found = []
    with Headwater(service.url, api_key, transport=Counting()) as client:
        for part in parts:
            with pq.ParquetFile(pa.PythonFile(PartFile(client, part), mode="r"), pre_buffer=True) as file:
                found += file.read(columns=["id"]).column("id").to_pylist()
    assert sorted(found) == list(range(20_000))
    assert 0 < Counting.received < sum(part.size_bytes for part in parts) / 2
    for wrong in ({"size_bytes": parts[0].size_bytes + 1}, {"size_bytes": parts[0].size_bytes - 1}):
        with pytest.raises(DamagedDownload):
            PartFile(headwater, msgspec.structs.replace(parts[0], **wrong)).read()
    file = PartFile(headwater, parts[0])
    assert file.read(4) == b"PAR1"
    file.seek(-4, io.SEEK_END)
    assert (file.read(), file.read()) == (b"PAR1", b"")


def test_tables_of_every_form_are_read_without_a_job(headwater, written):
    table = headwater.table(written, columns=["note", "id"])
    rows = table.to_arrow()
    assert rows.schema.names == ["note", "id"]
    assert sorted(rows.column("id").to_pylist()) == [number for number in range(20) if number != 7]
    assert sorted(table.to_polars().rows()) == sorted(zip(*rows.to_pydict().values(), strict=True))
    assert sorted(table.to_pandas()["id"]) == sorted(rows.column("id").to_pylist())
    assert table.to_duckdb().aggregate("count(*)").fetchall() == [(19,)]
    assert headwater.table(written, version=1).to_arrow().num_rows == 20
    assert read_jobs(headwater) == []
    # What a scan has no option for is read by a job, and so is a table without rows.
    assert headwater.table(written, where="id = 3").to_arrow().num_rows == 1
    assert headwater.table(written, version=0).to_arrow().schema.names == ["id", "note"]
    assert len(read_jobs(headwater)) == 2


@pytest.mark.parametrize(
    ("whole", "form"),
    [("int64", "parquet"), pytest.param("uint32", "arrow", id="files store unsigned columns signed")],
)
def test_tables_of_scans_equal_those_of_jobs(headwater, whole, form):
    kinds = ("int64", "boolean", whole, "decimal(9, 2)", "string", "binary", "date", "timestamp",
             "list<string>", "map<string, int32>", "struct<city: string>")  # fmt: skip
    fields = [NewField(name=f"c{at}.{at % 2}", type=kind) for at, kind in enumerate(kinds)]
    dataset = headwater.create_dataset(
        NewDataset(name="t", fields=tuple(fields), record_key=("c0.0",), buckets=1)
    )
    values = [1, True, 2**32 - 1, Decimal("1.50"), "ü", b"\x00", "2026-11-21", "2026-11-21T10:00:00Z",
              ["a", None], {"a": 1}, {"city": "Ulm"}]  # fmt: skip
    row = {field.name: value for field, value in zip(fields, values, strict=True)}
    headwater.write_rows(dataset, [row, {"c0.0": 2}], wait=30)
    [part] = headwater.scan(dataset).parts
    assert part.format == form
    job = headwater.read(dataset, order_by=["c0.0"], wait=30)
    scanned = headwater.table(dataset)
    assert scanned.to_arrow().schema.equals(job.to_arrow().schema)
    for mine, theirs in zip(scanned.to_arrow().schema, job.to_arrow().schema, strict=True):
        assert (mine.nullable, mine.metadata) == (theirs.nullable, theirs.metadata)
    assert scanned.to_arrow().schema.metadata == job.to_arrow().schema.metadata
    assert scanned.to_arrow().sort_by("c0.0").equals(job.to_arrow())
    assert scanned.to_polars().schema == job.to_polars().schema
    assert scanned.to_polars().sort("c0.0").equals(job.to_polars())


def test_scan_has_what_a_key_sees_in_part(headwater, written, service):
    tenant = headwater.me().tenant.id
    grant = Grant(datasets="orders", scopes=(KeyScope.READ,), where="id < 3")
    key = service.tenants.make_key(tenant, (KeyScope.READ,), grants=(grant,)).api_key
    with Headwater(service.url, key, transport=httpx2.HTTPTransport()) as restricted:
        assert sorted(restricted.table("orders").to_arrow().column("id").to_pylist()) == [0, 1, 2]
    assert read_jobs(headwater) == []


def test_job_reads_what_takes_long_to_merge(headwater, written, monkeypatch):
    monkeypatch.setattr(client_scans, "MERGED_BYTES_MAX", 1)
    assert headwater.table(written).to_arrow().num_rows == 19
    assert len(read_jobs(headwater)) == 1


class _Storage(httpx2.HTTPTransport):
    """A service that gives links, and a storage which has the files or cannot be reached."""

    def __init__(self, *, reachable: bool) -> None:
        super().__init__()
        self.reachable = reachable
        self.seen: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "storage.example":
            self.seen.append(request)
            if not self.reachable:
                raise httpx2.ConnectError("no route")
            return super().handle_request(
                httpx2.Request("GET", request.url.params["of"], headers={"Authorization": self.credential})
            )
        if request.headers.get("prefer") == "redirect":
            self.credential = request.headers["authorization"]
            link = httpx2.URL("https://storage.example/file", params={"of": str(request.url)})
            return httpx2.Response(307, headers={"Location": str(link)})
        return super().handle_request(request)


class _AsyncStorage(httpx2.AsyncBaseTransport):
    """The same for the async client."""

    def __init__(self, storage: _Storage) -> None:
        self.storage = storage

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self.storage.handle_request(request)
        return httpx2.Response(response.status_code, headers=response.headers, content=response.read())


@pytest.mark.parametrize("reachable", [True, False])
def test_links_to_the_storage_are_followed_without_the_credential(
    service, api_key, written, tmp_path: Path, reachable: bool
):
    storage = _Storage(reachable=reachable)
    with Headwater(service.url, api_key, transport=storage) as client:
        scan = client.scan(written)
        assert client.read_scan(scan).to_arrow().num_rows == 19
        for number, part in enumerate(scan.parts):
            client.download_scan_part(part, tmp_path / f"{number}")

    async def read() -> None:
        async with AsyncHeadwater(service.url, api_key, transport=_AsyncStorage(storage)) as client:
            scan = await client.scan(written)
            assert (await client.read_scan(scan)).to_arrow().num_rows == 19
            for number, part in enumerate(scan.parts):
                path = await client.download_scan_part(part, tmp_path / f"async-{number}")
                assert path.read_bytes() == (tmp_path / f"{number}").read_bytes()

    asyncio.run(read())
    assert len(storage.seen) == 4 * len(scan.parts)
    assert not any("authorization" in request.headers for request in storage.seen)
