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
    """How many processes of each kind a cluster has."""

    apis: int = 2
    workers: int = 2
    spark_workers: int = 2

    @property
    def name(self) -> str:
        """A suffix of the names of results."""
        return f"-cluster-{self.apis}-{self.workers}-{self.spark_workers}"

    def command(self, data: Path, environment: Mapping[str, str]) -> list[str]:
        """The command that starts it; `environment`: settings of APIs and workers."""
        settings = [
            f"{service}.{name}={value}"
            for service in ("api", "worker")
            for name, value in environment.items()
        ]
        return [
            sys.executable, "-m", "clients.cluster", "--programs", str(_PROGRAMS),
            "--port", str(free_port()), "--data", str(data),
            "--scale", f"api={self.apis}", f"worker={self.workers}", f"spark-worker={self.spark_workers}",
            *(["--set", *settings] if settings else []),
        ]  # fmt: skip
