"""A page token belongs to the list, the dataset and the filters of its page."""

import pytest

from tests.support.http import ORDERS, problem, upsert

# So that there are several files.
BUCKETS = {"bucket": {"mode": "fixed", "count": 4}}


@pytest.fixture(scope="module")
def client(service):
    """A client for all tests of this module, which only read."""
    with service.client(service.new_key("page tokens")) as client:
        yield client


@pytest.fixture(scope="module")
def lists(client, service):
    """Two datasets with equal contents: the paths of both."""
    names = ("orders", "returns")
    paths = [
        client.post("/datasets", json={**ORDERS, "name": name, **BUCKETS}).headers["location"]
        for name in names
    ]
    for path in paths:
        for name in ("a", "b"):
            client.put(f"{path}/consumers/{name}", json={"offset": 0})
        for number in range(3):
            client.post(f"{path}/writes", json=upsert({"id": number, "note": "x"}))
            service.work()
            client.post(f"{path}/tags", json={"name": f"t{number}"})
            client.post(f"{path}/savepoints", json={"name": f"s{number}"})
            service.work()
    return paths


def token(client, path, **params):
    answer = client.get(path, params={"page_size": 1, **params})
    assert answer.status_code == 200, answer.text
    found = answer.json()["next_page_token"]
    assert found is not None
    return found


def refused(client, path, page_token, **params):
    members = problem(client.get(path, params={"page_token": page_token, **params}), 400, "invalid-request")
    assert "belongs to another request" in members["detail"]
    assert members["errors"][0]["pointer"] == "/page_token"


@pytest.mark.parametrize("name", ["consumers", "timeline", "tags", "files", "savepoints"])
def test_token_of_another_dataset_is_refused(client, lists, name):
    orders, returns = lists
    refused(client, f"{returns}/{name}", token(client, f"{orders}/{name}"))


def test_token_of_another_list_is_refused(client, lists):
    orders, _ = lists
    refused(client, f"{orders}/savepoints", token(client, f"{orders}/tags"))
    refused(client, "/views", token(client, "/datasets"))
    refused(client, f"{orders}/consumers", token(client, "/datasets"))


def test_token_of_other_filters_is_refused(client, lists):
    orders, returns = lists
    of_orders = token(client, "/jobs", dataset=orders.rpartition("/")[2])
    refused(client, "/jobs", of_orders)
    refused(client, "/jobs", of_orders, dataset=returns.rpartition("/")[2])
    refused(client, "/jobs", of_orders, dataset=orders.rpartition("/")[2], state="failed")
    refused(client, f"{orders}/timeline", token(client, f"{orders}/timeline"), action="compaction")


def test_token_of_other_rows_is_refused(client, lists):
    orders, returns = lists
    first = client.get(f"{orders}/rows", params={"limit": 1, "where": "note = 'x'"}).json()
    page_token = first["next_page_token"]
    refused(client, f"{returns}/rows", page_token, where="note = 'x'")
    refused(client, f"{orders}/rows", page_token)
    refused(client, f"{orders}/rows", page_token, where="id > 1")
    second = client.get(f"{orders}/rows", params={"where": "note = 'x'", "page_token": page_token}).json()
    assert len(first["rows"] + second["rows"]) == 3


def test_token_is_valid_for_pages_of_another_size(client, lists):
    page_token = token(client, "/datasets")
    second = client.get("/datasets", params={"page_token": page_token, "page_size": 5}).json()
    assert [item["name"] for item in second["items"]] == ["returns"]
