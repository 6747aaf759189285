"""Keys and recipients that see a part of a dataset: engines read what `/rows` gives them, at every kept version."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.open.comparison import check_equal
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.engines import DUCKDB, POLARS, PYICEBERG, Engine, EngineError, Reader, started
from tests.open.grants import NarrowDataset, restriction
from tests.open.histories import played
from tests.support.left_out import left_out
from tests.support.service import Service

_GRANTS: Final = 3
_OF_A_TENANT: Final = 50
_ENGINES: Final = (DUCKDB, PYICEBERG, POLARS)


def narrowed(dataset: OpenDataset, seed: int | str) -> Iterator[NarrowDataset]:
    """The dataset as some keys see it."""
    dice = random.Random(f"grants {seed}")
    fields = answered(dataset.client.get(dataset.path)).json()["schema"]["fields"]
    columns = [each["name"] for each in fields if each["name"].startswith("x")]
    for _ in range(_GRANTS):
        yield NarrowDataset.of(dataset, restriction(dice, columns))


def check_seen(reader: Reader, dataset: NarrowDataset) -> None:
    """Compares the rows of each kept version in each warehouse; where the grant does not fit, the engine fails."""
    for version in dataset.kept_versions():
        expected = None if dataset.refuses(version) else dataset.rows(version)
        for warehouse in reader.engine.warehouses:
            place = f"{dataset.name}, {dataset.seen}, version {version}, {warehouse}"
            if expected is None:
                with pytest.raises(EngineError):
                    reader.read(dataset.address, warehouse=warehouse, version=version)
                continue
            found = reader.read(dataset.address, warehouse=warehouse, version=version)
            try:
                check_equal(reader.engine, found, expected)
            except AssertionError as error:
                raise AssertionError(f"{place}: {error}") from None


def test_scans_have_what_keys_see_of_a_few_histories(few_histories: Sequence[OpenDataset]) -> None:
    for dataset in few_histories:
        for narrow in narrowed(dataset, dataset.name):
            for version in narrow.kept_versions():
                if narrow.refuses(version):
                    plan = narrow.client.post(f"{narrow.path}/scans", json={"version": version})
                    assert plan.status_code == 403
                else:
                    check_equal(DUCKDB, narrow.scanned(version), narrow.rows(version))


@contextmanager
def reader_of(engine: Engine, readers: Readers, scratch: Path) -> Iterator[Reader]:
    """A process for one key: DuckDB finds keys for files by the location of a table, which is that of all keys."""
    if engine is not DUCKDB:
        yield readers(engine)
        return
    running = started(engine, scratch)
    try:
        yield running
    finally:
        running.stop()


def test_duckdb_reads_what_keys_see_of_a_few_histories(
    reader: Readers, few_histories: Sequence[OpenDataset], tmp_path: Path
) -> None:
    for dataset in few_histories:
        for narrow in narrowed(dataset, dataset.name):
            with reader_of(DUCKDB, reader, tmp_path) as duckdb:
                check_seen(duckdb, narrow)


@left_out("OPEN", "test-open")
def test_engines_read_what_keys_see_of_many_histories(
    reader: Readers, service: Service, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """`OPEN_HISTORIES`: how many. `OPEN_SEED`: the first one. `OPEN_ENGINES`: names of some engines.

    Each failure names its seed and engine.
    """
    first, many = int(os.environ.get("OPEN_SEED", "0")), int(os.environ.get("OPEN_HISTORIES", "20"))
    names = os.environ.get("OPEN_ENGINES", "").split()
    engines = [engine for engine in _ENGINES if not names or engine.name in names]
    faults: list[str] = []
    reads = Counter[str]()
    tenant = Tenant.new(service)
    for number in range(first, first + many):
        if number % _OF_A_TENANT == 0:
            tenant = Tenant.new(service)
        for narrow in narrowed(played(tenant, number), number):
            for engine in engines:
                try:
                    with reader_of(engine, reader, tmp_path) as running:
                        check_seen(running, narrow)
                except Exception as error:
                    faults.append(f"history {number}, {engine.name}: {str(error)[:400]}")
                reads[engine.name] += len(narrow.kept_versions()) * len(engine.warehouses)
    record_property("open", f"{many} histories from {first}: {dict(reads)} reads, {len(faults)} faults")
    assert not faults, "\n".join(faults[:50])
