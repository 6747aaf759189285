"""Deleted rows as Iceberg has them: Puffin files with the stored bitmaps, or Parquet files of positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from app.features.iceberg.service.table_form import TableForm, vector_of
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.file_group import DataFile
from app.kernel.iceberg.manifests import DeleteEntry
from app.kernel.iceberg.position_deletes import position_deletes
from app.kernel.iceberg.puffin import content_size, puffin_file, puffin_size

_CONTENT_BYTES: Final = 16 * 1024 * 1024
_SIZES_BYTES: Final = 16 * 1024 * 1024
_PUFFIN: Final = "v3"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteFiles:
    """The files of deleted rows. Each is a function of one data file's entry in the catalogue.

    Raises CorruptFile for a vector that is not the one of the commit.
    """

    vectors: VectorReader
    _contents: ByteCache[str, bytes] = field(default_factory=lambda: ByteCache(_CONTENT_BYTES))
    _sizes: ByteCache[str, int] = field(default_factory=lambda: ByteCache(_SIZES_BYTES))

    def entry(self, form: TableForm, file: DataFile) -> DeleteEntry:
        """The entry of the deleted rows of a file."""
        vector = vector_of(file)
        return DeleteEntry(
            path=form.delete_path(file),
            size_bytes=self.size_bytes(form, file),
            data_path=form.data_path(file),
            partition_path=file.slot.partition_path,
            cardinality=vector.cardinality,
            added_version=file.added_version or 0,
            vector_bytes=content_size(vector.size_bytes) if form.variant == _PUFFIN else None,
        )

    def size_bytes(self, form: TableForm, file: DataFile) -> int:
        """The exact size. That of a Puffin file is known without the bitmap."""
        if form.variant == _PUFFIN:
            vector = vector_of(file)
            return puffin_size(vector.size_bytes, vector.cardinality, form.data_path(file))
        key = _key(form, file)
        size = self._sizes.get(key)
        if size is None:
            size = len(self.content(form, file))
            self._sizes.put(key, size, 0)
        return size

    def content(self, form: TableForm, file: DataFile) -> bytes:
        """The bytes."""
        key = _key(form, file)
        content = self._contents.get(key)
        if content is None:
            content = self._renderer(form)(file, form.data_path(file))
            self._contents.put(key, content, len(content))
        return content

    def _renderer(self, form: TableForm) -> Callable[[DataFile, str], bytes]:
        return self._puffin if form.variant == _PUFFIN else self._positions

    def _puffin(self, file: DataFile, data_path: str) -> bytes:
        vector = vector_of(file)
        return puffin_file(self.vectors.serialized(vector), vector.cardinality, data_path)

    def _positions(self, file: DataFile, data_path: str) -> bytes:
        return position_deletes(self.vectors.read(vector_of(file)), data_path)


def _key(form: TableForm, file: DataFile) -> str:
    """Of one file at one time: its path has the table and the added version, and that of the data file its form."""
    return f"{form.delete_path(file)} {form.files.exchange(file).rendering}"
