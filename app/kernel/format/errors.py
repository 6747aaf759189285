"""Errors of the table format and its use cases.

An error has facts, never an HTTP status: `app/http/problems.py` has the only table from codes to statuses.
`code` is stable (scripts compare it), `detail` is a sentence for a person, `facts` are JSON-ready members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Self

import msgspec

# A text with more is no longer a sentence for a person.
_FAULTS_SHOWN: Final = 3


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in a request."""

    pointer: Annotated[str, msgspec.Meta(examples=["/rows/4/amount"])]
    """The RFC 6901 JSON pointer to the member, or the parameter."""
    detail: Annotated[str, msgspec.Meta(examples=["expected int64, got the string 'many'"])]
    """What is wrong with it, and what is expected."""


class HeadwaterError(Exception):
    """Base of the errors that are reported to clients."""

    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong inside the service"

    def __init__(self, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts: dict[str, Any] = facts


class InvalidRequest(HeadwaterError):
    """The request cannot be understood. `errors` lists every fault."""

    code = "invalid-request"
    title = "The request is not valid"

    def __init__(self, detail: str, errors: Sequence[FieldError] = (), **facts: Any) -> None:
        super().__init__(detail, errors=[msgspec.to_builtins(error) for error in errors], **facts)


class InvalidDataset(InvalidRequest):
    """A dataset definition that breaks a rule of the table format."""

    code = "invalid-dataset"
    title = "The dataset definition is not valid"

    @classmethod
    def of(cls, faults: Sequence[tuple[str, str]]) -> Self:
        """The error of broken rules, at least one: pointers and details. Its text has the first, `errors` has all."""
        errors = [FieldError(pointer=pointer, detail=detail) for pointer, detail in faults]
        shown = "; ".join(f"{each.pointer}: {each.detail}" for each in errors[:_FAULTS_SHOWN])
        more = len(errors) - _FAULTS_SHOWN
        return cls(shown + (f"; and {more} more" if more > 0 else ""), errors)


class SchemaChangeRefused(InvalidRequest):
    """A schema change that would lose data, or change where stored rows lie or which of them won."""

    code = "schema-change-refused"
    title = "This schema change is not supported"


class InvalidFilter(HeadwaterError):
    """A filter (`where`) that cannot be parsed, or does not fit the schema.

    Facts: `position` (characters before the fault, null where the fault has no position), `expected`.
    """

    code = "invalid-filter"
    title = "The filter is not valid"


class InvalidView(HeadwaterError):
    """The SQL of a view cannot be parsed, is not supported in views, or does not fit the schemas of its inputs.

    Facts: `pointer` (`/sql`), `position` (characters before the fault, null where it has no position), `expected`.
    """

    code = "invalid-view"
    title = "The SQL of the view is not valid"


class SchemaMismatch(InvalidRequest):
    """Rows do not fit the dataset's schema. Nothing of the write is stored."""

    code = "schema-mismatch"
    title = "Rows do not match the schema of the dataset"


class MalformedBody(HeadwaterError):
    """The bytes do not match the content type (truncated, not UTF-8, not JSON …)."""

    code = "malformed-body"
    title = "The body cannot be decoded"


class UnsupportedMediaType(HeadwaterError):
    """The operation does not read this Content-Type or Content-Encoding."""

    code = "unsupported-media-type"
    title = "This content type is not supported here"


class BodyTooLarge(HeadwaterError):
    """The body exceeds the limit. Fact: `limit_bytes`."""

    code = "body-too-large"
    title = "The body is larger than this operation accepts"


class RowTooLarge(HeadwaterError):
    """One row exceeds the limit of a row. Facts: `limit_bytes`, `row`, `pointer`, `line` where it is known."""

    code = "row-too-large"
    title = "A row is too large"


class TooManyRows(HeadwaterError):
    """The write has more rows than one write may have. Fact: `limit_rows`."""

    code = "too-many-rows"
    title = "The write has too many rows"


class DuplicateKey(HeadwaterError):
    """An insert has keys that are live already. Facts: `keys` (some of them), `duplicates` (how many)."""

    code = "duplicate-key"
    title = "Keys of an insert already exist"


class AggregateOverflow(HeadwaterError):
    """Rows of a write would move a sum out of the range of its field, and it does not quarantine them.

    Facts: `field`, `keys` (some), `count`.
    """

    code = "aggregate-overflow"
    title = "A sum does not fit its field"


class RetractedRowMissing(HeadwaterError):
    """Changes to rows without a key retract rows that the table does not have. The write does not quarantine them.

    Facts: `rows` (the positions of some of them in the write), `count`.
    """

    code = "retracted-row-missing"
    title = "A retracted row is not in the table"


class NotFound(HeadwaterError):
    """This tenant has no such resource. A resource of another tenant gets the same error."""

    code = "not-found"
    title = "The resource does not exist"


class RowNotFound(HeadwaterError):
    """The table has no row of the key. A row that the reader may not see gets the same error. Facts: `version`."""

    code = "row-not-found"
    title = "No row has this key"


class DatasetExists(HeadwaterError):
    """A live dataset of this tenant already has the name."""

    code = "dataset-exists"
    title = "A dataset of this name already exists"


class DatasetInUse(HeadwaterError):
    """A dataset that views read cannot be deleted. Fact: `views`, their names."""

    code = "dataset-in-use"
    title = "Views read this dataset"


class DerivedDataset(HeadwaterError):
    """The rows of a view change with its inputs, never by a write to it or a change of its schema."""

    code = "derived-dataset"
    title = "This dataset is a view"


class PreconditionFailed(HeadwaterError):
    """If-Match does not name the current version or revision, or If-None-Match is `*` and the resource exists."""

    code = "precondition-failed"
    title = "The resource is at another version or revision"


class PreconditionRequired(HeadwaterError):
    """The operation needs If-Match, and the request has no such header."""

    code = "precondition-required"
    title = "If-Match is required"


class CommitConflict(HeadwaterError):
    """Other commits won every attempt, or the dataset is not at the version that the write expects.

    Facts: `winner` (the latest instant that won), `winner_version`, `actor` and `actor_name` (who requested it),
    `file_groups` (100 at most), `file_group_count`, `retryable`; `expected_version` and `head_version` of a version.
    """

    code = "commit-conflict"
    title = "Another commit changed the same data"


class DataExists(HeadwaterError):
    """The mode of the write is `error_if_exists`, and the table has rows.

    Facts: `version`; `retryable` and the latest write, as those of a CommitConflict.
    """

    code = "data-exists"
    title = "The dataset already has data"


class BatchOutOfOrder(HeadwaterError):
    """A batch of a stream has a lower number than the last one and was never received. Fact: `last_batch_id`."""

    code = "batch-out-of-order"
    title = "A later batch of this writer was already accepted"


class TransactionFailed(HeadwaterError):
    """Another write of the transaction failed, so this one was not made. Fact: `cause`, its code."""

    code = "transaction-failed"
    title = "Another write of the transaction failed"


class LinksUnavailable(HeadwaterError):
    """The service gives no links to its storage: it is a folder, or they are turned off."""

    code = "links-unavailable"
    title = "The storage gives no links"


class UploadIncomplete(HeadwaterError):
    """A write names an upload whose bytes were not sent to its link. Facts: `upload_id`, `size_bytes` (announced)."""

    code = "upload-incomplete"
    title = "The bytes of the upload are not there"


class AlreadyRedriven(HeadwaterError):
    """Other requests have already redriven or discarded these quarantined records. Fact: `records`, some of them."""

    code = "already-redriven"
    title = "Records were already redriven"


class IdempotencyMismatch(HeadwaterError):
    """The Idempotency-Key was used before with another payload. Facts: what that request made, where it has an id."""

    code = "idempotency-mismatch"
    title = "The Idempotency-Key belongs to another request"

    def __init__(self, detail: str | None = None, **facts: Any) -> None:
        used = "this Idempotency-Key was sent with another request before; send a new key with a new request"
        super().__init__(detail or used, **facts)


class IdempotencyInFlight(HeadwaterError):
    """A request with the same Idempotency-Key is still being accepted."""

    code = "idempotency-in-flight"
    title = "A request with this Idempotency-Key is still being accepted"


class OffsetAhead(HeadwaterError):
    """`since` is beyond the head: the position belongs to another dataset, or to one that was recreated."""

    code = "offset-ahead"
    title = "The position is beyond the end of the feed"


class OffsetExpired(HeadwaterError):
    """The position is before the first change that is kept. Facts: `since`, `earliest`."""

    code = "offset-expired"
    title = "The position has expired from the feed"


class VersionExpired(HeadwaterError):
    """The version has expired. Facts: `version`, `earliest`, the first readable version."""

    code = "version-expired"
    title = "The version has expired"


class ScanTooLarge(HeadwaterError):
    """A scan has more parts than one response lists (facts: `parts`, `parts_max`), or its links would be too long."""

    code = "scan-too-large"
    title = "The scan is too large"


class NotEnoughWrites(HeadwaterError):
    """The request undoes more versions than writes have made. Facts: `instants`, `writes`, their number."""

    code = "not-enough-writes"
    title = "There are fewer writes than the request undoes"


class NameTaken(HeadwaterError):
    """Another version of the dataset already has the name. Facts: `name`, `version`, `kind`."""

    code = "name-taken"
    title = "Another version has this name"


class ConsumerLeased(HeadwaterError):
    """Another member holds the consumer's lease. Facts: `member`, `until`, `retry_after_seconds`."""

    code = "consumer-leased"
    title = "Another member holds the lease of the consumer"


class LeaseLost(HeadwaterError):
    """The token does not match the consumer's lease: the lease was released, or another member has taken it."""

    code = "lease-lost"
    title = "The lease is no longer held"


class ConsumerManaged(HeadwaterError):
    """The position belongs to a webhook, an export or a view, which moves it itself. Fact: `kind`."""

    code = "consumer-managed"
    title = "The service moves this position itself"


class NoFeed(HeadwaterError):
    """The request needs a feed, and the dataset has no feed (`changelog.producer: none`)."""

    code = "no-feed"
    title = "The dataset has no feed"


class ExportEnded(HeadwaterError):
    """The export has reached its end, or was requested to run once. Facts: `offset`, where it stopped; `until`."""

    code = "export-ended"
    title = "The export has ended"


class JobNotFinished(HeadwaterError):
    """The job has not succeeded yet, so it has no result. Fact: `state`."""

    code = "job-not-finished"
    title = "The job has no result yet"


class ResultExpired(HeadwaterError):
    """The result of a read job has expired. Fact: `keep_seconds`."""

    code = "result-expired"
    title = "The result has expired"


class NoCommits(HeadwaterError):
    """The request needs commits, and the dataset has none."""

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


def without_path(error: HeadwaterError) -> HeadwaterError:
    """The error for a reader that sees a part of the dataset: the path of a file has values of its partition."""
    if not isinstance(error, CorruptFile):
        return error
    return CorruptFile("a file of the dataset is damaged or missing; the log of the service names it")


class DerivationFailed(HeadwaterError):
    """SQL failed on the rows of its inputs, or returned values that do not fit the schema of the rows that it makes.

    Fact: `condition`, Spark's name of the error, or the class of a Java exception.
    """

    code = "derivation-failed"
    title = "The SQL could not be computed"


class SourceUnavailable(HeadwaterError):
    """What a source reads from is out of reach. The source tries again by itself. Fact: `source`, if known."""

    code = "source-unavailable"
    title = "The source is out of reach"


class SourceFailed(HeadwaterError):
    """What a source reads from returns something that it cannot use. The source waits until it is resumed. Facts: such
    as `item`, the name of a file.
    """

    code = "source-failed"
    title = "The source cannot be read"


class DestinationFailed(HeadwaterError):
    """The files of a run cannot be written to the destination of their export. Fact: `destination`."""

    code = "destination-failed"
    title = "The destination takes no files"


class NotVerifiable(HeadwaterError):
    """The fold of the dataset's feed does not give its table. Facts: `producer`, or `from_version` where the changes of
    that version have expired.
    """

    code = "not-verifiable"
    title = "The feed of the dataset cannot be verified"


class StorageFull(HeadwaterError):
    """The storage refused more bytes. The head did not move."""

    code = "storage-full"
    title = "The storage is full"


class NotStorable(HeadwaterError):
    """The catalogue cannot store the change, now or later: a limit of Postgres is exceeded. Fact: `sqlstate`."""

    code = "not-storable"
    title = "The catalogue cannot store the change"


class AttemptsExhausted(HeadwaterError):
    """Every attempt at the job ended without a result. Fact: `attempts`."""

    code = "attempts-exhausted"
    title = "The job failed after its last attempt"


class ProcessKilled(HeadwaterError):
    """The process in which the job computed its rows was killed, again when it ran nothing else: most likely, they need
    more memory than it has. It has changed nothing. Fact: `deaths`.
    """

    code = "process-killed"
    title = "The job has killed its process"


class TimeLimitExceeded(HeadwaterError):
    """The job ran for longer than one job may, and was stopped. It has changed nothing. Fact: `limit_seconds`."""

    code = "time-limit-exceeded"
    title = "The job took too long"


class Unauthorized(HeadwaterError):
    """The request has no credential, or one that is unknown, expired or revoked."""

    code = "unauthorized"
    title = "A valid API key or token is required"


class Forbidden(HeadwaterError):
    """The credential lacks a scope (fact: `required_scope`), a key may not give another as much as was requested, or
    what the credential may do has changed during the request.
    """

    code = "forbidden"
    title = "The credential lacks the required scope"


class RestrictedGrant(HeadwaterError):
    """The operation would show more of a dataset than the grants of the key do."""

    code = "restricted-grant"
    title = "The grants of this API key show a part of the dataset only"


class MaskedColumn(HeadwaterError):
    """The request uses a column whose values the grants of the key hide. Fact: `column`."""

    code = "masked-column"
    title = "The column is masked for this API key"


class GrantNotApplicable(HeadwaterError):
    """A grant of the key has a condition or a masked column that does not fit the schema, so it shows nothing."""

    code = "grant-not-applicable"
    title = "A grant of this API key does not fit the dataset"


def scope_missing(scope: str) -> Forbidden:
    """The error for a credential without this scope."""
    return Forbidden(f"this needs a key with the scope {scope!r}", required_scope=scope)


class Unavailable(HeadwaterError):
    """A part of the service is out of reach. No data is known to be lost; the client may retry."""

    code = "unavailable"
    title = "The service is not available right now"


class TooSlow(Unavailable):
    """The database was reached, and did not finish a statement in time."""


class SourcesBusy(Unavailable):
    """As many rounds of sources read from elsewhere as a worker may run at a time."""


class StorageUnavailable(Unavailable):
    """The storage is out of reach, or cannot be read or written. Fact: `path`."""

    code = "storage-unavailable"
    title = "The storage is not available right now"


class EngineStopped(Exception):
    """The tasks were stopped on request. Only the requester sees this error."""


def error_of(code: str, detail: str, facts: dict[str, Any]) -> HeadwaterError:
    """The error of a stored or transferred fault. It is of the base class if the code is unknown."""
    pending: list[type[HeadwaterError]] = [HeadwaterError]
    found = HeadwaterError
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        found = kind if kind.code == code else found
    error = found.__new__(found)
    # Bypasses the constructor of the class: the facts are complete already.
    HeadwaterError.__init__(error, detail, **facts)
    return error


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stored form of a HeadwaterError: the reason why a job failed."""

    code: str
    title: str
    detail: str
    facts: dict[str, Any] = {}

    @classmethod
    def of(cls, error: HeadwaterError) -> Fault:
        """The stored form of the error."""
        return cls(code=error.code, title=error.title, detail=error.detail, facts=error.facts)

    def without_values(self) -> Fault:
        """The fault of a view's refresh, for who may not read all inputs: it quotes none of their rows."""
        detail = "the reason is shown to keys that may read all rows of all inputs of the view"
        return Fault(code=self.code, title=self.title, detail=detail)
