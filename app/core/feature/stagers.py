"""The input of writes: what stages it, and its staged form. Every port has one test suite for each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from app.core.jobs.values import Job
from app.core.timeline.values import Advance, Checkpoint
from app.kernel.commit.restore_plan import RestorePlan
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.staged import StagedFile


class RestoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore changes: it was planned against the table at `read_version`. `result` is the result of its job."""

    plan: RestorePlan
    read_version: int
    result: dict[str, Any]


class StagedInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a write, ready to be merged.

    `job`: the write, with the operation that its stager has chosen. `quarantine_files`: its bad records.
    `ignored_fields`: the names of unknown fields that were null. `definition`: the dataset under the schema that the
    rows bring, if it is another one. `advances`: positions in other feeds that the commit moves, because the rows
    include the changes up to there. `restored_version`: set by a restore. `checkpoint`: set by a round of a source.
    `result`: the result of the job, if it is not that of a restore.
    """

    job: Job
    files: tuple[StagedFile, ...]
    quarantine_files: tuple[QuarantineFile, ...] = ()
    ignored_fields: tuple[str, ...] = ()
    definition: DatasetDefinition | None = None
    advances: tuple[Advance, ...] = ()
    restored_version: RestoredVersion | None = None
    checkpoint: Checkpoint | None = None
    result: dict[str, Any] | None = None


class InputStager(Protocol):
    """Makes the rows of one kind of write when the write runs."""

    def stage(self, job: Job, prefix: str, tag: str) -> StagedInput:
        """Paths of the staged files start with `prefix`; the engine runs its tasks under `tag`.

        Raises InvalidView, DerivationFailed, NotEnoughWrites, VersionExpired, SourceUnavailable, SourceFailed,
        SchemaMismatch, MalformedBody, NotFound, CorruptFile, StorageFull, EngineStopped.
        """
        ...
