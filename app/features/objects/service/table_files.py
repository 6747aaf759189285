"""The data files of tables: `data/{rendering}/{path below the data folder of the dataset}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.features.objects.errors import ObjectRequestUnsupported
from app.features.objects.ports import ServedTable
from app.features.objects.repository.table_files import FileForm, StoredDataFile, TableFileStore
from app.features.objects.service.renderings import Renderings
from app.features.objects.values import SHARE, SHARE_VECTORS, ObjectEntry
from app.infra.files.errors import CorruptFile
from app.infra.files.ports import FileParts, ObjectStorage
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.paths import Folder, dataset_prefix
from app.kernel.parquet.compact import FooterTooLarge, InvalidFooter
from app.kernel.parquet.exchange import AS_STORED, Exchange, exchanged_size
from app.kernel.parquet.exchanged_file import ExchangedFile, read_footer
from app.kernel.parquet.exchanged_footer import ExchangedFooter

PARQUET: Final = "application/vnd.apache.parquet"
FOOTERS_BYTES: Final = 16 * 1024 * 1024
"""The memory of a process in which exchanged footers are cached."""
_RANGE_BYTES: Final = 128

Footers = ByteCache[tuple[str, str], ExchangedFooter]
"""Exchanged footers, by the path of the file and the rendering."""


@dataclass(kw_only=True)
class DataFileContent:
    """A data file as it is served. It is opened when its first byte is read."""

    storage: ObjectStorage
    footers: Footers
    stored_file: StoredDataFile
    exchange: Exchange
    media_type: str = PARQUET
    _file: FileParts | None = field(default=None, init=False)
    # The cache may not have room for it, and requests read many parts.
    _exchanged: ExchangedFooter | None = field(default=None, init=False)

    @property
    def size_bytes(self) -> int:
        """See `ObjectContent`."""
        return exchanged_size(self.exchange, self.stored_file.size_bytes)

    @property
    def etag(self) -> str:
        """See `ObjectContent`."""
        return _etag(self.stored_file, self.exchange)

    @property
    def held_bytes(self) -> int:
        """See `ObjectContent`."""
        return _footer_bytes(self._exchanged) if self._exchanged else 0

    def read_in_memory(self, start: int, count: int) -> bytes | bytearray | None:
        """See `ObjectContent`."""
        if self._file is None:
            return None
        if self.exchange.rendering == AS_STORED:
            return self._file.read_in_memory(start, count)
        if self._exchanged is None:
            return None
        try:
            return ExchangedFile(self._exchanged, self._in_memory).read(start, count)
        except _NotInMemory:
            return None

    def read(self, start: int, count: int) -> bytes:
        """See `ObjectContent`."""
        if self.exchange.rendering == AS_STORED:
            return self._read(start, count)
        return ExchangedFile(self._footer(), self._read).read(start, count)

    def _footer(self) -> ExchangedFooter:
        key = self.stored_file.path, self.exchange.rendering
        footer = self._exchanged or self.footers.get(key)
        if footer is None:
            footer = self._new_footer()
            self.footers.put(key, footer, _footer_bytes(footer))
        self._exchanged = footer
        return footer

    def _new_footer(self) -> ExchangedFooter:
        path = self.stored_file.path
        try:
            return read_footer(self._read, self.stored_file.size_bytes, self.exchange)
        except FooterTooLarge as error:
            raise ObjectRequestUnsupported(
                f"{path} cannot be served with other columns than it has: {error}. Read the table by /scans"
            ) from error
        except InvalidFooter as error:
            raise CorruptFile(f"the footer of {path} is damaged: {error}", path=path) from error

    def _read(self, start: int, count: int) -> bytes:
        if self._file is None:
            self._file = self.storage.parts(self.stored_file.path)
        return self._file.read(start, count)

    def _in_memory(self, start: int, count: int) -> bytes | bytearray:
        part = None if self._file is None else self._file.read_in_memory(start, count)
        if part is None:
            raise _NotInMemory
        return part


class _NotInMemory(Exception):
    """A part of a file has to be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFiles:
    """The data files of kept versions, and of those that have expired lately: for who sees the whole dataset."""

    files: TableFileStore
    renderings: Renderings
    storage: ObjectStorage
    footers: Footers
    segment: str = "data"

    def find(self, table: ServedTable, path: str) -> DataFileContent:
        """See `ObjectTree`. A rendering that is not the one of today is not found.

        Recipients of shares get files without the columns of the format itself, and none of which all kept versions
        have deleted rows: that one is rendered for them.
        """
        if table.access.restricted:
            raise _missing()
        dataset = table.dataset
        rendering, _, below_data = path.partition("/")
        for_recipient = table.variant in (SHARE, SHARE_VECTORS)
        stored_file = self.files.find(
            dataset.tenant_id, dataset.id, _folder(dataset) + below_data, whole=table.variant == SHARE
        )
        if stored_file is None:
            raise _missing()
        visible = self.renderings.visible(dataset)
        exchange = self.renderings.exchange(
            dataset, visible, stored_file.schema_id, stored_file.layout, shows_own=not for_recipient
        )
        if rendering != exchange.rendering:
            raise _missing()
        return DataFileContent(
            storage=self.storage, footers=self.footers, stored_file=stored_file, exchange=exchange
        )

    def listing(self, table: ServedTable, prefix: str, after: str, limit: int) -> Sequence[ObjectEntry]:
        """See `ObjectTree`. Files of several renderings are in the order of their renderings."""
        entries: list[ObjectEntry] = []
        if table.access.restricted or table.variant in (SHARE, SHARE_VECTORS):
            # Recipients have links, which list nothing.
            return entries
        dataset = table.dataset
        for exchange, forms in self._exchanges(dataset):
            base = f"{exchange.rendering}/"
            is_below = base.startswith(prefix) or prefix.startswith(base)
            is_behind = after > base and not after.startswith(base)
            if is_below and not is_behind and len(entries) < limit:
                path_prefix, path_after = prefix[len(base) :], after[len(base) :]
                entries += self._entries(
                    dataset, exchange, forms, path_prefix, path_after, limit - len(entries)
                )
        return entries

    def _exchanges(self, dataset: Dataset) -> list[tuple[Exchange, list[FileForm]]]:
        """The renderings of the files, in their order, each with the forms of files that it is of."""
        visible = self.renderings.visible(dataset)
        by_rendering: dict[str, tuple[Exchange, list[FileForm]]] = {}
        for form in self.files.forms(dataset.tenant_id, dataset.id):
            exchange = self.renderings.exchange(dataset, visible, form.schema_id, form.layout)
            by_rendering.setdefault(exchange.rendering, (exchange, []))[1].append(form)
        return [by_rendering[rendering] for rendering in sorted(by_rendering)]

    def _entries(
        self,
        dataset: Dataset,
        exchange: Exchange,
        forms: Sequence[FileForm],
        prefix: str,
        after: str,
        limit: int,
    ) -> list[ObjectEntry]:
        folder = _folder(dataset)
        stored_files = self.files.listing(
            dataset.tenant_id, dataset.id, forms, folder + prefix, folder + after, limit
        )
        return [
            ObjectEntry(
                path=f"{exchange.rendering}/{each.path.removeprefix(folder)}",
                size_bytes=exchanged_size(exchange, each.size_bytes),
                etag=_etag(each, exchange),
            )
            for each in stored_files
        ]


def _folder(dataset: Dataset) -> str:
    return f"{dataset_prefix(dataset.tenant_id, dataset.id)}/{Folder.DATA.value}/"


def _footer_bytes(footer: ExchangedFooter) -> int:
    return len(footer.tail) + _RANGE_BYTES * len(footer.ranges)


def _etag(stored_file: StoredDataFile, exchange: Exchange) -> str:
    if exchange.rendering == AS_STORED:
        return stored_file.checksum
    return f"{stored_file.checksum}-{exchange.rendering}"


def _missing() -> NotFound:
    return NotFound("no kept version of the table has this data file in this rendering: load the table again")
