"""Writes in every form, with every header that steers them."""

import gzip
import io
import socket
import threading
import time
from contextlib import closing
from http.client import HTTPConnection

import httpx2
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from tests.support.http import problem, upsert

NDJSON = "application/x-ndjson"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
OCTETS = "application/octet-stream"
UPLOAD = {"kind": "upload", "upload_id": "x", "format": "csv"}
ROWS = [{"id": 1, "note": "eins"}, {"id": 2, "note": None}]


def arrow_bytes():
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "note": pa.array(["eins", None], pa.string())})
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet_bytes():
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "note": pa.array(["eins", None], pa.string())})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


FORMS = {
    NDJSON: b'{"id":1,"note":"eins"}\n{"id":2,"note":null}\n',
    CSV: b"id,note\n1,eins\n2,\n",
    ARROW: arrow_bytes(),
    PARQUET: parquet_bytes(),
}


def rows_of(client, path):
    return sorted(client.get(f"{path}/rows").json()["rows"], key=lambda row: row["id"])


def test_accepted_write_returns_its_job(client, orders):
    answer = client.post(f"{orders}/writes", json=upsert(*ROWS))
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == job["links"]["self"] == f"/jobs/{job['id']}"
    assert int(answer.headers["retry-after"]) >= 1
    assert (job["kind"], job["state"], job["operation"]) == ("write", "queued", "upsert")
    assert job["links"]["dataset"] == orders
    assert job["committed_version"] is None


def test_write_that_commits_within_the_wait_returns_its_version(client, orders, service):
    with service.working():
        answer = client.post(
            f"{orders}/writes", json=upsert(*ROWS), headers={"Prefer": "respond-async, wait=20"}
        )
    assert answer.status_code == 200, answer.text
    assert answer.headers["preference-applied"] == "wait=20"
    job = answer.json()
    assert (job["state"], job["committed_version"]) == ("succeeded", 1)
    assert (job["first_offset"], job["last_offset"]) == (0, 1)
    assert job["rows"] == {
        "inserted": 2,
        "updated": 0,
        "deleted": 0,
        "unchanged": 0,
        "late": 0,
        "quarantined": 0,
    }
    assert rows_of(client, orders) == ROWS
    assert client.get(orders).headers["etag"] == '"1"'


def test_write_that_fails_within_the_wait_returns_its_problem(client, orders, service):
    insert = {"operation": "insert", "source": {"kind": "rows", "rows": ROWS}}
    with service.working():
        client.post(f"{orders}/writes", json=insert, headers={"Prefer": "wait=20"})
        answer = client.post(f"{orders}/writes", json=insert, headers={"Prefer": "wait=20"})
    members = problem(answer, 422, "duplicate-key")
    assert members["job"]["state"] == "failed"
    found = client.get(members["job"]["links"]["self"])
    assert found.status_code == 200
    assert found.json()["error"]["type"] == "/problems/duplicate-key"


def test_wait_that_ends_first_returns_the_queued_job(client, orders):
    began = time.monotonic()
    answer = client.post(f"{orders}/writes", json=upsert(*ROWS), headers={"Prefer": "wait=1"})
    assert answer.status_code == 202
    assert "preference-applied" not in answer.headers
    assert 0.9 < time.monotonic() - began < 5


def test_job_cancelled_within_the_wait_returns_a_problem(client, orders, service):
    with service.client(client.headers["authorization"].split()[1]) as second:

        def cancel():
            time.sleep(0.3)
            job = second.get(f"{orders}/timeline").json()["items"][0]["job_id"]
            assert second.post(f"/jobs/{job}/cancel").json()["state"] == "cancelled"

        thread = threading.Thread(target=cancel)
        thread.start()
        answer = client.post(f"{orders}/writes", json=upsert(*ROWS), headers={"Prefer": "wait=20"})
        thread.join()
    assert problem(answer, 409, "job-cancelled")["job"]["state"] == "cancelled"


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("media_type", FORMS)
def test_raw_rows_are_upserted_by_default(client, orders, service, media_type, encoding):
    body = gzip.compress(FORMS[media_type]) if encoding == "gzip" else FORMS[media_type]
    answer = client.post(
        f"{orders}/writes", content=body, headers={"Content-Type": media_type, "Content-Encoding": encoding}
    )
    assert answer.status_code == 202, answer.text
    assert answer.json()["operation"] == "upsert"
    service.work()
    assert rows_of(client, orders) == ROWS


