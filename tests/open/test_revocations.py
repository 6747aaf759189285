"""A reader whose key or grant ends while an engine is in the middle of a scan gets no further file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from app.features.objects.handlers.lookups import HELD_SECONDS
from tests.open.conftest import Readers
from tests.open.datasets import Json, OpenDataset, Tenant, answered
from tests.open.engines import DUCKDB, PYICEBERG, Engine, EngineError, Reader, started
from tests.open.facade import VendedTable
from tests.open.held_scans import held_scan
from tests.open.test_tables_in_part import key_of, narrow_key
from tests.support.left_out import left_out
from tests.support.service import Service
from tests.support.waiting import until

_FILES: Final = 6
_ROWS: Final = 20
_LONG: Final = left_out("OPEN", "test-open")
_ENGINES: Final = (DUCKDB, pytest.param(PYICEBERG, marks=_LONG))
_FIELDS: Final = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
_GRANTS: Final[dict[str, Json]] = {"whole": {}, "filter": {"where": "id != 3"}, "mask": {"mask": ["note"]}}
_numbers = count(1)


@pytest.fixture(scope="module")
def own(service: Service) -> Iterator[Tenant]:
    found = Tenant.new(service)
    yield found
    found.client.close()


@pytest.fixture
def dataset(own: Tenant) -> OpenDataset:
    """A dataset of several data files."""
    found = own.dataset(f"held-{next(_numbers)}", schema={"fields": _FIELDS})
    for number in range(_FILES):
        rows = [{"id": number * _ROWS + each, "note": f"note {number}"} for each in range(_ROWS)]
        found.succeed("writes", operation="insert", source={"kind": "rows", "rows": rows})
    return found


@contextmanager
def reader_of(engine: Engine, readers: Readers, scratch: Path) -> Iterator[Reader]:
    """A process for one key: DuckDB finds keys for files by the location of a table."""
    if engine is not DUCKDB:
        yield readers(engine)
        return
    running = started(engine, scratch)
    try:
        yield running
    finally:
        running.stop()


def _revoke(dataset: OpenDataset, narrow: OpenDataset) -> None:
    table = VendedTable.loaded(narrow.client, narrow.address)
    answered(dataset.client.delete(f"/keys/{key_of(table)}"), 204)


def _rename(dataset: OpenDataset, narrow: OpenDataset) -> None:
    headers = {"If-Match": dataset.client.get(dataset.path).headers["etag"]}
    body = {"name": dataset.name.replace("held", "other")}
    answered(dataset.client.patch(dataset.path, json=body, headers=headers))


@pytest.mark.parametrize("engine", _ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize(
    ("grant", "end"),
    [
        pytest.param("filter", _revoke, id="key of some rows"),
        pytest.param("whole", _rename, id="grant of all"),
        pytest.param("whole", _revoke, id="key of all", marks=_LONG),
        pytest.param("mask", _rename, id="grant of some values", marks=_LONG),
    ],
)
def test_no_file_is_served_after_the_key_or_the_grant_has_ended(
    reader: Readers,
    dataset: OpenDataset,
    tmp_path: Path,
    engine: Engine,
    grant: str,
    end: Callable[[OpenDataset, OpenDataset], None],
) -> None:
    grants: list[Json] = [
        {"datasets": "held*", "scopes": ["read"], **_GRANTS[grant]},
        {"datasets": "other*", "scopes": ["read"], "where": "id > 10"},
    ]
    narrow = narrow_key(dataset, "held", grants)
    table = VendedTable.loaded(narrow.client, narrow.address)
    files = sorted(place for place in table.objects() if place.endswith(".parquet"))
    assert len(files) == _FILES
    with (
        reader_of(engine, reader, tmp_path) as running,
        held_scan(running, narrow.address, planning="client") as scan,
    ):
        end(dataset, narrow)
        until(lambda: table.object(files[0]).status_code in (401, 403), "a refusal", seconds_max=30)
        # Until then requests share what those of before have found.
        time.sleep(HELD_SECONDS)
        outcome: Any = scan.end()
        first, others = scan.statuses()
    assert isinstance(outcome, EngineError), outcome
    assert first <= {200, 206, 401, 403}
    assert first & {200, 206}
    assert others
    assert others <= {401, 403}
