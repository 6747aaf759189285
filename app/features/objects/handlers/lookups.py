"""Which object a request is for, remembered for a second: a scan sends many requests for each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Never, TypeAlias

from app.access.errors import NotFound
from app.access.tenants.values import Principal
from app.core.catalog.values import Dataset
from app.features.objects.ports import ObjectContent, ObjectTree, ServedTable
from app.features.objects.service.keys import TableKey
from app.features.objects.service.objects import TableObjects
from app.http.limits.threads import Threads
from app.infra.sharing.next_flight import NextFlight
from app.infra.sharing.recent_values import RecentValues

HELD_SECONDS: Final = 1.0
"""For how long requests are answered from what an earlier one found."""
_HELD_BYTES: Final = 32 * 1024 * 1024
# What an open file and the definition of its dataset count as: at most 500 files are open.
_OBJECT_BYTES: Final = 64 * 1024
_TABLE_BYTES: Final = 64 * 1024

DatasetLookups: TypeAlias = NextFlight[tuple[str, str], Never, Dataset]


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectLookup:
    """An object as it was found for a principal, which may read all of the dataset."""

    principal: Principal
    dataset: Dataset
    content: ObjectContent
    tag: str
    """The ETag, quoted."""
    fields: Sequence[tuple[bytes, bytes]]
    """Those of each response with the object, or a part of it."""

    @classmethod
    def of(cls, principal: Principal, dataset: Dataset, content: ObjectContent) -> ObjectLookup:
        """The lookup of an object."""
        tag = f'"{content.etag}"'
        # A path has the same bytes for ever, so any fixed time is true.
        time = f"{dataset.created_at:%a, %d %b %Y %H:%M:%S} GMT"
        fields = (
            (b"etag", tag.encode()),
            (b"accept-ranges", b"bytes"),
            (b"cache-control", b"private, no-transform"),
            (b"last-modified", time.encode()),
        )
        return cls(principal=principal, dataset=dataset, content=content, tag=tag, fields=fields)


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectLookups:
    """Finds objects, in `threads`, and remembers what it found. Belongs to the event loop.

    What was found for a principal holds as long as the process has the same one: it gets another one as soon as it
    hears of a change of keys, grants, the tenant or the name of a dataset, and for each request while it hears nothing.
    """

    threads: Threads
    _tables: RecentValues[TableKey, tuple[Principal, ServedTable]] = field(
        default_factory=lambda: RecentValues(HELD_SECONDS, _HELD_BYTES)
    )
    _objects: RecentValues[tuple[TableKey, bytes], ObjectLookup] = field(
        default_factory=lambda: RecentValues(HELD_SECONDS, _HELD_BYTES)
    )

    async def table(
        self, key: TableKey, principal: Principal, datasets: DatasetLookups, trees: Mapping[str, ObjectTree]
    ) -> ServedTable:
        """The table of the key, as it is now. Raises TableKeyRefused, Forbidden, NotFound."""
        dataset = await datasets.join((principal.tenant_id, key.dataset_id))
        table = TableObjects(trees=trees).check_key(key, principal, dataset)
        self._tables.put(key, (principal, table), _TABLE_BYTES)
        return table

    async def object(
        self,
        key: TableKey,
        principal: Principal,
        object_key: bytes,
        datasets: DatasetLookups,
        trees: Mapping[str, ObjectTree],
    ) -> ObjectLookup:
        """The object with a key, decoded. Raises as `table`, and NotFound."""
        known = self._objects.get((key, object_key))
        if known is not None and known.principal is principal:
            return known
        objects = TableObjects(trees=trees)
        earlier = self._tables.get(key)
        if earlier is not None and earlier[0] is principal:
            # Not found, it is looked for once more: the table may have changed meanwhile.
            with suppress(NotFound):
                return await self._find(key, principal, object_key, earlier[1], objects)
        table = await self.table(key, principal, datasets, trees)
        return await self._find(key, principal, object_key, table, objects)

    async def _find(
        self,
        key: TableKey,
        principal: Principal,
        object_key: bytes,
        table: ServedTable,
        objects: TableObjects,
    ) -> ObjectLookup:
        content = await self.threads.run(objects.find, table, object_key)
        lookup = ObjectLookup.of(principal, table.dataset, content)
        self._objects.put((key, object_key), lookup, _OBJECT_BYTES + content.held_bytes)
        return lookup
