"""GET /overview: all datasets of a tenant in one call."""

from __future__ import annotations

from typing import Any

import httpx2

from app.access.tenants.values import Grant, KeyScope
from app.features.monitoring.compose import sample_datasets
from app.features.monitoring.service.sample_datasets import SAMPLE_TASK
from app.infra.identifiers import new_id
from tests.support.http import ORDERS, upsert
from tests.support.leaders import end_lease
from tests.support.service import SCOPES, Service

HIDDEN = (
    *(
        "problems",
        "rows",
        "deleted_rows",
        "files",
        "logs",
        "size_bytes",
        "sampled_at",
        "writes",
        "rows_in",
    ),
    *("consumers", "lag", "farthest_consumer", "quarantined"),
)


def sample(service: Service) -> None:
    sampler = sample_datasets(service.platform)
    sampler.run()
    end_lease(service.database, SAMPLE_TASK)


def items(client: httpx2.Client, **query: Any) -> dict[str, dict[str, Any]]:
    answer = client.get("/overview", params=query)
    assert answer.status_code == 200, answer.text
    return {each["dataset"]: each for each in answer.json()["items"]}


def test_overview_has_the_numbers_of_all_datasets(client: httpx2.Client, service: Service) -> None:
    for name in ("orders", "others"):
        assert client.post("/datasets", json=ORDERS | {"name": name}).status_code == 201
    before = items(client)["orders"]
    assert before["version"] == 0
    assert before["rows"] is None
    for number in (1, 2):
        client.post("/datasets/orders/writes", json=upsert({"id": number}, {"id": 10 + number}))
        service.work()
    consumer = client.put("/datasets/orders/consumers/r", json={"offset": 1}, headers={"If-None-Match": "*"})
    assert consumer.status_code == 201, consumer.text
    sample(service)
    found = items(client)
    statistics = client.get("/datasets/orders/statistics").json()
    orders = found["orders"]
    assert orders["rows"] == statistics["rows"]["live"] == 4
    assert orders["version"] == statistics["version"]
    assert (orders["writes"], orders["rows_in"]) == (2, 4)
    assert (orders["consumers"], orders["lag"]) == (1, statistics["consumers"]["lag"])
    assert orders["farthest_consumer"] == "r"
    assert orders["problems"] == []
    assert found["others"]["rows"] == 0
    assert found["others"]["lag"] is None
    assert found["others"]["farthest_consumer"] is None


def test_pages_join_to_all_datasets(client: httpx2.Client) -> None:
    names = [f"d{number}" for number in range(5)]
    for name in names:
        client.post("/datasets", json=ORDERS | {"name": name})
    seen, token = [], None
    while True:
        page = client.get(
            "/overview", params={"page_size": 2} | ({"page_token": token} if token else {})
        ).json()
        seen += [each["dataset"] for each in page["items"]]
        token = page["next_page_token"]
        if token is None:
            break
    assert seen == names


def test_key_that_sees_a_part_gets_no_numbers(service: Service) -> None:
    tenant_id = service.tenants.add_tenant(f"part-{new_id()}")
    key = service.tenants.make_key(tenant_id, SCOPES).api_key
    grants = (
        Grant(datasets="part", scopes=(KeyScope.READ,), where="id = 1"),
        Grant(datasets="masked", scopes=(KeyScope.READ,), mask=("note",)),
        Grant(datasets="whole", scopes=(KeyScope.READ,)),
    )
    reader = service.tenants.make_key(tenant_id, (KeyScope.READ,), grants=grants).api_key
    with service.client(key) as owner, service.client(reader) as client:
        for name in ("part", "masked", "whole", "hidden"):
            assert owner.post("/datasets", json=ORDERS | {"name": name}).status_code == 201
            owner.post(f"/datasets/{name}/writes", json=upsert({"id": 1}, {"id": 2}))
        service.work()
        sample(service)
        found = items(client)
        assert set(found) == {"part", "masked", "whole"}
        for name in ("part", "masked"):
            assert {member: found[name][member] for member in HIDDEN} == dict.fromkeys(HIDDEN)
        assert found["whole"]["rows"] == 2
        assert items(owner)["hidden"]["rows"] == 2


