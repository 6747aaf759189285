"""What the feed, its exports and webhooks, and reads give, written into a second dataset: equal rows."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from app.kernel.changelog.delivery_forms import ChangeForm
from tests.support.exports import contents, exported
from tests.support.service import Service

TYPES = {
    "flag": ("boolean", True),
    "small": ("int8", -128),
    "whole": ("int64", 2**63 - 1),
    "unsigned": ("uint32", 2**32 - 1),
    "single": ("float", 0.1),
    "real": ("double", -1e300),
    "exact": ("decimal(38, 10)", "-1.0000000001"),
    "text": ("string", "a,\"b'\nzoë"),
    "octets": ("binary", "AP+Q"),
    "day": ("date", "0001-01-01"),
    "id2": ("uuid", "0190163d-8694-739b-aea5-966c26f8ad91"),
    "at": ("timestamp", "2026-11-21T10:00:00.000001Z"),
    "at_ms": ("timestamp(ms)", "1969-12-31T23:59:59.999Z"),
    "wall": ("timestamp_ntz", "2026-11-21T10:00:00"),
    "prices": ("list<decimal(9, 2)>", ["1.50", None]),
    "seen": ("map<int32, timestamp>", {"-2": None, "1": "2026-11-21T10:00:00Z"}),
    "place": ("struct<a: uuid, `b c`: list<binary>>", {"a": None, "b c": ["/w=="]}),
    # Names that the feed uses itself.
    "op": ("string", "+A"),
    "version": ("int32", 7),
}
DATASET: dict[str, Any] = {
    "record_key": ["id"],
    "event_time_field": "at",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            *({"name": name, "type": text} for name, (text, _) in TYPES.items()),
        ]
    },
}
FULL = {name: value for name, (_, value) in TYPES.items()}
MEDIA_TYPES = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
    "arrow_file": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
}


@pytest.fixture(scope="module")
def original(service: Service) -> Any:
    """A client, and the path of a dataset whose rows were added, changed and removed."""
    with service.client(service.new_key("copies")) as client:
        path = register(client, "original")
        write(client, service, path, "upsert", {"id": 1, **FULL}, {"id": 2}, {"id": 3, **FULL}, {"id": 4})
        write(client, service, path, "upsert", {"id": 1, "text": ""}, {"id": 2, **FULL})
        write(client, service, path, "delete", {"id": 3})
        yield client, path


def register(client: httpx2.Client, name: str, **more: Any) -> str:
    answer = client.post("/datasets", json={"name": name, **DATASET, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


def write(client: httpx2.Client, service: Service, path: str, operation: str, *rows: Any) -> None:
    body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}}
    ended(client, service, client.post(f"{path}/writes", json=body))


def ended(client: httpx2.Client, service: Service, answer: httpx2.Response) -> None:
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["location"]).json()
    assert job["state"] == "succeeded", job


def send(
    client: httpx2.Client, service: Service, path: str, operation: str, media_type: str, body: bytes
) -> None:
    target, headers = f"{path}/writes?operation={operation}", {"Content-Type": media_type}
    ended(client, service, client.post(target, content=body, headers=headers))


def rows(client: httpx2.Client, path: str) -> list[Any]:
    answer = client.get(f"{path}/rows")
    assert answer.status_code == 200, answer.text
    return sorted(answer.json()["rows"], key=lambda row: row["id"])


@pytest.mark.parametrize("form", [form.value for form in ChangeForm])
def test_feed_written_as_changes_gives_equal_rows(original: Any, service: Service, form: str) -> None:
    client, path = original
    expected = rows(client, path)
    assert [row["id"] for row in expected] == [1, 2, 4]
    target = register(client, f"copy-{form}", changelog={"vocabulary": {"version": "commit"}})
    page = client.get(f"{path}/changes", params={"form": form}).json()["changes"]
    write(client, service, target, "changelog", *page)
    assert rows(client, target) == expected, "json"
    for format_ in ("ndjson", "arrow"):
        write(client, service, target, "snapshot")
        media_type = MEDIA_TYPES[format_]
        answer = client.get(f"{path}/changes", params={"form": form}, headers={"Accept": media_type})
        send(client, service, target, "changelog", media_type, answer.content)
        assert rows(client, target) == expected, format_
    for format_ in ("ndjson", "csv", "arrow", "parquet"):
        write(client, service, target, "snapshot")
        run = exported(client, service, path, query="changes", form=form, format=format_)
        media_type = MEDIA_TYPES["arrow_file" if format_ == "arrow" else format_]
        for content in contents(client, run):
            send(client, service, target, "changelog", media_type, content)
        assert rows(client, target) == expected, f"export as {format_}"


def test_feed_that_starts_with_the_table_is_written_as_changes(original: Any, service: Service) -> None:
    client, path = original
    target = register(client, "copy-snapshot")
    arrow = MEDIA_TYPES["arrow"]
    answer = client.get(f"{path}/changes?since=snapshot", headers={"Accept": arrow})
    send(client, service, target, "changelog", arrow, answer.content)
    assert rows(client, target) == rows(client, path)


@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_rows_of_reads_are_written_as_rows(original: Any, service: Service, operation: str) -> None:
    client, path = original
    expected = rows(client, path)
    target = register(client, f"rows-{operation}")
    query = {"meta": "true", "version": 3, "corrected_since": "true"}
    page = client.get(f"{path}/rows", params=query).json()["rows"]
    assert "_hw_commit_time" in page[0]
    write(client, service, target, operation, *page)
    assert rows(client, target) == expected, "json"
    for format_ in ("ndjson", "arrow"):
        write(client, service, target, "snapshot")
        media_type = MEDIA_TYPES[format_]
        answer = client.get(f"{path}/rows", params=query, headers={"Accept": media_type})
        send(client, service, target, operation, media_type, answer.content)
        assert rows(client, target) == expected, format_
    for format_ in ("ndjson", "csv", "arrow", "parquet"):
        write(client, service, target, "snapshot")
        run = exported(client, service, path, query="incremental", meta=True, format=format_)
        media_type = MEDIA_TYPES["arrow_file" if format_ == "arrow" else format_]
        for content in contents(client, run):
            send(client, service, target, operation, media_type, content)
        assert rows(client, target) == expected, f"export as {format_}"


def test_rows_with_meta_columns_register_a_dataset_of_their_columns(original: Any, service: Service) -> None:
    client, path = original
    arrow = MEDIA_TYPES["arrow"]
    answer = client.get(f"{path}/rows?meta=true", headers={"Accept": arrow})
    target = "/datasets/rows-created"
    query = "operation=upsert&create=true&record_key=id"
    written = client.post(f"{target}/writes?{query}", content=answer.content, headers={"Content-Type": arrow})
    ended(client, service, written)
    assert rows(client, target) == rows(client, path)
    text = client.get(
        f"{path}/rows?meta=true&columns=id,text", headers={"Accept": MEDIA_TYPES["ndjson"]}
    ).content
    target = "/datasets/texts-created"
    written = client.post(
        f"{target}/writes?{query}", content=text, headers={"Content-Type": MEDIA_TYPES["ndjson"]}
    )
    ended(client, service, written)
    fields = client.get(target).json()["schema"]["fields"]
    assert [field["name"] for field in fields] == ["id", "text"]


def test_column_named_like_a_system_column_stays_a_column(original: Any, service: Service) -> None:
    client, _ = original
    target = register(client, "namesake")
    body = b"_hw_op,_hw_version,offset,id,op,version\n+A,5,9,1,mine,6\n"
    send(client, service, target, "changelog", "text/csv", body)
    [row] = rows(client, target)
    assert (row["op"], row["version"]) == ("mine", 6)


def test_change_with_an_unknown_column_is_refused(original: Any) -> None:
    client, path = original
    body = json.dumps({"op": "+A", "row": {"id": 1}, "offsets": 3}).encode()
    answer = client.post(
        f"{path}/writes?operation=changelog", content=body, headers={"Content-Type": MEDIA_TYPES["ndjson"]}
    )
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "mode", [{"merge_mode": "first"}, {"merge_mode": "aggregate", "aggregates": {"whole": "sum"}}], ids=str
)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_copy_equals_its_original_under_merge_modes_that_cannot_undo_changes(
    client: httpx2.Client, service: Service, mode: dict[str, Any], table_type: str
) -> None:
    fields = [{"name": "id", "type": "int64"}, {"name": "whole", "type": "int64"}]
    kept = {"record_key": ["id"], "schema": {"fields": fields}}
    path, target = (
        str(client.post("/datasets", json={"name": name, **kept, **more}).headers["location"])
        for name, more in (("facts", {}), ("facts-copy", {**mode, "table_type": table_type}))
    )
    write(client, service, path, "upsert", {"id": 1, "whole": 5}, {"id": 2, "whole": 7})
    write(client, service, path, "upsert", {"id": 1, "whole": 3}, {"id": 3, "whole": None})
    write(client, service, path, "delete", {"id": 2})
    changes = client.get(f"{path}/changes").json()["changes"]
    write(client, service, target, "changelog", *changes[:3])
    write(client, service, target, "changelog", *changes[3:])
    assert rows(client, target) == rows(client, path) == [{"id": 1, "whole": 3}, {"id": 3, "whole": None}]
    body = {"operation": "changelog", "order": "ordering_field", "source": {"kind": "rows", "rows": changes}}
    answer = client.post(f"{target}/writes", json=body)
    assert answer.status_code == 400, answer.text
    assert "order arrival" in answer.json()["errors"][0]["detail"]


def test_correction_that_lowers_the_ordering_value_is_copied(client: httpx2.Client, service: Service) -> None:
    fields = [{"name": "id", "type": "int64"}, {"name": "ts", "type": "int64"}]
    kept = {"record_key": ["id"], "ordering_field": "ts", "schema": {"fields": fields}}
    path, target = (
        str(client.post("/datasets", json={"name": name, **kept}).headers["location"])
        for name in ("ordered", "ordered-copy")
    )
    write(client, service, path, "upsert", {"id": 1, "ts": 12}, {"id": 2, "ts": 12})
    write(client, service, path, "snapshot", {"id": 1, "ts": 9})
    write(client, service, path, "insert", {"id": 2, "ts": 3})
    for change in client.get(f"{path}/changes").json()["changes"]:
        write(client, service, target, "changelog", change)
    assert rows(client, target) == rows(client, path)
    assert rows(client, path)[0] == {"id": 1, "ts": 9}
