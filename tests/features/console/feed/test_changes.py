"""The page of changes: the latest ones by version, positions, filters, and the part that its script reads."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx2
import pytest

from tests.support.pages import page, parsed

PATH = "/console/datasets/orders/changes"


def lines(root: Any) -> list[list[str]]:
    """The cells of the changes of a page, without the lines of versions."""
    table = root.one("table", id="changes")
    return [[cell.text for cell in row.all("td")] for row in table.all("tr") if row.all("td")]


def versions(root: Any) -> list[str]:
    return [each.text for each in root.all("tr", class_="version")]


@pytest.mark.usefixtures("story")
def test_changes_are_shown_by_version_the_latest_first(visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    assert lines(root) == [
        ["4", "−R", "2", "old", "↩ 1"],
        ["3", "−C → +C", "1", "new <b>paid</b>", "↩ 0"],
        ["1", "+A", "2", "old", ""],
        ["0", "+A", "1", "new", ""],
    ]
    third, second, first = versions(root)
    assert third.startswith("v3 ")
    assert "delete by key" in third
    assert " · −1 · " in third
    assert third.endswith("job undo")
    assert "upsert by key plant · ±1" in second
    assert "undo" not in second
    assert "· +2" in first
    changed = root.one("tr", id="o3")
    assert changed.one("del").text == "new"
    assert changed.one("ins").text == "<b>paid</b>"
    assert changed.link("1") == "/console/datasets/orders/rows/row?key=1"
    assert root.link("↩ 0") == f"{PATH}?since=0#o0"


def test_jobs_of_versions_are_linked(visitor: httpx2.Client, story: list[dict[str, Any]]) -> None:
    root = page(visitor, PATH)
    targets = [each.attributes["href"] for each in root.all("a") if each.text == "job"]
    assert targets == [f"/console/jobs/{job['id']}" for job in reversed(story)]


@pytest.mark.usefixtures("story")
def test_a_correction_as_two_rows(visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?two=1&op=corrected")
    assert lines(root) == [
        ["3", "+C", "1", "<b>paid</b>", ""],
        ["2", "−C", "1", "new", "↩ 0"],
    ]


@pytest.mark.parametrize(
    ("since", "offsets"),
    [
        ("3", ["4", "3"]),
        ("v3", ["4"]),
        ("v2", ["4", "3"]),
        ("earliest", ["4", "3", "1", "0"]),
        ("1h", ["4", "3", "1", "0"]),
        ("2020-01-01 09:30", ["4", "3", "1", "0"]),
        ("5", []),
    ],
)
@pytest.mark.usefixtures("story")
def test_positions_are_offsets_versions_and_times(
    visitor: httpx2.Client, since: str, offsets: list[str]
) -> None:
    assert [line[0] for line in lines(page(visitor, f"{PATH}?since={since}"))] == offsets


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("since=soon", "Expected an offset"),
        ("since=6", "The position 6 is beyond the head at 5"),
        ("where=nte%3D'a'", 'There is no column "nte" (did you mean "note"?)'),
        ("columns=nte", "There is no column 'nte'"),
        ("op=moved", "Expected one of added, removed, corrected"),
        ("span=wide", ""),
    ],
)
@pytest.mark.usefixtures("story")
def test_a_refused_option_is_explained_at_its_field(visitor: httpx2.Client, options: str, fault: str) -> None:
    root = page(visitor, f"{PATH}?{options}")
    assert root.all("table", id="changes") == []
    name = options.split("=")[0]
    if fault:
        assert fault.lower() in root.one("p", id=f"e-{name}").text.lower()


@pytest.mark.usefixtures("story")
def test_a_filter_selects_changes_of_the_latest_ones(visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?where=note%3D'new'")
    assert [line[0] for line in lines(root)] == ["3", "0"]
    assert root.one("input", name="where").attributes["value"] == "note='new'"
    nothing = page(visitor, f"{PATH}?where=id%3D9")
    assert lines(nothing) == []
    assert "None of the 5 latest changes matches" in nothing.text


@pytest.mark.usefixtures("story")
def test_a_long_feed_is_shown_in_parts(visitor: httpx2.Client, write: Any) -> None:
    write(*({"id": number, "note": "x"} for number in range(10, 260)))
    latest = page(visitor, PATH)
    shown = [int(line[0].replace(",", "")) for line in lines(latest)]
    assert shown == list(range(254, 154, -1))
    assert "offsets 155 to 254" in latest.one("div", class_="live-bar").text
    older = page(visitor, latest.link("Older"))
    assert [int(line[0]) for line in lines(older)] == list(range(154, 54, -1))
    assert "100 later changes" in older.text
    newer = page(visitor, older.link("Newer"))
    assert lines(newer) == lines(latest)
    assert "254" in [line[0] for line in lines(page(visitor, older.link("Latest")))]


def test_large_changes_are_searched_in_smaller_parts(
    visitor: httpx2.Client, client: httpx2.Client, orders: str, service: Any
) -> None:
    body = "".join(json.dumps({"id": each, "note": "x" * 300_000}) + "\n" for each in range(30))
    headers = {"Content-Type": "application/x-ndjson"}
    assert client.post(f"{orders}/writes", content=body, headers=headers).status_code == 202
    service.work()
    root = page(visitor, f"{PATH}?where=id%3E%3D0")
    assert [line[0] for line in lines(root)] == [str(offset) for offset in range(29, -1, -1)]


def test_a_search_that_finds_nothing_can_go_further_back(visitor: httpx2.Client, write: Any) -> None:
    write({"id": 0, "note": "rare"})
    write(*({"id": number, "note": "x"} for number in range(1, 1_200)))
    root = page(visitor, f"{PATH}?where=note%3D'rare'")
    assert "None of the 1,000 latest changes matches" in root.text
    further = page(visitor, root.link("Search the last 10,000 changes"))
    assert [line[0] for line in lines(further)] == ["0"]


def test_a_table_that_only_grows_has_no_signs(
    client: httpx2.Client, events: str, visitor: httpx2.Client, service: Any
) -> None:
    rows = [{"at": "2026-11-29T09:30:00Z", "what": "x" * 500}]
    client.post(f"{events}/writes", json={"operation": "insert", "source": {"kind": "rows", "rows": rows}})
    service.work()
    root = page(visitor, "/console/datasets/events/changes")
    assert lines(root) == [["0", "2026-11-29T09:30:00Z", "x" * 79 + "…"]]


def test_an_empty_feed_names_the_command_for_a_write(visitor: httpx2.Client, orders: str) -> None:
    root = page(visitor, f"/console{orders}/changes")
    assert "headwater write orders rows.ndjson" in root.text


def test_a_dataset_that_does_not_exist_is_a_problem(visitor: httpx2.Client) -> None:
    assert "not" in page(visitor, "/console/datasets/none/changes", 404).text


@pytest.mark.usefixtures("story")
def test_a_reader_of_a_part_sees_its_changes_and_no_writers(restricted: Any) -> None:
    reader = restricted({"datasets": "orders", "scopes": ["read"], "where": "id = 1", "mask": ["note"]})
    root = page(reader, PATH)
    assert lines(root) == [["3", "−C → +C", "1", "null", "↩ 0"], ["0", "+A", "1", "null", ""]]
    assert "plant" not in root.text
    assert "Who wrote what is not shown" in root.text
    assert "undo" not in root.text.lower()


def part(response: httpx2.Response) -> Any:
    assert response.status_code == 200, response.text
    return parsed(response.text).one("table", id="more")


@pytest.mark.usefixtures("story")
def test_the_tail_continues_where_the_page_ends(
    client: httpx2.Client, visitor: httpx2.Client, write: Any
) -> None:
    live = page(visitor, f"{PATH}?where=id%20%3C%205").one("div", class_="live-bar").attributes["data-live"]
    assert live == f"{PATH}/more?since=5&where=id+%3C+5"
    write({"id": 3, "note": "x"}, {"id": 7, "note": "y"})
    more = part(visitor.get(live))
    assert more.attributes["data-next"] == "7"
    head = client.get("/datasets/orders").json()
    assert more.attributes["data-version"] == str(head["version"])
    assert more.attributes["data-committed"] == head["committed_at"]
    assert (more.attributes["data-count"], more.attributes["data-pending"]) == ("1", "0")
    assert [[cell.text for cell in row.all("td")] for row in more.all("tr") if row.all("td")] == [
        ["5", "+A", "3", "x", ""]
    ]
    assert "upsert by key" in more.one("tr", class_="version").text


@pytest.mark.usefixtures("story")
def test_the_tail_waits_for_the_next_change(visitor: httpx2.Client, write: Any) -> None:
    responses: list[httpx2.Response] = []
    waiting = threading.Thread(
        target=lambda: responses.append(visitor.get(f"{PATH}/more?since=5", timeout=60))
    )
    waiting.start()
    write({"id": 4, "note": "x"})
    waiting.join(60)
    assert part(responses[0]).attributes["data-next"] == "6"


@pytest.mark.usefixtures("story")
def test_a_tail_need_not_wait(visitor: httpx2.Client) -> None:
    more = part(visitor.get(f"{PATH}/more?since=5&wait=0", timeout=20))
    assert (more.attributes["data-next"], more.attributes["data-count"]) == ("5", "0")


@pytest.mark.usefixtures("story")
def test_a_tail_that_is_far_behind_counts_what_it_omits(visitor: httpx2.Client, write: Any) -> None:
    write(*({"id": number, "note": "x"} for number in range(10, 3_010)))
    more = part(visitor.get(f"{PATH}/more?since=2"))
    assert (more.attributes["data-count"], more.attributes["data-next"]) == ("3003", "3005")
    assert len([row for row in more.all("tr") if row.all("td")]) == 100
    assert "2,903 changes came between" in more.text
    assert more.link("from offset 2") == f"{PATH}?since=2"


@pytest.mark.parametrize(("option", "status"), [("since=x", 400), ("since=9", 409), ("since=0&where=x", 400)])
@pytest.mark.usefixtures("story")
def test_a_tail_that_is_refused_says_why(visitor: httpx2.Client, option: str, status: int) -> None:
    assert page(visitor, f"{PATH}/more?{option}", status).one("div", class_="problem").text
