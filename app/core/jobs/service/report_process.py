"""A process reports to the register of processes that it lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.values import ProcessKind, ProcessReport
from app.infra.files.probe import DiskSpace, disk_folders, resident_bytes
from app.infra.files.storage import open_storage
from app.infra.identifiers import new_id
from app.infra.settings import Settings

_RELEASE: Final = version("headwater")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportProcess:
    """Reports one process. `id`: its name in the register, and as the owner of claims."""

    processes: ProcessStore
    id: str
    kind: ProcessKind
    space: DiskSpace

    @classmethod
    def of(
        cls, kind: ProcessKind, settings: Settings, processes: ProcessStore, process_id: str | None = None
    ) -> ReportProcess:
        """The report of this process; `process_id` None: a new name, of a process that claims nothing."""
        return cls(
            processes=processes,
            id=process_id or f"{socket.gethostname()}-{os.getpid()}-{new_id()[-6:]}",
            kind=kind,
            space=DiskSpace(disk_folders(settings.data_dir, open_storage(settings.storage_uri))),
        )

    def run(
        self,
        still: Mapping[str, datetime],
        executors: int | None = None,
        faults: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Reports it once. `still`: its loops that stand still. `executors`, `faults`: as in `ProcessReport`.

        Raises Unavailable.
        """
        space = self.space.latest()
        self.processes.report(
            self.id,
            ProcessReport(
                kind=self.kind,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=_RELEASE,
                still=still,
                faults=faults,
                executors=executors,
                disk_free_bytes=None if space is None else space.free,
                disk_total_bytes=None if space is None else space.total,
                disk_folder=None if space is None else space.folder,
                resident_bytes=resident_bytes(),
            ),
        )
