"""The files of a small write: each is one request to S3, so two at most are created."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import httpx2
import pytest

from app.infra.files.storage import LocalStorage
from tests.support.http import ORDERS
from tests.support.service import Service

NO_KEY = {name: value for name, value in ORDERS.items() if name != "record_key"}
TABLES: dict[str, tuple[dict[str, Any], str]] = {
    "merge_on_read": (ORDERS, "upsert"),
    # Buckets of logs do not grow: without a count there are four of them, and a write has a log in each.
    "merge_on_read with logs": (
        {
            **ORDERS,
            "table_type": "merge_on_read",
            "bucket": {"count": 1},
            "changelog": {"producer": "input"},
        },
        "upsert",
    ),
    "copy_on_write": ({**ORDERS, "table_type": "copy_on_write"}, "upsert"),
    "no key": (NO_KEY, "insert"),
}
WRITES = 5


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of all files that the API and the worker create, also of those that they delete again."""
    paths: list[str] = []
    create: Callable[..., Any] = LocalStorage.create

    @contextmanager
    def recording(storage: LocalStorage, path: str, *, durable: bool = True) -> Iterator[BinaryIO]:
        paths.append(path)
        with create(storage, path, durable=durable) as stream:
            yield stream

    monkeypatch.setattr(LocalStorage, "create", recording)
    return paths


@pytest.mark.parametrize("table", TABLES)
def test_small_write_creates_two_files_at_most(
    client: httpx2.Client, service: Service, created: list[str], table: str
) -> None:
    definition, operation = TABLES[table]
    path = client.post("/datasets", json={**definition, "name": "written"}).headers["location"]
    dataset = path.rpartition("/")[2]

    def write(numbers: range, note: str) -> None:
        rows = [{"id": number, "note": note} for number in numbers]
        body = {"operation": operation, "source": {"kind": "rows", "rows": rows}}
        answer = client.post(f"{path}/writes", json=body)
        assert answer.status_code == 202, answer.text
        service.work()
        job = client.get(answer.json()["links"]["self"]).json()
        assert job["state"] == "succeeded", job

    write(range(1_000), "before")
    for number in range(WRITES):
        created.clear()
        # Half of the keys are new.
        write(range(950 + number, 1_050 + number), f"after {number}")
        # The service may work for other datasets meanwhile.
        own = [each for each in created if dataset in each]
        assert 1 <= len(own) <= 2, own
