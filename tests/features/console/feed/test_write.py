"""The form that writes rows: formats, dry runs, results, refusals."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx2
import pytest

from tests.support.pages import checked_page, page

PATH = "/console/datasets/orders/write"


def send(
    visitor: httpx2.Client, rows: str, *, file: bytes | None = None, nonce: str = "", **fields: str
) -> httpx2.Response:
    """Sends the form in parts, as a browser does."""
    root = page(visitor, PATH)
    data = {
        "token": root.all("input", name="token")[0].attributes["value"],
        "nonce": nonce or root.one("input", name="nonce").attributes["value"],
        "rows": rows,
        "operation": "upsert",
        "format": "",
        "on_error": "fail",
        **fields,
    }
    content = ("rows.csv", b"" if file is None else file, "application/octet-stream")
    return visitor.post(PATH, data=data, files={"file": content}, timeout=60)


def result(visitor: httpx2.Client, response: httpx2.Response) -> str:
    assert response.status_code == 303, response.text
    text: str = page(visitor, response.headers["location"]).one("section", id="written").text
    return text


@pytest.mark.parametrize(
    "rows",
    [
        '[{"id": 1, "note": "a"}, {"id": 2, "note": "ü"}]',
        '{"id": 1, "note": "a"}\r\n{"id": 2, "note": "ü"}\r\n',
        "id,note\r\n1,a\r\n2,ü",
    ],
)
def test_rows_of_each_format_are_written(
    visitor: httpx2.Client, orders: str, client: httpx2.Client, service: Any, rows: str
) -> None:
    with service.working():
        response = send(visitor, rows)
    text = result(visitor, response)
    assert text.startswith("written as v1")
    assert "Inserted2 Updated0" in text
    written = page(visitor, response.headers["location"])
    assert written.link("undo…") == "/console/datasets/orders/changes/undo?version=1"
    found = client.get("/datasets/orders/rows?order_by=id").json()["rows"]
    assert found == [{"id": 1, "note": "a"}, {"id": 2, "note": "ü"}]


@pytest.mark.usefixtures("orders")
def test_one_object_is_one_row(visitor: httpx2.Client, service: Any, client: httpx2.Client) -> None:
    with service.working():
        send(visitor, '{"id": 9007199254740993,\n "note": null}')
    assert client.get("/datasets/orders/rows").json()["rows"] == [{"id": 9007199254740993, "note": None}]


@pytest.mark.usefixtures("orders")
def test_a_file_is_written(visitor: httpx2.Client, service: Any) -> None:
    with service.working():
        response = send(visitor, "", file=b"id,note\n5,x\n")
    assert "Inserted1" in result(visitor, response)


@pytest.mark.usefixtures("story")
def test_a_dry_run_names_the_effects_and_writes_nothing(
    visitor: httpx2.Client, client: httpx2.Client
) -> None:
    response = send(visitor, '{"id": 1, "note": "x"}\n{"id": 8, "note": "<i>"}', dry="1")
    assert response.status_code == 200, response.text
    root = checked_page(response)
    section = root.one("section", aria_label="Dry run")
    assert [row[1:] for row in section.one("tbody").rows()] == (
        [['{"id":1}', "merge", "of v2"], ['{"id":8}', "insert", "none"]]
    )
    assert "nothing is written yet" in section.text
    assert root.one("textarea", name="rows").text == '{"id": 1, "note": "x"} {"id": 8, "note": "<i>"}'
    assert client.get("/datasets/orders").json()["version"] == 3


@pytest.mark.parametrize(
    ("rows", "fields", "fault"),
    [
        ("", {}, "there is nothing to write"),
        ('[{"id": "x"}]', {}, "/rows/0"),
        ("[1, 2", {}, "JSON"),
        ("id,nte\n1,2", {}, "nte"),
        ("id,note\n1,2", {"dry": "1"}, "a dry run reads JSON and NDJSON"),
        ('{"id": 1}\n' * 1_001, {"dry": "1", "format": "ndjson"}, "1,000 rows at most"),
        ("[]", {"format": "xml"}, "the format is one of"),
        ('[{"id": 1}]', {"operation": "drop"}, "operation"),
    ],
)
@pytest.mark.usefixtures("orders")
def test_a_refused_write_keeps_what_was_typed(
    visitor: httpx2.Client, client: httpx2.Client, rows: str, fields: dict[str, str], fault: str
) -> None:
    response = send(visitor, rows, **fields)
    assert response.status_code in (400, 422), response.text
    root = checked_page(response)
    assert fault in root.one("div", class_="problem").text
    assert root.one("textarea", name="rows").text.split() == rows.split()
    assert client.get("/datasets/orders").json()["version"] == 0


@pytest.mark.usefixtures("orders")
def test_bad_records_go_to_the_quarantine(visitor: httpx2.Client, service: Any) -> None:
    with service.working():
        response = send(visitor, '[{"id": 1}, {"id": "x"}]', on_error="quarantine")
    text = result(visitor, response)
    assert "Inserted1" in text
    assert "Quarantined1" in text


@pytest.mark.usefixtures("story")
def test_a_failed_job_is_shown_with_its_problem(visitor: httpx2.Client, service: Any) -> None:
    with service.working():
        response = send(visitor, '[{"id": 1}]', operation="insert")
    assert response.status_code == 422
    assert "already exist" in checked_page(response).one("div", class_="problem").text


@pytest.mark.usefixtures("orders")
def test_a_form_that_is_sent_twice_writes_once(
    visitor: httpx2.Client, service: Any, client: httpx2.Client
) -> None:
    with service.working():
        first, second = (send(visitor, '[{"id": 1}]', nonce="same") for _ in range(2))
        other = send(visitor, '[{"id": 2}]', nonce="same")
    assert first.headers["location"] == second.headers["location"] != other.headers["location"]
    assert client.get("/datasets/orders").json()["version"] == 2


@pytest.mark.usefixtures("orders")
def test_a_text_above_a_mebibyte_is_refused(visitor: httpx2.Client) -> None:
    assert send(visitor, "x" * (1_200 * 1_024)).status_code == 413


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--b\r\n\r\n\r\n--b--"),
        ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx'),
        ("multipart/form-data; boundary=b", b"--b\r\nx" * 1_100 + b"\r\n--b--"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff\r\n--b--',
        ),
        # A reader of parameters that tries each `;` as their end would take minutes.
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="' + b";" * 900_000 + b"\r\n\r\nx\r\n--b--",
        ),
        ('multipart/form-data; boundary="' + ";" * 30_000, b"--b--"),
    ],
    ids=count(),
)
@pytest.mark.usefixtures("orders")
def test_forms_that_are_not_valid(visitor: httpx2.Client, content_type: str, body: bytes) -> None:
    response = visitor.post(PATH, content=body, headers={"Content-Type": content_type})
    assert response.status_code == 400, response.text


@pytest.mark.usefixtures("orders")
def test_writing_needs_the_scope_write(restricted: Any) -> None:
    reader = restricted({"datasets": "orders", "scopes": ["read"]})
    root = page(reader, PATH)
    assert "needs the scope write" in root.text
    assert root.all("textarea") == []


def test_operations_of_a_table_without_a_key(visitor: httpx2.Client, events: str) -> None:
    root = page(visitor, "/console/datasets/events/write")
    assert [each.text for each in root.one("select", name="operation").all("option")] == (
        ["insert", "bulk_insert", "overwrite", "changelog"]
    )
