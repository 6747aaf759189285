"""Renaming datasets, and what goes on working under the new name."""

import pytest

from tests.support.http import ORDERS, problem, upsert


@pytest.fixture
def rename(client):
    """Renames a dataset at its present version; the response."""

    def run(path, name, **members):
        etag = client.get(path).headers["etag"]
        return client.patch(path, json={"name": name, **members}, headers={"If-Match": etag})

    return run


def test_a_dataset_is_renamed_and_its_old_name_is_free_at_once(client, orders, rename):
    answer = rename(orders, "purchases")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["name"], answer.json()["version"]) == ("purchases", 1)
    assert answer.headers["etag"] == '"1"'
    assert f"/datasets/{client.get('/datasets/purchases').json()['id']}" == orders
    problem(client.get("/datasets/orders"), 404, "not-found")
    assert [item["name"] for item in client.get("/datasets").json()["items"]] == ["purchases"]
    assert client.post("/datasets", json=ORDERS).status_code == 201


def test_a_name_that_another_dataset_has_is_refused(client, orders, rename):
    client.post("/datasets", json={**ORDERS, "name": "returns"})
    refused = problem(
        rename(orders, "returns", changelog={"retention": {"changes": 9}}), 409, "dataset-exists"
    )
    assert refused["name"] == "returns"
    found = client.get(orders).json()
    assert (found["name"], found["version"], found["changelog"]["retention"]) == ("orders", 0, None)
    client.delete("/datasets/returns")
    assert rename(orders, "returns").status_code == 200


@pytest.mark.parametrize("name", ["", "7", "a b", "x" * 129, "11111111-1111-7111-8111-111111111111"])
def test_a_name_is_checked_as_in_a_registration(orders, rename, name):
    refused = problem(rename(orders, name), 422, "invalid-dataset")
    assert [error["pointer"] for error in refused["errors"]] == ["/name"]


def test_a_rename_requires_if_match(client, orders):
    problem(client.patch(orders, json={"name": "b"}), 428, "precondition-required")
    problem(client.patch(orders, json={"name": "b"}, headers={"If-Match": '"7"'}), 412, "precondition-failed")
    assert client.get(orders).json()["name"] == "orders"


def test_a_rename_and_a_schema_change_are_one_version(client, orders, rename):
    changed = rename(orders, "purchases", changes=[{"kind": "rename", "name": "note", "to": "text"}])
    assert changed.json()["version"] == 1
    assert [field["name"] for field in changed.json()["schema"]["fields"]] == ["id", "text"]


def test_a_write_that_was_queued_before_keeps_the_new_name(client, orders, rename, service):
    body = {**upsert({"id": 1, "note": "a", "extra": 5}), "merge_schema": True}
    job = client.post(f"{orders}/writes", json=body).json()
    rename(orders, "purchases")
    service.work()
    assert client.get(job["links"]["self"]).json()["state"] == "succeeded"
    found = client.get("/datasets/purchases").json()
    assert (found["name"], found["version"], len(found["schema"]["fields"])) == ("purchases", 2, 3)
    assert client.get("/datasets/purchases/rows").json()["rows"] == [{"id": 1, "note": "a", "extra": 5}]


def test_webhooks_and_exports_go_on_and_show_the_new_name(client, orders, rename, service, receiver):
    hook = client.post("/webhooks", json={"dataset": "orders", "url": receiver.url}).json()
    rename(orders, "purchases")
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    found = client.get(hook["links"]["self"]).json()
    assert found["dataset"]["name"] == "purchases"
    assert found["pending"] + found["position"] == 1
    assert [
        each["id"] for each in client.get("/webhooks", params={"dataset": "purchases"}).json()["items"]
    ] == [hook["id"]]


def test_a_view_goes_on_reading_its_renamed_input(client, orders, rename, service):
    service.derivation.queries["notes"] = list
    view = client.post("/views", json={"name": "notes", "sql": "SELECT id, note FROM orders"})
    assert view.status_code == 201, view.text
    rename(orders, "purchases")
    # The name is another dataset's now, which the view does not read.
    client.post("/datasets", json=ORDERS)
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    assert client.get("/datasets/notes/rows").json()["rows"] == [{"id": 1, "note": "a"}]
    assert client.get("/views/notes").json()["freshness"] == "current"
