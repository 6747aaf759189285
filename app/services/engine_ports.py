"""What the use cases need of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.lake.commit_message import CommitMessage
from app.lake.comparison import Compared, CompareTask
from app.lake.dataset import DatasetDefinition
from app.lake.operation import Operation
from app.lake.quarantine import DecodedInput
from app.lake.restoring import RestageTask
from app.lake.staging import RawInput, StagedFile
from app.lake.verification import FoldTask, FoldVerdict
from app.lake.views.derive_request import DeriveRequest
from app.lake.write_options import DEFAULT_OPTIONS, WriteOptions
from app.lake.write_plan import MergeTask


class TaskProgress(Protocol):
    """What runs under a tag on Spark."""

    def progress(self, tag: str) -> tuple[int, int]:
        """Tasks done and in all of what runs under the tag."""
        ...

    def cancel(self, tag: str) -> None:
        """Stops what runs under the tag; its caller gets EngineStopped."""
        ...


class WriteEngine(TaskProgress, Protocol):
    """Runs the tasks of a write on Spark."""

    def decode(
        self,
        raw: RawInput,
        dataset: DatasetDefinition,
        operation: Operation,
        *,
        prefix: str,
        options: WriteOptions = DEFAULT_OPTIONS,
        quarantine: str | None = None,
        tag: str,
    ) -> DecodedInput:
        """Checks and splits a raw input, under the schema that it brings if it may bring one.

        `quarantine`: what paths of files of bad records start with, if it keeps them. Raises SchemaMismatch,
        MalformedBody, CorruptFile, StorageFull, EngineStopped.
        """
        ...

    def merge(self, tasks: Sequence[MergeTask], tag: str) -> list[CommitMessage]:
        """One commit message per task, in order. Raises CorruptFile, StorageFull, EngineStopped."""
        ...


class TableServiceEngine(TaskProgress, Protocol):
    """Runs the tasks of table services on Spark, in the share of it that is not for writes."""

    def rewrite(self, tasks: Sequence[MergeTask], tag: str) -> list[CommitMessage]:
        """One commit message per task, in order. Raises CorruptFile, StorageFull, EngineStopped."""
        ...


class Verification(TaskProgress, Protocol):
    """Compares feeds with their tables on Spark."""

    def verify(self, tasks: Sequence[FoldTask], tag: str) -> FoldVerdict:
        """What the tasks found, all together. Raises CorruptFile, StorageFull, EngineStopped."""
        ...


class Restaging(Protocol):
    """Reads earlier versions on Spark."""

    def restage(self, tasks: Sequence[RestageTask], tag: str) -> list[StagedFile]:
        """Stages the rows of the tasks, in order; files without rows are left out.

        Raises CorruptFile, StorageFull, EngineStopped.
        """
        ...


class Comparing(TaskProgress, Protocol):
    """Compares versions on Spark."""

    def compare(self, tasks: Sequence[CompareTask], tag: str) -> Compared:
        """What the tasks found, all together. Raises CorruptFile, StorageFull, EngineStopped."""
        ...


class Derivation(Protocol):
    """Computes views on Spark."""

    def derive(self, request: DeriveRequest, tag: str) -> tuple[StagedFile, ...]:
        """Runs the SQL, and stages what comes of it as rows of the view, in order; files without rows are left out.

        Raises DerivationFailed where a value cannot be computed, or does not fit the view's schema; CorruptFile,
        StorageFull, EngineStopped.
        """
        ...
