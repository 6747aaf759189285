"""Bad records over HTTP: quarantined, listed, repaired and redriven, each once."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from tests.kernel.codecs.samples import arrow_stream, parquet
from tests.support.service import Service

Client = httpx2.Client


def write(
    client: Client, path: str, rows: list[Any], operation: str = "upsert", **options: Any
) -> dict[str, Any]:
    body = {
        "operation": operation,
        "source": {"kind": "rows", "rows": rows},
        "on_error": "quarantine",
        **options,
    }
    return accepted(client.post(f"{path}/writes", json=body))


def send(client: Client, path: str, content: bytes, kind: str, **headers: str) -> dict[str, Any]:
    query = {"on_error": "quarantine"}
    return accepted(
        client.post(
            f"{path}/writes", params=query, content=content, headers={"content-type": kind, **headers}
        )
    )


def accepted(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job


def listed(client: Client, path: str, **query: Any) -> list[dict[str, Any]]:
    """All records, page by page."""
    items: list[dict[str, Any]] = []
    while True:
        answer = client.get(f"{path}/quarantine", params=query)
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        token = answer.json()["next_page_token"]
        if token is None:
            return items
        query["page_token"] = token


def redrive(client: Client, path: str, body: Any, **headers: str) -> httpx2.Response:
    return client.post(f"{path}/quarantine/redrives", json=body, headers=headers)


def table(client: Client, path: str) -> dict[int, Any]:
    return {row["id"]: row["note"] for row in client.get(f"{path}/rows").json()["rows"]}


def ended(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/jobs/{job['id']}").json()
    return found


def test_bad_rows_do_not_refuse_the_others(client: Client, orders: str, service: Service) -> None:
    rows = [
        {"id": 1, "note": "a"},
        {"id": "two"},
        {"id": 3, "nte": "x"},
        {"note": "x"},
        {"id": 5, "note": "e"},
    ]
    job = write(client, orders, rows)
    assert listed(client, orders) == []
    service.work()
    done = ended(client, job)
    assert done["state"] == "succeeded"
    assert done["rows"] == {
        "inserted": 2,
        "updated": 0,
        "deleted": 0,
        "unchanged": 0,
        "quarantined": 3,
        "late": 0,
    }
    assert table(client, orders) == {1: "a", 5: "e"}
    records = listed(client, orders)
    assert [(record["position"], record["payload"]) for record in records] == [
        (1, '{"id":"two"}'),
        (2, '{"id":3,"nte":"x"}'),
        (3, '{"note":"x"}'),
    ]
    first = records[0]
    assert first["errors"] == [{"pointer": "/id", "detail": 'expected int64, got string "two"'}]
    assert (first["job_id"], first["state"], first["redrive_job_id"]) == (job["id"], "quarantined", None)
    assert (first["encoding"], first["header"]) == ("text", None)
    assert records[1]["errors"][0]["pointer"] == "/nte"


def test_one_bad_row_refuses_the_write_by_default(client: Client, orders: str, service: Service) -> None:
    body = {"operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 1}, {"id": "x"}]}}
    assert client.post(f"{orders}/writes", json=body).status_code == 422
    service.work()
    assert listed(client, orders) == []


def test_write_of_bad_rows_only_succeeds_without_a_version(
    client: Client, orders: str, service: Service
) -> None:
    job = write(client, orders, [{"id": "x"}])
    service.work()
    done = ended(client, job)
    assert (done["state"], done["committed_version"], done["rows"]["quarantined"]) == ("succeeded", 0, 1)
    assert len(listed(client, orders)) == 1


@pytest.mark.parametrize("large", [False, True])
def test_bad_records_of_every_format_are_quarantined(
    client: Client, orders: str, service: Service, large: bool
) -> None:
    filler = "x" * (100_000 if large else 1)
    lines = b'{"id":1,"note":"%s"}\nno json\n\n{"id":2,"note":"\xff"}\n{"id":3}\n' % filler.encode()
    sheet = b'id,note\n4,"%s"\nfive,b\n6,"a"b\n7,c,d\n8,h\n' % filler.encode()
    rows = pa.table({"id": pa.array([None, 9, 10]), "note": [filler, "i", "j"]})
    jobs = [
        send(client, orders, lines, "application/x-ndjson"),
        send(client, orders, gzip.compress(sheet), "text/csv", **{"content-encoding": "gzip"}),
        send(client, orders, arrow_stream(rows), "application/vnd.apache.arrow.stream"),
        send(client, orders, parquet(rows.slice(0, 1)), "application/vnd.apache.parquet"),
    ]
    service.work()
    assert [ended(client, job)["rows"]["quarantined"] for job in jobs] == [2, 3, 1, 1]
    assert set(table(client, orders)) == {1, 3, 4, 8, 9, 10}
    found = [listed(client, orders, job=job["id"]) for job in jobs]
    assert [[record["position"] for record in records] for records in found] == [[1, 2], [1, 2, 3], [0], [0]]
    broken, not_text = found[0]
    assert (broken["payload"], broken["encoding"]) == ("no json", "text")
    assert not_text["encoding"] == "base64"
    assert base64.b64decode(not_text["payload"]) == b'{"id":2,"note":"\xff"}'
    assert [record["payload"] for record in found[1]] == ["five,b", '6,"a"b', "7,c,d"]
    assert {record["header"] for record in found[1]} == {"id,note"}
    assert found[2][0]["payload"] == found[3][0]["payload"] == f'{{"id":null,"note":"{filler}"}}'


def test_body_without_records_fails_as_a_whole(client: Client, orders: str, service: Service) -> None:
    for content, kind, status in ((b"id,id\n1,x\n", "text/csv", 422), (b"", "application/x-ndjson", 400)):
        answer = client.post(
            f"{orders}/writes",
            params={"on_error": "quarantine"},
            content=content,
            headers={"content-type": kind},
        )
        assert answer.status_code == status
    job = send(client, orders, b"PAR1 is not enough", "application/vnd.apache.parquet")
    service.work()
    assert ended(client, job)["error"]["type"] == "/problems/malformed-body"
    assert listed(client, orders) == []


def test_quarantined_records_are_repaired_and_redriven(client: Client, orders: str, service: Service) -> None:
    job = write(client, orders, [{"id": "1"}, {"id": "x"}, {"id": 3, "nte": "c"}])
    service.work()
    one, two, three = listed(client, orders)
    answer = redrive(
        client,
        orders,
        {"records": [{"id": one["id"], "payload": '{"id":1,\n"note":"a"}'}, {"id": three["id"]}]},
    )
    again = accepted(answer)
    assert answer.headers["location"] == f"/jobs/{again['id']}"
    assert again["operation"] == "upsert"
    assert [record["state"] for record in listed(client, orders, job=job["id"])] == [
        "redriven",
        "quarantined",
        "redriven",
    ]
    service.work()
    assert ended(client, again)["rows"] == {
        "inserted": 1, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 1, "late": 0
    }  # fmt: skip
    assert table(client, orders) == {1: "a"}
    (latest,) = listed(client, orders, job=again["id"])
    assert (latest["payload"], latest["state"], latest["position"]) == (
        '{"id":3,"nte":"c"}',
        "quarantined",
        1,
    )
    old = listed(client, orders, job=job["id"])
    assert [record["redrive_job_id"] for record in old] == [again["id"], None, again["id"]]

    # What waits of a job, at once; after that there is nothing more.
    rest = accepted(redrive(client, orders, {"job": job["id"]}))
    service.work()
    (last,) = listed(client, orders, job=rest["id"])
    assert last["payload"] == two["payload"]
    assert redrive(client, orders, {"job": job["id"]}).status_code == 404


def test_record_is_redriven_once(client: Client, orders: str, service: Service) -> None:
    write(client, orders, [{"id": "1"}, {"id": "2"}])
    service.work()
    first, second = (record["id"] for record in listed(client, orders))
    body = {"records": [{"id": first, "payload": '{"id":1}'}]}
    job = accepted(redrive(client, orders, body, **{"idempotency-key": "k"}))
    replay = redrive(client, orders, body, **{"idempotency-key": "k"})
    assert (replay.json()["id"], replay.headers["idempotency-replayed"]) == (job["id"], "true")
    other = {"records": [{"id": second}]}
    assert (
        redrive(client, orders, other, **{"idempotency-key": "k"}).json()["type"]
        == "/problems/idempotency-mismatch"
    )
    refused = redrive(client, orders, {"records": [{"id": second}, {"id": first}]})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/already-redriven")
    assert refused.json()["records"] == [first]
    client.post(f"/jobs/{job['id']}/cancel")
    assert [record["state"] for record in listed(client, orders)] == ["quarantined"] * 2
    accepted(redrive(client, orders, body))
    service.work()
    assert table(client, orders) == {1: None}


def test_csv_records_are_redriven_with_their_header(client: Client, orders: str, service: Service) -> None:
    job = send(client, orders, b'note,id\na,one\n"b"x,2\nc,3,3\n', "text/csv")
    service.work()
    one, two, three = listed(client, orders)
    again = accepted(
        redrive(
            client,
            orders,
            {
                "records": [
                    {"id": one["id"], "payload": "a,1"},
                    {"id": two["id"]},
                    {"id": three["id"], "payload": "c,3"},
                ]
            },
        )
    )
    service.work()
    assert table(client, orders) == {1: "a", 3: "c"}
    (bad,) = listed(client, orders, job=again["id"])
    assert (bad["payload"], bad["header"]) == ('"b"x,2', "note,id")
    assert job["id"] != again["id"]


def test_inserted_rows_with_live_keys_are_quarantined(client: Client, orders: str, service: Service) -> None:
    write(client, orders, [{"id": 1, "note": "a"}])
    job = write(
        client, orders, [{"id": 2, "note": "b"}, {"id": "x"}, {"id": 1, "note": "c"}], operation="insert"
    )
    service.work()
    assert ended(client, job)["rows"] == {
        "inserted": 1, "updated": 0, "deleted": 0, "unchanged": 0, "quarantined": 2, "late": 0
    }  # fmt: skip
    assert table(client, orders) == {1: "a", 2: "b"}
    bad, there = listed(client, orders)
    assert (bad["payload"], bad["position"]) == ('{"id":"x"}', 1)
    assert (there["payload"], there["position"]) == ('{"id":1,"note":"c"}', 1)
    assert there["errors"][0]["pointer"] == ""
    assert "already" in there["errors"][0]["detail"]


def test_redriven_records_of_an_overwrite_are_upserted(client: Client, orders: str, service: Service) -> None:
    write(client, orders, [{"id": 1, "note": "old"}])
    job = write(client, orders, [{"id": 2, "note": "new"}, {"id": "3"}], operation="overwrite")
    service.work()
    assert table(client, orders) == {2: "new"}
    (record,) = listed(client, orders, job=job["id"])
    body = {"records": [{"id": record["id"], "payload": '{"id":3,"note":"repaired"}'}]}
    again = accepted(redrive(client, orders, body))
    assert again["operation"] == "upsert"
    service.work()
    assert table(client, orders) == {2: "new", 3: "repaired"}


def test_quarantine_listing_is_paged(client: Client, orders: str, service: Service) -> None:
    jobs = [write(client, orders, [{"id": f"{number}-{row}"} for row in range(7)]) for number in range(3)]
    service.work()
    everything = listed(client, orders)
    assert len({record["id"] for record in everything}) == 21
    assert listed(client, orders, page_size=4) == everything
    assert listed(client, orders, page_size=7, job=jobs[1]["id"]) == everything[7:14]
    assert len(client.get(f"{orders}/quarantine", params={"page_size": 7}).json()["items"]) == 7
    assert client.get(f"{orders}/quarantine", params={"page_token": "x"}).status_code == 400


def test_page_of_large_records_ends_early(client: Client, orders: str, service: Service) -> None:
    lines = b"\n".join(b'{"id":"%s"}' % (b"x" * 3_000_000) for _ in range(5))
    send(client, orders, lines, "application/x-ndjson")
    service.work()
    first = client.get(f"{orders}/quarantine").json()
    assert len(first["items"]) == 3
    assert first["next_page_token"] is not None
    assert len(listed(client, orders)) == 5


def test_discarded_records_are_not_found(client: Client, orders: str, service: Service) -> None:
    jobs = [write(client, orders, [{"id": "x"}]) for _ in range(2)]
    service.work()
    accepted(redrive(client, orders, {"job": jobs[0]["id"]}))
    assert client.delete(f"{orders}/quarantine").status_code == 400
    assert client.delete(f"{orders}/quarantine", params={"job": jobs[0]["id"]}).status_code == 204
    assert [record["job_id"] for record in listed(client, orders)] == [jobs[1]["id"]]
    assert client.delete(f"{orders}/quarantine", params={"job": jobs[0]["id"]}).status_code == 404
    service.work()


def test_invalid_redrive_is_refused(client: Client, orders: str, service: Service) -> None:
    jobs = [write(client, orders, [{"id": "x"}]) for _ in range(2)]
    service.work()
    one, two = (record["id"] for record in listed(client, orders))
    for body, pointer in (
        ({}, "/job"),
        ({"job": jobs[0]["id"], "records": [{"id": one}]}, "/job"),
        ({"records": []}, "/records"),
        ({"records": [{"id": "x"}]}, "/records/0/id"),
        ({"records": [{"id": one}, {"id": "999999-0"}]}, "/records/1/id"),
        ({"records": [{"id": one}, {"id": one.split("-")[0] + "-7"}]}, "/records/1/id"),
        ({"records": [{"id": one}, {"id": two}]}, "/records/1/id"),
        ({"records": [{"id": one}, {"id": one}]}, "/records/1/id"),
        ({"records": [{"id": one, "row": {}}]}, "/records/0/row"),
    ):
        answer = redrive(client, orders, body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer
    assert redrive(client, orders, {"job": "none"}).status_code == 404
    assert {record["state"] for record in listed(client, orders)} == {"quarantined"}


def test_records_of_another_tenant_are_not_found(
    client: Client, new_client: Callable[..., Client], orders: str, service: Service
) -> None:
    job = write(client, orders, [{"id": "x"}])
    service.work()
    (record,) = listed(client, orders)
    stranger = new_client()
    assert stranger.get(f"{orders}/quarantine").status_code == 404
    assert redrive(stranger, orders, {"records": [{"id": record["id"]}]}).status_code == 404
    own = stranger.post(
        "/datasets", json={"name": "o", "schema": {"fields": [{"name": "id", "type": "int64"}]}}
    )
    path = own.headers["location"]
    assert stranger.get(f"{path}/quarantine", params={"job": job["id"]}).json()["items"] == []
    assert redrive(stranger, path, {"records": [{"id": record["id"]}]}).status_code == 400
    assert redrive(stranger, path, {"job": job["id"]}).status_code == 404
    reader = new_client(("read",))
    assert reader.delete(f"{orders}/quarantine", params={"job": job["id"]}).status_code == 403
    assert [each["state"] for each in listed(client, orders)] == ["quarantined"]
