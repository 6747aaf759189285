"""The cluster that a measurement may run on, instead of the embedded service.

The peers of a measurement import this module, too, in environments that have little more than their own packages.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.infra.runtime.loopback import free_port

_PROGRAMS: Final = Path(__file__).parents[1] / ".venv-cluster" / "bin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """How many processes of each kind a cluster has. `pinned`: each Spark worker has one core of this machine."""

    apis: int = 2
    workers: int = 2
    spark_workers: int = 2
    pinned: bool = False

    @property
    def name(self) -> str:
        """A suffix of the names of results."""
        pinned = "-pinned" if self.pinned else ""
        return f"-cluster-{self.apis}-{self.workers}-{self.spark_workers}{pinned}"

    def command(self, data: Path, environment: Mapping[str, str]) -> list[str]:
        """The command that starts it; `environment`: settings of APIs and workers."""
        settings = [
            f"{service}.{name}={value}"
            for service in ("api", "worker")
            for name, value in environment.items()
        ]
        if self.pinned:
            # As many tasks at a time as there are cores for them.
            cores = max(1, self.spark_workers // self.workers)
            settings += ["spark-worker.SPARK_WORKER_CORES=1", f"worker.HEADWATER_SPARK_CORES_MAX={cores}"]
        return [
            sys.executable, "-m", "clients.cluster", "--programs", str(_PROGRAMS),
            "--port", str(free_port()), "--data", str(data),
            "--scale", f"api={self.apis}", f"worker={self.workers}", f"spark-worker={self.spark_workers}",
            *(["--set", *settings] if settings else []),
        ]  # fmt: skip
