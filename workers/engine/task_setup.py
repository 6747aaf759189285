"""What a task runs with in a process of Spark, and how it reports its error."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import msgspec

from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import open_storage
from app.infra.outages import fault_of_disk
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from workers.engine.task_files import TaskResources

_T = TypeVar("_T")


class TaskSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of tasks on every machine. `scratch` and `hot_folder` are local folders; an empty `scratch` is
    the folder that Spark has made for the executor of a cluster, whose machine may also specify the parent of the
    `hot_folder`. Without `hot_bytes_max` there are no hot copies.
    `decompressed_bytes_max`: the limit for a gzipped input. `limits`: those of the rows of a write.
    """

    storage_uri: str
    memory_bytes: int
    scratch: str
    hot_folder: str
    hot_bytes_max: int
    decompressed_bytes_max: int
    limits: RowLimits = DEFAULT_LIMITS


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A task's error, as a value: Spark would wrap an exception and run the task again."""

    error: str
    """The module and the name of its class."""
    detail: str
    facts: dict[str, Any]


def refused(fault: HeadwaterError | OSError) -> Refusal:
    """The error as a value. Raises an OSError that is not of the storage."""
    error = fault if isinstance(fault, HeadwaterError) else fault_of_disk(fault)
    if error is None:
        raise fault
    kind = type(error)
    return Refusal(error=f"{kind.__module__}:{kind.__qualname__}", detail=error.detail, facts=error.facts)


@lru_cache(maxsize=1)
def resources_of(setup: TaskSetup) -> TaskResources:
    """The resources of this process, created once for each worker, so that the caches of readers are kept."""
    hot = HotFolder(_hot_folder(setup), setup.hot_bytes_max) if setup.hot_bytes_max else None
    return TaskResources.on(
        storage=open_storage(setup.storage_uri),
        memory=MemoryBudget(bytes_max=setup.memory_bytes, scratch=_scratch(setup)),
        hot=hot,
    )


def _hot_folder(setup: TaskSetup) -> Path:
    """The folder that this machine specifies if it is one of a cluster, otherwise that of the worker."""
    folder = Path(setup.hot_folder)
    own = os.environ.get("HEADWATER_EXECUTOR_DIR") if not setup.scratch else None
    return Path(own) / folder.name if own else folder


def _scratch(setup: TaskSetup) -> Path | None:
    """The local folder of this process; None for that of the system."""
    # Spark names its folders to the Python processes of an executor.
    folder = setup.scratch or os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    return Path(folder) if folder else None


def accepted(answer: _T | Refusal) -> _T:
    """The result of a task. Raises the task's error."""
    if isinstance(answer, Refusal):
        raise resolve_name(answer.error).restored(answer.detail, answer.facts)
    return answer
