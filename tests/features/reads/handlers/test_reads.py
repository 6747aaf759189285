"""Read jobs over HTTP: what they give in one answer or as files, beside pages of rows, and what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
import xxhash
from sqlalchemy import update

from app.core.jobs.tables import jobs
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.service.reaper import Reap
from app.infra.files.storage import open_storage
from tests.support.exports import keyed_history, reap, table_rows
from tests.support.http import problem, upsert
from tests.support.service import Service
from tests.support.shares import share

Row = dict[str, Any]
LATER = 86_400


@pytest.fixture(scope="module")
def table(service: Service) -> Iterator[tuple[httpx2.Client, str]]:
    """A client, and the path of a dataset with columns of many types and a past."""
    with service.client(service.new_key("reader of results")) as client:
        yield client, keyed_history(client, service, 5)


def started(client: httpx2.Client, service: Service, path: str, **body: Any) -> str:
    """The path of a read job that has succeeded."""
    answer = client.post(f"{path}/reads", json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["location"]).json()
    assert (job["kind"], job["state"]) == ("read", "succeeded"), job
    return str(answer.headers["location"])


def texts(rows: list[Row]) -> list[str]:
    return sorted(json.dumps(row) for row in rows)


def test_results_of_every_format_equal_the_pages(table: tuple[httpx2.Client, str], service: Service) -> None:
    client, path = table
    for version in (2, 6):
        rows = table_rows(client, path, version=version)
        answers = {}
        for format_ in ("json", "ndjson", "csv", "arrow", "parquet"):
            job = started(client, service, path, version=version, format=format_)
            answers[format_] = answer = client.get(f"{job}/result")
            assert answer.headers["headwater-version"] == str(version)
            assert answer.headers["headwater-schema-id"] == "1"
            assert answer.headers["headwater-disposition"] == "inline"
        found = answers["json"].json()
        assert texts(found["rows"]) == texts(rows)
        assert (found["disposition"], found["version"], found["begin"]) == ("inline", version, None)
        assert [field["name"] for field in found["schema"]["fields"]] == list(rows[0])
        assert texts([json.loads(line) for line in answers["ndjson"].content.splitlines()]) == texts(rows)
        assert answers["csv"].headers["content-type"] == "text/csv; charset=utf-8"
        # What CSV is, the service itself reads again.
        copy = {"name": f"copy-{version}", "record_key": ["region", "id"], "schema": copied(client, path)}
        written = client.post("/datasets", json=copy)
        assert written.status_code == 201, written.text
        body = {"headers": {"Content-Type": "text/csv"}, "content": answers["csv"].content}
        client.post(f"{written.headers['location']}/writes", params={"operation": "upsert"}, **body)
        service.work()
        assert texts(table_rows(client, written.headers["location"])) == texts(rows)
        stream = ipc.open_stream(io.BytesIO(answers["arrow"].content)).read_all()
        parquet = pq.read_table(io.BytesIO(answers["parquet"].content))
        assert stream.num_rows == parquet.num_rows == len(rows)
        page = client.get(
            f"{path}/rows",
            params={"version": version},
            headers={"Accept": "application/vnd.apache.arrow.stream"},
        )
        page_table = ipc.open_stream(io.BytesIO(page.content)).read_all()
        for each in (stream, parquet):
            assert sorted(map(repr, each.to_pylist())) == sorted(map(repr, page_table.to_pylist()))


def copied(client: httpx2.Client, path: str) -> Row:
    fields = client.get(path).json()["schema"]["fields"]
    return {"fields": [{name: each[name] for name in ("name", "type")} for each in fields]}


def test_result_files_are_listed_and_downloaded(table: tuple[httpx2.Client, str], service: Service) -> None:
    client, path = table
    job = started(
        client,
        service,
        path,
        format="ndjson",
        disposition="files",
        columns=["id"],
        order_by=[{"column": "id"}],
    )
    answer = client.get(f"{job}/result")
    assert answer.headers["headwater-disposition"] == "files"
    listed = answer.json()
    assert (listed["disposition"], listed["version"], listed["format"]) == ("files", 6, "ndjson")
    (file,) = listed["files"]
    content = client.get(file["links"]["self"])
    assert file["name"] == "part-00001.ndjson"
    assert file["checksum"] == f"xxh3-128:{xxhash.xxh3_128(content.content).hexdigest()}"
    ids = [json.loads(line)["id"] for line in content.text.splitlines()]
    assert ids == sorted(row["id"] for row in table_rows(client, path))
    assert len(ids) == listed["rows"] == file["rows"]
    part = client.get(file["links"]["self"], headers={"Range": "bytes=2-5"})
    assert (part.status_code, part.content) == (206, content.content[2:6])
    assert client.head(file["links"]["self"]).headers["content-length"] == str(file["size_bytes"])
    problem(client.get(f"{job}/result/files/part-00002.ndjson"), 404, "not-found")


def test_read_waits_for_its_result_on_request(client: httpx2.Client, orders: str, service: Service) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    with service.working():
        # Without a body, it is the table as it is.
        answer = client.post(f"{orders}/reads", headers={"Prefer": "wait=20"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["rows"] == 1
    queued = client.post(f"{orders}/reads").headers["location"]
    waiting = problem(client.get(f"{queued}/result"), 409, "job-not-finished")
    assert waiting["state"] == "queued"
    assert client.get(f"{queued}/result").headers["retry-after"] == "1"
    with service.working():
        found = client.get(f"{queued}/result", headers={"Prefer": "wait=20"})
    assert found.json()["rows"] == [{"id": 1, "note": "a"}]


def test_retry_returns_the_job_of_the_first_request(
    client: httpx2.Client, orders: str, service: Service
) -> None:
    key = {"Idempotency-Key": "k"}
    first = client.post(f"{orders}/reads", json={"limit": 5}, headers=key)
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    again = client.post(f"{orders}/reads", json={"limit": 5}, headers=key)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]
    # It reads the version that there was when it was accepted.
    assert client.get(f"{first.headers['location']}/result").json()["rows"] == []
    problem(client.post(f"{orders}/reads", json={"limit": 6}, headers=key), 422, "idempotency-mismatch")


def test_incremental_read_returns_rows_changed_between_two_versions(
    client: httpx2.Client, orders: str, service: Service
) -> None:
    for rows in (
        [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}],
        [{"id": 2, "note": "c"}],
        [{"id": 3, "note": "d"}],
    ):
        client.post(f"{orders}/writes", json=upsert(*rows))
        service.work()
    job = started(client, service, orders, query="incremental", begin=1, end=2)
    found = client.get(f"{job}/result").json()
    assert found["rows"] == [{"id": 2, "note": "c"}]
    assert (found["begin"], found["version"]) == (1, 2)
    times = [each["completed_at"] for each in client.get(f"{orders}/timeline").json()["items"]]
    job = started(client, service, orders, query="incremental", begin_time=times[1], where="note <> 'x'")
    assert client.get(f"{job}/result").json()["rows"] == [{"id": 3, "note": "d"}]


def test_unknown_query_type_is_refused(client: httpx2.Client, orders: str) -> None:
    found = problem(client.post(f"{orders}/reads", json={"query": "realtime"}), 400, "invalid-request")
    (error,) = found["errors"]
    assert error["pointer"] == "/query"
    assert all(name in error["detail"] for name in ("snapshot", "read_optimized", "incremental"))


@pytest.mark.parametrize(
    ("body", "status", "code", "pointer"),
    [
        ({"query": "incremental"}, 400, "invalid-request", "/begin"),
        ({"query": "incremental", "begin": 0}, 409, "no-commits", None),
        ({"version": 9}, 400, "invalid-request", "/version"),
        ({"tag": "gone"}, 404, "not-found", None),
        ({"as_of": "2026-11-21"}, 400, "invalid-request", "/as_of"),
        ({"columns": []}, 400, "invalid-request", "/columns"),
        ({"columns": ["gone"]}, 400, "invalid-request", "/columns"),
        ({"where": "gone = 1"}, 400, "invalid-filter", None),
        ({"where": "1=1; DROP TABLE jobs"}, 400, "invalid-filter", None),
        ({"partitions": ["day=*"]}, 400, "invalid-request", "/partitions"),
        ({"order_by": [{"column": "id; --"}]}, 400, "invalid-request", "/order_by/0/column"),
        ({"order_by": ["id"]}, 400, "invalid-request", "/order_by/0"),
        ({"limit": 0}, 400, "invalid-request", "/limit"),
        ({"format": "xml"}, 400, "invalid-request", "/format"),
        ({"disposition": "stream"}, 400, "invalid-request", "/disposition"),
        ({"sort": "id"}, 400, "invalid-request", "/sort"),
    ],
)
def test_invalid_read_is_refused(
    client: httpx2.Client, orders: str, body: Row, status: int, code: str, pointer: str | None
) -> None:
    found = problem(client.post(f"{orders}/reads", json=body), status, code)
    if pointer is not None:
        assert found["errors"][0]["pointer"] == pointer


def test_only_read_jobs_have_a_result(client: httpx2.Client, orders: str, service: Service) -> None:
    job = client.post(f"{orders}/writes", json=upsert({"id": 1})).headers["location"]
    assert "is a write" in problem(client.get(f"{job}/result"), 404, "not-found")["detail"]
    problem(client.get(f"/jobs/{job[-36:-1]}x/result"), 404, "not-found")
    cancelled = client.post(f"{orders}/reads").headers["location"]
    client.post(f"{cancelled}/cancel")
    service.work()
    problem(client.get(f"{cancelled}/result"), 409, "job-cancelled")


def test_result_of_a_failed_job_is_its_problem(client: httpx2.Client, orders: str, service: Service) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    storage = open_storage(service.settings.storage_uri)
    prefix = f"{orders.rpartition('/')[2]}"
    every = [path for path, _ in storage.list("") if f"/{prefix}/data/" in path]
    storage.delete(every)
    job = client.post(f"{orders}/reads").headers["location"]
    service.work()
    assert client.get(job).json()["state"] == "failed"
    problem(client.get(f"{job}/result"), 500, "corrupt-file")


def test_damaged_result_is_refused_before_its_first_byte(
    client: httpx2.Client, orders: str, service: Service
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    job = started(client, service, orders)
    storage = open_storage(service.settings.storage_uri)
    storage.delete([path for path, _ in storage.list("") if job[-36:] in path])
    problem(client.get(f"{job}/result"), 500, "corrupt-file")
    problem(client.get(f"{job}/result/files/part-00001.json"), 500, "corrupt-file")


@share(2)
def test_result_expires_after_its_retention(
    client: httpx2.Client, orders: str, service: Service, new_client: Callable[..., httpx2.Client]
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    job = started(client, service, orders, disposition="files")
    (link,) = [file["links"]["self"] for file in client.get(f"{job}/result").json()["files"]]
    reap(service)
    assert client.get(link).status_code == 200, "the reaper leaves results alone"
    problem(new_client().get(f"{job}/result"), 404, "not-found")
    with service.database.tenant(tenant_of(service, job)) as connection:
        moved = (
            update(jobs)
            .where(jobs.c.id == job[-36:])
            .values(finished_at=jobs.c.created_at - timedelta(days=2))
        )
        connection.execute(moved)
    gone = problem(client.get(f"{job}/result"), 410, "result-expired")
    assert gone["keep_seconds"] == LATER
    problem(client.get(link), 410, "result-expired")
    storage = open_storage(service.settings.storage_uri)
    assert [path for path, _ in storage.list("") if job[-36:] in path]
    Reap(
        references=ReferenceStore(service.database), storage=storage, grace_seconds=0,
        upload_seconds_max=LATER, result_seconds_max=LATER,
    ).run()  # fmt: skip
    assert not [path for path, _ in storage.list("") if job[-36:] in path]


def test_read_scope_may_start_a_read(client: httpx2.Client, orders: str, service: Service) -> None:
    job = client.post(f"{orders}/reads").headers["location"]
    key = service.tenants.make_key(tenant_of(service, job), ("read",)).api_key
    with service.client(key) as reader:
        assert reader.post(f"{orders}/reads").status_code == 202
        problem(reader.post(f"{orders}/compactions"), 403, "forbidden")


def tenant_of(service: Service, job: str) -> str:
    for tenant_id in ReferenceStore(service.database).tenants():
        if service.jobs.find(tenant_id, [job[-36:]]):
            return tenant_id
    raise AssertionError(f"no tenant has {job}")
