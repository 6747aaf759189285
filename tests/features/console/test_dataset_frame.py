"""What all pages of a dataset show at their top."""

from __future__ import annotations

from typing import Any

import httpx2

from app.features.monitoring.compose import sample_datasets
from app.features.monitoring.service.sample_datasets import SAMPLE_TASK
from tests.support.http import upsert
from tests.support.leaders import end_lease
from tests.support.pages import page


def sample(service: Any) -> None:
    sample_datasets(service.platform).run()
    end_lease(service.database, SAMPLE_TASK)


def facts(root: Any) -> list[str]:
    return [each.text for each in root.one("ul", class_="facts").all("li")]


def test_the_frame_has_the_state_of_the_dataset(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    before = facts(page(visitor, "/console/datasets/orders"))
    assert before == ["v0", "no commit yet", "no consumers", "healthy"]
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 2}))
    service.work()
    client.put(f"{orders}/consumers/loader", json={"offset": 1}, headers={"If-None-Match": "*"})
    sample(service)
    root = page(visitor, "/console/datasets/orders")
    version, age, rows, size, consumers, health = facts(root)
    assert (version, rows, consumers, health) == ("v1", "2 rows", "1 consumer, 1 change behind", "healthy")
    client.put(f"{orders}/consumers/board", json={"offset": 0}, headers={"If-None-Match": "*"})
    assert facts(page(visitor, "/console/datasets/orders"))[4] == "2 consumers, the farthest 2 changes behind"
    assert age.endswith("ago") or age == "just now"
    assert size.endswith(("kB", " B"))
    tabs = root.one("nav", aria_label="Pages of the dataset")
    assert [each.text for each in tabs.all("a")] == (
        ["Overview", "Rows", "Changes", "Timeline", "Layout", "Schema", "Consumers", "Quarantine", "Settings"]
    )
    assert tabs.one("a", aria_current="page").text == "Overview"
    assert tabs.link("Layout") == "/console/datasets/orders/layout"


def test_the_frame_of_an_id_is_that_of_its_dataset(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    root = page(visitor, f"/console/datasets/{client.get(orders).json()['id']}")
    assert root.one("h1").text == "orders"
    assert "healthy" in facts(root)


def test_a_reader_of_a_part_sees_no_numbers_of_the_whole(
    client: httpx2.Client, orders: str, service: Any, restricted: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 2}))
    service.work()
    sample(service)
    root = page(restricted({"datasets": "orders", "where": "id = 1"}), "/console/datasets/orders")
    assert [each for each in facts(root) if "row" in each] == []
    assert "seen in part" in facts(root)


def test_a_dataset_that_is_not_granted_does_not_exist(orders: str, restricted: Any) -> None:
    root = page(restricted({"datasets": "other*"}), "/console/datasets/orders", status=404)
    assert "no dataset" in root.one("div", role="alert").text
