"""What the use cases need of the world. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from app.lake.conflict import Conflicted
from app.lake.dataset import DatasetDefinition
from app.lake.errors import HeadwaterError
from app.lake.file_group import ChangelogSegment, DataFile
from app.lake.operation import Operation
from app.lake.quarantine import QuarantineFile
from app.lake.rows.bad_records import BadRecord
from app.lake.schema import Schema
from app.lake.staging import StagedFile
from app.services.model import (
    Accepted,
    Claim,
    ClaimRules,
    Dataset,
    Fault,
    Fenced,
    Job,
    Lane,
    NewCommit,
    NewJob,
    Page,
    Principal,
    Progress,
    Published,
    RunnableDataset,
    SchemaVersion,
    Upload,
)
from app.services.quarantine_model import QuarantinePart, RecordRange
from app.services.read_model import EVERY_INSTANT, FeedBounds, InstantFilter


class OutcomeUnknown(Exception):
    """The connection broke while the commit was under way: it may or may not have happened."""


class Tenants(Protocol):
    """Credentials."""

    def authenticate(self, api_key: str) -> Principal | None:
        """The principal of a live key; None for any other text."""
        ...


class Catalog(Protocol):
    """Registered datasets and uploads."""

    def create(self, tenant_id: str, dataset_id: str, definition: DatasetDefinition) -> Dataset:
        """Raises DatasetExists if a live dataset has the name."""
        ...

    def get(self, tenant_id: str, reference: str) -> Dataset:
        """The dataset with this id or name. Raises NotFound."""
        ...

    def list(self, tenant_id: str, *, page_size: int, page_token: str | None) -> Page:
        """Live datasets by name. Raises InvalidRequest for a token that is none."""
        ...

    def delete(self, tenant_id: str, reference: str, *, version: int | None) -> None:
        """Ends the dataset and cancels its jobs; its name is free at once. A view ends with its dataset.

        Raises NotFound, PreconditionFailed, DatasetInUse if views read it.
        """
        ...

    def evolve(
        self,
        tenant_id: str,
        dataset_id: str,
        definition: DatasetDefinition,
        *,
        version: int,
        instant_id: str,
        actor: str | None = None,
    ) -> Dataset:
        """Gives the dataset, which must be at `version` still, another definition; that makes the next version.

        Raises NotFound, PreconditionFailed.
        """
        ...

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        """One of the schemas that the dataset had. Raises NotFound."""
        ...

    def schemas(self, tenant_id: str, dataset_id: str, *, page_size: int, page_token: str | None) -> Page:
        """SchemaVersion items, the latest first. Raises InvalidRequest for a token that is none."""
        ...

    def add_upload(self, tenant_id: str, upload: Upload) -> None: ...

    def get_upload(self, tenant_id: str, dataset_id: str, upload_id: str) -> Upload:
        """Raises NotFound."""
        ...


class Jobs(Protocol):
    """Jobs, claims and leases (the clock is the database's)."""

    def accept(self, tenant_id: str, new: NewJob) -> Accepted:
        """One transaction: job QUEUED, instant REQUESTED, idempotency key or batch, outbox row.

        A key or batch that is known returns its job, unless that failed for a reason of the service's own (then the new
        job takes it over). Raises IdempotencyMismatch, BatchOutOfOrder, NotFound (dataset gone).
        """
        ...

    def accept_all(self, tenant_id: str, new: Sequence[NewJob]) -> list[Accepted | HeadwaterError]:
        """`accept` of several jobs in one transaction: one outcome per job, in order; none costs another its own."""
        ...

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        ...

    def find(self, tenant_id: str, job_ids: Sequence[str]) -> list[Job]:
        """Those of the jobs that there are, in any order."""
        ...

    def find_by_key(
        self, tenant_id: str, dataset_id: str, idempotency_key: str, request_hash: str
    ) -> Job | None:
        """The job that `accept` would replay. Raises IdempotencyMismatch."""
        ...

    def find_by_batch(self, tenant_id: str, dataset_id: str, writer_id: str, batch_id: int) -> Job | None:
        """The job that `accept` would replay. Raises BatchOutOfOrder."""
        ...

    def cancel(self, tenant_id: str, job_id: str) -> Job:
        """Ends a queued or running job, and with it the others of its transaction.

        A commit under way either beat it or is fenced. Raises JobNotCancellable.
        """
        ...

    def claim(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> list[Job]:
        """Takes the dataset's waiting writes, oldest first, as one group: epoch + 1, lease, instants INFLIGHT.

        Empty if none waits or `dataset_writers_max` groups hold live leases. A job whose attempt died before (its
        lease ran out) is claimed alone, so that it cannot take others down; one out of attempts is failed with
        `attempts-exhausted` instead. Writes of a transaction are claimed together, one of each of its datasets, once
        they are next in all of them and nothing runs in any.
        """
        ...

    def claim_task(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> Job | None:
        """Takes the dataset's oldest waiting task; None if there is none. Tasks run beside writes, each by itself."""
        ...

    def succeed(self, tenant_id: str, claim: Claim, result: dict[str, Any]) -> bool:
        """Ends a held task with what came of it. False if the claim is void."""
        ...

    def heartbeat(
        self, tenant_id: str, claims: Sequence[Claim], *, lease_seconds: float, progress: Progress
    ) -> set[str]:
        """Extends the leases of the claims that still hold and returns their job ids."""
        ...

    def fail(self, tenant_id: str, claim: Claim, fault: Fault) -> bool:
        """Ends a held job, and with it the others of its transaction. False if the claim is void."""
        ...

    def release(self, tenant_id: str, claims: Sequence[Claim]) -> None:
        """Puts held jobs back into the queue after a fault of their run; attempts stay counted, and each goes alone."""
        ...

    def runnable(self, limit: int, lane: Lane = Lane.WRITES) -> list[RunnableDataset]:
        """Datasets of every tenant with claimable jobs in the lane, longest waiting first. Holds ids only."""
        ...


class Timeline(Protocol):
    """Versions, files and instants of a dataset."""

    def live_files(
        self, tenant_id: str, dataset_id: str, version: int, file_groups: Sequence[str] | None
    ) -> list[DataFile]:
        """Data files visible at `version`, ordered by path; of the named file groups only, unless None.

        Raises VersionExpired if the version is not kept any more, NotFound (dataset gone).
        """
        ...

    def publish(
        self, tenant_id: str, commits: Sequence[NewCommit]
    ) -> tuple[Published, ...] | Conflicted | Fenced:
        """The commit transaction: commits of different datasets, all or none.

        Without file changes the jobs of a commit succeed at the current version and no version is made. Raises
        CommitConflict where a dataset is not at the version that its commit expects, OutcomeUnknown if the connection
        breaks once COMMIT was sent.
        """
        ...

    def outcome_of(
        self, tenant_id: str, jobs_of: Mapping[str, Sequence[str]]
    ) -> tuple[Published, ...] | None:
        """After OutcomeUnknown: waits for the head rows, then tells whether the jobs were published.

        `jobs_of`: by dataset, as they were published together.
        """
        ...

    def instants(
        self,
        tenant_id: str,
        dataset_id: str,
        *,
        page_size: int,
        page_token: str | None,
        wanted: InstantFilter = EVERY_INSTANT,
    ) -> Page:
        """InstantRecord items, latest request first. Raises InvalidRequest for a token that is none."""
        ...

    def version_at(self, tenant_id: str, dataset_id: str, moment: datetime) -> int:
        """The latest version committed at or before `moment`; 0 if there is none."""
        ...

    def schema_at(self, tenant_id: str, dataset_id: str, version: int) -> Schema:
        """The schema that the dataset had at a version that it has reached."""
        ...

    def latest_writes(self, tenant_id: str, dataset_id: str, version: int, limit: int) -> list[int]:
        """The versions up to `version` that writes made, the latest first: not those of table services and schemas."""
        ...

    def next_offset(self, tenant_id: str, dataset_id: str, version: int) -> int:
        """How many changes the feed had at a version that the dataset has reached."""
        ...

    def commit_times(self, tenant_id: str, dataset_id: str, versions: Sequence[int]) -> dict[int, datetime]:
        """When these versions were committed; those that there are not are left out."""
        ...


class ChangelogIndex(Protocol):
    """Which changelog file holds which offsets."""

    def bounds(self, tenant_id: str, dataset_id: str) -> FeedBounds: ...

    def segments(self, tenant_id: str, dataset_id: str, since: int, until: int) -> list[ChangelogSegment]:
        """The files that hold offsets [since, until), in order."""
        ...

    def correcting(
        self, tenant_id: str, dataset_id: str, first: int, last: int, *, since: int, limit: int
    ) -> list[ChangelogSegment]:
        """Up to `limit` files with changes from `since` on that may take back one of first–last, in order."""
        ...


class QuarantineIndex(Protocol):
    """Which records of a dataset are in quarantine, and which of them were driven again."""

    def parts(
        self, tenant_id: str, dataset_id: str, job_id: str | None, after: tuple[int, int] | None, limit: int
    ) -> list[QuarantinePart]:
        """Up to `limit` records in their order, from the one after `after` (file number, row); of one job, or all."""
        ...

    def named(
        self, tenant_id: str, dataset_id: str, records: Mapping[int, Sequence[int]]
    ) -> list[QuarantinePart]:
        """The files with these numbers, whole, and what is known of the records named of each."""
        ...

    def redrive(self, tenant_id: str, new: NewJob, records: Sequence[RecordRange]) -> Accepted:
        """One transaction: accepts the job and marks the records as driven again by it.

        Raises AlreadyRedriven if another job has some of them, or they are gone; IdempotencyMismatch, NotFound.
        """
        ...

    def discard(self, tenant_id: str, dataset_id: str, job_id: str) -> int:
        """Forgets the bad records of a job, driven again or not; returns how many they were."""
        ...


class Outbox(Protocol):
    """Messages written in the same transaction as what they tell of."""

    def relay(self, send: Callable[[OutboxMessage], None], limit: int) -> int:
        """Hands up to `limit` messages to `send` and removes them once all are sent; returns how many."""
        ...


class OutboxMessage(Protocol):
    """A wake-up: a dataset has writes (`work`), tasks (`tasks`), new changes (`changes`) or followers that may be due
    (`follow`).
    """

    @property
    def topic(self) -> str: ...
    @property
    def tenant_id(self) -> str: ...
    @property
    def dataset_id(self) -> str: ...


class ObjectStorage(Protocol):
    """Files by path relative to the storage root. Created files are durable once their writer is closed."""

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A writer for a new file; left by an exception, it leaves no file behind. Raises StorageFull."""
        ...

    def open(self, path: str) -> pa.NativeFile:
        """Raises CorruptFile if there is none."""
        ...

    def size(self, path: str) -> int: ...

    def delete(self, paths: Iterable[str]) -> None:
        """Missing files are no error."""
        ...

    def list(self, prefix: str) -> Iterable[tuple[str, datetime]]:
        """Paths below `prefix` with the times they were last changed."""
        ...


class StagedFiles(Protocol):
    """Writes checked rows as staged input."""

    def write(
        self,
        dataset: DatasetDefinition,
        operation: Operation,
        tables: Iterable[pa.Table],
        path: str,
    ) -> StagedFile | None:
        """Splits the rows by slot and stores them; None if there is no row."""
        ...


class BadRecordSink(Protocol):
    """An open file of bad records."""

    @property
    def file(self) -> QuarantineFile | None:
        """What was written, once the sink is closed; None if there was no record."""
        ...

    def keep(self, records: Sequence[BadRecord]) -> None:
        """Adds records, a few megabytes at a time. Raises StorageFull."""
        ...


class QuarantineFiles(Protocol):
    """Keeps bad records."""

    def sink(self, path: str) -> AbstractContextManager[BadRecordSink]:
        """A new file, closed at the end; left by an exception, or without a record, it leaves no file behind."""
        ...

    def read(self, file: QuarantineFile, first: int, count: int) -> Generator[BadRecord, None, None]:
        """Records [first, first + count) of a file, a few megabytes at a time. Raises CorruptFile."""
        ...
