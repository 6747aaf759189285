"""Verifications over HTTP: what is equal, what is not, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any, Literal

import httpx2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import xxhash
from sqlalchemy import make_url, update

from app.core.catalog.tables import heads
from app.core.timeline.tables import changelog_files
from app.infra.files.storage import open_storage
from tests.support.http import ORDERS, problem, upsert
from tests.support.postgres import TestServer
from tests.support.service import Service


def verified(client: httpx2.Client, service: Service, path: str, **body: Any) -> dict[str, Any]:
    """The result of a verification that has run."""
    answer = client.post(f"{path}/verifications", json=body) if body else client.post(f"{path}/verifications")
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert (job["kind"], job["operation"], job["result"]) == ("verify", None, None)
    service.work()
    ended = client.get(job["links"]["self"]).json()
    assert ended["state"] == "succeeded", ended
    assert ended["committed_version"] is None
    found: dict[str, Any] = ended["result"]
    return found


@pytest.fixture
def table(client: httpx2.Client, orders: str, service: Service) -> str:
    """Three versions: rows, a correction and a retraction, a compaction in between."""
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}, {"id": 2, "note": "b"}))
    service.work()
    client.post(f"{orders}/compactions")
    service.work()
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "c"}, {"id": 3, "note": "d"}))
    service.work()
    delete = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}}
    client.post(f"{orders}/writes", json=delete)
    service.work()
    assert client.get(orders).json()["version"] == 3
    return orders


EQUAL = {"from_version": 0, "equal": True, "first_offset": 0, "differences": 0, "first_difference": None}


def test_table_equals_its_feed_at_every_version(client: httpx2.Client, service: Service, table: str) -> None:
    assert verified(client, service, table) == {
        **EQUAL,
        "version": 3,
        "rows": 2,
        "changes": 6,
        "next_offset": 6,
    }
    assert verified(client, service, table, version=2) == {
        **EQUAL, "version": 2, "rows": 3, "changes": 5, "next_offset": 5,
    }  # fmt: skip
    assert verified(client, service, table, version=0) == {
        **EQUAL, "version": 0, "rows": 0, "changes": 0, "next_offset": 0,
    }  # fmt: skip


def test_verification_may_be_awaited_and_repeated(
    client: httpx2.Client, service: Service, table: str
) -> None:
    with service.working():
        headers = {"Prefer": "wait=20", "Idempotency-Key": "once"}
        answer = client.post(f"{table}/verifications", headers=headers, json={"version": 1})
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["equal"]
        again = client.post(f"{table}/verifications", headers=headers, json={"version": 1})
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json()["id"] == answer.json()["id"]
    other = client.post(f"{table}/verifications", headers={"Idempotency-Key": "once"}, json={"version": 2})
    problem(other, 422, "idempotency-mismatch")


def damage(
    client: httpx2.Client,
    service: Service,
    postgres: TestServer,
    table: str,
    kind: Literal["files", "changelog_files"],
    edit: Callable[[pa.Table], pa.Table],
) -> int:
    """Rewrites the files of a kind that the edit changes, and makes the catalogue believe it. Returns how many."""
    storage = open_storage(service.settings.storage_uri)
    dataset_id = client.get(table).json()["id"]
    changed = 0
    database = make_url(service.settings.database_url).database
    with postgres.administration(str(database)) as connection:
        paths = connection.execute(f"SELECT path FROM {kind} WHERE dataset_id = %s", [dataset_id]).fetchall()
        for (path,) in paths:
            before = pq.read_table(storage.open(path))
            after = edit(before)
            if after.equals(before):
                continue
            changed += 1
            out = BytesIO()
            pq.write_table(after, out)
            content = out.getvalue()
            storage.delete([path])
            with storage.create(path) as file:
                file.write(content)
            connection.execute(
                f"UPDATE {kind} SET size_bytes = %s, checksum = %s WHERE path = %s",
                [len(content), xxhash.xxh3_128_hexdigest(content), path],
            )
    return changed


def _tenant(service: Service, dataset_id: str) -> str:
    with service.database.relay() as connection:
        return str(
            connection.execute(
                heads.select().with_only_columns(heads.c.tenant_id).where(heads.c.dataset_id == dataset_id)
            ).scalar_one()
        )


def noting(number: int, note: str) -> Callable[[pa.Table], pa.Table]:
    """Gives the rows of an id another note."""

    def edit(rows: pa.Table) -> pa.Table:
        notes = pc.if_else(pc.equal(rows.column("id"), number), note, rows.column("note"))
        at = rows.schema.get_field_index("note")
        return rows.set_column(at, rows.schema.field(at), notes)

    return edit


def test_damaged_row_is_reported(
    client: httpx2.Client, service: Service, postgres: TestServer, table: str
) -> None:
    assert damage(client, service, postgres, table, "files", noting(3, "x"))
    found = verified(client, service, table)
    offset = found["first_difference"]["offset"]
    assert found == {
        **EQUAL, "version": 3, "rows": 2, "changes": 6, "next_offset": 6, "equal": False, "differences": 1,
        "first_difference": {
            "kind": "different", "key": {"id": 3}, "offset": offset, "op": "+A",
            "in_feed": {"id": 3, "note": "d"}, "in_table": {"id": 3, "note": "x"},
        },
    }  # fmt: skip
    page = client.get(f"{table}/changes", params={"since": offset, "limit": 1}).json()
    assert page["changes"][0]["row"] == {"id": 3, "note": "d"}
    assert verified(client, service, table, version=1)["equal"]


def test_damaged_change_is_reported(
    client: httpx2.Client, service: Service, postgres: TestServer, table: str
) -> None:
    # Both changes of the key have the same effect, so the fold is legal, and only at version 1 it is another table.
    assert damage(client, service, postgres, table, "changelog_files", noting(2, "x")) == 2
    assert verified(client, service, table)["equal"]
    found = verified(client, service, table, version=1)["first_difference"]
    assert (found["kind"], found["in_feed"]["note"], found["in_table"]["note"]) == ("different", "x", "b")


def test_replaced_file_fails_the_verification(client: httpx2.Client, service: Service, table: str) -> None:
    job = client.post(f"{table}/verifications").json()
    storage = open_storage(service.settings.storage_uri)
    dataset_id = client.get(table).json()["id"]
    with service.database.tenant(_tenant(service, dataset_id)) as connection:
        query = changelog_files.select().with_only_columns(changelog_files.c.path)
        path = connection.execute(query.where(changelog_files.c.dataset_id == dataset_id)).scalars().first()
    assert path is not None
    storage.delete([path])
    with storage.create(path) as file:
        file.write(b"PAR1")
    service.work()
    ended = client.get(job["links"]["self"]).json()
    assert (ended["state"], ended["error"]["type"], ended["error"]["path"]) == (
        "failed",
        "/problems/corrupt-file",
        path,
    )
    assert ended["result"] is None


def test_expired_feed_is_folded_over_the_version_before(
    client: httpx2.Client, service: Service, table: str
) -> None:
    dataset_id = client.get(table).json()["id"]
    with service.database.tenant(_tenant(service, dataset_id)) as connection:
        connection.execute(update(heads).where(heads.c.dataset_id == dataset_id).values(earliest_offset=5))
    assert verified(client, service, table) == {
        **EQUAL, "version": 3, "from_version": 2, "first_offset": 5, "next_offset": 6, "rows": 2, "changes": 1,
    }  # fmt: skip
    assert verified(client, service, table, version=2)["changes"] == 0
    job = client.post(f"{table}/verifications", json={"version": 1}).json()
    service.work()
    error = client.get(job["links"]["self"]).json()["error"]
    assert (error["type"], error["from_version"]) == ("/problems/not-verifiable", 2)


def test_keyless_rows_are_verified(client: httpx2.Client, service: Service, events: str) -> None:
    row = {"at": "2026-11-21T10:00:00Z", "what": "x"}
    for _ in range(2):
        client.post(
            f"{events}/writes", json={"operation": "insert", "source": {"kind": "rows", "rows": [row, row]}}
        )
        service.work()
    client.post(f"{events}/writes", json={"operation": "snapshot", "source": {"kind": "rows", "rows": [row]}})
    service.work()
    found = verified(client, service, events)
    assert (found["equal"], found["rows"], found["changes"]) == (True, 1, 7)


@pytest.mark.parametrize(
    ("producer", "status"), [("full", 202), ("deferred", 202), ("input", 422), ("none", 422)]
)
def test_only_a_feed_of_its_table_is_verified(
    client: httpx2.Client, service: Service, producer: str, status: int
) -> None:
    definition = {**ORDERS, "table_type": "merge_on_read", "changelog": {"producer": producer}}
    path = client.post("/datasets", json=definition).headers["location"]
    client.post(f"{path}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    answer = client.post(f"{path}/verifications")
    assert answer.status_code == status, answer.text
    if status == 422:
        assert problem(answer, 422, "not-verifiable")["producer"] == producer
        return
    # What lies in logs the feed has not delivered, so it is not compared.
    assert verified(client, service, path)["rows"] == (1 if producer == "full" else 0)
    client.post(f"{path}/compactions")
    service.work()
    found = verified(client, service, path)
    assert (found["equal"], found["rows"], found["changes"]) == (True, 1, 1)


@pytest.mark.parametrize(
    ("body", "pointer"), [({"version": 4}, "/version"), ({"version": -1}, "/version"), ({"at": 1}, "/at")]
)
def test_invalid_verification_is_refused(
    client: httpx2.Client, table: str, body: dict[str, Any], pointer: str
) -> None:
    refused = problem(client.post(f"{table}/verifications", json=body), 400, "invalid-request")
    assert [error["pointer"] for error in refused["errors"]] == [pointer]


def test_verification_of_another_tenant_is_not_found(
    new_client: Callable[..., httpx2.Client], table: str
) -> None:
    problem(new_client().post(f"{table}/verifications"), 404, "not-found")
    problem(new_client(("write",)).post(f"{table}/verifications"), 403, "forbidden")
