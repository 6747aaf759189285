"""How data files are served: as they are stored, or with another footer and without the columns that no version has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.schema.schema import Schema
from app.kernel.parquet.exchange import Exchange, exchange

_CACHE_BYTES: Final = 4 * 1024 * 1024
# About what a column takes, in a schema or in a set of ids.
_COLUMN_BYTES: Final = 256


class Renderings:
    """What of each data file is seen. Schemas never change, so nothing that is cached here goes stale.

    A column is seen as long as the schema of a kept version has it.
    """

    def __init__(self, catalog: DatasetLookup, kept_schemas: Callable[[str, str], frozenset[int]]) -> None:
        """`kept_schemas`: the ids of the schemas that kept versions have, by tenant and dataset."""
        self._catalog = catalog
        self._kept_schemas = kept_schemas
        self._visible = ByteCache[tuple[str, frozenset[int]], frozenset[int]](_CACHE_BYTES)
        self._schemas = ByteCache[tuple[str, int], Schema](_CACHE_BYTES)

    def visible(self, dataset: Dataset) -> frozenset[int]:
        """The ids of the columns that are seen. Raises Unavailable."""
        schema_ids = self._kept_schemas(dataset.tenant_id, dataset.id)
        key = dataset.id, schema_ids
        ids = self._visible.get(key)
        if ids is None:
            before = min(schema_ids, default=dataset.definition.schema.id) - 1
            schemas = self._catalog.later_schemas(dataset.tenant_id, dataset.id, before)
            ids = frozenset(field.id for each in schemas if each.id in schema_ids for field in each.fields)
            self._visible.put(key, ids, _COLUMN_BYTES * len(ids))
        # A column that was added at this moment is in the schema of the dataset.
        return ids | {field.id for field in dataset.definition.schema.fields}

    def exchange(
        self, dataset: Dataset, visible: frozenset[int], schema_id: int, layout: int | None
    ) -> Exchange:
        """What is exchanged in a data file that was written with a schema, in a layout. `visible`: see `visible`.

        Raises NotFound, Unavailable.
        """
        return exchange(self._schema(dataset, schema_id).fields, visible, layout)

    def _schema(self, dataset: Dataset, schema_id: int) -> Schema:
        key = dataset.id, schema_id
        schema = self._schemas.get(key)
        if schema is None:
            schema = self._catalog.schema(dataset.tenant_id, dataset.id, schema_id).schema
            self._schemas.put(key, schema, _COLUMN_BYTES * len(schema.fields))
        return schema
