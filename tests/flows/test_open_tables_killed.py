"""`kill -9` of a worker while an engine reads a table: the engine gets one version, and a later scan the next ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from tests.flows.test_worker_killed import WRITTEN, before_its_commit_begins, kill
from tests.open.engines import DUCKDB, Address, Reader, started
from tests.open.held_scans import held_scan
from tests.support.deployment import Deployment
from tests.support.table import Table

pytestmark = pytest.mark.stack

_BUCKETS: Final = 8
BEFORE: Final = [{"id": number, "note": "before"} for number in range(400)]
MEANWHILE: Final = [{"id": number, "note": "meanwhile"} for number in range(200)]


@pytest.fixture
def duckdb(tmp_path: Path) -> Iterator[Reader]:
    running = started(DUCKDB, tmp_path)
    yield running
    running.stop()


def _notes(rows: pa.Table | BaseException) -> dict[int, str]:
    """The note of each id. Raises AssertionError for an error, or an id with two rows."""
    assert isinstance(rows, pa.Table), rows
    found = dict(zip(rows["id"].to_pylist(), rows["note"].to_pylist(), strict=True))
    assert len(found) == rows.num_rows
    return found


def _written(*writes: list[dict[str, object]]) -> dict[object, object]:
    return {row["id"]: row["note"] for rows in writes for row in rows}


def test_scan_has_its_version_while_the_worker_is_killed(
    deployment: Deployment, new_table: Callable[..., Table], duckdb: Reader
) -> None:
    table = new_table(bucket={"count": _BUCKETS}, table_type="merge_on_read")
    table.write("upsert", BEFORE)
    name = table.client.get(table.path).json()["name"]
    address = Address(url=deployment.url, api_key=deployment.api_key, table=name)
    with held_scan(duckdb, address, free=2) as scan:
        table.write("upsert", MEANWHILE)
        with before_its_commit_begins(table) as stopped:
            kill(deployment, stopped.worker)
            assert _notes(scan.end()) == _written(BEFORE)
        _, others = scan.statuses()
        assert others
        assert others <= {200, 206}
        assert table.succeeded(stopped.job_id)["attempts"] == 2
        assert _notes(duckdb.read(scan.address)) == _written(BEFORE, MEANWHILE, WRITTEN)
        assert _notes(duckdb.read(scan.address, version=2)) == _written(BEFORE, MEANWHILE)
