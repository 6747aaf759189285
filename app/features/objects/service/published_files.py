"""The paths and sizes that data files have as they are served, for what lists them.

`Renderings` decides which columns are served, here as for the files themselves. So a file has one form at a time,
whichever version is read; the path has its digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.core.catalog.values import Dataset
from app.features.objects.service.renderings import Renderings
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.file_group import DataFile
from app.kernel.format.schema.schema import Schema
from app.kernel.parquet.exchange import Exchange, exchange, exchanged_size

DATA_SEGMENT: Final = "data"
"""The first segment of the paths of data files below the location of a table."""
_DATA_FOLDER: Final = "/data/"
_CACHE_BYTES: Final = 16 * 1024 * 1024
# About what a column takes, in a schema or in an exchange.
_COLUMN_BYTES: Final = 256


@dataclass(frozen=True, kw_only=True)
class ServedFiles:
    """The files of a dataset as they are served. `schemas`: all that it has had, by id. `visible`: the ids of columns
    that are served. `unreadable`: those of them that engines refuse in some file. `shows_own`: whether files have the
    columns of the format itself.
    """

    schemas: Mapping[int, Schema]
    visible: frozenset[int]
    unreadable: frozenset[int] = frozenset()
    shows_own: bool = True
    _exchanges: dict[tuple[int, int | None], Exchange] = field(default_factory=dict)

    def exchange(self, file: DataFile) -> Exchange:
        """What is exchanged in a file."""
        key = file.schema_id, file.layout
        if key not in self._exchanges:
            columns = self.schemas[file.schema_id].fields
            self._exchanges[key] = exchange(columns, self.visible, file.layout, shows_own=self.shows_own)
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
class TablePublication:
    """What is served of a dataset at this time. `names`: the versions of savepoints and tags."""

    files: ServedFiles
    names: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePublication:
    """What is served of the files of datasets at this time. A process has one, which keeps what it has made."""

    renderings: Renderings
    _served: ByteCache[tuple[object, ...], ServedFiles] = field(
        default_factory=lambda: ByteCache(_CACHE_BYTES)
    )

    def of(self, dataset: Dataset, *, shows_own: bool = True) -> TablePublication:
        """One small query if nothing has changed. Raises NotFound (dataset gone), Unavailable."""
        columns = self.renderings.columns(dataset)
        visible, unreadable = columns.visible, columns.unreadable
        key = dataset.id, dataset.definition.schema.id, visible, unreadable, shows_own
        files = self._served.get(key)
        if files is None:
            by_id = {schema.id: schema for schema in self.renderings.schemas(dataset)}
            files = ServedFiles(schemas=by_id, visible=visible, unreadable=unreadable, shows_own=shows_own)
            # Each schema, and what is exchanged in the files of one, has its columns.
            self._served.put(key, files, 3 * _COLUMN_BYTES * sum(len(each.fields) for each in by_id.values()))
        return TablePublication(files=files, names=columns.pins.names)
