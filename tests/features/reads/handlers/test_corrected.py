"""Reads of an earlier version state whether later commits have corrected their rows."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from app.access.tenants.values import Grant, KeyScope
from app.features.retention.repository.feed import RetentionStore
from tests.support.http import ORDERS, upsert
from tests.support.service import Service
from tests.support.webhooks import tenant_of

HEADER = "headwater-corrected"


def write(client: httpx2.Client, service: Service, path: str, body: dict[str, Any]) -> None:
    answer = client.post(f"{path}/writes", json=body)
    assert answer.status_code == 202, answer.text
    service.work()


@pytest.fixture(params=["copy_on_write", "merge_on_read"])
def table(client: httpx2.Client, service: Service, request: pytest.FixtureRequest) -> str:
    """Version 1 has rows 1–4. Version 2 corrects row 1, version 3 deletes row 2, version 4 adds row 5."""
    answer = client.post("/datasets", json={**ORDERS, "table_type": request.param})
    assert answer.status_code == 201, answer.text
    path = str(answer.headers["location"])
    write(client, service, path, upsert(*({"id": number, "note": "a"} for number in range(1, 5))))
    write(client, service, path, upsert({"id": 1, "note": "b"}))
    write(client, service, path, {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}})
    write(client, service, path, upsert({"id": 5, "note": "a"}))
    return path


def hint(answer: httpx2.Response) -> bool | None:
    """What the header and the JSON object state: the same."""
    assert answer.status_code == 200, answer.text
    text = answer.headers.get(HEADER)
    stated = {"true": True, "false": False, None: None}[text]
    assert answer.json().get("corrected") is stated
    assert ("corrected" in answer.json()) == (text is not None)
    return stated


def rows(client: httpx2.Client, path: str, **params: Any) -> bool | None:
    return hint(client.get(f"{path}/rows", params=params))


def test_page_of_an_earlier_version_states_whether_its_rows_were_corrected(
    client: httpx2.Client, table: str
) -> None:
    assert rows(client, table, version=1) is True
    assert rows(client, table, version=1, where="id <= 1") is True
    assert rows(client, table, version=1, where="id = 2") is True
    assert rows(client, table, version=1, where="id >= 3") is False
    assert rows(client, table, version=1, where="id > 9") is False
    assert rows(client, table, version=0) is False
    # Row 1 is no longer corrected as of version 2, row 2 is.
    assert rows(client, table, version=2, where="id = 1") is False
    assert rows(client, table, version=2) is True
    assert rows(client, table, version=3) is False
    time = client.get(f"{table}/timeline").json()["items"][-1]["completed_at"]
    assert rows(client, table, as_of=time) is True
    assert rows(client, table, version=1, meta="true", corrected_since="true") is True


def test_latest_version_has_no_hint(client: httpx2.Client, table: str) -> None:
    for params in ({}, {"version": 4}, {"as_of": "2999-01-01T00:00:00Z"}, {"where": "id = 9"}):
        assert rows(client, table, **params) is None
    assert hint(client.get(f"{table}/rows/1")) is None


def test_hint_is_of_the_rows_of_the_page(client: httpx2.Client, table: str) -> None:
    found, token = [], None
    while token is not None or not found:
        params = {"version": 1, "limit": 1} | ({} if token is None else {"page_token": token})
        answer = client.get(f"{table}/rows", params=params)
        found += [(row["id"], hint(answer)) for row in answer.json()["rows"]]
        token = answer.json()["next_page_token"]
    assert sorted(found) == [(1, True), (2, True), (3, False), (4, False)]


def test_other_formats_have_the_header(client: httpx2.Client, table: str) -> None:
    for media_type in ("application/x-ndjson", "application/vnd.apache.arrow.stream"):
        answer = client.get(f"{table}/rows", params={"version": 1}, headers={"Accept": media_type})
        assert answer.headers[HEADER] == "true"


def test_lookups_state_it(client: httpx2.Client, table: str) -> None:
    found = {key: hint(client.get(f"{table}/rows/{key}", params={"version": 1})) for key in range(1, 5)}
    assert found == {1: True, 2: True, 3: False, 4: False}
    for keys, corrected in (((3, 1), True), ((3, 4, 9), False), ((9,), False)):
        body = {"keys": [{"id": key} for key in keys], "version": 1}
        assert hint(client.post(f"{table}/rows/lookup", json=body)) is corrected
    assert hint(client.post(f"{table}/rows/lookup", json={"keys": [{"id": 1}]})) is None
    history = client.get(f"{table}/rows/1", params={"version": 1, "history": "true"})
    assert hint(history) is True
    assert len(history.json()["changes"]) == 1


def test_read_job_of_an_earlier_version_states_it(
    client: httpx2.Client, service: Service, table: str
) -> None:
    def read(**query: Any) -> bool | None:
        answer = client.post(f"{table}/reads", json=query)
        assert answer.status_code == 202, answer.text
        service.work()
        job = answer.headers["location"]
        stated = hint(client.get(f"{job}/result"))
        assert client.get(job).json()["result"].get("corrected") is stated
        return stated

    assert read(version=1) is True
    assert read(version=1, disposition="files") is True
    assert read(version=3) is False
    assert read() is None
    assert read(version=4) is None
    # Where only some rows are read, no row of the table must have been corrected.
    assert read(version=3, where="id = 1") is False
    assert read(version=1, where="id = 1") is None
    assert read(version=1, limit=1) is None
    assert read(query="incremental", begin=0, end=1) is None
    assert read(query="incremental", begin=1, end=3) is False
    assert read(query="incremental", begin=0) is None


def test_feed_that_does_not_record_or_keep_corrections_gives_no_hint(
    client: httpx2.Client, service: Service, table: str
) -> None:
    body = {**ORDERS, "name": "input", "table_type": "merge_on_read", "changelog": {"producer": "input"}}
    path = client.post("/datasets", json=body).headers["location"]
    for note in "ab":
        write(client, service, path, upsert({"id": 1, "note": note}))
    assert rows(client, path, version=1) is None
    store, dataset, tenant = RetentionStore(service.database), client.get(table), tenant_of(client, service)
    retention = {"changelog": {"retention": {"changes": 1}}}
    changed = client.patch(table, json=retention, headers={"If-Match": dataset.headers["etag"]})
    assert changed.status_code == 200, changed.text
    store.cut(tenant, dataset.json()["id"], follower_lag_seconds=3600)
    assert rows(client, table, version=1) is None
    assert len(client.get(f"{table}/rows", params={"version": 1}).json()["rows"]) == 4
    assert hint(client.get(f"{table}/rows/1", params={"version": 1})) is None


@pytest.mark.parametrize(("bound", "value"), [("CHECKED_FILES_MAX", 1), ("CHECKED_ROWS_MAX", 3)])
def test_hint_is_absent_where_it_would_cost_too_much(
    client: httpx2.Client,
    service: Service,
    orders: str,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    value: int,
) -> None:
    write(client, service, orders, upsert(*({"id": number, "note": "a"} for number in range(1, 7))))
    for number in (3, 4):
        write(client, service, orders, upsert({"id": number, "note": "b"}))
    first_and_last = {"version": 1, "where": "id = 1 OR id = 6"}
    assert rows(client, orders, **first_and_last) is False
    monkeypatch.setattr(f"app.core.changes.service.read_corrections.{bound}", value)
    assert rows(client, orders, **first_and_last) is None
    assert len(client.get(f"{orders}/rows", params=first_and_last).json()["rows"]) == 2
    # One that is found settles it.
    assert rows(client, orders, version=1) is True


def test_hint_is_of_the_visible_rows_only(client: httpx2.Client, service: Service, table: str) -> None:
    tenant = tenant_of(client, service)
    for where, corrected in (("id >= 3", False), ("id <= 1", True)):
        grants = (Grant(datasets="*", scopes=(KeyScope.READ,), where=where),)
        key = service.tenants.make_key(tenant, (KeyScope.READ,), grants=grants).api_key
        with service.client(key) as reader:
            assert rows(reader, table, version=1) is corrected
            body = {"keys": [{"id": 1}, {"id": 2}, {"id": 3}], "version": 1}
            assert hint(reader.post(f"{table}/rows/lookup", json=body)) is corrected
            answer = reader.post(f"{table}/reads", json={"version": 1})
            service.work()
            assert hint(reader.get(f"{answer.headers['location']}/result")) is None
