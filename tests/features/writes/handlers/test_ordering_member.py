"""A member of a struct as the ordering field, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import problem, upsert
from tests.support.service import Service

FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "meta", "type": "struct<updated_at: timestamp(us), by: string>"},
]
NOTES = {"schema": {"fields": FIELDS}, "record_key": ["id"], "ordering_field": "meta.updated_at"}
PRODUCERS = [("copy_on_write", "full"), ("merge_on_read", "full"), ("merge_on_read", "input")]


def note(minute: int, by: str) -> dict[str, Any]:
    return {"id": 1, "meta": {"updated_at": f"2026-11-21T10:{minute:02}:00Z", "by": by}}


@pytest.mark.parametrize(("table_type", "producer"), PRODUCERS)
def test_late_rows_and_deletes_are_compared_by_the_member(
    client: httpx2.Client, service: Service, table_type: str, producer: str
) -> None:
    body = {**NOTES, "name": f"{table_type}-{producer}"}
    body |= {"table_type": table_type, "changelog": {"producer": producer}}
    answer = client.post("/datasets", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["ordering_field"] == "meta.updated_at"
    path = answer.headers["location"]

    def names_after(write: dict[str, Any]) -> list[str]:
        assert client.post(f"{path}/writes", json=write).status_code == 202
        service.work()
        return [row["meta"]["by"] for row in client.get(f"{path}/rows").json()["rows"]]

    assert names_after(upsert(note(5, "first"), note(4, "late"))) == ["first"]
    assert names_after(upsert(note(4, "late"))) == ["first"]
    assert names_after(upsert(note(6, "new"))) == ["new"]
    late, newer = (
        {"operation": "delete", "source": {"kind": "rows", "rows": [note(at, "")]}} for at in (5, 7)
    )
    assert names_after(late) == ["new"]
    assert names_after(newer) == []


def test_struct_of_the_ordering_member_keeps_its_name_and_type(client: httpx2.Client) -> None:
    path = client.post("/datasets", json={**NOTES, "name": "notes"}).headers["location"]
    change = {"changes": [{"kind": "drop", "name": "meta"}]}
    answer = client.patch(path, json=change, headers={"If-Match": client.get(path).headers["etag"]})
    error = problem(answer, 422, "schema-change-refused")["errors"][0]
    assert "the ordering field meta.updated_at" in error["detail"]
