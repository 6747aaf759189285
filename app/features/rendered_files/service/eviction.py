"""Keeps rendered objects within their bounds, and removes those that are no longer needed."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.features.rendered_files.repository.evictions import EvictionStore
from app.features.rendered_files.values import UsedObject
from app.infra.files.ports import ObjectStorage

IDLE_SECONDS_MAX: Final = 30 * 86_400.0
"""Facts of a rendering are kept for so long after its last use."""
# Of a tenant at once: the others follow in the next round.
_REMOVED_MAX: Final = 10_000
_STEP: Final = 1_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvictRenderings:
    """Deletes objects that were used longest ago, until those of each tenant, and of all, are within their bounds.

    The object is deleted after its row says so: who reads it meanwhile renders it again. `bytes_max`,
    `tenant_bytes_max`: the bounds, which are exceeded until the next round at most.
    """

    store: EvictionStore
    storage: ObjectStorage
    bytes_max: int
    tenant_bytes_max: int

    def run(self) -> int:
        """One round over all tenants; returns the number of objects deleted. A failure of one does not affect others.

        Raises Unavailable if their bytes cannot be summed up.
        """
        object_count = 0
        for tenant_id in self.store.stored_bytes():
            object_count += self._guarded(tenant_id, self._remove_unused)
        sizes = self.store.stored_bytes()
        for tenant_id, size_bytes in sizes.items():
            if size_bytes > self.tenant_bytes_max:
                evict = partial(self._evict_of_tenant, excess=size_bytes - self.tenant_bytes_max)
                object_count += self._guarded(tenant_id, evict)
        sizes = self.store.stored_bytes()
        excess = sum(sizes.values()) - self.bytes_max
        if excess > 0:
            object_count += self._evict(self._by_use_of_all([*sizes]), excess)
        if object_count:
            _log.info("deleted %d rendered files", object_count)
        return object_count

    def _guarded(self, tenant_id: str, remove: Callable[[str], int]) -> int:
        try:
            return remove(tenant_id)
        except Exception:
            _log.exception("the rendered files of tenant %s could not be removed", tenant_id)
            return 0

    def _evict_of_tenant(self, tenant_id: str, *, excess: int) -> int:
        return self._evict(((tenant_id, each) for each in self._by_use(tenant_id)), excess)

    def _remove_unused(self, tenant_id: str) -> int:
        object_count = 0
        for _ in range(_REMOVED_MAX // _STEP):
            paths = self.store.remove_unused(tenant_id, idle_seconds=IDLE_SECONDS_MAX, limit=_STEP)
            objects = [path for path in paths if path is not None]
            self.storage.delete(objects)
            object_count += len(objects)
            if len(paths) < _STEP:
                break
        return object_count

    def _by_use(self, tenant_id: str) -> Iterator[UsedObject]:
        """The objects of a tenant that were used longest ago, first those."""
        yield from self.store.oldest(tenant_id, _REMOVED_MAX)

    def _by_use_of_all(self, tenants: list[str]) -> Iterator[tuple[str, UsedObject]]:
        """The objects of all tenants in the order of their last uses."""
        candidates = [
            [(each.used_at, tenant_id, each) for each in self._by_use(tenant_id)] for tenant_id in tenants
        ]
        for _, tenant_id, each in heapq.merge(*candidates):
            yield tenant_id, each

    def _evict(self, candidates: Iterator[tuple[str, UsedObject]], excess: int) -> int:
        """Deletes the first objects until these bytes are free. Returns how many it deleted."""
        by_tenant: dict[str, list[UsedObject]] = {}
        freed_bytes = 0
        for tenant_id, each in candidates:
            if freed_bytes >= excess:
                break
            by_tenant.setdefault(tenant_id, []).append(each)
            freed_bytes += each.size_bytes
        for tenant_id, objects in by_tenant.items():
            for start in range(0, len(objects), _STEP):
                step = objects[start : start + _STEP]
                self.store.release(tenant_id, step)
                self.storage.delete([each.path for each in step])
        return sum(map(len, by_tenant.values()))
