"""The interface of writes to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from app.core.jobs.engine import Engine
from app.kernel.commit.write_options import DEFAULT_OPTIONS, WriteOptions
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.staged import RawInput, StagedFile


class DecodedInput(msgspec.Struct, frozen=True, kw_only=True):
    """The result of decoding a raw input: its rows, and the quarantined records.

    `ignored_fields`: the names of unknown fields that were null, sorted. `definition`: the dataset under the schema
    that the input changed it to, where it did.
    """

    files: tuple[StagedFile, ...]
    quarantine_files: tuple[QuarantineFile, ...] = ()
    ignored_fields: tuple[str, ...] = ()
    definition: DatasetDefinition | None = None


class WriteEngine(Engine, Protocol):
    """Decodes writes on Spark, and runs their tasks."""

    def decode(
        self,
        raws: Sequence[RawInput],
        dataset: DatasetDefinition,
        operation: Operation,
        *,
        prefix: str,
        options: WriteOptions = DEFAULT_OPTIONS,
        quarantine: str | None = None,
        tag: str,
    ) -> DecodedInput:
        """Validates and splits the raw inputs of a write, in order, under the merged schema if they may merge one.

        `quarantine`: the path prefix of files of bad records, if these are kept. Raises SchemaMismatch, MalformedBody,
        CorruptFile, StorageFull, EngineStopped.
        """
        ...

    def waits(self, tag: str) -> bool:
        """Whether there are tasks of SQL under the tag, and others have all slots of Spark."""
        ...
