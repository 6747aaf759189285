"""Small pages of the table, and rows by key."""

import io
import json
from datetime import UTC, datetime
from urllib.parse import quote

import pyarrow.ipc as ipc
import pytest

from tests.support.http import problem, upsert

NDJSON = "application/x-ndjson"
CSV = "text/csv"
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


def test_rows_come_in_the_requested_order_page_after_page(client, rows):
    query = {"order_by": "note:desc", "limit": 1}
    first = client.get(rows, params=query).json()
    assert first["rows"] == [{"id": 2, "note": "c"}]
    second = client.get(rows, params={**query, "page_token": first["next_page_token"]}).json()
    assert (second["rows"], second["next_page_token"]) == ([{"id": 1, "note": "b"}], None)
    assert client.get(rows, params={"order_by": ["note", "id:desc"]}).json()["rows"][0]["id"] == 1


def test_csv_differs_null_from_empty_text(client, orders, service):
    written = [{"id": 1, "note": None}, {"id": 2, "note": ""}, {"id": 3, "note": '=1+"2",\n'}]
    client.post(f"{orders}/writes", json=upsert(*written))
    service.work()
    query = {"order_by": "id", "limit": 2}
    page = client.get(f"{orders}/rows", params=query, headers={"Accept": CSV})
    assert page.headers["content-type"].startswith(CSV)
    assert page.text == '"id","note"\n1,\n2,""\n'
    token = page.headers["headwater-next-page-token"]
    page = client.get(f"{orders}/rows", params={**query, "page_token": token}, headers={"Accept": CSV})
    assert page.text == '"id","note"\n3,"=1+""2"",\n"\n'
    assert "headwater-next-page-token" not in page.headers
    none = client.get(f"{orders}/rows", params={"where": "id = 9"}, headers={"Accept": CSV})
    assert none.text == '"id","note"\n'


def test_order_that_needs_too_much_is_refused(client, rows, monkeypatch):
    monkeypatch.setattr("app.infra.files.slices.ordered_walk.ROWS_MAX", 1)
    members = problem(client.get(rows, params={"order_by": "note"}), 409, "order-too-large")
    assert members["rows_max"] == 1
    assert "POST …/reads" in members["detail"]


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
        ({"order_by": "nope:desc"}, "/order_by"),
        ({"order_by": "id,id:desc"}, "/order_by"),
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


# Rows by key


FIELDS = [
    {"name": "shop", "type": "string"},
    {"name": "number", "type": "int64"},
    {"name": "day", "type": "date"},
    {"name": "price", "type": "decimal(8,2)"},
]


@pytest.fixture
def orders_of_three_versions(client, orders, service):
    """The path of a table whose first row was corrected and whose third was deleted."""
    writes = [
        upsert({"id": 1, "note": "a"}, {"id": 3, "note": "c"}),
        upsert({"id": 1, "note": "b"}, {"id": 2, "note": None}),
        {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 3}]}},
    ]
    for body in writes:
        client.post(f"{orders}/writes", json=body)
        service.work()
    assert client.get(orders).json()["version"] == 3
    return orders


def test_row_is_found_by_its_key_at_any_version(client, orders_of_three_versions):
    path = f"{orders_of_three_versions}/rows"
    answer = client.get(f"{path}/1")
    changes = client.get(f"{orders_of_three_versions}/changes").json()["changes"]
    (last,) = [each for each in changes if each["op"] == "+C"]
    assert answer.json() == {"row": {"id": 1, "note": "b"}, "version": 2, "offset": last["offset"]}
    assert answer.headers["headwater-version"] == "3"
    first = client.get(f"{path}/1", params={"version": 1}).json()
    assert (first["row"], first["version"]) == ({"id": 1, "note": "a"}, 1)
    assert client.get(f"{path}/2", params={"columns": "note"}).json()["row"] == {"note": None}
    assert client.get(f"{path}/3", params={"version": 2}).json()["row"] == {"id": 3, "note": "c"}


def test_key_without_a_row_is_not_found(client, orders_of_three_versions):
    path = f"{orders_of_three_versions}/rows"
    assert problem(client.get(f"{path}/3"), 404, "row-not-found")["version"] == 3
    assert problem(client.get(f"{path}/1", params={"version": 0}), 404, "row-not-found")["version"] == 0
    problem(client.get(f"{path}/x"), 422, "schema-mismatch")
    problem(client.get(f"{path}/1,2"), 422, "schema-mismatch")


