"""Small pages of the table."""

import io
import json
from datetime import UTC, datetime

import pyarrow.ipc as ipc
import pytest

from tests.support.http import problem, upsert

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def rows(client, orders, service):
    """The path of a table of three versions; the second corrected row 1."""
    for number, row in enumerate([{"id": 1, "note": "a"}, {"id": 1, "note": "b"}, {"id": 2, "note": "c"}], 1):
        client.post(f"{orders}/writes", json=upsert(row))
        service.work()
        assert client.get(orders).json()["version"] == number
    return f"{orders}/rows"


def by_id(page):
    return sorted(page["rows"], key=lambda row: row["id"])


def test_rows_default_to_the_latest_version(client, rows):
    page = client.get(rows).json()
    assert by_id(page) == [{"id": 1, "note": "b"}, {"id": 2, "note": "c"}]
    assert (page["version"], page["next_page_token"]) == (3, None)


@pytest.mark.parametrize(("version", "notes"), [(0, []), (1, ["a"]), (2, ["b"]), (3, ["b", "c"])])
def test_every_version_stays_readable(client, rows, version, notes):
    page = client.get(rows, params={"version": version}).json()
    assert [row["note"] for row in by_id(page)] == notes
    assert page["version"] == version


def test_as_of_selects_the_version_committed_by_then(client, rows, orders):
    instants = client.get(f"{orders}/timeline").json()["items"]
    second = next(instant for instant in instants if instant["version"] == 2)
    page = client.get(rows, params={"as_of": second["completed_at"]}).json()
    assert page["version"] == 2
    assert client.get(rows, params={"as_of": "2020-01-01T00:00:00Z"}).json()["version"] == 0
    assert client.get(rows, params={"as_of": datetime.now(UTC).isoformat()}).json()["version"] == 3


def test_row_pages_keep_their_version(client, rows, orders, service):
    first = client.get(rows, params={"limit": 1}).json()
    client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "later"}))
    service.work()
    second = client.get(rows, params={"limit": 1, "page_token": first["next_page_token"]}).json()
    assert second["version"] == first["version"] == 3
    assert second["next_page_token"] is None
    assert sorted(row["id"] for row in first["rows"] + second["rows"]) == [1, 2]


@pytest.mark.parametrize(
    "query", [{"columns": "note"}, {"columns": ["note", "id"]}, {"columns": "note,id"}], ids=str
)
def test_rows_have_the_selected_columns(client, rows, query):
    named = [name for value in [query["columns"]] for part in ([value] if isinstance(value, str) else value)
             for name in part.split(",")]  # fmt: skip
    for row in client.get(rows, params=query).json()["rows"]:
        assert list(row) == named


def test_media_types_agree(client, rows):
    as_json = client.get(rows).json()["rows"]
    as_ndjson = client.get(rows, headers={"Accept": NDJSON})
    assert [json.loads(line) for line in as_ndjson.text.splitlines()] == as_json
    as_arrow = client.get(rows, headers={"Accept": ARROW}, params={"limit": 1})
    assert ipc.open_stream(io.BytesIO(as_arrow.content)).read_all().to_pylist() == as_json[:1]
    assert as_arrow.headers["headwater-version"] == "3"
    token = as_arrow.headers["headwater-next-page-token"]
    assert client.get(rows, params={"page_token": token}).json()["rows"] == as_json[1:]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"version": 4}, "/version"),
        ({"version": -1}, "/version"),
        ({"as_of": "yesterday"}, "/as_of"),
        ({"as_of": "2026-01-01T00:00:00"}, "/as_of"),
        ({"version": 1, "as_of": "2026-01-01T00:00:00Z"}, "/as_of"),
        ({"columns": "nope"}, "/columns"),
        ({"columns": ""}, "/columns"),
        ({"columns": "id,id"}, "/columns"),
        ({"limit": 0}, "/limit"),
        ({"page_token": "nonsense"}, "/page_token"),
        ({"filter": "id = 1"}, "/filter"),
    ],
    ids=str,
)
def test_invalid_parameter_is_named(client, rows, query, pointer):
    members = problem(client.get(rows, params=query), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == pointer


def test_timeline_lists_every_attempt_latest_first(client, rows, orders):
    client.post(f"{orders}/writes", json=upsert({"id": 9}))
    first = client.get(f"{orders}/timeline", params={"page_size": 3}).json()
    assert [item["state"] for item in first["items"]] == ["requested", "completed", "completed"]
    assert [item["version"] for item in first["items"]] == [None, 3, 2]
    second = client.get(
        f"{orders}/timeline", params={"page_size": 3, "page_token": first["next_page_token"]}
    ).json()
    assert [item["version"] for item in second["items"]] == [1]
    assert second["next_page_token"] is None
    assert second["items"][0]["rows"]["inserted"] == 1
    assert second["items"][0]["operation"] == "upsert"


def test_read_optimized_query_omits_rows_of_logs(client, service):
    fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
    definition = {
        "name": "logged",
        "schema": {"fields": fields},
        "record_key": ["id"],
        "table_type": "merge_on_read",
        "changelog": {"producer": "deferred"},
    }
    path = client.post("/datasets", json=definition).json()["links"]["self"]
    client.post(f"{path}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    client.post(f"{path}/compactions")
    service.work()
    client.post(f"{path}/writes", json=upsert({"id": 1, "note": "b"}, {"id": 2, "note": "c"}))
    service.work()
    fast = client.get(f"{path}/rows", params={"query_type": "read_optimized"}).json()
    assert by_id(fast) == [{"id": 1, "note": "a"}]
    assert by_id(client.get(f"{path}/rows").json()) == [{"id": 1, "note": "b"}, {"id": 2, "note": "c"}]
    unknown = client.get(f"{path}/rows", params={"query_type": "incremental"})
    problem(unknown, 400, "invalid-request")
