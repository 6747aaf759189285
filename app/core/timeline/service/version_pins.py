"""Pins of versions: the files of a version are not removed while a task reads it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from app.access.errors import NotFound
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.infra.errors import Unavailable
from app.infra.files.errors import CorruptFile

_log = logging.getLogger(__name__)


class KeptVersions(Protocol):
    """Which versions are kept."""

    def check(self, tenant_id: str, dataset_id: str, version: int) -> None:
        """Raises VersionExpired if the version is not kept any more, NotFound (dataset gone)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionPins:
    """Pins versions as long as a task reads them, with read leases."""

    leases: ReadLeaseStore
    lease_seconds: float
    heartbeat_seconds: float

    @contextmanager
    def pin(self, tenant_id: str, versions: Sequence[tuple[str, int]], reader: str) -> Iterator[None]:
        """Pins versions, given by dataset, until the context ends. `reader`: a unique name of this reader.

        Raises VersionExpired if a version is not kept any more. A CorruptFile for a missing file is also converted to
        it, since a process that was suspended for long has lost its leases. Raises NotFound (dataset gone).
        """
        end = threading.Event()
        thread = threading.Thread(
            target=self._extend, args=(tenant_id, versions, reader, end), name="holding", daemon=True
        )
        try:
            self._acquire(tenant_id, versions, reader)
            thread.start()
            with expired_if_missing(self.leases, tenant_id, versions):
                yield
        finally:
            end.set()
            if thread.ident is not None:
                thread.join()
            # A lease that is not released expires.
            with suppress(Unavailable):
                for dataset_id in {dataset_id for dataset_id, _ in versions}:
                    self.leases.release(tenant_id, dataset_id, reader)

    def _acquire(self, tenant_id: str, versions: Sequence[tuple[str, int]], reader: str) -> None:
        for dataset_id, version in versions:
            self.leases.acquire(tenant_id, dataset_id, version, reader, self.lease_seconds)

    def _extend(
        self, tenant_id: str, versions: Sequence[tuple[str, int]], reader: str, end: threading.Event
    ) -> None:
        while not end.wait(self.heartbeat_seconds):
            try:
                self._acquire(tenant_id, versions, reader)
            except Unavailable:
                _log.warning(
                    "the database is unavailable; the read leases of %s will be extended later", reader
                )
            except (VersionExpired, NotFound) as error:
                # The reader gets an error for missing files. What it has read so far is correct.
                _log.warning("%s lost its read leases: %s", reader, error.detail)
                return
            except Exception:
                _log.exception("the hold of %s could not be extended; trying again", reader)


@contextmanager
def expired_if_missing(
    kept_versions: KeptVersions, tenant_id: str, versions: Sequence[tuple[str, int]]
) -> Iterator[None]:
    """Converts the CorruptFile of a missing file to VersionExpired, if its version was removed.

    Files are removed as a whole, so a reader that finds all of them has read the version.
    """
    try:
        yield
    except CorruptFile:
        for dataset_id, version in versions:
            kept_versions.check(tenant_id, dataset_id, version)
        raise
