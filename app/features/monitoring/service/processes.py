"""Samples of the processes and of what they depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.values import ProcessKind
from app.features.monitoring.values import Sample
from app.infra.files.probe import StorageProbe


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSamples:
    """What the processes have reported lately."""

    processes: ProcessStore
    alive_seconds: float

    def read(self) -> list[Sample]:
        """Live workers; of each process its loops that stand still, its executors, and the space of its disks."""
        alive = self.processes.known(self.alive_seconds)
        workers = [each for each in alive if each.report.kind is ProcessKind.WORKER]
        samples = [Sample("headwater_workers_alive", {}, len(workers))]
        for process in alive:
            numbers = {
                "headwater_process_loops_still": len(process.report.still),
                "headwater_spark_executors": process.report.executors,
            }
            disk = {
                "headwater_disk_free_bytes": process.report.disk_free_bytes,
                "headwater_disk_total_bytes": process.report.disk_total_bytes,
            }
            labels = {"process": process.id}
            of_disk = {**labels, "folder": process.report.disk_folder or ""}
            samples += [
                Sample(name, of_disk if name in disk else labels, number)
                for name, number in {**numbers, **disk}.items()
                if number is not None
            ]
        return samples


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSamples:
    """Whether the servers that the service stands on answer this process."""

    probe: StorageProbe
    redis: Callable[[], bool]

    def read(self) -> list[Sample]:
        """Takes a few seconds at most."""
        return [
            Sample("headwater_storage_reachable", {}, not self.probe.run()),
            Sample("headwater_redis_reachable", {}, self.redis()),
        ]
