"""The names of tenants and datasets in the lines of the log, as of the last hour."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

_KEPT_MAX: Final = 10_000
_KEPT_SECONDS: Final = 3_600.0
_Key = tuple[str, str]


class LogNames:
    """Names by id. `find`: the names of a tenant and a dataset by their ids; None where they are gone."""

    def __init__(self, find: Callable[[str, str], tuple[str, str] | None]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, tuple[float, Mapping[str, str]]] = OrderedDict()

    def facts_of(self, tenant_id: str, dataset_id: str) -> Mapping[str, str]:
        """The facts of all lines about work for the dataset. Where names cannot be looked up, they are the ids."""
        key = tenant_id, dataset_id
        with self._lock:
            entry = self._entries.get(key)
        if entry is not None and time.monotonic() - entry[0] < _KEPT_SECONDS:
            return entry[1]
        try:
            names = self._find(tenant_id, dataset_id)
        except Exception:
            # What the work itself says about it comes next.
            names = None
        if names is None:
            return {"tenant": tenant_id, "dataset": dataset_id}
        names_by_fact = {"tenant": names[0], "dataset": names[1]}
        with self._lock:
            self._entries[key] = time.monotonic(), names_by_fact
            self._entries.move_to_end(key)
            if len(self._entries) > _KEPT_MAX:
                self._entries.popitem(last=False)
        return names_by_fact
