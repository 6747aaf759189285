"""What is declared of a kind of job, and what the requests of all tasks have in common."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from app.kernel.format.instant import Action
from app.kernel.sql.conditions.row_access import RowAccess

Request = TypeVar("Request")
Result = TypeVar("Result")


class JobKind(str, Enum):
    """What a job does."""

    WRITE = "write"
    COMPACTION = "compaction"
    REFRESH = "refresh"
    EXPORT = "export"
    VERIFICATION = "verify"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ANALYSIS = "analysis"
    SAVEPOINT = "savepoint"
    TAG = "tag"
    READ = "read"
    COMPARISON = "comparison"
    RESTORE = "restore"
    ROLLBACK = "rollback"
    SOURCE_ROUND = "source_round"


class WriteProcess(str, Enum):
    """The process of a worker in which a write runs. All but the first have a JVM of their own."""

    WORKER = "worker"
    """Writes whose rows no SQL of a user makes."""
    DERIVED = "derived"
    """Writes whose rows the SQL of a user makes when they run. Each has a commit of its own."""
    ISOLATED = "isolated"
    """Of these, one that ran when its process was killed: it runs with no other."""
    SLOW = "slow"
    """Of these, one that has used up its time slice: it runs with no other, up to its time limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDeclaration(Generic[Request, Result]):
    """The declaration of a kind of job."""

    name: JobKind
    request: type[Request]
    """What is stored with a job of the kind."""
    result: type[Result]
    """What a job shows that has succeeded; `NoneType` for nothing of its own."""
    action: Action | None = None
    """The action of its instant in the timeline; None for a job that only reads."""
    time_limited: bool = False
    """Whether its duration follows from what it reads, and not from what its request contains."""
    process: WriteProcess = WriteProcess.WORKER
    """Where it runs, if it has killed no process yet."""
    input_stage: str = "decode"
    """Of a write: what its progress shows while its rows are read or made."""

    def stored(self, result: Result) -> dict[str, Any]:
        """The result as its job stores it."""
        content: dict[str, Any] = msgspec.to_builtins(result)
        return content


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="task"):
    """The request of a task: a job in a queue of its own, beside the writes of its dataset."""

    @property
    def kind(self) -> JobKind:
        """The kind of its job."""
        return JobKind(self.__struct_config__.tag)

    @property
    def exclusive(self) -> bool:
        """Whether it changes files of the dataset: of such tasks one runs at a time."""
        return False

    @property
    def access(self) -> RowAccess | None:
        """What its result and its errors may show of the dataset; None for anything."""
        return None


class TableServiceRequest(TaskRequest, frozen=True, kw_only=True):
    """The request of a table service."""

    @property
    def exclusive(self) -> bool:
        """It rewrites or deletes files."""
        return True
