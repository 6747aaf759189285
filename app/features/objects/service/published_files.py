"""Which columns of data files are served, and the paths and sizes that the files have then.

A column is served as long as a kept version has it. So a file has one form at a time, whichever version is read; the
path has its digest. This is the only place that decides it: manifests, plans and the files themselves agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader
from app.kernel.format.file_group import DataFile
from app.kernel.format.schema.schema import Schema
from app.kernel.parquet.exchange import Exchange, exchange, exchanged_size

DATA_SEGMENT: Final = "data"
"""The first segment of the paths of data files below the location of a table."""
_DATA_FOLDER: Final = "/data/"


class FirstKept(Protocol):
    """Which versions are kept."""

    def first_kept(self, tenant_id: str, dataset_id: str, since: int) -> int:
        """The first version from `since` on that is kept. Raises NotFound."""
        ...


@dataclass(frozen=True, kw_only=True)
class ServedFiles:
    """The files of a dataset as they are served. `schemas`: all that it has had, by id. `visible`: the ids of columns
    that are served.
    """

    schemas: Mapping[int, Schema]
    visible: frozenset[int]
    _exchanges: dict[tuple[int, int | None], Exchange] = field(default_factory=dict)

    def exchange(self, file: DataFile) -> Exchange:
        """What is exchanged in a file."""
        key = file.schema_id, file.layout
        if key not in self._exchanges:
            self._exchanges[key] = exchange(self.schemas[file.schema_id].fields, self.visible, file.layout)
        return self._exchanges[key]

    def path(self, file: DataFile) -> str:
        """The path of the served file below the location of the table."""
        return f"{DATA_SEGMENT}/{self.exchange(file).rendering}/{below_data(file.path)}"

    def size_bytes(self, file: DataFile) -> int:
        """The exact size of the served file, without reading it."""
        return exchanged_size(self.exchange(file), file.size_bytes)


def below_data(path: str) -> str:
    """The part of a stored data file's path below the folder of data files."""
    return path.partition(_DATA_FOLDER)[2] or path.removeprefix(_DATA_FOLDER[1:])


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePublication:
    """What is served of the files of datasets at this time."""

    catalog: DatasetLookup
    timeline: VersionReader
    leases: FirstKept

    def of(self, dataset: Dataset) -> ServedFiles:
        """Raises NotFound (dataset gone)."""
        latest = dataset.definition.schema
        if latest.id == 1:
            return _served_files((latest,), 1)
        at = dataset.tenant_id, dataset.id
        first = min(self.leases.first_kept(*at, 0), dataset.version)
        schemas = self.catalog.later_schemas(*at, 0)
        return _served_files(tuple(schemas), self.timeline.schema_at(*at, first).id)


@lru_cache(maxsize=256)
def _served_files(schemas: tuple[Schema, ...], first_kept: int) -> ServedFiles:
    """`first_kept`: the id of the first schema that a kept version has."""
    visible = {field.id for schema in schemas if schema.id >= first_kept for field in schema.fields}
    return ServedFiles(schemas={schema.id: schema for schema in schemas}, visible=frozenset(visible))
