"""What changed between two versions: from the feed, and by a job."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.pages import page, submit

PATH = "/console/datasets/orders/rows/difference"


def lines(root: Any) -> list[list[str]]:
    region = root.one("div", aria_label="Rows that differ")
    return [[cell.text for cell in row.all("td")] for row in region.one("tbody").all("tr")]


@pytest.mark.usefixtures("story")
def test_rows_are_shown_with_what_became_of_them(visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?from=1&to=3")
    assert lines(root) == [["−C → +C", "1", "new <b>paid</b>", "1"], ["−R", "2", "old", "1"]]
    assert "−1 removed ±1 corrected from 3 changes of the feed" in root.text
    assert lines(page(visitor, f"{PATH}?from=3&to=1")) == lines(root)
    whole = page(visitor, f"{PATH}?from=0&to=3")
    assert lines(whole) == [["+A", "1", "<b>paid</b>", "2"]]


@pytest.mark.usefixtures("story")
def test_the_last_version_by_default(visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    assert lines(root) == [["−R", "2", "old", "1"]]
    assert "v3 is of" in root.text
    sliders = [root.one("input", name=name) for name in ("from", "to")]
    assert [(each.attributes["value"], each.attributes["max"]) for each in sliders] == [
        ("2", "3"),
        ("3", "3"),
    ]


def test_changes_that_cancel_each_other(visitor: httpx2.Client, write: Any) -> None:
    write({"id": 1, "note": "a"})
    write({"id": 1, "note": "b"})
    write({"id": 1, "note": "a"})
    assert "The 4 changes between them cancel each other." in page(visitor, f"{PATH}?from=1&to=3").text
    assert "Their rows are the same." in page(visitor, f"{PATH}?from=2&to=2").text


def test_rows_without_a_key_differ_by_their_values(
    client: httpx2.Client, events: str, visitor: httpx2.Client, service: Any
) -> None:
    def write(operation: str, **members: Any) -> None:
        assert client.post(f"{events}/writes", json={"operation": operation, **members}).status_code == 202
        service.work()

    a, b = {"at": None, "what": "a"}, {"at": None, "what": "b"}
    write("insert", source={"kind": "rows", "rows": [a, a, b]})
    write("delete", where="what = 'b'")
    write("insert", source={"kind": "rows", "rows": [b, b]})
    root = page(visitor, "/console/datasets/events/rows/difference?from=1&to=3")
    assert lines(root) == [["+A", "null", "b", "1"]]
    assert lines(page(visitor, "/console/datasets/events/rows/difference?from=0&to=1")) == (
        [["+A", "null", "a", "1"], ["+A", "null", "a", "1"], ["+A", "null", "b", "1"]]
    )


@pytest.mark.parametrize(("options", "field"), [("from=9", "from"), ("to=9", "to"), ("from=x", "from")])
@pytest.mark.usefixtures("story")
def test_refused_versions(visitor: httpx2.Client, options: str, field: str) -> None:
    assert "Expected" in page(visitor, f"{PATH}?{options}").one("p", id=f"e-{field}").text


def test_many_changes_are_compared_by_a_job(visitor: httpx2.Client, write: Any, service: Any) -> None:
    write(*({"id": number, "note": "x"} for number in range(1_001)))
    write({"id": 0, "note": "y"})
    root = page(visitor, f"{PATH}?from=0&to=2")
    assert "1,003 changes lie between these versions" in root.text
    begun = submit(visitor, root, PATH)
    assert begun.status_code == 303, begun.text
    waiting = page(visitor, begun.headers["location"])
    assert "queued" in waiting.text
    assert waiting.one("div", id="difference").attributes["data-refresh"] == "2"
    service.work()
    ended = page(visitor, begun.headers["location"])
    figures = [each.text for each in ended.one("dl", class_="figures").all("div")]
    assert figures == ["Added1,001", "Removed0", "Corrected0", "Unchanged0"]
    assert "data-refresh" not in ended.one("div", id="difference").attributes
    # A job of other versions is not shown as the difference of these.
    other = begun.headers["location"].replace("from=0", "from=1")
    assert "Added" not in page(visitor, other).text


def test_a_feed_without_rows_before_is_compared_by_a_job(
    client: httpx2.Client, visitor: httpx2.Client, service: Any
) -> None:
    fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
    body = {
        "name": "raw",
        "record_key": ["id"],
        "schema": {"fields": fields},
        "changelog": {"producer": "input"},
    }
    assert client.post("/datasets", json=body).status_code == 201
    for note in ("a", "b"):
        rows = {"operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 1, "note": note}]}}
        client.post("/datasets/raw/writes", json=rows)
        service.work()
    path = "/console/datasets/raw/rows/difference"
    begun = submit(visitor, page(visitor, path), path)
    service.work()
    ended = page(visitor, begun.headers["location"])
    assert ["note", "1"] in ended.one("div", id="difference").rows()


@pytest.mark.usefixtures("story")
def test_a_reader_of_a_part_sees_its_difference_and_no_job(restricted: Any) -> None:
    reader = restricted({"datasets": "orders", "scopes": ["read"], "where": "id = 1"})
    root = page(reader, f"{PATH}?from=1&to=3")
    assert lines(root) == [["−C → +C", "1", "new <b>paid</b>", "1"]]
    assert "plant" not in root.text
    refused = reader.post(PATH, data={"token": root.all("input", name="token")[0].attributes["value"]})
    assert refused.status_code == 403
    assert "part" in refused.text
