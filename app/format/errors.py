"""Errors of the table format and its use cases.

An error carries facts, never an HTTP status: the one table that maps codes to statuses is in `app/http/problems.py`.
`code` is stable (scripts compare it), `detail` is a sentence for a person, `facts` are JSON-ready members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One fault in a request body: `pointer` is an RFC 6901 JSON pointer, `detail` says what was expected."""

    pointer: str
    detail: str


class HeadwaterError(Exception):
    """Base of every error a user can cause or must know of."""

    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong inside the service"

    def __init__(self, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts: dict[str, Any] = facts


class InvalidRequest(HeadwaterError):
    """The request cannot be understood: `errors` lists every fault found."""

    code = "invalid-request"
    title = "The request is not valid"

    def __init__(self, detail: str, errors: Sequence[FieldError] = (), **facts: Any) -> None:
        super().__init__(detail, errors=[msgspec.to_builtins(error) for error in errors], **facts)


class InvalidDataset(InvalidRequest):
    """A dataset definition that breaks a rule of the table format."""

    code = "invalid-dataset"
    title = "The dataset definition is not valid"


class SchemaChangeRefused(InvalidRequest):
    """A change of the schema that would lose data, or change where stored rows lie or which of them won."""

    code = "schema-change-refused"
    title = "The schema cannot be changed so"


class InvalidFilter(HeadwaterError):
    """A filter (`where`) that cannot be read, or does not fit the schema.

    Facts: `position` (characters before the fault, null where no one place is at fault), `expected`.
    """

    code = "invalid-filter"
    title = "The filter is not valid"


class InvalidView(HeadwaterError):
    """The SQL of a view cannot be read, is none that views take, or does not fit the schemas of its inputs.

    Facts: `pointer` (`/sql`), `position` (characters before the fault, null where no one place is), `expected`.
    """

    code = "invalid-view"
    title = "The SQL of the view is not valid"


class SchemaMismatch(InvalidRequest):
    """Rows that do not fit the dataset's schema. Nothing of the write is stored."""

    code = "schema-mismatch"
    title = "Rows do not match the schema of the dataset"


class MalformedBody(HeadwaterError):
    """The bytes are not what the content type says (truncated, not UTF-8, not JSON …)."""

    code = "malformed-body"
    title = "The body cannot be decoded"


class UnsupportedMediaType(HeadwaterError):
    """The Content-Type (or Content-Encoding) is none that this operation reads."""

    code = "unsupported-media-type"
    title = "This content type is not accepted here"


class BodyTooLarge(HeadwaterError):
    """The body is over the limit, which `limit_bytes` gives."""

    code = "body-too-large"
    title = "The body is larger than this operation accepts"


class DuplicateKey(HeadwaterError):
    """An insert met keys that are live already; `keys` names some, `duplicates` counts them all."""

    code = "duplicate-key"
    title = "Keys of an insert exist already"


class AggregateOverflow(HeadwaterError):
    """Rows of a write would bring a sum out of the range of its field. Facts: `field`, `keys` (some), `count`."""

    code = "aggregate-overflow"
    title = "A sum does not fit its field"


class NotFound(HeadwaterError):
    """No such thing for this tenant. Another tenant's thing is reported exactly alike."""

    code = "not-found"
    title = "There is nothing here"


class DatasetExists(HeadwaterError):
    """A live dataset of this tenant has the name already."""

    code = "dataset-exists"
    title = "A dataset of this name exists"


class DatasetInUse(HeadwaterError):
    """A dataset that views read cannot be deleted. Fact: `views`, their names."""

    code = "dataset-in-use"
    title = "Views read this dataset"


class DerivedDataset(HeadwaterError):
    """What a view shows is changed by changing its inputs, never by a write to it or a change of its schema."""

    code = "derived-dataset"
    title = "This dataset is a view"


class PreconditionFailed(HeadwaterError):
    """If-Match does not name the current version."""

    code = "precondition-failed"
    title = "The resource is at another version"


class PreconditionRequired(HeadwaterError):
    """The operation needs If-Match and got none."""

    code = "precondition-required"
    title = "If-Match is required"


class CommitConflict(HeadwaterError):
    """Other commits kept winning; facts: `winner` (instant), `file_groups`, `retryable`.

    Or the dataset is not at the version that the write expects; facts: `expected_version`, `head_version`, `retryable`.
    """

    code = "commit-conflict"
    title = "Another commit changed the same data"


class DataExists(HeadwaterError):
    """A write of mode `error_if_exists` met a table that holds rows. Fact: `version`."""

    code = "data-exists"
    title = "The dataset holds data already"


class BatchOutOfOrder(HeadwaterError):
    """A batch of a stream is numbered below the last one and was never seen. Fact: `last_batch_id`."""

    code = "batch-out-of-order"
    title = "A later batch of this writer was accepted before"


class TransactionFailed(HeadwaterError):
    """Another write of the transaction failed, so this one was not made. Facts: `dataset_id`, `job_id`, `cause`."""

    code = "transaction-failed"
    title = "Another write of the transaction failed"


class AlreadyRedriven(HeadwaterError):
    """Records in quarantine were driven again by another request, or discarded; `records` names some."""

    code = "already-redriven"
    title = "Records were driven again already"


class IdempotencyMismatch(HeadwaterError):
    """The Idempotency-Key was used before with another payload."""

    code = "idempotency-mismatch"
    title = "The Idempotency-Key belongs to another request"


class IdempotencyInFlight(HeadwaterError):
    """A request with the same Idempotency-Key is still being accepted."""

    code = "idempotency-in-flight"
    title = "A request with this Idempotency-Key is still being accepted"


class OffsetAhead(HeadwaterError):
    """`since` lies beyond the head: the position belongs to another or a recreated dataset."""

    code = "offset-ahead"
    title = "The position is beyond the end of the feed"


class OffsetExpired(HeadwaterError):
    """The position lies before the first change that is kept. `since`, `earliest`."""

    code = "offset-expired"
    title = "The feed is not kept that far back"


class VersionExpired(HeadwaterError):
    """The version is not kept any more. Facts: `version`, `earliest`, the first that is."""

    code = "version-expired"
    title = "The version is not kept any more"


class NotEnoughWrites(HeadwaterError):
    """More versions were to be undone than writes have made. Facts: `instants`, `writes`, how many there are."""

    code = "not-enough-writes"
    title = "There are not so many writes to undo"


class NameTaken(HeadwaterError):
    """A version of the dataset has the name already. Facts: `name`, `version`, `kind`."""

    code = "name-taken"
    title = "Another version has the name"


class ConsumerLeased(HeadwaterError):
    """Another member holds the consumer. Facts: `member`, `until`, `retry_after_seconds`."""

    code = "consumer-leased"
    title = "Another member holds the consumer"


class LeaseLost(HeadwaterError):
    """The token is not that of the consumer's lease: it was released, or another member has taken it since."""

    code = "lease-lost"
    title = "The lease is not held any more"


class ConsumerManaged(HeadwaterError):
    """The position is that of a webhook, an export or a view, which moves it itself. Fact: `kind`."""

    code = "consumer-managed"
    title = "The service moves this position itself"


class NoFeed(HeadwaterError):
    """The dataset tells no changes (its changelog.producer is none), and they are asked for."""

    code = "no-feed"
    title = "The dataset has no feed"


class ExportEnded(HeadwaterError):
    """The export has reached its end, or ran once as it was asked to. Facts: `offset`, where it stopped; `until`."""

    code = "export-ended"
    title = "The export has ended"


class JobNotFinished(HeadwaterError):
    """The job has not succeeded yet, so it has no result. Fact: `state`."""

    code = "job-not-finished"
    title = "The job has no result yet"


class ResultExpired(HeadwaterError):
    """The result of a read job is kept no longer. Fact: `keep_seconds`."""

    code = "result-expired"
    title = "The result is not kept any more"


class NoCommits(HeadwaterError):
    """What changed in a dataset is asked for, and nothing was ever committed to it."""

    code = "no-commits"
    title = "The dataset has no commits"


class JobNotCancellable(HeadwaterError):
    """The job has ended already."""

    code = "job-ended"
    title = "The job has ended already"


class CorruptFile(HeadwaterError):
    """A data file's size, checksum or content is not what its commit recorded. Fact: `path`."""

    code = "corrupt-file"
    title = "A data file is damaged"


class DerivationFailed(HeadwaterError):
    """A view's SQL failed on the rows of its inputs, or came to values that its schema cannot hold.

    Fact: `condition`, Spark's name for what it found.
    """

    code = "derivation-failed"
    title = "The view could not be computed"


class NotVerifiable(HeadwaterError):
    """Folding the dataset's feed does not give its table. Facts: `producer`, or `from_version` where the feed of the
    version is not kept any more.
    """

    code = "not-verifiable"
    title = "The feed of the dataset cannot be verified"


class StorageFull(HeadwaterError):
    """The storage refused more bytes. The head did not move."""

    code = "storage-full"
    title = "The storage is full"


class AttemptsExhausted(HeadwaterError):
    """Every attempt at the job died without an answer. Fact: `attempts`."""

    code = "attempts-exhausted"
    title = "The job was given up"


class Unauthorized(HeadwaterError):
    """No credential, or none that is known and live."""

    code = "unauthorized"
    title = "A valid API key is required"


class Forbidden(HeadwaterError):
    """The credential lacks the scope that `required_scope` names."""

    code = "forbidden"
    title = "This API key may not do that"


class Unavailable(HeadwaterError):
    """A part of the service is out of reach; nothing is known to be lost, try again."""

    code = "unavailable"
    title = "The service is not available right now"


class EngineStopped(Exception):
    """The tasks that were waited for were stopped on request; nobody is told but the one who asked."""


def error_of(code: str, detail: str, facts: dict[str, Any]) -> HeadwaterError:
    """The error that was told as a value (by a task, or in a job's row); of the base class if the code is unknown."""
    pending: list[type[HeadwaterError]] = [HeadwaterError]
    found = HeadwaterError
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        found = kind if kind.code == code else found
    error = found.__new__(found)
    # Past the constructor of the class: the facts are complete already.
    HeadwaterError.__init__(error, detail, **facts)
    return error


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """The stored form of a HeadwaterError: what made a job fail."""

    code: str
    title: str
    detail: str
    facts: dict[str, Any] = {}

    @classmethod
    def of(cls, error: HeadwaterError) -> Fault:
        """The error as it is stored."""
        return cls(code=error.code, title=error.title, detail=error.detail, facts=error.facts)
