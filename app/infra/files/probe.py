"""Whether the storage can be written, and how much space there is, without a wait for a disk that hangs."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from app.infra.files.storage import LocalStorage, Storage
from app.infra.identifiers import new_id
from app.infra.outages import awaited
from app.infra.sharing.single_flight import SingleFlight, in_daemon_thread

_AGE_SECONDS_MAX: Final = 5.0
_WAIT_SECONDS: Final = 1.5
_FAULTS: Final = {"space": "it is full", "storage": "it is out of reach"}


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of the storage and of the disks of this process; empty where there is none."""

    storage: str = ""
    disk: str = ""


class StorageProbe:
    """Writes and deletes a small file every few seconds, if asked. Safe to use from any number of threads."""

    def __init__(self, storage: Storage, data_dir: Path, free_bytes_min: int) -> None:
        """`free_bytes_min`: what must be free in the data directory, and in storage on a disk."""
        self._storage = storage
        self._folders = [data_dir, *([storage.root] if isinstance(storage, LocalStorage) else [])]
        self._free_bytes_min = free_bytes_min
        self._probes = SingleFlight[str, Future[Probed]]()
        self._began = 0.0
        self._latest: tuple[float, Probed] | None = None

    def run(self) -> Probed:
        """The result of the latest probe, which is a few seconds old at most. Waits for it for a few seconds."""
        latest = self._latest
        if latest is not None and time.monotonic() - latest[0] <= _AGE_SECONDS_MAX:
            return latest[1]
        probe = self._probes.join("probe", self._begin)
        try:
            return probe.result(max(0.0, self._began + _WAIT_SECONDS - time.monotonic()))
        except TimeoutError:
            return Probed(storage=f"it has not answered for {time.monotonic() - self._began:.0f} s")

    def _begin(self) -> Future[Probed]:
        self._began = time.monotonic()
        return in_daemon_thread(partial(self._probe, self._began), "probe")

    def _probe(self, began: float) -> Probed:
        faults = Probed(storage=self._written(), disk=self._full())
        self._latest = began, faults
        return faults

    def _written(self) -> str:
        path = f"probe-{new_id()}"
        try:
            with self._storage.create(path) as file:
                file.write(b"probe")
            self._storage.delete([path])
        except Exception as error:
            return _FAULTS.get(awaited(error) or "", "it cannot be written")
        return ""

    def _full(self) -> str:
        for folder in self._folders:
            # A missing folder is a fault of the storage.
            free = shutil.disk_usage(folder).free if folder.exists() else self._free_bytes_min
            if free < self._free_bytes_min:
                return f"{free} bytes are free, of {self._free_bytes_min} at least"
        return ""