def test_ids_and_names_select_datasets(client: httpx2.Client, service: Service) -> None:
    for name in ("north", "south", "rain"):
        client.post("/datasets", json=ORDERS | {"name": name})
    rain = items(client)["rain"]["id"]
    assert list(items(client, dataset=["south", rain, rain, "absent", new_id(), "n*"])) == [
        "rain",
        "south",
    ]
    assert items(client, dataset="south", name="nor*") == {}
    first = client.get("/overview", params={"dataset": ["north", "south"], "page_size": 1}).json()
    token = first["next_page_token"]
    assert list(items(client, dataset=["south", "north"], page_token=token)) == ["south"]
    other = client.get("/overview", params={"dataset": "south", "page_token": token})
    assert other.json()["errors"][0]["pointer"] == "/page_token"
    many = client.get("/overview", params={"dataset": [f"d{number}" for number in range(101)]})
    assert (many.status_code, many.json()["errors"][0]["pointer"]) == (400, "/dataset")
    granted = {"name": "granted", "scopes": ["read"], "grants": [{"datasets": "north"}]}
    with service.client(client.post("/keys", json=granted).json()["api_key"]) as reader:
        assert list(items(reader, dataset=["north", "south"])) == ["north"]


def test_a_pattern_selects_names(client: httpx2.Client) -> None:
    for name in ("north_1", "north_2", "south"):
        client.post("/datasets", json=ORDERS | {"name": name})
    assert list(items(client, name="north*")) == ["north_1", "north_2"]
    assert list(items(client, name="south")) == ["south"]
    assert items(client, name="north%") == {}
    listed = client.get("/datasets", params={"name": "*_2"}).json()["items"]
    assert [each["name"] for each in listed] == ["north_2"]
    first = client.get("/overview", params={"name": "north*", "page_size": 1}).json()
    token = first["next_page_token"]
    assert list(items(client, name="north*", page_token=token)) == ["north_2"]
    other = client.get("/overview", params={"name": "*", "page_token": token})
    assert other.status_code == 400


def hours(client: httpx2.Client, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/overview/hours", params=query)
    assert answer.status_code == 200, answer.text
    numbers: list[dict[str, Any]] = answer.json()["items"]
    return numbers


def test_hours_have_the_writes_of_one_dataset_and_of_all(client: httpx2.Client, service: Service) -> None:
    for name in ("orders", "others"):
        client.post("/datasets", json=ORDERS | {"name": name})
        client.post(f"/datasets/{name}/writes", json=upsert({"id": 1}, {"id": 2}))
    service.work()
    every = hours(client)
    assert len(every) == 24
    assert [each["hour"] for each in every] == sorted(each["hour"] for each in every)
    # The hour may change between two writes.
    assert sum(each["writes"] for each in every[-2:]) == 2
    assert sum(each["rows_in"] for each in every) == 4
    assert sum(each["rows_in"] for each in hours(client, dataset="orders", hours=2)) == 2
    assert len(hours(client, hours=192)) == 192
    assert client.get("/overview/hours", params={"hours": 193}).status_code == 400
    assert client.get("/overview/hours", params={"dataset": "none"}).status_code == 404


def test_hours_count_what_the_key_sees_whole(client: httpx2.Client, service: Service) -> None:
    for name in ("open", "hidden", "masked"):
        client.post("/datasets", json=ORDERS | {"name": name})
        client.post(f"/datasets/{name}/writes", json=upsert({"id": 1}))
    service.work()
    grants = [{"datasets": "open"}, {"datasets": "masked", "mask": ["note"]}]
    made = client.post("/keys", json={"name": "part", "scopes": ["read"], "grants": grants}).json()
    with service.client(made["api_key"]) as reader:
        assert sum(each["rows_in"] for each in hours(reader)) == 1
        assert reader.get("/overview/hours", params={"dataset": "hidden"}).status_code == 404
        assert reader.get("/overview/hours", params={"dataset": "masked"}).status_code == 403


def test_records_in_quarantine_are_counted_until_they_are_redriven(
    client: httpx2.Client, service: Service
) -> None:
    client.post("/datasets", json=ORDERS)
    bad = upsert({"id": "x"}, {"id": "y"}, {"id": 1}) | {"on_error": "quarantine"}
    assert client.post("/datasets/orders/writes", json=bad).status_code in (200, 202)
    service.work()
    assert items(client)["orders"]["quarantined"] == 2
    records = client.get("/datasets/orders/quarantine").json()["items"]
    redrive = {"records": [{"id": records[0]["id"], "payload": '{"id": 2}'}]}
    made = client.post("/datasets/orders/quarantine/redrives", json=redrive)
    assert made.status_code in (200, 202), made.text
    service.work()
    assert items(client)["orders"]["quarantined"] == 1
