"""Uploads with an Idempotency-Key."""

from tests.support.http import problem

KEY = {"Idempotency-Key": "u-1", "Content-Type": "application/octet-stream"}


def test_a_retried_upload_is_the_same_upload(client, orders, service):
    first = client.post(f"{orders}/uploads", content=b"id\n1\n", headers=KEY)
    assert first.status_code == 201
    retry = client.post(f"{orders}/uploads", content=b"id\n1\n", headers=KEY)
    assert (retry.status_code, retry.content) == (201, first.content)
    assert retry.headers["idempotency-replayed"] == "true"
    source = {"kind": "upload", "upload_id": retry.json()["id"], "format": "csv"}
    client.post(f"{orders}/writes", json={"operation": "upsert", "source": source})
    service.work()
    assert client.get(f"{orders}/rows").json()["rows"] == [{"id": 1, "note": None}]


def test_other_bytes_with_the_key_are_refused(client, orders):
    client.post(f"{orders}/uploads", content=b"id\n1\n", headers=KEY)
    problem(client.post(f"{orders}/uploads", content=b"id\n2\n", headers=KEY), 422, "idempotency-mismatch")


def test_the_key_of_an_upload_belongs_to_its_dataset(client, orders, events):
    first = client.post(f"{orders}/uploads", content=b"1", headers=KEY)
    other = client.post(f"{events}/uploads", content=b"2", headers=KEY)
    assert other.status_code == 201
    assert other.json()["id"] != first.json()["id"]
