"""Scans of engines that stand still between two data files, as long as a test needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa

from tests.open.engines import Address, Reader
from tests.support.http_proxy import HostProxy, host_proxy
from tests.support.waiting import until

_FILES: Final = ("/data/", "/rendered/")
_SECONDS_MAX: Final = 120.0


@dataclass
class Turnstile:
    """Requests for the first `free` data files pass. Those for others stand still until it is opened."""

    free: int
    passed: set[str] = field(default_factory=set)
    reached: Event = field(default_factory=Event)
    opened: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    def before(self, method: str, path: str) -> None:
        """Returns once the request may pass."""
        if not _reads_file(method, path):
            return
        name = urlsplit(path).path
        with self._lock:
            if len(self.passed) < self.free:
                self.passed.add(name)
        if name not in self.passed:
            self.reached.set()
            self.opened.wait(_SECONDS_MAX)


def _reads_file(method: str, path: str) -> bool:
    """Whether a request is for bytes of a data file."""
    below = any(segment in path for segment in _FILES)
    return method == "GET" and below and urlsplit(path).path.endswith(".parquet")


@dataclass
class HeldScan:
    """A scan that has read some data files, and stands still before the others. `address`: what it reads."""

    address: Address
    turnstile: Turnstile
    proxy: HostProxy
    _reading: Thread
    _found: list[pa.Table | BaseException]

    def end(self) -> pa.Table | BaseException:
        """Lets it go on; the rows that the engine has read, or its error."""
        self.turnstile.opened.set()
        self._reading.join(_SECONDS_MAX)
        [found] = self._found
        return found

    def statuses(self) -> tuple[set[int], set[int]]:
        """The statuses of the answers with bytes of files: of the first ones, and of those that had to wait."""
        first, others = set[int](), set[int]()
        for method, path, status in self.proxy.answers:
            if _reads_file(method, path):
                (first if urlsplit(path).path in self.turnstile.passed else others).add(status)
        return first, others


@contextmanager
def held_scan(reader: Reader, address: Address, *, free: int = 1, **options: Any) -> Iterator[HeldScan]:
    """A scan of a table that stands still once it has read `free` of its data files."""
    found: list[pa.Table | BaseException] = []
    turnstile = Turnstile(free)
    with host_proxy() as proxy:
        proxy.target, proxy.before = address.url, turnstile.before
        through = Address(url=proxy.url, api_key=address.api_key, table=address.table)

        def read() -> None:
            try:
                found.append(reader.read(through, **options))
            except BaseException as error:
                found.append(error)

        reading = Thread(target=read, name="scan")
        reading.start()
        try:
            until(lambda: turnstile.reached.is_set() or bool(found), "a scan between two files")
            assert not found, found
            yield HeldScan(through, turnstile, proxy, reading, found)
        finally:
            turnstile.opened.set()
            reading.join(_SECONDS_MAX)
