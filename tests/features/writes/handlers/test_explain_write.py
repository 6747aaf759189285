"""Explaining writes over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.http import ORDERS, problem, upsert
from tests.support.service import Service
from tests.support.versioned_tables import KINDS, registration_of


@pytest.fixture
def written(client: httpx2.Client, orders: str, service: Service) -> str:
    """The path of a table of two versions."""
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}, {"id": 2, "note": "b"}))
    service.work()
    client.post(f"{orders}/writes", json=upsert({"id": 2, "note": "c"}))
    service.work()
    return orders


def keys_of(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    keys = [key for group in answer.json()["file_groups"] for key in group["keys"]]
    return sorted(keys, key=lambda key: key["row"])


def test_explanation_marks_keys_as_live_or_new(client: httpx2.Client, written: str) -> None:
    answer = client.get(f"{written}/explanations", params={"key": ['{"id": 2}', '{"id": 77}', '{"id": 1}']})
    two, new, one = keys_of(answer)
    assert [key["key"] for key in (two, new, one)] == [{"id": 2}, {"id": 77}, {"id": 1}]
    assert (two["live"]["version"], one["live"]["version"], new["live"]) == (2, 1, None)
    assert [key["effect"] for key in (two, new, one)] == ["merge", "insert", "merge"]
    body = answer.json()
    assert (body["version"], body["index"], body["group_count"]) == (2, "bucket", len(body["file_groups"]))
    assert body["bucket"] == {"mode": "fixed", "function": "hash", "key": ["id"], "count": None}
    for group in body["file_groups"]:
        small = [file["size_bytes"] for file in group["files"] if file["answer"] == "small_file"]
        assert (group["storing"], group["rewritten_bytes"]) == ("mark", sum(small))
        for key in group["keys"]:
            of = int(group["file_group"].rpartition("-of-")[2])
            assert int(key["hash"], 16) % of == group["number"] == key["bucket"]


def test_explanation_changes_nothing(client: httpx2.Client, written: str) -> None:
    before = client.get(written).json(), client.get(f"{written}/timeline").json()
    rows = [{"id": number, "note": "x"} for number in range(50)]
    answer = client.post(f"{written}/explanations", json=upsert(*rows))
    assert len(keys_of(answer)) == 50
    assert (client.get(written).json(), client.get(f"{written}/timeline").json()) == before


@pytest.mark.parametrize(
    ("body", "effects"),
    [
        (upsert({"id": 1}, {"id": 5}), ["merge", "insert"]),
        ({"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1}]}}, ["refuse"]),
        ({"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1}]}, "drop_duplicates": True}, ["drop"]),
        (
            {"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1}]}, "on_error": "quarantine"},
            ["quarantine"],
        ),
        ({"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 1}, {"id": 5}]}}, ["delete", "nothing"]),
        ({"operation": "snapshot", "source": {"kind": "rows", "rows": [{"id": 1}]}}, ["replace"]),
        ({"operation": "delete", "where": "id = 1"}, []),
    ],
    ids=lambda value: value.get("operation") if isinstance(value, dict) else str(value),
)  # fmt: skip
def test_explanation_names_the_effect_of_a_row(
    client: httpx2.Client, written: str, body: dict[str, Any], effects: list[str]
) -> None:
    answer = client.post(f"{written}/explanations", json=body)
    assert [key["effect"] for key in keys_of(answer)] == effects
    assert any(file["read"] for group in answer.json()["file_groups"] for file in group["files"])


@pytest.mark.parametrize("kind", KINDS)
def test_explanation_covers_every_kind_of_table(client: httpx2.Client, service: Service, kind: str) -> None:
    registered = client.post(
        "/datasets", content=msgspec.json.encode(registration_of(kind)), headers={"Content-Type": "application/json"}
    )  # fmt: skip
    assert registered.status_code == 201, registered.text
    path = registered.headers["location"]
    operation = "upsert" if registered.json()["record_key"] else "insert"
    rows = [{"id": number, "day": "2026-11-20", "n": 1} for number in range(5)]
    body = {"operation": operation, "source": {"kind": "rows", "rows": rows}}
    storing = {
        "copy_on_write": "rewrite", "merge_on_read full": "mark", "key_dynamic with deletion vectors": "mark",
        "unaware": "append", "unaware with deletion vectors": "append", "postpone": "postpone",
    }  # fmt: skip
    expected = {storing.get(kind, "log" if "merge_on_read" in kind or "logs" in kind else "rewrite")}
    if kind.startswith("halved"):
        # The second write finds full buckets.
        expected = {"mark", "rewrite"}
    for _ in range(2):
        answer = client.post(f"{path}/explanations", json=body)
        assert answer.status_code == 200, answer.text
        assert {group["storing"] for group in answer.json()["file_groups"]} <= expected
        assert sum(group["rows"] for group in answer.json()["file_groups"]) == 5
        client.post(f"{path}/writes", json=body)
        service.work()


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"key": "2"}, "invalid-request", "/key"),
        ({"key": '{"id": "two"}'}, "schema-mismatch", "/key/0/id"),
        ({"key": '{"id": 1, "note": "x"}'}, "schema-mismatch", "/key/0/note"),
        ({"keys": '{"id": 1}'}, "invalid-request", "/keys"),
    ],
    ids=str,
)
def test_invalid_keys_are_refused(
    client: httpx2.Client, written: str, query: dict[str, str], code: str, pointer: str
) -> None:
    status = 422 if code == "schema-mismatch" else 400
    members = problem(client.get(f"{written}/explanations", params=query), status, code)
    assert members["errors"][0]["pointer"] == pointer


def test_key_is_required(client: httpx2.Client, written: str) -> None:
    members = problem(client.get(f"{written}/explanations"), 400, "invalid-request")
    assert "key" in members["detail"]


def test_invalid_write_is_refused_without_an_explanation(client: httpx2.Client, written: str) -> None:
    path = f"{written}/explanations"
    members = problem(client.post(path, json=upsert({"id": None})), 422, "schema-mismatch")
    assert members["errors"][0]["pointer"] == "/source/rows/0/id"
    source = {"kind": "upload", "upload_id": "u", "format": "csv"}
    members = problem(
        client.post(path, json={"operation": "upsert", "source": source}), 400, "invalid-request"
    )
    assert members["errors"][0]["pointer"] == "/source/kind"
    problem(client.post(path, json={"operation": "delete", "where": "nope = 1"}), 400, "invalid-filter")
    problem(
        client.post(path, content=b"id\n1\n", headers={"Content-Type": "text/csv"}),
        415,
        "unsupported-media-type",
    )


def test_options_have_the_same_effect_as_in_a_write(client: httpx2.Client, written: str) -> None:
    path = f"{written}/explanations"
    body = upsert({"id": 1})
    assert client.post(path, json={**body, "mode": "ignore"}).json()["group_count"] == 0
    problem(client.post(path, json={**body, "mode": "error_if_exists"}), 409, "data-exists")
    problem(client.post(path, json={**body, "expected_version": 1}), 409, "commit-conflict")
    assert client.post(path, json={**body, "expected_version": 2}).json()["group_count"] == 1
    members = problem(client.post(path, json={**body, "merge_schema": True}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/merge_schema"
    mixed = {**upsert({"id": 1}, {"id": "bad"}, {"id": 9}), "on_error": "quarantine"}
    assert [key["key"]["id"] for key in keys_of(client.post(path, json=mixed))] == [1, 9]
    whole = {"operation": "upsert", "mode": "overwrite", "source": body["source"]}
    answer = client.post(path, json=whole).json()
    assert answer["operation"] == "overwrite"
    assert all(file["read"] for group in answer["file_groups"] for file in group["files"])


def test_dataset_of_another_tenant_is_not_found(new_client: Any, written: str) -> None:
    other = new_client()
    problem(other.get(f"{written}/explanations", params={"key": '{"id": 1}'}), 404, "not-found")
    problem(other.post(f"{written}/explanations", json=upsert({"id": 1})), 404, "not-found")
    assert other.post("/datasets", json=ORDERS).status_code == 201
