"""Exports over HTTP: what they write, beside what pages of the feed and of the table have."""

from __future__ import annotations

import io
import random
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from sqlalchemy import text

from app.features.retention.repository.references import ReferenceStore
from app.features.retention.service.reaper import Reap
from app.infra.files.storage import open_storage
from tests.support.service import Service

Row = dict[str, Any]
ONCE: Row = {"query": "changes", "format": "ndjson"}
EVERY_MINUTE: Row = {**ONCE, "schedule": {"every_seconds": 60}}
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
KEYED: Row = {
    "name": "sales",
    "schema": {
        "fields": [
            {"name": "region", "type": "string", "nullable": False},
            {"name": "id", "type": "int64"},
            {"name": "note", "type": "string"},
            {"name": "price", "type": "decimal(8, 2)"},
            {"name": "at", "type": "timestamp"},
            {"name": "day", "type": "date"},
            {"name": "rate", "type": "float"},
            {"name": "blob", "type": "binary"},
            {"name": "tags", "type": "map<string, list<int32>>"},
            {"name": "place", "type": "struct<city: string, seen: timestamp_ntz>"},
        ]
    },
    "record_key": ["region", "id"],
    "partition_by": ["region"],
    "event_time_field": "at",
}
NOTES = (None, "", "a", 'with "quotes", commas,\nlines and ü\u2028', "null")


def row(random_: random.Random, region: str, number: int) -> Row:
    """A row of KEYED with values of every kind, nulls among them."""
    return {
        "region": region,
        "id": number,
        "note": random_.choice(NOTES),
        "price": random_.choice((None, "0.10", "-12345.67")),
        "at": random_.choice((None, "2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000123Z")),
        "day": random_.choice((None, "2026-02-28")),
        "rate": random_.choice((None, 0.1, 3.4e38, -0.0)),
        "blob": random_.choice((None, "", "AP+Q")),
        "tags": random_.choice((None, {}, {"x": [1, None], "y": []})),
        "place": random_.choice((None, {"city": None, "seen": "2026-01-01T00:00:00"})),
    }


def write(client: httpx2.Client, service: Service, path: str, body: Row) -> None:
    """A write, which must succeed."""
    answer = client.post(f"{path}/writes", json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["location"]).json()
    assert job["state"] == "succeeded", job


def keyed_history(client: httpx2.Client, service: Service, seed: int, *, writes: int = 6, **more: Any) -> str:
    """The path of a dataset that was written to at random."""
    random_ = random.Random(seed)
    answer = client.post("/datasets", json={**KEYED, **more})
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    for _ in range(writes):
        keys = random_.sample([(region, n) for region in ("eu", "us") for n in range(6)], k=7)
        rows = [row(random_, *key) for key in keys]
        operation = random_.choice(("upsert", "upsert", "delete"))
        if operation == "delete":
            rows = [{"region": each["region"], "id": each["id"]} for each in rows[:3]]
        write(client, service, path, {"operation": operation, "source": {"kind": "rows", "rows": rows}})
    return path


def exported(client: httpx2.Client, service: Service, path: str, **definition: Any) -> Row:
    """The manifest of the first run of an export, once it has succeeded."""
    answer = client.post(f"{path}/exports", json=definition)
    assert answer.status_code == 202, answer.text
    service.work()
    return run_of(client, answer.headers["location"], 1)


def run_of(client: httpx2.Client, export: str, number: int) -> Row:
    """The manifest of a run that must have succeeded."""
    run = client.get(f"{export}/runs/{number}").json()
    assert run["state"] == "succeeded", run
    return run


def contents(client: httpx2.Client, run: Row) -> list[bytes]:
    """The files of a run, in order."""
    found = [client.get(file["links"]["self"]) for file in run["files"]]
    assert all(answer.status_code == 200 for answer in found)
    return [answer.content for answer in found]


def tables(format_: str, files: list[bytes]) -> list[pa.Table]:
    """The tables in files of a columnar format."""
    if format_ == "parquet":
        return [pq.read_table(pa.BufferReader(file)) for file in files]
    return [ipc.open_file(pa.BufferReader(file)).read_all() for file in files]


def feed_pages(client: httpx2.Client, path: str, media_type: str, **query: Any) -> list[bytes]:
    """Every page of a feed from `since` up to `until`, a few changes each."""
    found, position = [], query["since"]
    while position < query["until"]:
        answer = client.get(
            f"{path}/changes", params={**query, "since": position, "limit": 5}, headers={"Accept": media_type}
        )
        assert answer.status_code == 200, answer.text
        found.append(answer.content)
        following = int(answer.headers["headwater-next-since"])
        if following == position:
            return found
        position = following
    return found


def arrow_table(pages: list[bytes]) -> pa.Table:
    """Pages in Arrow, as one table."""
    return pa.concat_tables([ipc.open_stream(io.BytesIO(page)).read_all() for page in pages])


def table_rows(client: httpx2.Client, path: str, **query: Any) -> list[Row]:
    """Rows of a small table."""
    answer = client.get(f"{path}/rows", params={"limit": 10_000, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


def changed_keys(client: httpx2.Client, path: str, since: int, until: int) -> set[tuple[Any, ...]]:
    """The keys of KEYED that changes of a range name."""
    page = client.get(f"{path}/changes", params={"since": since, "until": until, "limit": 10_000}).json()
    return {(each["row"]["region"], each["row"]["id"]) for each in page["changes"]}


def stored(service: Service, export: str) -> list[tuple[str, str]]:
    """The files of an export on storage: the folder of their attempt, and their name."""
    root = service.settings.data_dir / "storage"
    found = sorted(root.glob(f"*/*/exports/{export.rsplit('/', 1)[1]}/*/*"))
    return [(file.parent.name, file.name) for file in found]


def pass_time(service: Service, export: str) -> None:
    """Makes the interval of an export over, as if its last run had begun an hour ago."""
    export_id = export.rsplit("/", 1)[1]
    tenant_id = owner(service, export_id)
    with service.database.tenant(tenant_id) as connection:
        connection.execute(text("UPDATE jobs SET created_at = created_at - interval '1 hour'"))
        connection.execute(
            text("UPDATE consumers SET wake_at = now() WHERE name = :name"), {"name": f"export:{export_id}"}
        )


def owner(service: Service, export_id: str) -> str:
    """The tenant of an export."""
    for tenant_id in ReferenceStore(service.database).tenants():
        with service.database.tenant(tenant_id) as connection:
            found = connection.execute(text("SELECT 1 FROM exports WHERE id = :id"), {"id": export_id})
            if found.one_or_none():
                return tenant_id
    raise AssertionError(f"no tenant has export {export_id}")


def reap(service: Service) -> int:
    """Deletes every orphan, however young; returns how many."""
    reaper = Reap(
        references=ReferenceStore(service.database),
        storage=open_storage(service.settings.storage_uri),
        grace_seconds=0,
        upload_seconds_max=86_400,
        result_seconds_max=86_400,
    )
    return reaper.run()
