"""Every engine reads every kept version of every table as the service does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.open.comparison import check_equal
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset
from tests.open.engines import DUCKDB, ENGINES, Engine, EngineError, Reader
from tests.open.tables import TABLES
from tests.support.left_out import left_out

Table = Callable[[str], OpenDataset]
# The service refuses the table, and the message has what to do.
_REFUSED = {"to_double": "clusterings"}
# What CI tries with DuckDB: vectors, files of earlier releases, each change of a schema, and partitions.
_FEW = ("flat", "earlier", "nested", "evolved", "parted_0")


def check_versions(reader: Reader, dataset: OpenDataset, *, latest: bool = True) -> None:
    """Compares the rows of each kept version, and of the latest without a version, in each warehouse of the engine."""
    versions: list[int | None] = [*dataset.kept_versions(), *([None] if latest else [])]
    for version in versions:
        expected = dataset.rows(version)
        for warehouse in reader.engine.warehouses:
            found = reader.read(dataset.address, warehouse=warehouse, version=version)
            try:
                check_equal(reader.engine, found, expected)
            except AssertionError as error:
                raise AssertionError(f"{dataset.name}, version {version}, {warehouse}: {error}") from None


@left_out("OPEN", "test-open")
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_engines_read_every_version(reader: Readers, table: Table, engine: Engine, name: str) -> None:
    dataset, running = table(name), reader(engine)
    gap = {**_REFUSED, **engine.gaps}.get(name)
    if gap is not None:
        with pytest.raises(EngineError, match=gap):
            check_versions(running, dataset)
    else:
        check_versions(running, dataset)


@pytest.mark.parametrize("name", _FEW)
def test_duckdb_reads_every_version(reader: Readers, table: Table, name: str) -> None:
    check_versions(reader(DUCKDB), table(name))
