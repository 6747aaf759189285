"""Whether the storage can be written, and the space of disks, without a wait for what hangs."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from app.infra.files.storage import LocalStorage, Storage
from app.infra.identifiers import new_id
from app.infra.outages import awaited
from app.infra.sharing.single_flight import SingleFlight, in_daemon_thread

_AGE_SECONDS_MAX: Final = 5.0
_WAIT_SECONDS: Final = 1.5
_SPACE_SECONDS: Final = 0.5
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_THOUSAND: Final = 1_000
_FAULTS: Final = {"space": "it is full", "storage": "it is out of reach"}


class StorageProbe:
    """Writes and deletes a small file every few seconds, if asked. Safe to use from any number of threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._probes = SingleFlight[str, Future[str]]()
        self._began = 0.0
        self._latest: tuple[float, str] | None = None

    def run(self) -> str:
        """The fault that the latest probe has found, a few seconds ago at most; empty if the storage works.

        Waits for the probe for a few seconds.
        """
        latest = self._latest
        if latest is not None and time.monotonic() - latest[0] <= _AGE_SECONDS_MAX:
            return latest[1]
        probe = self._probes.join("probe", self._begin)
        try:
            return probe.result(max(0.0, self._began + _WAIT_SECONDS - time.monotonic()))
        except TimeoutError:
            return f"it has not answered for {time.monotonic() - self._began:.0f} s"

    def _begin(self) -> Future[str]:
        self._began = time.monotonic()
        return in_daemon_thread(partial(self._probe, self._began), "probe")

    def _probe(self, began: float) -> str:
        fault = self._fault()
        self._latest = began, fault
        return fault

    def _fault(self) -> str:
        path = f"probe-{new_id()}"
        try:
            with self._storage.create(path) as file:
                file.write(b"probe")
            self._storage.delete([path])
        except Exception as error:
            return _FAULTS.get(awaited(error) or "", "it cannot be written")
        return ""


class Space(NamedTuple):
    """The bytes of a disk, and how many of them a process may still write. `folder`: what is on it, not where."""

    free: int
    total: int
    folder: str


def disk_folders(data_dir: Path, storage: Storage) -> dict[str, Path]:
    """The folders whose disks a process writes: `data`, with what spills, and `storage` that is not elsewhere."""
    local = {"storage": storage.root} if isinstance(storage, LocalStorage) else {}
    return {"data": data_dir, **local}


class DiskSpace:
    """The space of the fullest of the disks of some folders. Safe to use from any number of threads."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """`folders`: by what they are for."""
        self._folders = folders
        self._searches = SingleFlight[str, Future[Space | None]]()
        self._found: tuple[float, Space | None] | None = None

    def latest(self) -> Space | None:
        """The space, a few seconds old at most; None if it is unknown, such as while a disk hangs."""
        found = self._found
        if found is not None and time.monotonic() - found[0] <= _AGE_SECONDS_MAX:
            return found[1]
        search = self._searches.join("space", lambda: in_daemon_thread(self._search, "disk space"))
        try:
            return search.result(_SPACE_SECONDS)
        except (TimeoutError, OSError):
            return None

    def _search(self) -> Space | None:
        names_by_disk: dict[int, list[str]] = {}
        for name, folder in self._folders.items():
            if folder.exists():
                names_by_disk.setdefault(folder.stat().st_dev, []).append(name)
        usages = {
            " and ".join(names): shutil.disk_usage(self._folders[names[0]])
            for names in names_by_disk.values()
        }
        spaces = [Space(each.free, each.used + each.free, names) for names, each in usages.items()]
        space = min(spaces, key=lambda each: each.free / max(1, each.total), default=None)
        self._found = time.monotonic(), space
        return space


def readable_bytes(number: float) -> str:
    """Bytes in the unit that fits: 12.4 MB."""
    size, unit = float(number), _UNITS[0]
    for unit in _UNITS:
        if size < _THOUSAND or unit == _UNITS[-1]:
            break
        size /= _THOUSAND
    return f"{size:.0f} {unit}" if unit == "B" or size >= _THOUSAND / 10 else f"{size:.1f} {unit}"


def resident_bytes() -> int | None:
    """The bytes of memory that this process occupies; None where the kernel does not report them."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
