"""Writes to several datasets that happen together or not at all."""

from __future__ import annotations

from itertools import count

import pytest

from tests.support.http import EVENTS, ORDERS, problem, upsert

_numbers = count(1)


@pytest.fixture
def paths(client):
    """Two datasets with a key and one without."""
    found = []
    for definition in (ORDERS, ORDERS, EVENTS):
        answer = client.post("/datasets", json={**definition, "name": f"d{next(_numbers)}"})
        assert answer.status_code == 201, answer.text
        found.append(answer.headers["location"])
    return found


def dataset_id(path):
    return path.rsplit("/", 1)[-1]


def write(path, *rows, operation="upsert", **members):
    source = {"source": {"kind": "rows", "rows": list(rows)}} if rows else {}
    return {"dataset": dataset_id(path), "operation": operation, **source, **members}


def send(client, *writes, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/transactions", json={"writes": list(writes)}, headers=named)


def ids(client, path):
    return sorted(row["id"] for row in client.get(f"{path}/rows").json()["rows"])


def changes(client, path):
    return client.get(f"{path}/changes").json()["changes"]


def test_transaction_writes_several_datasets_together(client, paths, service):
    first, second, third = paths
    answer = send(
        client,
        write(second, {"id": 1}),
        write(first, {"id": 2}, {"id": 3}),
        write(third, {"what": "x"}, operation="insert"),
    )
    assert answer.status_code == 202, answer.text
    transaction = answer.json()
    assert answer.headers["location"] == transaction["links"]["self"]
    assert transaction["state"] == "queued"
    assert [job["links"]["dataset"] for job in transaction["jobs"]] == [second, first, third]
    service.work()
    done = client.get(answer.headers["location"]).json()
    assert (done["state"], done["error"]) == ("succeeded", None)
    assert {job["committed_version"] for job in done["jobs"]} == {1}
    assert {job["links"]["transaction"] for job in done["jobs"]} == {answer.headers["location"]}
    assert (ids(client, first), ids(client, second)) == ([2, 3], [1])
    assert [len(changes(client, path)) for path in paths] == [2, 1, 1]


def test_transaction_waits_for_earlier_writes_and_later_ones_wait_for_it(client, paths, service):
    first, second, _ = paths
    client.post(f"{first}/writes", json=upsert({"id": 1, "note": "before"}))
    send(client, write(first, {"id": 1, "note": "within"}), write(second, {"id": 1}))
    client.post(f"{first}/writes", json=upsert({"id": 1, "note": "after"}))
    service.work()
    notes = [change["row"]["note"] for change in changes(client, first) if change["op"] in ("+A", "+C")]
    assert notes == ["before", "within", "after"]


@pytest.mark.parametrize("guilty", [0, 1])
def test_failed_write_fails_its_transaction(client, paths, service, guilty):
    first, second, _ = paths
    client.post(f"{first}/writes", json=upsert({"id": 1}))
    service.work()
    writes = [write(first, {"id": 1}, operation="insert"), write(second, {"id": 7})]
    with service.working():
        answer = send(client, *(writes if guilty == 0 else writes[::-1]), Prefer="wait=20")
    members = problem(answer, 422, "duplicate-key")
    assert members["dataset_id"] == dataset_id(first)
    transaction = members["transaction"]
    assert transaction["state"] == "failed"
    errors = [job["error"] for job in transaction["jobs"]]
    assert [error["type"] for error in errors][guilty] == "/problems/duplicate-key"
    other = errors[1 - guilty]
    assert other["type"] == "/problems/transaction-failed"
    assert other["cause"] == "duplicate-key"
    # Who reads only the other dataset learns nothing of this one.
    assert {"job_id", "dataset_id", "errors"}.isdisjoint(other)
    assert members["detail"] not in other["detail"]
    assert ids(client, second) == []
    assert client.get(second).json()["version"] == 0
    assert client.get(transaction["links"]["self"]).json()["state"] == "failed"


def test_cancelled_write_cancels_its_transaction(client, paths, service):
    first, second, _ = paths
    transaction = send(client, write(first, {"id": 1}), write(second, {"id": 1})).json()
    answer = client.post(f"{transaction['jobs'][1]['links']['self']}/cancel")
    assert answer.json()["state"] == "cancelled"
    found = client.get(transaction["links"]["self"]).json()
    assert (found["state"], {job["state"] for job in found["jobs"]}) == ("cancelled", {"cancelled"})
    service.work()
    assert ids(client, first) == ids(client, second) == []


def test_deleted_dataset_cancels_its_transactions(client, paths, service):
    first, second, _ = paths
    transaction = send(client, write(first, {"id": 1}), write(second, {"id": 1})).json()
    assert client.delete(second).status_code == 204
    service.work()
    assert client.get(transaction["links"]["self"]).json()["state"] == "cancelled"
    assert ids(client, first) == []


def test_retry_returns_the_same_transaction(client, paths, service):
    first, second, _ = paths
    writes = write(first, {"id": 1}), write(second, {"id": 1})
    one = send(client, *writes, Idempotency_Key="k")
    service.work()
    again = send(client, *writes, Idempotency_Key="k", Prefer="wait=5")
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.json()["id"] == one.json()["id"]
    other = send(client, write(first, {"id": 2}), write(second, {"id": 1}), Idempotency_Key="k")
    assert problem(other, 422, "idempotency-mismatch")["transaction_id"] == one.json()["id"]
    assert client.get(first).json()["version"] == 1


def test_transaction_may_delete_and_expect_versions(client, paths, service):
    first, second, _ = paths
    send(client, write(first, {"id": 1}, {"id": 2}), write(second, {"id": 1}))
    service.work()
    moved = send(
        client,
        write(first, operation="delete", where="id = 1"),
        write(second, {"id": 2}, expected_version=1),
    )
    service.work()
    assert client.get(moved.headers["location"]).json()["state"] == "succeeded"
    assert (ids(client, first), ids(client, second)) == ([2], [1, 2])
    stale = send(client, write(first, {"id": 9}), write(second, {"id": 9}, expected_version=3))
    service.work()
    failed = client.get(stale.headers["location"]).json()
    assert failed["error"]["type"] == "/problems/commit-conflict"
    assert failed["error"]["dataset_id"] == dataset_id(second)
    assert (ids(client, first), ids(client, second)) == ([2], [1, 2])


def test_invalid_transaction_is_refused_and_leaves_nothing(client, paths, service):
    first, second, third = paths
    good = write(first, {"id": 1})
    refused = [
        ([good], 400, "invalid-request", "/writes"),
        ([good] * 17, 400, "invalid-request", "/writes"),
        ([good, write(first, {"id": 2})], 400, "invalid-request", "/writes/1/dataset"),
        ([good, write(second, {"id": "x"})], 422, "schema-mismatch", "/writes/1/source/rows/0/id"),
        ([good, write(second)], 400, "invalid-request", "/writes/1/source"),
        ([good, write(third, {"what": "x"})], 400, "invalid-request", "/writes/1/operation"),
        (
            [good, write(second, {"id": 1}, writer_id="w", batch_id=1)],
            400,
            "invalid-request",
            "/writes/1/writer_id",
        ),
        ([good, {**write(second, {"id": 1}), "nope": 1}], 400, "invalid-request", "/writes/1/nope"),
    ]
    for writes, status, code, pointer in refused:
        members = problem(send(client, *writes), status, code)
        assert [error["pointer"] for error in members["errors"]] == [pointer]
        if code == "schema-mismatch":
            assert members["detail"].startswith(f"{pointer}: ")
    problem(send(client, good, {**good, "dataset": "nowhere"}), 404, "not-found")
    problem(client.get("/transactions/nowhere"), 404, "not-found")
    assert client.get(f"{first}/timeline").json()["items"] == []
    folder = service.settings.data_dir / "storage"
    assert not [path for path in folder.rglob(f"{dataset_id(first)}/**/*") if path.is_file()]


def test_transaction_of_another_tenant_is_not_found(client, paths, new_client):
    transaction = send(client, write(paths[0], {"id": 1}), write(paths[1], {"id": 1})).json()
    problem(new_client().get(transaction["links"]["self"]), 404, "not-found")
