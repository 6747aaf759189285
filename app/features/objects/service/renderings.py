"""How data files are served: as they are stored, or with another footer and without the columns that no version has."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.features.objects.repository.table_files import PinnedVersions, TableFileStore
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.schema.schema import Schema
from app.kernel.iceberg.omitted_columns import unsigned_columns
from app.kernel.parquet.exchange import Exchange, exchange

_CACHE_BYTES: Final = 4 * 1024 * 1024
# About what a column takes, in a schema or in a set of ids.
_COLUMN_BYTES: Final = 256


class _Versions(NamedTuple):
    """Which versions are kept. Files that an expired version alone has are gone when one of these values changes."""

    dataset_id: str
    earliest: int
    schema_id: int
    pins: frozenset[int]


class ServedColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the files of a table, by their ids.

    `visible`: those that are seen. `unreadable`: those of them that engines refuse in a file of a kept version.
    `pins`: what the versions before the history are kept by.
    """

    visible: frozenset[int]
    unreadable: frozenset[int]
    pins: PinnedVersions


class Renderings:
    """What of each data file is seen.

    A column is seen as long as the schema of a kept version has it. What is cached is that of the versions which are
    kept, and schemas never change, so nothing goes stale. A process has one.
    """

    def __init__(self, catalog: DatasetLookup, files: TableFileStore) -> None:
        self._catalog = catalog
        self._files = files
        self._columns = ByteCache[_Versions, tuple[frozenset[int], frozenset[int]]](_CACHE_BYTES)
        self._histories = ByteCache[tuple[str, int], tuple[Schema, ...]](_CACHE_BYTES)
        self._schemas = ByteCache[tuple[str, int], Schema](_CACHE_BYTES)

    def columns(self, dataset: Dataset) -> ServedColumns:
        """The columns that are served. One small query if nothing has changed. Raises Unavailable."""
        pins = self._files.pins(dataset.tenant_id, dataset.id)
        earlier = frozenset(version for version in pins.versions if version < dataset.earliest_version)
        key = _Versions(dataset.id, dataset.earliest_version, dataset.definition.schema.id, earlier)
        columns = self._columns.get(key)
        if columns is None:
            columns = self._read_columns(dataset)
            self._columns.put(key, columns, _COLUMN_BYTES * sum(map(len, columns)))
        visible, unreadable = columns
        return ServedColumns(visible=visible, unreadable=unreadable, pins=pins)

    def visible(self, dataset: Dataset) -> frozenset[int]:
        """The ids of the columns that are seen. No query for a table that has one schema. Raises Unavailable."""
        schema = dataset.definition.schema
        if schema.id == 1:
            return frozenset(each.id for each in schema.fields)
        return self.columns(dataset).visible

    def schemas(self, dataset: Dataset) -> tuple[Schema, ...]:
        """All schemas that the dataset has had, in their order. Raises Unavailable."""
        latest = dataset.definition.schema
        if latest.id == 1:
            return (latest,)
        key = dataset.id, latest.id
        schemas = self._histories.get(key)
        if schemas is None:
            later = self._catalog.later_schemas(dataset.tenant_id, dataset.id, 0)
            schemas = tuple(each for each in later if each.id <= latest.id)
            self._histories.put(key, schemas, _COLUMN_BYTES * sum(len(each.fields) for each in schemas))
        return schemas

    def exchange(
        self,
        dataset: Dataset,
        visible: frozenset[int],
        schema_id: int,
        layout: int | None,
        *,
        shows_own: bool = True,
    ) -> Exchange:
        """What is exchanged in a data file that was written with a schema, in a layout. `visible`: see `visible`;
        `shows_own`: see `Exchange`.

        Raises NotFound, Unavailable.
        """
        return exchange(self._schema(dataset, schema_id).fields, visible, layout, shows_own=shows_own)

    def _read_columns(self, dataset: Dataset) -> tuple[frozenset[int], frozenset[int]]:
        schemas = self.schemas(dataset)
        kept = self._files.kept_schemas(dataset.tenant_id, dataset.id)
        latest = dataset.definition.schema
        # A column that was added at this moment is in the schema of the dataset.
        visible = frozenset(
            field.id for each in schemas if each.id in kept or each is latest for field in each.fields
        ) | {field.id for field in latest.fields}
        return visible, self._unreadable(dataset, schemas)

    def _unreadable(self, dataset: Dataset, schemas: tuple[Schema, ...]) -> frozenset[int]:
        """The one rule for what Iceberg's form of a table omits."""
        if not unsigned_columns(schemas):
            return frozenset()
        earlier = self._files.schemas_without_layout(dataset.tenant_id, dataset.id)
        return unsigned_columns([each for each in schemas if each.id in earlier])

    def _schema(self, dataset: Dataset, schema_id: int) -> Schema:
        key = dataset.id, schema_id
        schema = self._schemas.get(key)
        if schema is None:
            schema = self._catalog.schema(dataset.tenant_id, dataset.id, schema_id).schema
            self._schemas.put(key, schema, _COLUMN_BYTES * len(schema.fields))
        return schema
