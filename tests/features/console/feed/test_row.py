"""The page of a row: what it is, what it was, who changed it."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import upsert
from tests.support.pages import page

PATH = "/console/datasets/orders/rows/row"


def history(root: Any) -> list[list[str]]:
    table = root.one("div", aria_label="History of the row").one("tbody")
    return [[cell.text for cell in row.all("td")] for row in table.all("tr")]


def values(root: Any) -> dict[str, str]:
    table = root.one("table", class_="values")
    return {row.one("th").text: row.one("td").text for row in table.all("tr")}


def test_who_deleted_a_row(visitor: httpx2.Client, story: list[dict[str, Any]]) -> None:
    root = page(visitor, f"{PATH}?key=2")
    deleted, appended = history(root)
    assert (deleted[0], deleted[2], deleted[3]) == ("v3", "−R", "old")
    assert "(delete) · job" in deleted[4]
    assert (appended[0], appended[2], appended[3]) == ("v1", "+A", "old")
    assert "deleted by v3" in root.text
    assert values(root) == {"id": "2", "note": "old"}
    assert root.link("job") == f"/console/jobs/{story[2]['id']}"
    assert root.link("4") == "/console/datasets/orders/changes?since=4#o4"


@pytest.mark.usefixtures("story")
def test_what_a_row_was_at_a_version(visitor: httpx2.Client) -> None:
    latest = page(visitor, f"{PATH}?key=1")
    assert values(latest) == {"id": "1", "note": "<b>paid</b>"}
    corrected, appended = history(latest)
    assert (corrected[2], corrected[3]) == ("−C → +C", "new <b>paid</b>")
    assert "key plant (upsert)" in corrected[4]
    earlier = page(visitor, latest.link("v1"))
    assert values(earlier) == {"id": "1", "note": "new"}
    assert "At v1" in earlier.text
    assert history(earlier) == history(latest)
    current = earlier.one("tr", aria_current="true")
    assert [each.text for each in current.all("td")] == appended


def test_what_a_row_was_at_a_time(
    visitor: httpx2.Client, story: list[dict[str, Any]], client: httpx2.Client
) -> None:
    second = client.get("/datasets/orders/timeline?version=2").json()["items"][0]["completed_at"]
    root = page(visitor, f"{PATH}?key=2&at={second}")
    assert values(root) == {"id": "2", "note": "old"}
    assert "At v2, the last version by" in root.text
    before = page(visitor, f"{PATH}?key=2&at=1d")
    assert "no row" in before.text
    assert before.all("table", class_="values") == []


@pytest.mark.usefixtures("story")
def test_a_key_that_never_was(visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?key=77")
    assert "no row has the key" in root.text
    assert "No change of this key is kept" in root.text


@pytest.mark.parametrize(
    ("options", "field", "fault"),
    [
        ("key=x", "key", "expected int64"),
        ("key=1,2", "", "cannot"),
        ("key=1&at=noon", "at", "expected a time"),
        ("key=1&version=9", "version", "expected 0–3"),
    ],
)
@pytest.mark.usefixtures("story")
def test_refused_options(visitor: httpx2.Client, options: str, field: str, fault: str) -> None:
    root = page(visitor, f"{PATH}?{options}")
    if field:
        assert fault in root.one("p", id=f"e-{field}").text.lower()
    assert root.all("h3") == [] or "History" not in root.text


def test_a_row_that_was_changed_often(visitor: httpx2.Client, write: Any) -> None:
    for number in range(115):
        write({"id": 1, "note": f"{number}"})
    root = page(visitor, f"{PATH}?key=1")
    assert len(history(root)) == 100
    assert history(root)[0][3] == "113 114"
    assert "The latest 100 changes; 15 earlier ones are not shown." in root.text


def test_without_a_key_there_is_no_page_of_a_row(visitor: httpx2.Client, events: str) -> None:
    assert "have no key" in page(visitor, "/console/datasets/events/rows/row?key=1").text


@pytest.mark.usefixtures("story")
def test_a_reader_of_a_part_sees_no_writers(restricted: Any) -> None:
    reader = restricted({"datasets": "orders", "scopes": ["read"], "where": "id = 1", "mask": ["note"]})
    root = page(reader, f"{PATH}?key=1")
    assert values(root) == {"id": "1", "note": "null"}
    assert "Who wrote what is not shown" in root.text
    assert "plant" not in root.text
    assert "no row has the key" in page(reader, f"{PATH}?key=2").text


@pytest.mark.parametrize("key", ["", "lookup", "/", "a/b", "..", "row", "50%", "it's", " ", "a,b"])
def test_any_text_is_a_key(client: httpx2.Client, visitor: httpx2.Client, service: Any, key: str) -> None:
    definition = {
        "name": "texts",
        "schema": {"fields": [{"name": "the key", "type": "string"}, {"name": "n", "type": "int64"}]},
        "record_key": ["the key"],
    }
    assert client.post("/datasets", json=definition).status_code == 201
    for number in (1, 2):
        rows = [{"the key": key, "n": number}, {"the key": "other", "n": 9}]
        client.post("/datasets/texts/writes", json=upsert(*rows))
        service.work()
    table = page(visitor, "/console/datasets/texts/rows").one("table").one("tbody")
    links = [each.attributes["href"] for each in table.all("a") if each.text != "other"]
    root = page(visitor, links[0])
    assert values(root) == {"the key": key.strip(), "n": "2"}
    assert [row[2] for row in history(root)] == ["−C → +C", "+A"]
    earlier = page(visitor, f"{links[0]}&version=1")
    assert values(earlier)["n"] == "1"
    assert "texts/rows/row?key=" in links[0]
