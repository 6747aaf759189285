"""A dataset at a glance, and what can be done with it there."""

from __future__ import annotations

from typing import Any

import httpx2

from app.features.monitoring.compose import sample_datasets
from app.features.monitoring.service.sample_datasets import SAMPLE_TASK
from tests.support.http import ORDERS, upsert
from tests.support.leaders import end_lease
from tests.support.pages import page, submit

PAGE = "/console/datasets/orders"


def sample(service: Any) -> None:
    sample_datasets(service.platform).run()
    end_lease(service.database, SAMPLE_TASK)


def test_an_empty_dataset_shows_how_its_changes_are_followed(visitor: httpx2.Client, orders: str) -> None:
    root = page(visitor, PAGE)
    assert "headwater tail orders -f" in root.text
    assert "Writes of producers alone." in root.text
    assert "nothing needs attention" in root.text
    assert "Visible after" not in root.text


def test_the_page_has_what_happens_and_how_soon_rows_are_visible(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    for number in range(3):
        client.post(f"{orders}/writes", json=upsert({"id": number}))
        service.work()
    sample(service)
    root = page(visitor, PAGE)
    figures = {
        each.one("dt").text: [part.text for part in each.all("dd")]
        for each in root.all("div", class_="figure")
    }
    assert figures["Writes, 24 h"] == ["3"]
    assert figures["Visible after, median"][0].endswith("s")
    assert figures["Visible after, median"][1].startswith("of the last 3 writes")
    assert root.one("svg", class_="chart").attributes["aria-label"].startswith("Rows in by hour")
    assert "id" in root.one("dl", class_="pairs").text


def test_what_feeds_it_and_what_it_feeds_are_links(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    client.post(
        "/views", json={"name": "totals", "sql": "SELECT note, COUNT(*) AS n FROM orders GROUP BY note"}
    )
    client.put(f"{orders}/consumers/loader", json={"offset": 0}, headers={"If-None-Match": "*"})
    root = page(visitor, PAGE)
    assert root.link("totals") == "/console/datasets/totals"
    assert root.link("loader").endswith("/consumers")
    view = page(visitor, "/console/datasets/totals")
    assert view.link("orders") == PAGE
    assert "Write rows" not in view.text


def test_engines_read_it_by_texts_to_copy(client: httpx2.Client, visitor: httpx2.Client, orders: str) -> None:
    texts = [each["code"] for each in client.get(orders).json()["read_with"]]
    engines = page(visitor, PAGE).one("div", class_="engines")
    assert [each.text for each in engines.all("code")] == [" ".join(text.split()) for text in texts]


def test_the_page_leads_to_writes(visitor: httpx2.Client, orders: str) -> None:
    assert page(visitor, PAGE).link("Write rows") == f"{PAGE}/write"


def test_a_compaction_begins_from_the_page(visitor: httpx2.Client, orders: str) -> None:
    sent = submit(visitor, page(visitor, PAGE), f"{PAGE}/compact")
    assert sent.status_code == 303
    assert sent.headers["location"].startswith("/console/jobs/")


def test_a_reader_sees_no_actions_and_no_hidden_numbers(
    client: httpx2.Client, orders: str, service: Any, restricted: Any
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1}, {"id": 2}))
    service.work()
    root = page(restricted({"datasets": "orders", "where": "id = 1"}), PAGE)
    assert not [each for each in root.all("form") if each.attributes["action"].startswith(PAGE)]
    assert "Writes by hour cannot be shown" in root.text
    assert "Rows in, last" not in root.text


def test_descriptions_and_labels_are_texts(client: httpx2.Client, visitor: httpx2.Client) -> None:
    notes = {"description": "<script>alert(1)</script>", "labels": {"team": "ops"}}
    client.post("/datasets", json=ORDERS | notes)
    root = page(visitor, PAGE)
    assert "<script>alert(1)</script>" in root.text
    assert root.link("team:ops") == "/console/datasets?label=team%3Aops"
