"""What tests of the HTTP surface send and expect."""

from __future__ import annotations

import ssl
from typing import Any, Final

import httpx2

# For clients of the service. Each that is made without one reads the certificates of the system, for 20 ms.
TLS: Final = ssl.create_default_context()

ORDERS = {
    "name": "orders",
    "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]},
    "record_key": ["id"],
}
EVENTS = {
    "name": "events",
    "schema": {"fields": [{"name": "at", "type": "timestamp"}, {"name": "what", "type": "string"}]},
}


def upsert(*rows: dict[str, Any]) -> dict[str, Any]:
    """The JSON form of an upsert."""
    return {"operation": "upsert", "source": {"kind": "rows", "rows": list(rows)}}


def without_engines(dataset: dict[str, Any]) -> dict[str, Any]:
    """The JSON form of a dataset without what only the response to a request for it has: how engines read it."""
    return {name: value for name, value in dataset.items() if name != "read_with"}


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The members of the problem document that the answer must be."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    members = answer.json()
    assert members["type"] == f"/problems/{code}"
    assert members["status"] == status
    assert members["title"]
    assert members["detail"]
    assert members["instance"] == answer.request.url.path
    return members
