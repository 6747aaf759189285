"""The first page: what happens now, and what needs attention first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from app.features.alerts.declared import ALERTS, Alert
from app.features.alerts.repository import AlertStore
from app.features.alerts.service.evaluate import Evaluate
from app.features.console.pages.standstill import chain_to
from app.features.monitoring.compose import sample_datasets
from app.features.monitoring.repository.numbers import NumberStore
from app.features.monitoring.service.sample_datasets import SAMPLE_TASK
from app.features.monitoring.values import Sample
from tests.support.http import upsert
from tests.support.leaders import end_lease
from tests.support.pages import PageElement, page
from tests.support.webhooks import Register


def sample(service: Any) -> None:
    sample_datasets(service.platform).run()
    end_lease(service.database, SAMPLE_TASK)


@contextmanager
def firing(service: Any, name: str, samples: list[Sample]) -> Iterator[Alert]:
    """The alert of this name, which fires for these samples of its metric until the end of the block."""
    [alert] = [each for each in ALERTS if each.name == name]
    now = datetime.now(UTC)
    # Of its start, and of three rounds.
    times = iter([now - timedelta(hours=1), now - timedelta(hours=1), now, now])
    evaluate = Evaluate([alert], AlertStore(service.database), {}, now=lambda: next(times))
    gathered = Sample("headwater_gather_ok", {"part": "x"}, 1)
    evaluate([gathered, *samples])
    evaluate([gathered, *samples])
    try:
        yield alert
    finally:
        evaluate([gathered])


def figures(root: PageElement) -> dict[str, str]:
    return {each.one("dt").text: each.all("dd")[0].text for each in root.all("div", class_="figure")}


def test_a_tenant_without_datasets_is_shown_how_to_begin(stranger: httpx2.Client) -> None:
    root = page(stranger, "/console")
    assert "headwater write orders orders.csv --create --key id" in root.one("div", class_="empty").text


@pytest.mark.parametrize("scopes", [("read", "operate"), ("operate",)])
def test_an_operator_without_a_dataset_sees_the_service_first(
    service: Any, sign_in: Callable[[str], httpx2.Client], scopes: tuple[str, ...]
) -> None:
    key = service.new_key(f"home-operator-{len(scopes)}", scopes)
    operator = sign_in(key)
    with firing(service, "redis-unreachable", [Sample("headwater_redis_reachable", {}, 0)]) as alert:
        main = page(operator, "/console").one("main")
    state = main.one("section", id="service")
    with service.client(key) as api:
        assert state.all("p")[0].text.startswith(api.get("/health/service").json()["state"])
    [concern] = [each for each in state.all("li") if f"{alert.name}: {alert.summary}" in each.text]
    assert alert.action in concern.text
    assert concern.one("a").attributes["href"] == "/console/service"
    assert "docs/monitoring.md#alerts" in state.text
    after = "There is no dataset yet" if "read" in scopes else "To read datasets"
    assert main.text.index(alert.summary) < main.text.index(after)


def test_the_page_has_what_was_written(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 2}, {"id": 3}))
    service.work()
    sample(service)
    root = page(visitor, "/console")
    charts = [each.attributes["aria-label"] for each in root.all("svg", class_="chart")]
    assert charts[0].startswith("Rows in by hour of the last 24 hours: 3 in all")
    assert charts[1].startswith("Writes by hour of the last 24 hours: 1 in all")
    numbers = root.all("details", class_="as-table")[0].rows()
    assert len(numbers) == 25
    assert sum(int(row[1]) for row in numbers[1:]) == 3
    assert figures(root)["Datasets"] == "1"
    assert figures(root)["Rows"] == "3"
    assert ["orders", "3", "1"] in [row[:3] for row in root.rows()]


def test_what_needs_attention_leads_to_its_cause(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    bad = upsert({"id": "x"}, {"id": "y"}) | {"on_error": "quarantine"}
    client.post(f"{orders}/writes", json=bad)
    service.work()
    sample(service)
    tenant = client.get("/me").json()["tenant"]["id"]
    with service.database.tenant(tenant) as connection:
        connection.execute(text("UPDATE dataset_samples SET write_gap_seconds = 1"))
        connection.execute(text("UPDATE heads SET committed_at = now() - interval '1 hour'"))
    root = page(visitor, "/console")
    assert root.link("orders: 2 records in quarantine") == "/console/datasets/orders/quarantine"
    assert root.link("orders: is late: no commit came as expected") == "/console/datasets/orders"
    assert "no write has come as expected" in root.one("ol", class_="chain").text
    assert figures(root)["Late"] == "1"


def test_alerts_name_what_they_are_about(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    service.work()
    sample(service)
    tenant = client.get("/me").json()["tenant"]
    with service.database.tenant(tenant["id"]) as connection:
        connection.execute(text("UPDATE datasets SET expected_every_seconds = 1"))
        connection.execute(text("UPDATE heads SET committed_at = now() - interval '400 days'"))
    with firing(service, "dataset-late", NumberStore(service.database).late()):
        root = page(visitor, "/console")
    [concern] = [each.text for each in root.all("li") if "dataset-late:" in each.text]
    assert f"dataset orders, tenant {tenant['name']}: no commit for 34,560,000 s" in concern
    assert "GET /overview" in concern


def test_counts_of_before_the_last_commit_say_so(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    service.work()
    sample(service)
    pages = ("/console", "/console/datasets", "/console/datasets/orders")
    assert not [each for each in pages if "as of" in page(visitor, each).one("main").text]
    client.post(f"{orders}/writes", json=upsert({"id": 2}))
    service.work()
    for each in pages:
        assert "as of" in page(visitor, each).one("main").text


def health_of_orders(visitor: httpx2.Client) -> list[str]:
    """The state of the dataset on its page and in the list of datasets."""
    header = page(visitor, "/console/datasets/orders").one("ul", class_="facts").all("li")[-1].text
    return [header, page(visitor, "/console/datasets").rows()[1][1]]


def test_a_failure_is_a_fault_until_a_later_job_of_its_kind_succeeds(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    job = ""
    for _ in range(2):
        octets = {"Content-Type": "application/octet-stream"}
        upload = client.post(f"{orders}/uploads", content=b'{"id": "x"}\n', headers=octets).json()["id"]
        source = {"kind": "upload", "upload_id": upload, "format": "ndjson"}
        write = {"operation": "upsert", "source": source}
        job = client.post(f"{orders}/writes", json=write).headers["location"]
        service.work()
    root = page(visitor, "/console")
    assert root.link("orders: 2 jobs (write) have failed") == f"/console{job}"
    # The client sent what failed.
    [concern] = [each for each in root.all("li") if "have failed" in each.text]
    assert concern.one("span", class_="warning").text == "look"
    assert health_of_orders(visitor) == ["write failed", "write failed"]
    for each in ("/console", "/console/datasets", "/console/datasets/orders/schema"):
        assert page(visitor, each).one("footer").text.count("/jobs?") == 1
    client.post(f"{orders}/writes", json=upsert({"id": 1}))
    service.work()
    assert "failed" not in page(visitor, "/console").one("ul", class_="concerns").text
    assert health_of_orders(visitor) == ["healthy", "healthy"]


def test_a_write_that_lost_its_expected_version_is_no_fault_of_the_service(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    writes = [upsert({"id": number}) | {"expected_version": 0} for number in (1, 2)]
    jobs = [client.post(f"{orders}/writes", json=write).headers["location"] for write in writes]
    service.work()
    assert sorted(client.get(each).json()["state"] for each in jobs) == ["failed", "succeeded"]
    assert "orders" not in page(visitor, "/console").one("ul", class_="concerns").text
    assert health_of_orders(visitor) == ["healthy", "healthy"]


def test_records_in_quarantine_are_the_state_of_the_dataset_everywhere(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    bad = upsert({"id": "x"}, {"id": "y"}) | {"on_error": "quarantine"}
    client.post(f"{orders}/writes", json=bad)
    service.work()
    sample(service)
    assert "orders: 2 records in quarantine" in page(visitor, "/console").text
    assert health_of_orders(visitor) == ["2 in quarantine", "2 in quarantine"]


def test_the_consumer_that_is_behind_is_named(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any, register: Register
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 2}))
    service.work()
    for name, offset in (("billing", 1), ("board", 2)):
        path = f"{orders}/consumers/{name}"
        client.put(path, json={"offset": offset}, headers={"If-None-Match": "*"})
    tenant = client.get("/me").json()["tenant"]["id"]
    with service.database.tenant(tenant) as connection:
        connection.execute(text("UPDATE heads SET committed_at = now() - interval '1 hour'"))
    words = "the consumer billing is 1 change behind, and nothing new is written"
    assert page(visitor, "/console").link(f"orders: {words}") == "/console/datasets/orders/consumers"
    assert words in page(visitor, "/console/datasets/orders").text
    register(since=0)
    assert "its webhook is 2 changes behind" in page(visitor, "/console").text


def test_a_reader_without_the_right_sees_no_health_of_the_service(
    client: httpx2.Client, orders: str, restricted: Any
) -> None:
    root = page(restricted({"datasets": "orders", "where": "id = 1"}), "/console")
    assert "Your key sees a part of this dataset" in root.text
    assert "Needs attention" not in root.text
    assert "headwater write" not in root.text
    assert not [name for name in figures(root) if name.startswith("Disk")]
    assert "1 in all" not in root.text
    assert not [each for each in root.all("a") if each.attributes["href"] == "/console/service"]


def test_the_chain_begins_with_the_link_farthest_upstream_that_stands() -> None:
    graph = {
        "nodes": [
            {"id": "s", "kind": "source", "name": "plant", "state": "failed"},
            {"id": "d", "kind": "dataset", "name": "raw", "state": None},
            {"id": "v", "kind": "view", "name": "daily", "state": "paused"},
            {"id": "c", "kind": "consumer", "name": "board", "state": None},
        ],
        "edges": [
            {"from": "s", "to": "d", "lag": 7},
            {"from": "d", "to": "v", "lag": 3},
            {"from": "v", "to": "c", "lag": 0},
        ],
    }
    links = chain_to("v", graph, {"d": ["late", "source"], "v": ["late"]})
    assert [(each.name, each.fault, each.lag) for each in links] == [
        ("plant", "is failed", None),
        ("raw", "", 7),
        ("daily", "is paused", 3),
    ]
    assert links[0].href == "/console/sources/s"
    graph["nodes"][0]["state"] = "active"
    graph["nodes"][2]["state"] = "active"
    [link] = chain_to("v", graph, {"v": ["late"]})
    assert link.fault == "its refresh lacks changes of its inputs"
    graph["nodes"][2]["state"] = "paused"
    assert [each.name for each in chain_to("v", graph, {"v": ["late"]})] == ["daily"]
    assert chain_to("elsewhere", graph, {}) == []


def test_a_cycle_of_datasets_ends() -> None:
    graph = {
        "nodes": [{"id": each, "kind": "dataset", "name": each, "state": None} for each in "ab"],
        "edges": [{"from": "a", "to": "b", "lag": 0}, {"from": "b", "to": "a", "lag": 0}],
    }
    assert [each.name for each in chain_to("a", graph, {"a": ["late"], "b": ["late"]})] == ["a"]
