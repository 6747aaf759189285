"""The tasks of an engine: plain values, and what an engine decides by before it runs them."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from enum import Enum
from typing import Generic, TypeVar

import msgspec

Result = TypeVar("Result")


class Work(str, Enum):
    """Kinds of work. The tasks of one kind and tenant run in order, those of different ones share the cores."""

    WRITES = "writes"
    DERIVED = "derived"
    TASKS = "tasks"


class _TaskMeta(msgspec.StructMeta, ABCMeta):
    """Of structs with abstract members."""


class EngineTask(msgspec.Struct, Generic[Result], frozen=True, kw_only=True, metaclass=_TaskMeta):
    """One piece of work, which runs in a process of its own and has a `Result`.

    Work of a new kind is a subclass with a result, and a line in the list of `workers/engine/tasks.py` with the
    function that runs it.
    """

    @property
    def work(self) -> Work:
        """The work that it takes its share of the cores from."""
        return Work.TASKS

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """The approximate number of bytes that it reads."""

    @property
    def rows(self) -> int:
        """The number of written rows that it stores; 0 if it stores none."""
        return 0

    @property
    def joins_rounds(self) -> bool:
        """Whether it may share a job of the engine with tasks of other writes, if all tasks of its call are small."""
        return False
