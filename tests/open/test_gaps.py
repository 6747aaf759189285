"""What engines cannot read is still so: where a test fails here, an engine can read more than the documents say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.open.comparison import check_equal
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant
from tests.open.engines import CHDB, DAFT, DUCKDB, PYICEBERG, Engine, EngineError
from tests.open.tables import TABLES
from tests.support.left_out import left_out
from tests.support.service import Service

pytestmark = left_out("OPEN", "test-open")
Table = Callable[[str], OpenDataset]


@pytest.mark.parametrize("engine", [CHDB, DAFT], ids=lambda engine: engine.name)
def test_engine_without_deletion_vectors_fails_rather_than_reads_deleted_rows(
    reader: Readers, table: Table, engine: Engine
) -> None:
    dataset = table("compacted")
    with pytest.raises(EngineError):
        reader(engine).read(dataset.address, warehouse="v3", version=3)


def test_clickhouse_has_no_null_lists_maps_and_structs(reader: Readers, table: Table) -> None:
    dataset = table("nested")
    found = reader(CHDB).read(dataset.address, warehouse="v2")
    with pytest.raises(AssertionError):
        check_equal(DUCKDB, found, dataset.rows())


def test_pyiceberg_has_no_null_lists_and_maps_of_nested_types(reader: Readers, table: Table) -> None:
    dataset = table("nested")
    found = reader(PYICEBERG).read(dataset.address)
    with pytest.raises(AssertionError):
        check_equal(DUCKDB, found, dataset.rows())


@pytest.mark.parametrize("engine", [DUCKDB, PYICEBERG], ids=lambda engine: engine.name)
def test_number_that_became_a_real_number_is_read_after_a_clustering(
    reader: Readers, service: Service, engine: Engine
) -> None:
    dataset = TABLES["to_double"](Tenant.new(service))
    with pytest.raises(EngineError, match="clusterings"):
        reader(engine).read(dataset.address)
    dataset.succeed("clusterings", columns=["n"])
    check_equal(engine, reader(engine).read(dataset.address), dataset.rows())
