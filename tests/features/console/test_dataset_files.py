"""How rows are stored: bars of files, what a filter reads, the merge debt, and table services."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from app.features.console.pages.history import layout
from app.kernel.commit import small_files
from tests.support.pages import PageElement, checked_page, page, submit
from tests.support.service import Service

VISITS = {
    "name": "visits",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "day", "type": "string"},
            {"name": "who", "type": "string"},
        ]
    },
    "record_key": ["id", "day"],
    "partition_by": ["day"],
    "bucket": {"mode": "fixed", "count": 1},
    "services": {"compaction": None},
}
PATH = "/console/datasets/visits/layout"
HOSTILE = "<b>&\"'"


@pytest.fixture(autouse=True)
def files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """No write rewrites small files."""
    monkeypatch.setattr(small_files, "_ROWS_MAX", 0)


def write(client: httpx2.Client, path: str, *rows: dict[str, Any], operation: str = "upsert") -> None:
    body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}}
    assert client.post(f"{path}/writes", json=body).status_code == 202


@pytest.fixture
def visits(client: httpx2.Client, service: Service) -> str:
    """A table of two partitions: one with two files, of which one has a deleted row; one with a hostile name."""
    path: str = client.post("/datasets", json=VISITS).headers["location"]
    write(client, path, *({"id": number, "day": "a", "who": f"w{number}"} for number in range(4)))
    service.work()
    write(client, path, {"id": 9, "day": "a", "who": HOSTILE})
    write(client, path, {"id": 1, "day": HOSTILE, "who": None})
    service.work()
    write(client, path, {"id": 0, "day": "a"}, operation="delete")
    service.work()
    return path


def table(root: PageElement) -> list[list[str]]:
    """The rows of partitions, without the head and the bars."""
    return [[*row[:1], *row[2:]] for row in root.one("table", class_="layout").rows()[1:]]


def classes(root: PageElement) -> list[list[str]]:
    """The classes of the bars, by row."""
    return [
        [each.attributes["class"] for each in chart.all("rect")] for chart in root.all("svg", class_="files")
    ]


def test_bars_show_files_and_deleted_rows(visits: str, visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    rows = table(root)
    assert [row[1:5] for row in rows] == [["1", "1", "0", "0"], ["2", "4", "1", "0"]]
    assert rows[1][0] == "day=a"
    assert classes(root) == [["file"], ["file", "deleted", "file"]]
    widths = [float(each.attributes["width"]) for each in root.all("svg", class_="files")[1].all("rect")]
    # Three live rows, one deleted, then a file of one row: of five, as wide as the row of five.
    assert widths == [pytest.approx(600, abs=2), pytest.approx(200, abs=2), pytest.approx(200, abs=2)]
    titles = [each.text for each in root.all("svg", class_="files")[1].all("title")]
    assert "3 of 4 rows" in titles[0]
    assert "id 0 … 3" in titles[0]


def test_a_filter_dims_what_it_does_not_read(visits: str, visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?where=id%20%3D%202")
    assert "the filter reads 1 of 3 files" in root.text
    assert classes(root) == [["file skipped"], ["file", "deleted", "file skipped"]]
    assert [row[-1] for row in table(root)] == ["0", "1"]
    files = root.one("details", class_="as-table").rows()
    assert sorted(row[-1] for row in files[1:]) == ["no", "no", "yes"]


def test_a_wrong_filter_is_a_problem_and_the_files_stay(visits: str, visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?where=none%20%3D%201")
    assert "none" in root.one("div", class_="problem").text
    assert len(table(root)) == 2
    assert root.one("input", id="field-where").attributes["value"] == "none = 1"


def test_earlier_versions_and_single_partitions(visits: str, visitor: httpx2.Client) -> None:
    assert [row[2] for row in table(page(visitor, f"{PATH}?version=1"))] == ["4"]
    root = page(visitor, PATH)
    one = page(visitor, root.link("day=a"))
    assert [row[0] for row in table(one)] == ["day=a"]


def test_the_merge_debt_is_in_words_and_a_compaction_removes_it(
    visits: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    root = page(visitor, PATH)
    assert "1 deleted row is still stored (17%)" in root.text
    assert "no compaction runs by itself" in root.text
    with service.working():
        assert submit(visitor, root, f"{PATH}/compact", partitions="day=*").status_code == 303
    after = page(visitor, PATH)
    assert "Compaction done" in after.one("p", class_="notice").text
    assert classes(after) == [["file"], ["file"]]
    assert client.get(f"{visits}/statistics").json()["rows"]["deleted"] == 0


def test_table_services_are_started_with_what_was_filled_in(
    visits: str, visitor: httpx2.Client, service: Service, client: httpx2.Client
) -> None:
    root = page(visitor, PATH)
    with service.working():
        done = submit(visitor, root, f"{PATH}/cluster", columns="who, id", order="z_order")
        assert done.status_code == 303
        assert submit(visitor, root, f"{PATH}/clean", versions="1").status_code == 303
    latest = client.get(f"{visits}/timeline", params={"action": ["clustering", "clean"]}).json()["items"]
    assert [each["parameters"] for each in latest] == [
        {"history": {"versions": 1, "seconds": None}},
        {"columns": ["who", "id"], "order": "z_order"},
    ]
    refused = submit(visitor, root, f"{PATH}/cluster", columns="nothing")
    assert refused.status_code == 400
    shown = checked_page(refused)
    assert "nothing" in shown.all("div", class_="problem")[0].text
    assert shown.one("input", id="cluster-columns").attributes["value"] == "nothing"


def test_of_many_files_there_is_a_bar_a_partition(
    visits: str, visitor: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "_FILES_MAX", 2)
    root = page(visitor, f"{PATH}?where=id%20%3D%202")
    assert [row[0] for row in table(root)][1] == "day=a"
    assert "the filter reads 1 of 3 files" in root.text
    assert classes(root) == [["file"], ["file"]]
    monkeypatch.setattr(layout, "_PAGES_MAX", 1)
    assert "Counted over the first 2 files" in page(visitor, f"{PATH}?where=id%20%3D%202").text
    monkeypatch.setattr(layout, "_ROWS_SHOWN", 1)
    first = page(visitor, PATH)
    assert table(page(visitor, first.link("Next page")))[0][0] == "day=a"


def test_logs_are_above_the_files(client: httpx2.Client, visitor: httpx2.Client, service: Service) -> None:
    deferred = VISITS | {"name": "logged", "partition_by": [], "changelog": {"producer": "deferred"}}
    path = client.post("/datasets", json=deferred).headers["location"]
    write(client, path, {"id": 1, "day": "a", "who": "x"})
    write(client, path, {"id": 2, "day": "a", "who": "x"})
    service.work()
    root = page(visitor, "/console/datasets/logged/layout")
    [row] = table(root)
    assert row[0] == "bucket 0"
    assert "log" in classes(root)[0]
    assert "1 log with 2 rows is merged at each read" in root.text


def test_an_empty_table_has_the_command_for_a_write(orders: str, visitor: httpx2.Client) -> None:
    root = page(visitor, "/console/datasets/orders/layout")
    assert "headwater write orders" in root.text


def test_a_key_that_sees_a_part_sees_why_the_files_are_missing(visits: str, restricted: Any) -> None:
    root = page(restricted({"datasets": "visits", "where": "id = 1"}), PATH)
    assert "The list of files cannot be shown" in root.text
    assert "The merge debt cannot be shown" in root.text
    reader = page(restricted({"datasets": "visits"}), PATH)
    assert "needs the scope manage" in reader.text
    assert not [each for each in reader.all("form") if "/compact" in each.attributes.get("action", "")]


def test_a_page_of_many_files_stays_small(
    client: httpx2.Client, visitor: httpx2.Client, service: Service
) -> None:
    """The helper refuses pages of more than 100 kB."""
    path = client.post("/datasets", json=VISITS | {"name": "wide"}).headers["location"]
    write(client, path, *({"id": number, "day": f"d{number:03}", "who": HOSTILE} for number in range(300)))
    service.work()
    root = page(visitor, "/console/datasets/wide/layout")
    assert len(table(root)) == 60
    assert "240 more are not drawn" in root.text
