"""An engine in this process: the tasks that Spark runs, one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.kernel.format.engine_task import EngineTask, Result
from workers.engine.task_files import TaskResources
from workers.engine.tasks import pack, run_task, unpack_result


@dataclass(kw_only=True)
class EngineInProcess:
    """Runs tasks one after another; tasks and results travel as they do on Spark.

    `tasks`: the last of them. `meanwhile` is called before those of each call.
    """

    resources: TaskResources
    tasks: deque[Any] = field(default_factory=lambda: deque(maxlen=1_000))
    meanwhile: Callable[[], None] = lambda: None

    def run(self, tasks: Sequence[EngineTask[Result]], tag: str) -> list[Result]:
        self.tasks += tasks
        self.meanwhile()
        return [self._result(task) for task in tasks]

    def _result(self, task: Any) -> Any:
        sent = msgspec.msgpack.decode(pack(task), type=type(task))
        return unpack_result(msgspec.msgpack.encode(run_task(self.resources, sent)))

    def progress(self, tag: str) -> tuple[int, int]:
        return 0, 0

    def waits(self, tag: str) -> bool:
        return False

    def cancel(self, tag: str) -> None:
        pass