def test_raw_rows_are_inserted_without_a_key(client, events, service):
    rows = b'{"at":"2026-01-01T00:00:00Z","what":"a"}\n'
    answer = client.post(f"{events}/writes", content=rows, headers={"Content-Type": NDJSON})
    assert answer.json()["operation"] == "insert"
    refused = client.post(
        f"{events}/writes", params={"operation": "upsert"}, content=rows, headers={"Content-Type": NDJSON}
    )
    assert problem(refused, 400, "invalid-request")["errors"][0]["pointer"] == "/operation"
    service.work()
    assert [row["what"] for row in client.get(f"{events}/rows").json()["rows"]] == ["a"]


def test_delete_requires_only_the_key(client, orders, service):
    client.post(f"{orders}/writes", json=upsert(*ROWS))
    answer = client.post(
        f"{orders}/writes",
        params={"operation": "delete"},
        content=b'{"id":1}',
        headers={"Content-Type": NDJSON},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    assert rows_of(client, orders) == ROWS[1:]


def test_large_raw_body_is_stored_and_written(client, orders, service):
    lines = b"".join(b'{"id":%d,"note":"%s"}\n' % (number, b"x" * 100) for number in range(20_000))
    assert len(lines) > service.settings.inline_bytes_max * 10

    def chunks():
        for start in range(0, len(lines), 10_000):
            yield lines[start : start + 10_000]

    answer = client.post(f"{orders}/writes", content=chunks(), headers={"Content-Type": NDJSON})
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["location"]).json()
    assert (job["state"], job["rows"]["inserted"]) == ("succeeded", 20_000)


def test_upload_is_written_by_its_id(client, orders, service):
    content = gzip.compress(FORMS[CSV])
    upload = client.post(f"{orders}/uploads", content=content, headers={"Content-Type": OCTETS})
    assert upload.status_code == 201
    assert upload.json()["size_bytes"] == len(content)
    source = {"kind": "upload", "upload_id": upload.json()["id"], "format": "csv", "compression": "gzip"}
    answer = client.post(f"{orders}/writes", json={"operation": "upsert", "source": source})
    assert answer.status_code == 202, answer.text
    service.work()
    assert rows_of(client, orders) == ROWS
    missing = {**source, "upload_id": orders.rsplit("/", 1)[-1]}
    problem(
        client.post(f"{orders}/writes", json={"operation": "upsert", "source": missing}), 404, "not-found"
    )


class TestIdempotency:
    def test_retry_returns_the_same_job(self, client, orders, service):
        headers = {"Idempotency-Key": "one"}
        first = client.post(f"{orders}/writes", json=upsert(*ROWS), headers=headers)
        assert "idempotency-replayed" not in first.headers
        service.work()
        again = client.post(f"{orders}/writes", json=upsert(*ROWS), headers={**headers, "Prefer": "wait=5"})
        assert again.headers["idempotency-replayed"] == "true"
        assert again.status_code == 200
        assert again.json()["id"] == first.json()["id"]
        assert len(client.get(f"{orders}/timeline").json()["items"]) == 1

    def test_raw_retry_returns_the_same_job(self, client, orders):
        headers = {"Idempotency-Key": '"quoted"', "Content-Type": CSV}
        first = client.post(f"{orders}/writes", content=FORMS[CSV], headers=headers)
        bare = {**headers, "Idempotency-Key": "quoted"}
        again = client.post(f"{orders}/writes", content=FORMS[CSV], headers=bare)
        assert again.json()["id"] == first.json()["id"]

    @pytest.mark.parametrize(
        ("body", "parameters"),
        [
            (b'{"id":2}', {}),
            (b'{"id":1}', {"operation": "delete"}),
            (b'{"id":1} ', {}),
            (b'{"id":1}', {"expected_version": "0"}),
        ],
        ids=["other rows", "other operation", "other bytes", "other options"],
    )
    def test_another_request_with_the_key_is_refused(self, client, orders, body, parameters):
        headers = {"Idempotency-Key": "one", "Content-Type": NDJSON}
        client.post(f"{orders}/writes", content=b'{"id":1}', headers=headers)
        other = client.post(f"{orders}/writes", content=body, headers=headers, params=parameters)
        assert "send a new key" in problem(other, 422, "idempotency-mismatch")["detail"]

    def test_idempotency_keys_are_separate_per_dataset(self, client, orders):
        second = client.post(
            "/datasets",
            json={"name": "b", "schema": {"fields": [{"name": "id", "type": "int64"}]}, "record_key": ["id"]},
        )
        headers = {"Idempotency-Key": "one"}
        assert client.post(f"{orders}/writes", json=upsert({"id": 1}), headers=headers).status_code == 202
        path = second.headers["location"]
        assert client.post(f"{path}/writes", json=upsert({"id": 2}), headers=headers).status_code == 202

    @pytest.mark.parametrize("key", ["", "é", "x" * 256])
    def test_invalid_idempotency_key_is_refused(self, client, orders, key):
        answer = client.post(
            f"{orders}/writes", json=upsert(*ROWS), headers=[("Idempotency-Key", key.encode("latin-1"))]
        )
        assert problem(answer, 400, "invalid-request")["errors"][0]["pointer"] == "/Idempotency-Key"

    def test_key_of_an_incomplete_request_is_in_flight(self, client, orders, service):
        reached, go_on = threading.Event(), threading.Event()

        def slowly():
            yield b'{"id":1}\n'
            reached.set()
            assert go_on.wait(20)
            yield b'{"id":2}\n'

        headers = {"Idempotency-Key": "slow", "Content-Type": NDJSON}
        answers = []
        with service.client(client.headers["authorization"].split()[1]) as slow:
            thread = threading.Thread(
                target=lambda: answers.append(
                    slow.post(f"{orders}/writes", content=slowly(), headers=headers)
                )
            )
            thread.start()
            assert reached.wait(20)
            time.sleep(0.2)
            early = client.post(f"{orders}/writes", content=b'{"id":1}', headers=headers)
            go_on.set()
            thread.join()
        problem(early, 409, "idempotency-in-flight")
        assert int(early.headers["retry-after"]) >= 1
        assert answers[0].status_code == 202


