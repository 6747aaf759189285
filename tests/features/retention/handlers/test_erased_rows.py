"""Rows that are erased as docs/table-services.md describes: no file has their values any more."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2
import pyarrow.parquet as pq
import pytest

from app.core.idempotency.repository import ReplyStore
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.service.feed import Retain
from app.infra.files.storage import LocalStorage
from tests.features.retention.handlers.test_cleans import cleaned
from tests.support.expired_rows import expire_rows
from tests.support.http import ORDERS, upsert
from tests.support.service import Service

SECRET = "a person's address"
MANY = 3_000


def files_with(service: Service, value: str) -> Iterator[str]:
    for path in (service.settings.data_dir / "storage").rglob("*"):
        if path.suffix == ".parquet":
            if value in str(pq.ParquetFile(path).read().to_pydict()):
                yield path.name
        elif path.is_file() and value.encode() in path.read_bytes():
            yield path.name


def written(client: httpx2.Client, service: Service, path: str, **body: object) -> None:
    answer = client.post(f"{path}/writes", json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    assert client.get(answer.json()["links"]["self"]).json()["state"] == "succeeded"


@pytest.mark.parametrize("table_type", ["merge_on_read", "copy_on_write"])
def test_values_of_an_erased_row_are_in_no_file(client, service, tmp_path, table_type) -> None:
    table = {**ORDERS, "name": f"erased_{table_type}", "table_type": table_type}
    path = f"/datasets/{client.post('/datasets', json=table).json()['id']}"
    rows = [{"id": number, "note": f"note {number}"} for number in range(MANY)]
    # One more row than fits into a small file, in a file that is the changelog, too.
    written(client, service, path, **upsert(*rows, {"id": MANY, "note": SECRET}))
    written(client, service, path, **upsert({"id": MANY, "note": f"{SECRET}, corrected"}))
    assert list(files_with(service, SECRET))

    key = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": MANY}]}}
    written(client, service, path, **key)
    etag = client.get(path).headers["etag"]
    retention = {"changelog": {"retention": {"seconds": 1}}}
    assert client.patch(path, json=retention, headers={"If-Match": etag}).status_code == 200
    if table_type == "merge_on_read":
        assert client.post(f"{path}/compactions").status_code == 202
        service.work()
    time.sleep(1.1)
    retain = Retain(
        feeds=RetentionStore(service.database),
        keys=ReplyStore(service.database),
        rows=expire_rows(service.database, LocalStorage(tmp_path), job_keep_seconds=3600),
        follower_lag_seconds=3600,
    )
    # The second round releases the files of what the first cuts.
    for _ in range(2):
        retain.run()
    cleaned(client, service, path, versions=1)

    assert not list(files_with(service, SECRET))
    found = client.get(f"{path}/rows", params={"limit": MANY + 1}).json()["rows"]
    assert sorted(found, key=lambda row: row["id"]) == rows
