"""Reports to a real Hive metastore, by the client of a real Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation
from app.features.metastore.report import FileFigures, HivePartition, HiveReport, HiveTable, MetastoreRefused
from app.features.metastore.service.metastore_reconciler import MetastoreReconciler
from app.features.overview.values import PartitionRecord
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.hive_table import HiveColumn, HiveColumns
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import DropField
from app.kernel.format.policies import MetastorePolicy, TableServices
from tests.support.metastore import running_metastore
from tests.support.shares import share
from workers.engine.hive_metastore import HiveMetastore
from workers.engine.spark_engine import SparkEngine

pytestmark = [
    pytest.mark.spark,
]
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
ID, AMOUNT = (
    HiveColumn(name="id", type="bigint", comment="key"),
    HiveColumn(name="amount", type="decimal(9,2)"),
)
COUNTRY, DAY = HiveColumn(name="country", type="string"), HiveColumn(name="at_day", type="string")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_metastore(tmp_path_factory.mktemp("metastore")) as uri:
        yield uri


@pytest.fixture
def metastore(uri: str, root: Path, engine: SparkEngine) -> HiveMetastore:
    return HiveMetastore(uri, root.as_uri(), engine.jvm)


@pytest.fixture
def stored(uri: str, engine: SparkEngine) -> Iterator[Any]:
    """A client of its own, which says what the metastore has."""
    hive = engine.jvm().org.apache.hadoop.hive
    settings = hive.conf.HiveConf()
    settings.set("hive.metastore.uris", uri)
    client = hive.metastore.HiveMetaStoreClient(settings)
    yield client
    client.close()


def table(name: str, *columns: HiveColumn, partition_by: tuple[HiveColumn, ...] = ()) -> HiveTable:
    return HiveTable(
        database="default",
        table=name,
        tenant_id="tenant-1",
        dataset_id=f"dataset-{name}",
        dataset=name,
        schema_id=1,
        columns=HiveColumns(columns=columns, partition_by=partition_by),
        folder=f"tenant-1/dataset-{name}/data",
    )


def figures(rows: int) -> FileFigures:
    return FileFigures(files=2, rows=rows, size_bytes=10 * rows, written_at=NOON)


def partition(country: str, day: str, rows: int | None) -> HivePartition:
    folder = f"country={country.replace('/', '%2F')}/at_day={day}"
    return HivePartition(
        values=(country, day), folder=folder, figures=None if rows is None else figures(rows)
    )


def report(
    hive_table: HiveTable,
    version: int,
    *partitions: HivePartition,
    complete: bool = False,
    retained: tuple[tuple[str, ...], ...] = (),
    rows: int | None = None,
) -> HiveReport:
    return HiveReport(
        table=hive_table,
        version=version,
        committed_at=NOON,
        figures=None if rows is None else figures(rows),
        partitions=partitions,
        retained=retained if complete else None,
    )


def rows_by_partition(stored: Any, name: str) -> dict[str, str]:
    """What the metastore says of partitions: name to numRows."""
    found = stored.listPartitions("default", name, -1)
    names = list(stored.listPartitionNames("default", name, -1))
    assert len(names) == found.size()
    stored_values = {"/".join(each.getValues()): each.getParameters().get("numRows") for each in found}
    assert len(stored_values) == len(names)
    return stored_values


@share(3)
def test_partitions_and_statistics_equal_those_of_the_dataset(
    metastore: HiveMetastore, stored: Any, root: Path
) -> None:
    orders = table("orders", ID, AMOUNT, partition_by=(COUNTRY, DAY))
    # The metastore would count what lies in a folder; the report says what counts of it.
    folder = root / orders.folder / "country=a%2Fb" / "at_day=1"
    folder.mkdir(parents=True)
    (folder / "1.parquet").write_bytes(b"of another version")
    assert metastore.reported(orders) is None
    first = report(orders, 1, partition("a/b", "1", 5), partition("DE", "1", 7), complete=True)
    for _ in range(2):
        assert metastore.report(first, seconds_max=60) == 2
    assert metastore.reported(orders) == 1
    assert rows_by_partition(stored, "orders") == {"a/b/1": "5", "DE/1": "7"}
    one = stored.getPartition("default", "orders", ["a/b", "1"])
    assert one.getSd().getLocation().removeprefix("file:").lstrip("/") == str(folder).lstrip("/")
    stored_values = {
        name: one.getParameters().get(name) for name in ("numFiles", "totalSize", "lastUpdateTime")
    }
    assert stored_values == {"numFiles": "2", "totalSize": "50", "lastUpdateTime": str(int(NOON.timestamp()))}
    made = stored.getTable("default", "orders")
    assert made.getTableType() == "EXTERNAL_TABLE"
    assert [each.getName() for each in made.getPartitionKeys()] == ["country", "at_day"]
    assert made.getParameters().get("headwater.dataset_id") == "dataset-orders"
    # What changed since: one partition has other rows, one is gone, one is new.
    second = report(orders, 2, partition("a/b", "1", 6), partition("DE", "1", None), partition("FR", "2", 1))
    for _ in range(2):
        assert metastore.report(second, seconds_max=60) == 3
    assert rows_by_partition(stored, "orders") == {"a/b/1": "6", "FR/2": "1"}
    # A complete report takes away what is neither reported nor was before.
    for retained, left in (((("a/b", "1"),), {"a/b/1": "6", "FR/2": "1"}), ((), {"FR/2": "1"})):
        third = report(orders, 3, partition("FR", "2", 1), complete=True, retained=retained)
        assert metastore.report(third, seconds_max=60) == 1
        assert rows_by_partition(stored, "orders") == left
    assert (folder / "1.parquet").exists()


def test_columns_follow_the_schema(metastore: HiveMetastore, stored: Any) -> None:
    visits = table("visits", ID, partition_by=(DAY,))
    days = [HivePartition(values=(day,), folder=f"at_day={day}", figures=figures(1)) for day in "12"]
    assert metastore.report(report(visits, 1, *days, complete=True), seconds_max=60) == 2
    wider = table("visits", ID, AMOUNT, partition_by=(DAY,))
    assert metastore.report(report(wider, 2), seconds_max=60) == 0
    for place in (stored.getTable("default", "visits"), stored.getPartition("default", "visits", ["1"])):
        assert [each.getName() for each in place.getSd().getCols()] == ["id", "amount"]
    # A column less: the metastore cannot alter that, so the table is made again, and reported in full.
    other = table("visits", AMOUNT, partition_by=(DAY,))
    assert metastore.report(report(other, 3), seconds_max=60) is None
    assert metastore.reported(other) == 0
    assert metastore.report(report(other, 3, *days), seconds_max=60) == 2
    assert metastore.reported(other) == 3
    assert rows_by_partition(stored, "visits") == {"1": "1", "2": "1"}
    assert [each.getType() for each in stored.getTable("default", "visits").getSd().getCols()] == [
        "decimal(9,2)"
    ]


def test_unpartitioned_table_has_statistics_of_its_own(metastore: HiveMetastore, stored: Any) -> None:
    whole = table("whole", ID)
    for version, rows in ((1, 4), (2, 9)):
        assert metastore.report(report(whole, version, complete=True, rows=rows), seconds_max=60) == 0
        stored_values = stored.getTable("default", "whole").getParameters()
        assert (stored_values.get("numRows"), stored_values.get("totalSize")) == (str(rows), str(10 * rows))
        assert stored_values.get("headwater.version") == str(version)


def test_tables_of_other_owners_are_unchanged(metastore: HiveMetastore, stored: Any, root: Path) -> None:
    mine = table("shared", ID)
    assert metastore.report(report(mine, 1, complete=True, rows=1), seconds_max=60) == 0
    for other in (
        msgspec.structs.replace(mine, dataset_id="dataset-other"),
        msgspec.structs.replace(mine, tenant_id="tenant-2"),
    ):
        with pytest.raises(MetastoreRefused, match="does not belong to this dataset"):
            metastore.reported(other)
        with pytest.raises(MetastoreRefused, match="does not belong to this dataset"):
            metastore.report(report(other, 9, complete=True, rows=99), seconds_max=60)
    assert stored.getTable("default", "shared").getParameters().get("numRows") == "1"
    nowhere = msgspec.structs.replace(table("nowhere", ID), database="no_such_database")
    assert metastore.reported(nowhere) is None
    with pytest.raises(MetastoreRefused, match="no_such_database"):
        metastore.report(report(nowhere, 1, complete=True, rows=1), seconds_max=60)


def test_unavailable_metastore_raises_metastore_refused(root: Path, engine: SparkEngine) -> None:
    away = HiveMetastore("thrift://127.0.0.1:1", root.as_uri(), engine.jvm)
    with pytest.raises(MetastoreRefused, match="onnect"):
        away.reported(table("any", ID))


@dataclass
class Files:
    """What the catalogue has of a dataset with two partitions, of which it is not known any more what changed."""

    def partitions(self, *_: Any, **__: Any) -> list[PartitionRecord]:
        return [
            PartitionRecord(
                path=f"day=2026-11-2{number}", base_files=1, logs=0, postponed=0, tombstone_files=0, rows=number,
                log_rows=0, postponed_rows=0, size_bytes=9, written_version=1, written_at=NOON,
            )
            for number in (1, 2)
        ]  # fmt: skip

    def touched(self, *_: Any) -> set[str] | None:
        return None


def test_reconciler_updates_a_table_changed_by_others(metastore: HiveMetastore, stored: Any) -> None:
    fields = [
        CreateField(name="id", type="int64"),
        CreateField(name="day", type="date"),
        CreateField(name="n", type="int32"),
    ]
    services = TableServices(metastore=MetastorePolicy(database="default", table="kept"))
    definition = define_dataset(
        CreateDataset(
            name="kept", schema=CreateSchema(fields=fields), partition_by=["day"], services=services
        )
    )
    narrower = evolve(definition, [DropField(name="id")])
    reconciler = MetastoreReconciler(metastore=metastore, overview=Files(), touched=Files())  # type: ignore[arg-type]
    memory: dict[str, Any] = {}
    for version, wanted, columns in ((1, definition, ["id", "n"]), (2, narrower, ["n"])):
        dataset = Dataset(
            id="kept", tenant_id="t", definition=wanted, version=version, next_offset=0, earliest_offset=0,
            earliest_version=0, created_at=NOON, committed_at=NOON,
        )  # fmt: skip
        for _ in range(2):
            kept = reconciler.reconcile(
                Observation(dataset=dataset, since_version=0, memory=memory, now=NOON)
            )
            memory = kept.memory
        assert (kept.wake_after_seconds, memory["version"], memory["error"]) == (None, version, None)
        assert [each.getName() for each in stored.getTable("default", "kept").getSd().getCols()] == columns
        assert rows_by_partition(stored, "kept") == {"2026-11-21": "1", "2026-11-22": "2"}
    # What somebody drops comes back with the next version.
    stored.dropTable("default", "kept")
    dataset = msgspec.structs.replace(dataset, version=3)
    reconciler.reconcile(Observation(dataset=dataset, since_version=0, memory=memory, now=NOON))
    assert rows_by_partition(stored, "kept") == {"2026-11-21": "1", "2026-11-22": "2"}
