"""Renderings of all kinds: made once, kept as objects on the storage, and made again where an object was deleted."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import Final
from uuid import uuid4

import msgspec
import pyarrow as pa

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.features.objects.service.table_files import PARQUET
from app.features.rendered_files.errors import RenderingUnderWay
from app.features.rendered_files.ports import Rendering
from app.features.rendered_files.repository.renderings import RenderingStore
from app.features.rendered_files.service.faults import RenderingFaults
from app.features.rendered_files.service.threads import RenderingThreads
from app.features.rendered_files.values import RenderingEntry
from app.infra.files.checksums import HashingSink, verify
from app.infra.files.errors import CorruptFile
from app.infra.files.ports import FileParts, ObjectStorage
from app.kernel.format.paths import dataset_prefix, rendered_path

WAIT_SECONDS: Final = 5.0
"""For how long a request waits for its files."""
# Increment it when the same input is rendered as other bytes. The writer of Parquet files states its version in them.
_EDITION: Final = f"1 {pa.__version__}".encode()
_KEY_BYTES: Final = 16
_RETRY_SECONDS_MAX: Final = 30
# An object that was just made may be deleted to make room before it is opened.
_OPEN_TIMES_MAX: Final = 3
# About what a process renders in a second, for the time after which clients ask again.
_FILES_PER_SECOND: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedObjects:
    """Makes renderings, and opens their objects. May be called by many threads at once."""

    store: RenderingStore
    storage: ObjectStorage
    threads: RenderingThreads[RenderingEntry]
    wait_seconds: float = WAIT_SECONDS
    faults: RenderingFaults = field(default_factory=RenderingFaults)

    def require(self, dataset: Dataset, renderings: Sequence[Rendering]) -> list[RenderingEntry]:
        """The renderings, in this order, also those without rows. One query if all of them were made before.

        Others are made in the threads of the process, for which the request waits for a short time. Raises
        RenderingUnderWay if some are not ready then, and what the rendering of one of them raises, or raised lately;
        others go on. An object may have been deleted: `content` makes it again.
        """
        return self._require(dataset, renderings, with_bytes=False)

    def content(self, dataset: Dataset, rendering: Rendering, entry: RenderingEntry) -> RenderedContent:
        """The object of a rendering, which has rows."""
        return RenderedContent(objects=self, dataset=dataset, rendering=rendering, entry=entry)

    def again(self, dataset: Dataset, rendering: Rendering, previous: RenderingEntry) -> RenderingEntry:
        """The rendering with an object in place of one that is missing or damaged.

        Raises RenderingUnderWay, NotFound if other bytes are rendered today, and what the rendering raises.
        """
        if rendering_key(rendering) != previous.key:
            raise _outdated()
        if previous.path is not None:
            self.store.drop_object(dataset.tenant_id, dataset.id, previous)
        [entry] = self._require(dataset, [rendering], with_bytes=True)
        if entry.content != previous.content or entry.path is None:
            raise _outdated()
        return entry

    def _require(
        self, dataset: Dataset, renderings: Sequence[Rendering], *, with_bytes: bool
    ) -> list[RenderingEntry]:
        by_key = {rendering_key(each): each for each in renderings}
        if not by_key:
            return []
        entries = self.store.find(dataset.tenant_id, dataset.id, list(by_key))
        if with_bytes:
            entries = {key: each for key, each in entries.items() if _is_complete(each)}
        idle = [key for key, each in entries.items() if each.is_idle]
        if idle:
            self.store.touch(dataset.tenant_id, dataset.id, idle)
        missing = {key: each for key, each in by_key.items() if key not in entries}
        if missing:
            entries |= self._render_all(dataset, missing, len(by_key), with_bytes=with_bytes)
        return [entries[rendering_key(each)] for each in renderings]

    def _render_all(
        self, dataset: Dataset, missing: dict[bytes, Rendering], total: int, *, with_bytes: bool
    ) -> dict[bytes, RenderingEntry]:
        tenant_id = dataset.tenant_id
        flights: dict[bytes, Future[RenderingEntry]] = {}
        faults = {key: self.faults.of((tenant_id, dataset.id, key)) for key in missing}
        for key, rendering in missing.items():
            if faults[key] is not None:
                continue
            render = partial(self._attempt, dataset, rendering, with_bytes=with_bytes)
            flight = self.threads.join((tenant_id, dataset.id, key), render)
            if flight is None:
                break
            flights[key] = flight
        if fault := next(filter(None, faults.values()), None):
            raise fault
        self.threads.wait(tenant_id, flights.values(), self.wait_seconds)
        # Raises the fault of one. The others are rendered all the same.
        results = {key: flight.result() for key, flight in flights.items() if flight.done()}
        if with_bytes and not all(_is_complete(each) for each in results.values()):
            # It joined a flight that only needed the facts.
            results = {key: each for key, each in results.items() if _is_complete(each)}
        if len(results) < len(missing):
            pending = len(missing) - len(results)
            seconds = min(1 + pending // _FILES_PER_SECOND, _RETRY_SECONDS_MAX)
            raise RenderingUnderWay(total - pending, total, seconds)
        return results

    def _attempt(self, dataset: Dataset, rendering: Rendering, *, with_bytes: bool) -> RenderingEntry:
        """What `_render` does. A failure is known to later requests."""
        key = dataset.tenant_id, dataset.id, rendering_key(rendering)
        try:
            entry = self._render(dataset, rendering, with_bytes=with_bytes)
        except Exception as error:
            raise self.faults.add(key, error) from None
        self.faults.end(key)
        return entry

    def _render(self, dataset: Dataset, rendering: Rendering, *, with_bytes: bool) -> RenderingEntry:
        """Makes a rendering, unless another process has made it since."""
        tenant_id, key = dataset.tenant_id, rendering_key(rendering)
        present = self.store.find(tenant_id, dataset.id, [key]).get(key)
        if present is not None and (_is_complete(present) or not with_bytes):
            return present
        path = rendered_path(dataset_prefix(tenant_id, dataset.id), uuid4().hex)
        try:
            # It is made again after a crash of the machine: the first reader compares its digest.
            with self.storage.create(path, durable=False) as file:
                sink = HashingSink(file)
                rows = rendering.write(sink)
                if not rows.row_count:
                    raise _NoRows
        except _NoRows:
            entry = RenderingEntry(
                key=key, view=rendering.view, content="", size_bytes=0, row_count=0, statistics={}, path=None
            )
        else:
            entry = RenderingEntry(
                key=key,
                view=rendering.view,
                content=sink.checksum,
                size_bytes=sink.size_bytes,
                row_count=rows.row_count,
                statistics=rows.statistics,
                path=path,
            )
        # If this fails, the reaper removes the object.
        present = self.store.put(tenant_id, dataset.id, entry, rendering.origin)
        if entry.path is not None and present.path != entry.path:
            self.storage.delete([entry.path])
        return present


@dataclass(kw_only=True)
class RenderedContent:
    """A rendered file, which is opened when its first byte is read (`ObjectContent`)."""

    objects: RenderedObjects
    dataset: Dataset
    rendering: Rendering
    entry: RenderingEntry
    media_type: str = PARQUET
    _lock: Lock = field(default_factory=Lock, init=False)
    _file: FileParts | None = field(default=None, init=False)

    @property
    def size_bytes(self) -> int:
        """See `ObjectContent`."""
        return self.entry.size_bytes

    @property
    def etag(self) -> str:
        """See `ObjectContent`."""
        return self.entry.content

    @property
    def held_bytes(self) -> int:
        """See `ObjectContent`."""
        return 0

    def read_in_memory(self, start: int, count: int) -> bytearray | None:
        """See `ObjectContent`."""
        return None if self._file is None else self._file.read_in_memory(start, count)

    def read(self, start: int, count: int) -> bytes:
        """See `ObjectContent`. Raises RenderingUnderWay if the object was deleted and is not rendered again yet."""
        with self._lock:
            if self._file is None:
                self._file = self._open()
        return self._file.read(start, count)

    def stored_path(self) -> str:
        """The path of the object below the root of the storage. Raises what `read` raises."""
        if self.entry.path is None or not self._is_stored(self.entry.path):
            self.read(0, 1)
        if self.entry.path is None:
            raise _outdated()
        return self.entry.path

    def _is_stored(self, path: str) -> bool:
        try:
            return self.objects.storage.size(path) == self.entry.size_bytes
        except CorruptFile:
            return False

    def _open(self) -> FileParts:
        for _ in range(_OPEN_TIMES_MAX):
            try:
                return self._verified()
            except CorruptFile:
                # It was deleted to make room, or a crash of the machine has left a part of it.
                self.entry = self.objects.again(self.dataset, self.rendering, self.entry)
        return self._verified()

    def _verified(self) -> FileParts:
        path = self.entry.path
        if path is None:
            raise CorruptFile("the object was deleted", path="")
        verify(_Checked(path, self.entry.size_bytes, self.entry.content), self.objects.storage.open(path))
        return self.objects.storage.parts(path)


class _Checked(msgspec.Struct, frozen=True):
    """What the bytes of an object are compared with."""

    path: str
    size_bytes: int
    checksum: str


class _NoRows(Exception):
    """Makes the storage delete an object that is not needed."""


def rendering_key(rendering: Rendering) -> bytes:
    """The key of the row of a rendering: 16 bytes, of its own key and of how this release renders."""
    return blake2b(_EDITION + b"\0" + rendering.key, digest_size=_KEY_BYTES).digest()


def _is_complete(entry: RenderingEntry) -> bool:
    return entry.path is not None or not entry.row_count


def _outdated() -> NotFound:
    return NotFound("the table has no such rendered file any more: load the table again")
