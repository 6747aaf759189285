"""The settings of a dataset as a form, and its end."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.support.pages import PageElement, checked_page, page, submit

PAGE = "/console/datasets/orders/settings"


def field(root: PageElement, name: str) -> PageElement:
    fields = [each for each in root if each.tag in ("input", "select", "textarea")]
    return next(each for each in fields if each.attributes.get("name") == name)


def test_the_form_has_each_setting_with_its_value_and_description(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    root = page(visitor, PAGE)
    dataset = client.get(orders).json()
    assert field(root, "name").attributes["value"] == "orders"
    compaction = dataset["services"]["compaction"]
    assert field(root, "services.compaction.logs").attributes["value"] == str(compaction["logs"])
    assert "The number of logs or postponed writes of a file group." in root.text
    assert "Default: 16." in root.text
    # Words of a form, not of a request.
    notes = " ".join(each.text for each in root.all("p", class_="note"))
    assert "The name. The old one is free at once" in notes
    assert "How long changes are kept; off keeps them for ever." in notes
    assert "null" not in notes
    logs = field(root, "services.compaction.logs").attributes
    assert (logs["min"], logs["max"]) == ("1", "10000")
    assert "1–10,000." in root.text
    assert "changes" not in {each.attributes.get("name") for each in root}


def test_what_is_not_changed_is_not_sent(client: httpx2.Client, visitor: httpx2.Client, orders: str) -> None:
    before = client.get(orders).json()
    sent = submit(visitor, page(visitor, PAGE), PAGE)
    assert sent.status_code == 303, sent.text
    assert client.get(orders).json() == before
    assert "Nothing was changed." in page(visitor, PAGE).one("p", role="status").text


def test_settings_are_changed(client: httpx2.Client, visitor: httpx2.Client, orders: str) -> None:
    sent = submit(
        visitor,
        page(visitor, PAGE),
        PAGE,
        **{
            "description": "All orders",
            "labels": "team: ops\ntier: gold",
            "services.compaction.logs": "5",
            "services.compaction.log_ratio": "0.25",
            "changelog.retention": "on",
            "changelog.retention.seconds": "86400",
        },
    )
    assert sent.status_code == 303, sent.text
    dataset = client.get(orders).json()
    assert dataset["description"] == "All orders"
    assert dataset["labels"] == {"team": "ops", "tier": "gold"}
    assert dataset["services"]["compaction"]["logs"] == 5
    assert dataset["services"]["compaction"]["log_ratio"] == 0.25
    assert dataset["changelog"]["retention"]["seconds"] == 86400
    notice = page(visitor, PAGE).one("p", role="status").text
    assert notice == "Changed: changelog, description, labels, services."


def test_a_setting_that_is_refused_is_marked(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    sent = submit(visitor, page(visitor, PAGE), PAGE, **{"services.compaction.logs": "many"})
    assert sent.status_code in (400, 422)
    root = checked_page(sent)
    assert "/services/compaction/logs" in root.one("div", role="alert").text
    marked = field(root, "services.compaction.logs")
    assert marked.attributes["aria-invalid"] == "true"
    assert marked.attributes["value"] == "many"


def test_numbers_have_bounds(client: httpx2.Client, visitor: httpx2.Client, orders: str) -> None:
    sent = submit(visitor, page(visitor, PAGE), PAGE, **{"services.compaction.logs": "10001"})
    assert sent.status_code == 422
    assert "expected 1–10000, got 10001" in checked_page(sent).one("p", class_="bad").text
    unbounded = [
        each.attributes["name"]
        for each in page(visitor, PAGE).all("input", type="number")
        if "min" not in each.attributes and not each.attributes["name"].endswith("_ratio")
    ]
    assert unbounded == []


def test_a_form_of_an_earlier_version_changes_nothing(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    root = page(visitor, PAGE)
    other = client.patch(orders, json={"compression": "lz4"}, headers={"If-Match": '"0"'})
    assert other.status_code == 200, other.text
    sent = submit(visitor, root, PAGE, name="renamed")
    assert sent.status_code == 412
    assert "Load its settings again" in checked_page(sent).text
    assert client.get("/datasets/renamed").status_code == 404


def test_a_renamed_dataset_is_at_its_new_address(visitor: httpx2.Client, orders: str) -> None:
    sent = submit(visitor, page(visitor, PAGE), PAGE, name="purchases")
    assert sent.headers["location"] == "/console/datasets/purchases/settings"


def test_a_dataset_is_deleted_once_its_name_is_typed(
    client: httpx2.Client, visitor: httpx2.Client, orders: str
) -> None:
    delete = "/console/datasets/orders/delete"
    wrong = submit(visitor, page(visitor, PAGE), delete, confirm="order")
    assert wrong.status_code == 400
    assert "type orders to delete" in checked_page(wrong).text
    assert client.get(orders).status_code == 200
    done = submit(visitor, page(visitor, PAGE), delete, confirm="orders")
    assert done.headers["location"] == "/console/datasets"
    assert client.get(orders).status_code == 404


def test_a_reader_sees_settings_and_what_it_lacks(orders: str, restricted: Any) -> None:
    root = page(restricted({"datasets": "orders"}), PAGE)
    assert "needs the scope manage" in root.text
    assert "disabled" in field(root, "name").attributes
    assert not [each for each in root.all("button") if each.text in ("Save", "Delete")]
