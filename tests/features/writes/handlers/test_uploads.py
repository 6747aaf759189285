"""Uploads with an Idempotency-Key, and several uploads in one write."""

from tests.support.http import problem

OCTETS = "application/octet-stream"
KEY = {"Idempotency-Key": "u-1", "Content-Type": OCTETS}
KEYED = {"Idempotency-Key": "uploads-1"}


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


def upload(client, dataset, content):
    answer = client.post(f"{dataset}/uploads", content=content, headers={"Content-Type": OCTETS})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def test_several_uploads_are_one_commit(client, orders, service):
    uploads = [upload(client, orders, f"id,note\n{number},u{number}\n1,u{number}\n") for number in (4, 2, 3)]
    source = {
        "kind": "uploads",
        "upload_ids": [upload(client, orders, "id,note\n"), *uploads],
        "format": "csv",
    }
    body = {"operation": "upsert", "source": source}
    job = client.post(f"{orders}/writes", json=body, headers=KEYED)
    assert job.status_code == 202, job.text
    service.work()
    done = client.get(job.headers["location"]).json()
    assert (done["state"], done["committed_version"], done["rows"]["inserted"]) == ("succeeded", 1, 4)
    rows = {row["id"]: row["note"] for row in client.get(f"{orders}/rows").json()["rows"]}
    # The rows of a later upload come after those of an earlier one.
    assert rows == {1: "u3", 2: "u2", 3: "u3", 4: "u4"}
    again = client.post(f"{orders}/writes", json=body, headers=KEYED)
    assert again.headers["location"] == job.headers["location"]
    changed = {**source, "upload_ids": source["upload_ids"][::-1]}
    refused = client.post(f"{orders}/writes", json={"operation": "upsert", "source": changed}, headers=KEYED)
    problem(refused, 422, "idempotency-mismatch")


def test_several_uploads_fail_together(client, orders, service):
    uploads = [upload(client, orders, "id,note\n1,a\n"), upload(client, orders, "id,note\nx,b\n")]
    body = {"operation": "upsert", "source": {"kind": "uploads", "upload_ids": uploads, "format": "csv"}}
    job = client.post(f"{orders}/writes", json=body).headers["location"]
    service.work()
    assert client.get(job).json()["error"]["type"] == "/problems/schema-mismatch"
    assert client.get(f"{orders}/rows").json()["rows"] == []


def test_several_uploads_are_checked_before_the_write_is_accepted(client, orders, events):
    mine, others = upload(client, orders, "id,note\n1,a\n"), upload(client, events, "id,note\n1,a\n")

    def write(**members):
        source = {"kind": "uploads", "format": "csv"} | members
        return client.post(f"{orders}/writes", json={"operation": "upsert", "source": source})

    problem(write(upload_ids=[mine, others]), 404, "not-found")
    problem(write(upload_ids=[]), 400, "invalid-request")
    problem(write(upload_ids=[mine] * 1_001), 400, "invalid-request")


def test_uploads_together_are_limited_in_size(client, orders, service):
    size = service.settings.upload_bytes_max // 2 + 1
    large = upload(client, orders, b"id\n" + b"1\n" * (size // 2))
    body = {"operation": "upsert", "source": {"kind": "uploads", "upload_ids": [large] * 2, "format": "csv"}}
    members = problem(client.post(f"{orders}/writes", json=body), 413, "body-too-large")
    assert members["limit_bytes"] == service.settings.upload_bytes_max


def test_new_columns_are_merged_from_all_uploads(client, orders, service):
    texts = ("id,note,size\n1,a,5\n", "id,note,color\n2,b,red\n")
    uploads = [upload(client, orders, text) for text in texts]
    source = {"kind": "uploads", "upload_ids": uploads, "format": "csv"}
    body = {"operation": "upsert", "source": source, "merge_schema": True}
    client.post(f"{orders}/writes", json=body)
    service.work()
    rows = sorted(client.get(f"{orders}/rows").json()["rows"], key=lambda row: row["id"])
    assert rows == [
        {"id": 1, "note": "a", "size": 5, "color": None},
        {"id": 2, "note": "b", "size": None, "color": "red"},
    ]
