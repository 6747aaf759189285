"""A Hive metastore, through the client that Spark brings along in its JVM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from app.format.definition.hive_table import HiveColumn, values_in_name
from app.metastore.report import FileFigures, HivePartition, HiveReport, HiveTable, MetastoreRefused

_VERSION: Final = "headwater.version"
_OWNER: Final = ("headwater.tenant_id", "headwater.dataset_id")
# Data files of all versions lie in one folder, beside what deletion vectors and logs say of them: whoever read it as a
# folder of Parquet would get rows that are gone. Engines that try fail, by a name that says why.
_FORMAT: Final = "headwater.ReadThroughTheHeadwaterApi"
_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_TIMEOUT_SECONDS: Final = 20
_PARTITIONS_AT_ONCE: Final = 100
_ALL: Final = -1


class HiveMetastore:
    """The metastore at a `thrift://host:port`. `jvm`: gives the JVM, which starts with the engine."""

    def __init__(self, uri: str, storage_uri: str, jvm: Callable[[], Any]) -> None:
        self._uri = uri
        self._storage_uri = storage_uri.rstrip("/")
        self._jvm = jvm

    def reported(self, table: HiveTable) -> int | None:
        """The version of the dataset that was reported last; None if there is no table yet.

        Raises MetastoreRefused, also for a table that is not this dataset's.
        """
        with self._client(table) as client:
            stored = client.table()
            return None if stored is None else int(stored.getParameters().get(_VERSION) or 0)

    def report(self, report: HiveReport, *, seconds_max: float) -> int | None:
        """Makes the table, and its partitions one after another, what the report says, and notes the version last.

        Telling the same again changes nothing. Returns how many of the partitions it came to in that time: if that is
        not all, the version is not noted. None if the table had to be made anew, so that partitions are missing that
        were told of before. Raises MetastoreRefused.
        """
        deadline = time.monotonic() + seconds_max
        with self._client(report.table) as client:
            # The partitions of a table that is made anew are gone with it.
            if client.make_table(report) and (report.retained is None or report.retained):
                return None
            for reported in range(0, len(report.partitions), _PARTITIONS_AT_ONCE):
                if reported and time.monotonic() > deadline:
                    return reported
                client.sync_partitions(report.partitions[reported : reported + _PARTITIONS_AT_ONCE])
            if report.retained is not None and report.table.columns.partition_by:
                client.drop_others({*report.retained, *(each.values for each in report.partitions)})
            # Last, since it says that all of this has been done.
            client.note_version(report)
        return len(report.partitions)

    @contextmanager
    def _client(self, table: HiveTable) -> Iterator[_Client]:
        try:
            jvm = self._jvm()
            hive = jvm.org.apache.hadoop.hive
            settings = hive.conf.HiveConf()
            settings.set("hive.metastore.uris", self._uri)
            settings.set("hive.metastore.client.socket.timeout", f"{_TIMEOUT_SECONDS}s")
            settings.set("hive.metastore.connect.retries", "1")
            settings.set("hive.metastore.failure.retries", "0")
            settings.set("hive.metastore.client.connect.retry.delay", "1s")
            client = hive.metastore.HiveMetaStoreClient(settings)
            try:
                yield _Client(jvm, client, table, f"{self._storage_uri}/{table.folder}")
            finally:
                client.close()
        except Py4JJavaError as error:
            raise MetastoreRefused(_reason(error.java_exception)) from error
        except Py4JError as error:
            raise MetastoreRefused(str(error)) from error


class _Client:
    """A connection, for one table. `location`: the URI of its folder."""

    def __init__(self, jvm: Any, client: Any, table: HiveTable, location: str) -> None:
        self._jvm = jvm
        self._api = jvm.org.apache.hadoop.hive.metastore.api
        self._client = client
        self._table = table
        self._place = table.database, table.table
        self._location = location

    def table(self) -> Any | None:
        """The stored table. Raises MetastoreRefused if it is not this dataset's."""
        try:
            stored = self._client.getTable(*self._place)
        except Py4JJavaError as error:
            if _name(error.java_exception) == "NoSuchObjectException":
                return None
            raise
        parameters = stored.getParameters()
        owner = tuple(parameters.get(name) for name in _OWNER)
        if owner != (self._table.tenant_id, self._table.dataset_id):
            raise MetastoreRefused("there is a table of this name that is not this dataset's; name another")
        return stored

    def make_table(self, report: HiveReport) -> bool:
        """Has the table there, with its columns; true if it has none of its partitions now."""
        stored = self.table()
        wanted = self._columns(self._table.columns.columns)
        if stored is not None:
            columns = stored.getSd().getCols()
            if columns.equals(wanted):
                return False
            # The metastore takes new columns at the end; any other change it would take for one of types, by position.
            if columns.size() <= wanted.size() and wanted.subList(0, columns.size()).equals(columns):
                stored.getSd().setCols(wanted)
                self._alter(stored, cascade=True)
                return False
            # Its files are not its own: they stay.
            self._client.dropTable(*self._place, False, True)
        table = self._api.Table()
        table.setDbName(self._table.database)
        table.setTableName(self._table.table)
        table.setOwner("headwater")
        table.setTableType("EXTERNAL_TABLE")
        table.setSd(self._storage(self._location))
        table.setPartitionKeys(self._columns(self._table.columns.partition_by))
        owner = dict(zip(_OWNER, (self._table.tenant_id, self._table.dataset_id), strict=True))
        table.setParameters(
            self._map({"EXTERNAL": "TRUE", _VERSION: "0", **owner, **_figures(report.figures)})
        )
        self._client.createTable(table)
        return True

    def sync_partitions(self, partitions: Sequence[HivePartition]) -> None:
        """Adds, alters and drops partitions."""
        warehouse = self._jvm.org.apache.hadoop.hive.metastore.Warehouse
        keys = self._columns(self._table.columns.partition_by)
        names = [warehouse.makePartName(keys, self._list(each.values)) for each in partitions]
        stored = {}
        for there in self._client.getPartitionsByNames(*self._place, self._list(names)):
            # Each call of the JVM takes its time, so values come as one text.
            stored[str(self._jvm.java.lang.String.join("\0", there.getValues()))] = there
        added, altered = self._jvm.java.util.ArrayList(), self._jvm.java.util.ArrayList()
        for partition in partitions:
            there = stored.get("\0".join(partition.values))
            if partition.figures is None:
                if there is not None:
                    self._client.dropPartition(*self._place, there.getValues(), False)
            elif there is None:
                added.add(self._partition(partition, partition.figures))
            elif not _has_statistics(there.getParameters().toString(), partition.figures):
                there.getParameters().putAll(self._map(_figures(partition.figures)))
                altered.add(there)
        if added.size():
            self._client.add_partitions(added)
        if altered.size():
            self._client.alter_partitions(*self._place, altered, self._context(cascade=False))

    def drop_others(self, kept: Set[tuple[str, ...]]) -> None:
        """Drops the partitions that have none of these values."""
        names = self._client.listPartitionNames(*self._place, _ALL)
        for name in str(self._jvm.java.lang.String.join("\n", names)).split("\n"):
            if name and values_in_name(name) not in kept:
                self._client.dropPartition(*self._place, name, False)

    def note_version(self, report: HiveReport) -> None:
        """Says which version all of this is of."""
        stored = self.table()
        if stored is None:
            raise MetastoreRefused("somebody dropped the table while it was reported")
        parameters = {
            _VERSION: str(report.version),
            "headwater.dataset": self._table.dataset,
            "headwater.schema_id": str(self._table.schema_id),
            **_times(report.committed_at),
            **_figures(report.figures),
        }
        stored.getParameters().putAll(self._map(parameters))
        self._alter(stored, cascade=False)

    def _alter(self, table: Any, *, cascade: bool) -> None:
        self._client.alter_table_with_environmentContext(*self._place, table, self._context(cascade=cascade))

    def _context(self, *, cascade: bool) -> Any:
        """Says that figures are given, and not to be made of what lies in folders; `cascade`: partitions follow."""
        parameters = {"DO_NOT_UPDATE_STATS": "true", **({"CASCADE": "true"} if cascade else {})}
        return self._api.EnvironmentContext(self._map(parameters))

    def _partition(self, partition: HivePartition, figures: FileFigures) -> Any:
        made = self._api.Partition()
        made.setDbName(self._table.database)
        made.setTableName(self._table.table)
        made.setValues(self._list(partition.values))
        made.setSd(self._storage(f"{self._location}/{partition.folder}"))
        made.setParameters(self._map(_figures(figures)))
        return made

    def _storage(self, location: str) -> Any:
        serde = self._api.SerDeInfo()
        serde.setSerializationLib(_SERDE)
        serde.setParameters(self._map({"serialization.format": "1"}))
        storage = self._api.StorageDescriptor()
        storage.setCols(self._columns(self._table.columns.columns))
        storage.setLocation(location)
        storage.setInputFormat(_FORMAT)
        storage.setOutputFormat(_FORMAT)
        storage.setSerdeInfo(serde)
        return storage

    def _columns(self, columns: Sequence[HiveColumn]) -> Any:
        return self._list([self._api.FieldSchema(each.name, each.type, each.comment) for each in columns])

    def _list(self, values: Sequence[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for value in values:
            made.add(value)
        return made

    def _map(self, values: dict[str, str]) -> Any:
        made = self._jvm.java.util.HashMap()
        for key, value in values.items():
            made.put(key, value)
        return made


def _figures(figures: FileFigures | None) -> dict[str, str]:
    """Statistics by the names that Hive has for them."""
    if figures is None:
        return {}
    return {
        "numFiles": str(figures.files),
        "numRows": str(figures.rows),
        "totalSize": str(figures.size_bytes),
        **_times(figures.written_at),
    }


def _has_statistics(parameters: str, figures: FileFigures) -> bool:
    """Whether the text of a map of parameters has these statistics."""
    found = set(parameters[1:-1].split(", "))
    return all(f"{name}={value}" in found for name, value in _figures(figures).items())


def _times(moment: datetime | None) -> dict[str, str]:
    if moment is None:
        return {}
    seconds = str(int(moment.timestamp()))
    return {"transient_lastDdlTime": seconds, "lastUpdateTime": seconds}


def _name(exception: Any) -> str:
    return str(exception.getClass().getSimpleName())


def _reason(exception: Any) -> str:
    """What the first line of a Java exception says."""
    message = (exception.getMessage() or "").strip().partition("\n")[0]
    return f"{_name(exception)}: {message}" if message else _name(exception)