def test_history_has_the_changes_of_a_key_with_or_without_a_row(client, orders_of_three_versions):
    path = f"{orders_of_three_versions}/rows"
    changes = client.get(f"{orders_of_three_versions}/changes").json()["changes"]
    for key, row in ((1, {"id": 1, "note": "b"}), (3, None), (9, None)):
        found = client.get(f"{path}/{key}", params={"history": True}).json()
        assert found["row"] == row
        assert found["changes"] == [each for each in changes if each["row"]["id"] == key]
        assert found["complete"]
    earlier = client.get(f"{path}/3", params={"history": True, "version": 2}).json()
    assert [each["op"] for each in earlier["changes"]] == ["+A"]
    page = client.get(f"{path}/1", params={"history": True, "limit": 1}).json()
    assert ([each["op"] for each in page["changes"]], page["complete"]) == (["+A"], False)
    rest = client.get(f"{path}/1", params={"history": True, "since": page["next_since"]}).json()
    assert [each["op"] for each in rest["changes"]] == ["-C", "+C"]


def test_values_of_a_composite_key_are_encoded_one_by_one(client, service):
    body = {"name": "sales", "schema": {"fields": FIELDS}, "record_key": ["shop", "number", "day"]}
    path = client.post("/datasets", json=body).headers["location"]
    rows = [
        {"shop": shop, "number": number, "day": "2026-11-21", "price": "1.50"}
        for number, shop in enumerate(("Ulm", "Ulm, West", "a/b?c=%2C", "", "lookup", "ü'\""))
    ]
    client.post(f"{path}/writes", json=upsert(*rows))
    service.work()
    for row in rows:
        key = ",".join(quote(str(row[name]), safe="") for name in ("shop", "number", "day"))
        answer = client.get(f"{path}/rows/{key}", params={"history": True})
        assert answer.status_code == 200, answer.text
        assert answer.json()["row"] == row
        assert [each["row"] for each in answer.json()["changes"]] == [row]
    problem(client.get(f"{path}/rows/Ulm,1"), 400, "invalid-request")


def test_many_keys_are_read_at_one_version(client, orders_of_three_versions):
    path = f"{orders_of_three_versions}/rows/lookup"
    answer = client.post(path, json={"keys": [{"id": 2}, {"id": 9}, {"id": 1}], "version": 2})
    found = answer.json()
    assert [(item["key"], item["row"]) for item in found["items"]] == [
        ({"id": 2}, {"id": 2, "note": None}),
        ({"id": 9}, None),
        ({"id": 1}, {"id": 1, "note": "b"}),
    ]
    assert [item["version"] for item in found["items"]] == [2, None, 2]
    assert (found["version"], found["schema_id"]) == (2, 1)
    problem(client.post(path, json={"keys": []}), 400, "invalid-request")
    problem(client.post(path, json={"keys": [{"id": 1, "other": 2}]}), 422, "schema-mismatch")


def test_table_without_a_key_has_no_lookup(client, events):
    problem(client.get(f"{events}/rows/1"), 400, "invalid-request")
    problem(client.post(f"{events}/rows/lookup", json={"keys": [{"at": 1}]}), 400, "invalid-request")


def test_conditions_have_every_character_of_a_string(client, orders, service):
    note = "a\0b"
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": note}, {"id": 2, "note": "ab"}))
    service.work()
    where = f"note = '{note}'"
    assert by_id(client.get(f"{orders}/rows", params={"where": where}).json()) == [{"id": 1, "note": note}]
    changes = client.get(f"{orders}/changes", params={"where": where}).json()["changes"]
    assert [change["row"]["id"] for change in changes] == [1]
    first = client.get(f"{orders}/rows", params={"where": f"note = 'ab' OR {where}", "limit": 1}).json()
    again = client.get(
        f"{orders}/rows",
        params={"where": f"note = 'ab' OR {where}", "limit": 1, "page_token": first["next_page_token"]},
    ).json()
    assert sorted(row["id"] for row in first["rows"] + again["rows"]) == [1, 2]
    job = client.post(f"{orders}/reads", json={"where": where})
    assert job.status_code == 202, job.text
    service.work()
    assert client.get(f"{job.headers['location']}/result").json()["rows"] == [{"id": 1, "note": note}]
    deleted = client.post(f"{orders}/writes", json={"operation": "delete", "where": where})
    assert deleted.status_code == 202, deleted.text
    service.work()
    assert [row["id"] for row in client.get(f"{orders}/rows").json()["rows"]] == [2]
