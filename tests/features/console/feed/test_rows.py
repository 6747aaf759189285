"""The page of rows: filters, columns, orders, versions, pages, and the same rows as CSV."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from app.features.console.pages.feed.spreadsheet import without_formulas
from tests.support.pages import page

PATH = "/console/datasets/orders/rows"


def rows(root: Any) -> list[list[str]]:
    return [[cell.text for cell in row.all("td")] for row in root.one("tbody").all("tr")]


@pytest.mark.usefixtures("story")
def test_the_latest_rows_and_what_made_the_version(visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    assert rows(root) == [["1", "<b>paid</b>"]]
    assert root.link("1") == f"{PATH}/row?key=1"
    assert "latest, v3" in root.text
    assert "delete by key" in root.text
    assert root.link("What changed since v2") == f"{PATH}/difference?from=2&to=3"


@pytest.mark.usefixtures("story")
def test_rows_of_an_earlier_version(visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?version=1&order_by=id")
    assert rows(root) == [["1", "new"], ["2", "old"]]
    assert "v1 of 3" in root.text
    assert "later versions have corrected rows of this page" in root.text
    assert root.link("1") == f"{PATH}/row?key=1&version=1"
    assert root.link("What changed since then") == f"{PATH}/difference?from=1&to=3"
    assert root.link("Latest") == f"{PATH}?order_by=id"


def test_rows_at_a_time(visitor: httpx2.Client, story: list[dict[str, Any]], client: httpx2.Client) -> None:
    versions = client.get("/datasets/orders/timeline?version=2").json()["items"]
    moment = datetime.fromisoformat(versions[0]["completed_at"])
    root = page(visitor, f"{PATH}?at={moment.isoformat().replace('+00:00', 'Z')}&order_by=id")
    assert rows(root) == [["1", "<b>paid</b>"], ["2", "old"]]
    before = page(visitor, f"{PATH}?at=2h")
    assert "There is no row at this version" in before.text
    assert before.one("input", name="at").attributes["value"].startswith(f"{datetime.now(UTC):%Y-}")


@pytest.mark.parametrize(
    ("options", "field", "fault"),
    [
        ("where=note%20%3D%20%22new%22", "where", "in double quotes is the name of a column"),
        ("columns=nte", "columns", "there is no column 'nte'"),
        ("order_by=nte", "order_by", "there is no column 'nte'"),
        ("version=9", "version", "expected 0–3"),
        ("version=x", "version", "expected a whole number"),
        ("at=noon", "at", "expected a time"),
        ("at=1h&version=1", "at", "not both"),
    ],
)
@pytest.mark.usefixtures("story")
def test_a_refused_option_is_explained_at_its_field(
    visitor: httpx2.Client, options: str, field: str, fault: str
) -> None:
    root = page(visitor, f"{PATH}?{options}")
    assert fault.lower() in root.one("p", id=f"e-{field}").text.lower()
    assert root.one("input", name=field).attributes["aria-invalid"] == "true"
    assert root.all("tbody") == []


def test_pages_are_of_one_version(visitor: httpx2.Client, write: Any) -> None:
    write(*({"id": number, "note": "x" * 300} for number in range(250)))
    first = page(visitor, f"{PATH}?order_by=id:desc")
    assert [row[0] for row in rows(first)] == [str(number) for number in range(249, 149, -1)]
    assert rows(first)[0][1] == "x" * 79 + "…"
    write({"id": 0, "note": "later"})
    second = page(visitor, first.link("Next page"))
    third = page(visitor, second.link("Next page"))
    assert [row[0] for row in rows(third)] == [str(number) for number in range(49, -1, -1)]
    assert rows(third)[-1][1].startswith("x")
    assert page(visitor, third.link("First page")).one("tbody").all("tr") != []


@pytest.mark.usefixtures("story")
def test_heads_order_by_their_column_and_back(visitor: httpx2.Client) -> None:
    root = page(visitor, PATH)
    ascending = page(visitor, root.one("thead").link("note"))
    assert ascending.one("th", aria_sort="ascending").text == "note"
    descending = page(visitor, ascending.one("thead").link("note"))
    assert descending.one("th", aria_sort="descending").text == "note"
    assert descending.one("input", name="order_by").attributes["value"] == "note:desc"


@pytest.mark.usefixtures("story")
def test_rows_as_csv_are_those_of_the_page(visitor: httpx2.Client) -> None:
    root = page(visitor, f"{PATH}?where=id%3D1&columns=note&version=1")
    csv = page(visitor, root.link("Copy as CSV"))
    text = csv.one("main").all("code")[0].text
    assert text == '"note" "new"'


def test_rows_as_csv_have_no_formula_and_the_api_has_the_exact_text(
    client: httpx2.Client, visitor: httpx2.Client, orders: str, service: Any
) -> None:
    """A spreadsheet computes a text that begins with `=`. A machine needs the text as it was written."""
    notes = ["=1+1", "-2+3", "@x", "-5", 'a, "=b"']
    rows = [{"id": number, "note": note} for number, note in enumerate(notes)]
    body = "".join(json.dumps(row) + "\n" for row in rows)
    client.post(f"{orders}/writes", content=body, headers={"Content-Type": "application/x-ndjson"})
    service.work()
    root = page(visitor, f"{PATH}/csv?columns=note&order_by=id")
    shown = root.one("main").all("code")[0].text
    assert shown.split(" ", 1)[1] == '"\'=1+1" "\'-2+3" "\'@x" "-5" "a, ""=b"""'
    assert "An apostrophe precedes" in root.one("main").text
    exact = client.get(f"{orders}/rows?columns=note&order_by=id", headers={"Accept": "text/csv"}).text
    assert exact.split() == ['"note"', '"=1+1"', '"-2+3"', '"@x"', '"-5"', '"a,', '""=b"""']
    copied = page(visitor, f"{PATH}/csv?columns=note&where=id%3D3")
    assert "An apostrophe" not in copied.text


