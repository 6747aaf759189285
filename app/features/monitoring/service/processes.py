"""Samples of the processes and of what they depend on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.core.jobs.repository.workers import WorkerStore
from app.features.monitoring.values import Sample
from app.infra.files.probe import StorageProbe


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSamples:
    """What the processes have reported lately."""

    workers: WorkerStore
    alive_seconds: float

    def read(self) -> list[Sample]:
        """Live workers, their loops that stand still, and their executors."""
        alive = self.workers.alive(self.alive_seconds)
        still = [
            Sample("headwater_process_loops_still", {"process": name}, len(worker.still))
            for name, worker in sorted(alive.items())
        ]
        executors = [
            Sample("headwater_spark_executors", {"process": name}, worker.executors)
            for name, worker in sorted(alive.items())
            if worker.executors is not None
        ]
        return [Sample("headwater_workers_alive", {}, len(alive)), *still, *executors]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSamples:
    """Whether the servers that the service stands on answer this process, and the disk of its data directory."""

    probe: StorageProbe
    redis: Callable[[], bool]
    process: str
    data_dir: Path

    def read(self) -> list[Sample]:
        """Takes a few seconds at most."""
        disk, labels = shutil.disk_usage(self.data_dir), {"process": self.process}
        return [
            Sample("headwater_disk_free_bytes", labels, disk.free),
            Sample("headwater_disk_total_bytes", labels, disk.total),
            Sample("headwater_storage_reachable", {}, not self.probe.run().storage),
            Sample("headwater_redis_reachable", {}, self.redis()),
        ]