class TestRefused:
    """What is refused leaves nothing behind: no job, no instant, no change."""

    @pytest.fixture(autouse=True)
    def no_job_and_no_file_is_left(self, client, orders, service):
        yield
        assert client.get(f"{orders}/timeline").json()["items"] == []
        folder = service.settings.data_dir / "storage"
        assert not [path for path in folder.rglob(f"{orders.rsplit('/', 1)[-1]}/**/*") if path.is_file()]

    @pytest.mark.parametrize(
        ("envelope", "pointer"),
        [
            ({**upsert({"id": 1}), "modus": "append"}, "/modus"),
            ({**upsert({"id": 1}), "mode": "replace"}, "/mode"),
            ({**upsert({"id": 1}), "drop_duplicates": True}, "/drop_duplicates"),
            ({**upsert({"id": 1}), "expected_version": "1"}, "/expected_version"),
            ({**upsert({"id": 1}), "writer_id": "w"}, "/batch_id"),
            ({**upsert({"id": 1}), "overwrite": {"scope": "rows"}}, "/overwrite/scope"),
            ({**upsert({"id": 1}), "operation": "delete", "where": "id = 1"}, "/source"),
            ({**upsert({"id": 1}), "operation": "delete_partition", "partitions": ["*"]}, "/operation"),
            ({"source": {"kind": "rows", "rows": []}}, "/operation"),
            ({"operation": "merge", "source": {"kind": "rows", "rows": []}}, "/operation"),
            ({"operation": "upsert", "source": {"kind": "uri", "uri": "s3://x"}}, "/source/kind"),
            (
                {"operation": "upsert", "source": {"kind": "rows", "rows": [], "format": "csv"}},
                "/source/format",
            ),
            ({"operation": "upsert", "source": UPLOAD | {"format": "xls"}}, "/source/format"),
            ({"operation": "upsert", "source": UPLOAD | {"compression": "br"}}, "/source/compression"),
            ({"operation": "upsert"}, "/source"),
        ],
    )
    def test_invalid_envelope_is_refused(self, client, orders, envelope, pointer):
        members = problem(client.post(f"{orders}/writes", json=envelope), 400, "invalid-request")
        assert [error["pointer"] for error in members["errors"]] == [pointer]

    @pytest.mark.parametrize(
        ("row", "pointer"),
        [
            ({"id": "1"}, "/source/rows/0/id"),
            ({"id": None}, "/source/rows/0/id"),
            ({"id": 2**63}, "/source/rows/0/id"),
            ({"id": 1, "nope": 1}, "/source/rows/0/nope"),
            ({"note": "x"}, "/source/rows/0/id"),
        ],
    )
    def test_invalid_row_is_refused(self, client, orders, row, pointer):
        members = problem(client.post(f"{orders}/writes", json=upsert(row)), 422, "schema-mismatch")
        assert members["errors"][0]["pointer"] == pointer

    @pytest.mark.parametrize(
        ("body", "media_type"),
        [
            (b"", NDJSON),
            (b"", "application/json"),
            (b'{"id":1', NDJSON),
            (b'{"id":1,"note":"\xff"}', NDJSON),
            (b'{"operation":"upsert","source":{"kind":"rows","rows":[{"id":1}]}', "application/json"),
            (b'{"operation":"upsert","source":{"kind":"rows","rows":[{"id":1}]}} x', "application/json"),
            (b'{"operation":"upsert","source":{"kind":"rows","rows":' + b"[" * 100_000, "application/json"),
        ],
    )
    def test_body_of_another_format_is_refused(self, client, orders, body, media_type):
        answer = client.post(f"{orders}/writes", content=body, headers={"Content-Type": media_type})
        problem(answer, 400, "malformed-body")

    def test_truncated_gzip_is_refused(self, client, orders):
        body = gzip.compress(FORMS[NDJSON])[:-5]
        headers = {"Content-Type": NDJSON, "Content-Encoding": "gzip"}
        problem(client.post(f"{orders}/writes", content=body, headers=headers), 400, "malformed-body")

    @pytest.mark.parametrize("media_type", [None, "application/xml", "text/plain", "multipart/form-data"])
    def test_unsupported_content_type_is_refused(self, client, orders, media_type):
        headers = {"Content-Type": media_type} if media_type else {}
        answer = client.post(f"{orders}/writes", content=b"x", headers=headers)
        members = problem(answer, 415, "unsupported-media-type")
        assert {"application/json", NDJSON, CSV, ARROW, PARQUET} <= set(members["accepted"])

    @pytest.mark.parametrize("media_type", ["application/json", NDJSON])
    def test_unsupported_content_encoding_is_refused(self, client, orders, media_type):
        headers = {"Content-Type": media_type, "Content-Encoding": "br"}
        problem(client.post(f"{orders}/writes", content=b"x", headers=headers), 415, "unsupported-media-type")

    def test_announced_body_above_the_limit_is_refused_unread(self, client, orders, service):
        limits = {
            "application/json": service.settings.json_body_bytes_max,
            CSV: service.settings.upload_bytes_max,
        }
        for media_type, limit in limits.items():
            answer = _announce(client, f"{orders}/writes", media_type, 10_000_000_000)
            assert problem(answer, 413, "body-too-large")["limit_bytes"] == limit
            assert answer.headers["connection"] == "close"
        answer = _announce(client, f"{orders}/uploads", OCTETS, 10_000_000_000)
        problem(answer, 413, "body-too-large")

    def test_body_that_exceeds_the_limit_is_refused(self, client, orders, service):
        def chunks():
            for _ in range(service.settings.upload_bytes_max // 1_000_000 + 2):
                yield b"x" * 1_000_000

        answer = client.post(f"{orders}/uploads", content=chunks(), headers={"Content-Type": OCTETS})
        members = problem(answer, 413, "body-too-large")
        assert members["limit_bytes"] == service.settings.upload_bytes_max

    def test_aborted_body_leaves_no_file(self, client, orders, service):
        url = httpx2.URL(client.base_url)
        with socket.create_connection((url.host, url.port)) as connection:
            head = (
                f"POST {orders}/uploads HTTP/1.1\r\nHost: x\r\nContent-Type: {OCTETS}\r\n"
                f"Authorization: {client.headers['authorization']}\r\nContent-Length: 9000000\r\n\r\n"
            )
            connection.sendall(head.encode() + b"x" * 4_000_000)
            time.sleep(0.3)
        time.sleep(0.3)

    def test_empty_upload_is_refused(self, client, orders):
        answer = client.post(f"{orders}/uploads", content=b"", headers={"Content-Type": OCTETS})
        problem(answer, 400, "malformed-body")


def _announce(client, path, media_type, size):
    """The answer to a request whose body is announced and never sent."""
    headers = {**client.headers, "Content-Type": media_type, "Content-Length": str(size)}
    with closing(HTTPConnection(client.base_url.host, client.base_url.port, timeout=5)) as connection:
        connection.putrequest("POST", path)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        request = httpx2.Request("POST", client.base_url.join(path))
        return httpx2.Response(
            answer.status, headers=answer.getheaders(), content=answer.read(), request=request
        )


def test_row_above_the_limit_fails_its_job_or_is_quarantined(client, orders, service):
    limit = service.settings.row_bytes_max
    body = gzip.compress(b'{"id":1}\n{"id":2,"note":"' + b"x" * limit + b'"}\n{"id":3}', compresslevel=1)
    headers = {"Content-Type": NDJSON, "Content-Encoding": "gzip"}
    jobs = [
        client.post(f"{orders}/writes", content=body, headers=headers, params=params).json()["id"]
        for params in ({}, {"on_error": "quarantine"})
    ]
    service.work()
    refused, kept = (client.get(f"/jobs/{job}").json() for job in jobs)
    error = refused["error"]
    assert error["type"].endswith("/row-too-large")
    assert error | {"limit_bytes": limit, "row": 1, "pointer": "/rows/1", "line": 2} == error
    assert kept["rows"]["quarantined"] == 1
    assert [row["id"] for row in rows_of(client, orders)] == [1, 3]
    [record] = client.get(f"{orders}/quarantine").json()["items"]
    assert record["payload"].startswith('{"id":2,"note":"xxx')
    assert len(record["payload"]) <= 64 * 1024