@pytest.mark.parametrize(
    ("csv", "text"),
    [
        ("a,=b\n-1,+2e-3\n", "a,'=b\n-1,+2e-3\n"),
        ('"-x, ""y""\n=z"\n"",\n', '"\'-x, ""y""\n=z"\n"",\n'),
        ('"\t=q",@\r\n-\r\n', "\"'\t=q\",'@\r\n'-\r\n"),
        (",,=\n", ",,'=\n"),
    ],
)
def test_texts_that_a_spreadsheet_would_compute_get_an_apostrophe(csv: str, text: str) -> None:
    assert without_formulas(csv) == text


@pytest.fixture
def large(client: httpx2.Client, orders: str, service: Any) -> Callable[[int], None]:
    """Writes rows of `orders` whose notes have 900,000 characters."""

    def run(count: int) -> None:
        body = "".join(json.dumps({"id": each, "note": "x" * 900_000}) + "\n" for each in range(count))
        headers = {"Content-Type": "application/x-ndjson"}
        response = client.post(f"{orders}/writes", content=body, headers=headers)
        assert response.status_code == 202, response.text
        service.work()

    return run


def test_large_csv_is_left_to_the_command_line(visitor: httpx2.Client, large: Callable[[int], None]) -> None:
    large(2)
    root = page(visitor, f"{PATH}/csv?order_by=id:desc&version=1")
    command = "headwater rows orders --order-by=id:desc --version=1 -o csv > rows.csv"
    assert "too large for a page" in root.one("main").text
    assert root.one("main").all("code")[0].text == command
    whole = visitor.get(f"{PATH}/csv?where=id%3D1")
    assert whole.status_code == 200
    assert "x" * 900_000 in whole.text


