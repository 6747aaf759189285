"""Sources of another dataset's changes: pipelines from dataset to dataset."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.support.http import ORDERS, problem, upsert
from tests.support.schema_changes import change
from tests.support.sources import Incoming, notes


@pytest.fixture
def copy(incoming: Incoming, orders: str) -> Incoming:
    """`orders` with two rows, one of them corrected, and a dataset of the same columns without rows."""
    _write(incoming, upsert({"id": 1, "note": "a"}, {"id": 2, "note": "b"}))
    _write(incoming, upsert({"id": 1, "note": "changed"}))
    incoming.client.post("/datasets", json=ORDERS | {"name": "copy"})
    return incoming


def _write(incoming: Incoming, body: dict[str, Any]) -> None:
    answer = incoming.client.post("/datasets/orders/writes", json=body)
    assert answer.status_code == 202, answer.text
    incoming.service.work()


def _register(incoming: Incoming, **members: Any) -> httpx2.Response:
    config = {"dataset": "orders", **members.pop("config", {})}
    body = {"name": "chain", "dataset": "copy", "kind": "dataset", "config": config, "mode": "continuous"}
    return incoming.client.post("/sources", json={**body, **members})


def _read_on(incoming: Incoming, path: str) -> dict[str, Any]:
    incoming.client.patch(path, json={"state": "active"})
    return incoming.run(path)


def test_changes_are_applied_in_order_deletions_too(copy: Incoming) -> None:
    path = _register(copy).headers["location"]
    copy.run(path)
    source = _read_on(copy, path)
    assert (source["position"], source["lag"]) == (
        {"offset": 4},
        {"rows": 0, "seconds": 0.0},
    )
    assert notes(copy.rows("copy")) == {1: "changed", 2: "b"}
    _write(copy, {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}})
    assert _read_on(copy, path)["position"] == {"offset": 5}
    assert notes(copy.rows("copy")) == {1: "changed"}


def test_order_of_changes_is_that_of_the_source(copy: Incoming) -> None:
    orders = {}
    for number, members in enumerate(({}, {"order": "ordering_field"}, {"order": "arrival"})):
        copy.client.post("/datasets", json=ORDERS | {"name": f"copy-{number}"})
        answer = _register(copy, name=f"chain-{number}", dataset=f"copy-{number}", **members)
        assert answer.status_code == 201, answer.text
        assert answer.json()["order"] == members.get("order")
        copy.run(answer.headers["location"])
        items = copy.client.get(f"/datasets/copy-{number}/timeline").json()["items"]
        orders[number] = {item["parameters"].get("order") for item in items}
        assert notes(copy.rows(f"copy-{number}")) == {1: "changed", 2: "b"}
    assert orders == {0: {None}, 1: {"ordering_field"}, 2: {"arrival"}}


@pytest.mark.parametrize("members", [{"operation": "upsert"}, {"filter_duplicates": True}])
def test_order_of_a_source_that_writes_no_changes_is_refused(copy: Incoming, members: dict[str, Any]) -> None:
    answer = _register(copy, order="arrival", **members)
    assert problem(answer, 422, "invalid-source")["errors"][0]["pointer"] == "/order"


def test_changes_of_a_dataset_without_a_key_are_applied_row_by_row(copy: Incoming) -> None:
    for name in ("log", "log-copy"):
        copy.client.post("/datasets", json=ORDERS | {"name": name, "record_key": []})
    path = _register(copy, dataset="log-copy", config={"dataset": "log"}).headers["location"]
    for notes_now in (["a", "a", "b"], ["a", "c"], ["c", "c"]):
        rows = [{"id": 1, "note": note} for note in notes_now]
        body = {"operation": "snapshot", "source": {"kind": "rows", "rows": rows}}
        copy.client.post("/datasets/log/writes", json=body)
        copy.service.work()
        source = _read_on(copy, path)
        assert source["last_error"] is None
        assert sorted(row["note"] for row in copy.rows("log-copy")) == notes_now


def test_rounds_are_bounded_and_never_split_a_correction(copy: Incoming) -> None:
    path = _register(copy, max_rows=1).headers["location"]
    assert copy.run(path)["position"] == {"offset": 4}
    assert [job["result"]["position"]["offset"] for job in copy.jobs("copy")] == [1, 2, 4]
    assert notes(copy.rows("copy")) == {1: "changed", 2: "b"}


def test_source_that_starts_with_the_latest_change_misses_none_after_it(copy: Incoming) -> None:
    path = _register(copy, config={"start": "latest"}).headers["location"]
    assert copy.run(path)["position"] == {"offset": 4}
    assert copy.rows("copy") == []
    _write(copy, upsert({"id": 3, "note": "c"}))
    _read_on(copy, path)
    assert notes(copy.rows("copy")) == {3: "c"}


def test_source_starts_at_a_version_a_time_or_an_offset(copy: Incoming) -> None:
    items = copy.client.get("/datasets/orders/timeline").json()["items"]
    [second] = [item["completed_at"] for item in items if item["version"] == 2]
    starts = ({"version": 2}, {"time": second}, {"offset": 2})
    for number, start in enumerate(starts):
        copy.client.post("/datasets", json=ORDERS | {"name": f"from-{number}"})
        members = {"name": f"start-{number}", "dataset": f"from-{number}", "config": {"start": start}}
        source = copy.run(_register(copy, **members).headers["location"])
        assert (source["last_error"], source["position"]) == (None, {"offset": 4})
        assert notes(copy.rows(f"from-{number}")) == {1: "changed"}


def test_start_that_the_feed_does_not_have_fails_the_source(copy: Incoming) -> None:
    path = _register(copy, config={"start": {"version": 9}}).headers["location"]
    source = copy.run(path)
    assert (source["state"], source["last_error"]["type"]) == ("failed", "/problems/offset-ahead")


@pytest.mark.parametrize(
    "start", [{}, {"version": 1, "offset": 2}, {"version": -1}, {"time": "2026-11-25T10:00:00"}]
)
def test_invalid_start_is_refused(copy: Incoming, start: dict[str, Any]) -> None:
    found = problem(_register(copy, config={"start": start}), 400, "invalid-request")
    assert found["errors"][0]["pointer"].startswith("/config/start")


def test_lag_has_the_age_of_the_oldest_change_that_was_not_read(copy: Incoming) -> None:
    path = _register(copy).headers["location"]
    copy.plan(path)
    first = copy.found(path)["lag"]
    assert (first["rows"], first["seconds"] > 0) == (4, True)
    time.sleep(0.1)
    copy.client.patch(path, json={"state": "active"})
    copy.plan(path)
    assert copy.found(path)["lag"]["seconds"] >= first["seconds"] + 0.1
    copy.run(path)
    assert _read_on(copy, path)["lag"] == {"rows": 0, "seconds": 0.0}


def test_rows_of_changes_are_appended(copy: Incoming) -> None:
    copy.client.post("/datasets", json=ORDERS | {"name": "log", "record_key": []})
    config = {"form": "rows", "where": "id = 1"}
    copy.run(_register(copy, dataset="log", config=config).headers["location"])
    assert [row["note"] for row in copy.rows("log")] == ["a", "changed"]


def test_position_is_moved_on_request(copy: Incoming) -> None:
    path = _register(copy).headers["location"]
    copy.run(path)
    copy.client.patch(path, json={"position": {"offset": 2}, "state": "active"})
    assert copy.run(path)["position"] == {"offset": 4}
    for offset in ("x", True, -1, 10**26):
        refused = problem(
            copy.client.patch(path, json={"position": {"offset": offset}}), 422, "invalid-source"
        )
        assert refused["errors"][0]["pointer"] == "/position/offset"
    copy.client.patch(path, json={"position": {"offset": 99}, "state": "active"})
    assert copy.run(path)["last_error"]["type"] == "/problems/offset-ahead"


def test_source_fails_when_the_dataset_that_it_reads_is_deleted(copy: Incoming) -> None:
    path = _register(copy).headers["location"]
    copy.run(path)
    assert copy.client.delete("/datasets/orders").status_code == 204
    source = _read_on(copy, path)
    assert source["state"] == "failed"
    assert "deleted" in source["last_error"]["detail"]


def test_invalid_source_of_changes_is_refused(copy: Incoming) -> None:
    problem(_register(copy, config={"dataset": "absent"}), 404, "not-found")
    problem(_register(copy, dataset="orders"), 422, "invalid-source")
    problem(_register(copy, config={"where": "nonsense ="}), 400, "invalid-filter")
    problem(_register(copy, config={"columns": ["absent"]}), 400, "invalid-request")
    problem(_register(copy, config={"dataset_id": "x"}), 400, "invalid-request")


def test_cycle_is_refused_with_its_datasets(copy: Incoming) -> None:
    _register(copy)
    view = {"name": "recent", "sql": "SELECT id, note FROM copy", "record_key": ["id"]}
    assert copy.client.post("/views", json=view).status_code == 201
    for read, path in (("copy", "copy → orders → copy"), ("recent", "recent → orders → copy → recent")):
        config = {"dataset": read, "form": "rows"}
        refused = problem(
            _register(copy, name="back", dataset="orders", config=config), 422, "invalid-source"
        )
        assert refused["errors"][0]["pointer"] == "/config/dataset"
        assert path in refused["detail"]


def test_one_of_two_sources_that_would_make_a_cycle_is_registered(copy: Incoming) -> None:
    def register(number: int) -> int:
        read, written = ("orders", "copy") if number % 2 else ("copy", "orders")
        answer = _register(copy, name=f"n{number}", dataset=written, config={"dataset": read})
        return answer.status_code if number % 2 else -answer.status_code

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(register, range(8)))
    assert sorted(map(abs, found)) == [201] * 4 + [422] * 4
    assert abs(sum(found)) == 4 * (422 - 201)


def test_source_does_not_close_a_cycle_with_the_dataset_that_it_registers(copy: Incoming) -> None:
    """The dataset of the first source is made by somebody else, before it has read a row."""
    later = _register(
        copy, name="later", dataset="made", config={"where": "id = 99"}, create={"record_key": ["id"]}
    )
    assert later.status_code == 201, later.text
    copy.client.post("/datasets", json=ORDERS | {"name": "made"})
    refused = problem(
        _register(copy, name="back", dataset="orders", config={"dataset": "made"}), 422, "invalid-source"
    )
    assert "made → orders → made" in refused["detail"]


def test_source_fails_if_the_dataset_that_it_finds_closes_a_cycle(copy: Incoming) -> None:
    path = _register(copy, dataset="made", create={"record_key": ["id"]}).headers["location"]
    etag = copy.client.get("/datasets/orders").headers["etag"]
    renamed = copy.client.patch("/datasets/orders", json={"name": "made"}, headers={"If-Match": etag})
    assert renamed.status_code == 200, renamed.text
    source = copy.run(path)
    assert (source["state"], source["last_error"]["type"]) == ("failed", "/problems/invalid-source")
    assert "made → made" in source["last_error"]["detail"]


def test_input_must_be_granted_whole(copy: Incoming) -> None:
    for grants in (
        [{"datasets": "copy"}],
        [{"datasets": "copy"}, {"datasets": "orders", "scopes": ["read"], "where": "id = 1"}],
    ):
        scopes = ["read", "write", "manage"]
        made = copy.client.post("/keys", json={"name": "part", "scopes": scopes, "grants": grants})
        assert made.status_code == 201, made.text
        with copy.service.client(made.json()["api_key"]) as client:
            partial = Incoming(folder=copy.folder, client=client, service=copy.service)
            assert _register(partial).status_code in (403, 404)


TYPED = [
    {"name": "id", "type": "int16", "nullable": False, "doc": "The number."},
    {"name": "price", "type": "decimal(12, 2)", "nullable": False},
    {"name": "day", "type": "date"},
    {"name": "at", "type": "timestamp"},
    {"name": "local", "type": "timestamp_ntz"},
    {"name": "raw", "type": "binary"},
    {"name": "small", "type": "int8"},
    {"name": "ratio", "type": "float"},
    {"name": "tags", "type": "map<string, int32>"},
    {"name": "place", "type": "struct<city: string, floor: int8>"},
    {"name": "key", "type": "uuid"},
]
TYPED_ROW = {
    "id": 1,
    "price": "10.50",
    "day": "2026-11-21",
    "at": "2026-11-21T10:00:00.000001Z",
    "local": "2026-11-21T10:00:00",
    "raw": "AP8=",
    "small": 7,
    "ratio": 0.5,
    "tags": {"a": 1},
    "place": {"city": "x", "floor": 2},
    "key": "0b6e6ad0-94c1-4f0e-9c1c-2f0f6d2f9c11",
}
PRICE = {"id": 2, "price": "1.00"}


@pytest.fixture
def typed(incoming: Incoming) -> Incoming:
    """A dataset `typed` with a column of each type, and no rows."""
    new = {"name": "typed", "schema": {"fields": TYPED}, "record_key": ["id"], "ordering_field": "at"}
    incoming.client.post("/datasets", json=new).raise_for_status()
    return incoming


def _typed(incoming: Incoming, body: dict[str, Any]) -> None:
    incoming.client.post("/datasets/typed/writes", json=body).raise_for_status()
    incoming.service.work()


def _fields(incoming: Incoming, dataset: str) -> list[dict[str, Any]]:
    """The fields but for their ids."""
    schema = incoming.client.get(f"/datasets/{dataset}").json()["schema"]
    return [{name: value for name, value in field.items() if name != "id"} for field in schema["fields"]]


@pytest.mark.parametrize("form", ["changes", "rows"])
@pytest.mark.parametrize("filled", ["before", "afterwards"])
def test_registered_dataset_has_the_columns_of_the_one_that_is_read(
    typed: Incoming, form: str, filled: str
) -> None:
    if filled == "before":
        _typed(typed, upsert(TYPED_ROW))
    create = {"record_key": ["id"], "ordering_field": "at"}
    members = {"dataset": "fresh", "create": create, "config": {"dataset": "typed", "form": form}}
    path = _register(typed, **members).headers["location"]
    assert typed.run(path)["last_error"] is None
    assert _fields(typed, "fresh") == _fields(typed, "typed")
    dataset = typed.client.get("/datasets/fresh").json()
    assert (dataset["record_key"], dataset["ordering_field"]) == (["id"], "at")
    _typed(typed, upsert(TYPED_ROW, PRICE))
    _typed(typed, {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}})
    assert _read_on(typed, path)["last_error"] is None
    kept = [dict.fromkeys(TYPED_ROW) | PRICE] if form == "rows" else []
    assert typed.rows("fresh") == sorted([TYPED_ROW, *kept], key=repr)


def test_registered_dataset_has_the_selected_columns(typed: Incoming) -> None:
    members = {"create": {"record_key": ["id"]}, "config": {"dataset": "typed", "columns": ["id", "price"]}}
    path = _register(typed, dataset="fresh", **members).headers["location"]
    _typed(typed, upsert(TYPED_ROW))
    assert typed.run(path)["last_error"] is None
    assert [field["name"] for field in _fields(typed, "fresh")] == ["id", "price"]
    assert typed.rows("fresh") == [{"id": 1, "price": "10.50"}]


def test_columns_that_are_added_later_keep_their_types(typed: Incoming) -> None:
    create = {"record_key": ["id"]}
    members = {"dataset": "fresh", "create": create, "merge_schema": True, "config": {"dataset": "typed"}}
    path = _register(typed, **members).headers["location"]
    typed.run(path)
    added = {"kind": "add", "field": {"name": "weight", "type": "decimal(9, 3)"}}
    assert change(typed.client, "/datasets/typed", added).status_code == 200
    _typed(typed, upsert({**TYPED_ROW, "weight": "1.500"}))
    assert _read_on(typed, path)["last_error"] is None
    assert _fields(typed, "fresh") == _fields(typed, "typed")