def test_rows_that_are_too_large_for_a_page_are_a_problem(
    visitor: httpx2.Client, large: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    large(5)
    root = page(visitor, PATH)
    assert root.all("tbody") == []
    assert "Too large for a page" in root.one("div", class_="problem").text
    assert "choose fewer rows or columns" in root.one("div", class_="problem").text
    assert [row[0] for row in rows(page(visitor, f"{PATH}?where=id%3C4&order_by=id"))] == list("0123")
    assert [row[0] for row in rows(page(visitor, f"{PATH}?columns=id&order_by=id"))] == list("01234")
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_a_page_shows_a_hundred_columns(client: httpx2.Client, visitor: httpx2.Client, service: Any) -> None:
    names = [f"c{number}" for number in range(120)]
    fields = [{"name": name, "type": "int64"} for name in names]
    client.post("/datasets", json={"name": "broad", "record_key": ["c0"], "schema": {"fields": fields}})
    body = {"operation": "upsert", "source": {"kind": "rows", "rows": [dict.fromkeys(names, 1)]}}
    assert client.post("/datasets/broad/writes", json=body).status_code == 202
    service.work()
    root = page(visitor, f"/console/datasets/broad/rows?columns={','.join(names)}")
    assert [each.text for each in root.one("thead").all("th")] == names[:100]
    assert "The first 100 of the 120 columns" in root.text
    assert "columns." not in page(visitor, "/console/datasets/broad/rows?columns=c119").one("main").text


def test_only_the_next_page_repeats_a_long_filter(visitor: httpx2.Client, write: Any) -> None:
    write(*({"id": number, "note": "a"} for number in range(150)))
    root = page(visitor, f"{PATH}?where=id+IN+({','.join(['7'] * 1_500)},{','.join(map(str, range(150)))})")
    assert len(rows(root)) == 100
    assert "where" not in root.one("thead").link("note")
    assert len(rows(page(visitor, root.link("Next page")))) == 50


@pytest.mark.usefixtures("story")
def test_nothing_matches(visitor: httpx2.Client) -> None:
    assert "No row matches." in page(visitor, f"{PATH}?where=id%3D9").text


def test_an_empty_dataset_names_the_command_for_a_write(visitor: httpx2.Client, orders: str) -> None:
    assert "headwater write orders rows.ndjson" in page(visitor, f"/console{orders}/rows").text


@pytest.mark.usefixtures("story")
def test_a_reader_of_a_part_sees_its_rows(restricted: Any) -> None:
    reader = restricted({"datasets": "orders", "scopes": ["read"], "where": "id = 1", "mask": ["note"]})
    root = page(reader, PATH)
    assert rows(root) == [["1", "null"]]
    assert "key" not in root.one("div", class_="live-bar").text
    assert "masked" in page(reader, f"{PATH}?where=note%3D'a'").text


@pytest.mark.usefixtures("story")
def test_a_reader_without_the_key_gets_no_links_of_rows(restricted: Any) -> None:
    reader = restricted({"datasets": "orders", "scopes": ["read"], "mask": ["id"]})
    root = page(reader, PATH)
    assert rows(root) == [["null", "<b>paid</b>"]]
    assert root.one("tbody").all("a") == []


def test_values_of_all_kinds(client: httpx2.Client, visitor: httpx2.Client, service: Any) -> None:
    name = 'a" <i>odd</i> name'
    fields = [
        {"name": name, "type": "string"},
        {"name": "place", "type": "struct<city: string>"},
        {"name": "tags", "type": "list<string>"},
        {"name": "flag", "type": "boolean"},
        {"name": "big", "type": "int64"},
    ]
    client.post("/datasets", json={"name": "kinds", "record_key": [name], "schema": {"fields": fields}})
    row = {name: "a,b/ü %2F?<b>", "place": {"city": "<x>"}, "tags": ["a"], "flag": False, "big": 2**62}
    body = {"operation": "upsert", "source": {"kind": "rows", "rows": [row]}}
    assert client.post("/datasets/kinds/writes", json=body).status_code == 202
    service.work()
    root = page(visitor, "/console/datasets/kinds/rows")
    assert rows(root) == [["a,b/ü %2F?<b>", '{"city":"<x>"}', '["a"]', "false", str(2**62)]]
    single = page(visitor, root.link("a,b/ü %2F?<b>"))
    assert single.all("h2")[0].text == "Row a,b/ü %2F?<b>"
    assert "there set by" in single.text
