"""The base classes of errors, and the errors of the kernel. Those of other rooms are in modules `errors` of theirs.

An error has facts, never an HTTP status: modules `problems` have the statuses.
`code` is stable (scripts compare it), `detail` is a sentence for a person, `facts` are JSON-ready members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    code: str = "internal"
    title: str = "Something went wrong inside the service"
    may_pass: ClassVar[bool | None] = None
    """Whether the same request may succeed later; None if its HTTP status says so."""

    def __init__(self, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts: dict[str, Any] = facts

    @classmethod
    def restored(cls, detail: str, facts: Mapping[str, Any]) -> Self:
        """An error of this class from the facts of another. The constructor of the class, which makes facts, is not
        called.
        """
        error = cls.__new__(cls)
        HeadwaterError.__init__(error, detail, **facts)
        return error

    def of_origin(self, origin: str) -> Self:
        """The error with what was read: in front of its detail, and as the fact `origin`."""
        return self.restored(f"{origin}: {self.detail}", {**self.facts, "origin": origin})


class InvalidRequest(HeadwaterError):
    """The request cannot be understood. `errors` lists every fault."""

    code = "invalid-request"
    title = "The request is not valid"

    def __init__(self, detail: str, errors: Sequence[FieldError] = (), **facts: Any) -> None:
        super().__init__(detail, errors=[msgspec.to_builtins(error) for error in errors], **facts)

    @classmethod
    def of_member(cls, member: str, detail: str, summary: str | None = None) -> Self:
        """The error of one member, parameter or header. `detail`: what is expected. `summary`: what is wrong, where the
        name of the member does not say it.
        """
        errors = [FieldError(pointer=f"/{member}", detail=detail)]
        return cls(f"{summary or f'{member} is not valid'}: {detail}", errors)


class InvalidDataset(InvalidRequest):
    """A dataset definition that breaks a rule of the table format."""

    code = "invalid-dataset"
    title = "The dataset definition is not valid"

    @classmethod
    def of(cls, faults: Sequence[tuple[str, str]]) -> Self:
        """The error of broken rules, at least one: pointers and details. Its text has the first, `errors` has all."""
        errors = [FieldError(pointer=pointer, detail=detail) for pointer, detail in faults]
        summary = "; ".join(f"{each.pointer}: {each.detail}" for each in errors[:_FAULTS_SHOWN])
        more = len(errors) - _FAULTS_SHOWN
        return cls(summary + (f"; and {more} more" if more > 0 else ""), errors)


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


class CommitConflict(HeadwaterError):
    """Other commits won every attempt, or the dataset is not at the version that the write expects.

    Facts: `winner` (the latest instant that won), `winner_version`, `actor` and `actor_name` (who requested it),
    `file_groups` (100 at most), `file_group_count`, `retryable`; `expected_version` and `head_version` of a version.
    """

    code = "commit-conflict"
    title = "Another commit changed the same data"
    may_pass = True


class DataExists(HeadwaterError):
    """The mode of the write is `error_if_exists`, and the table has rows.

    Facts: `version`; `retryable` and the latest write, as those of a CommitConflict.
    """

    code = "data-exists"
    title = "The dataset already has data"


class DerivationFailed(HeadwaterError):
    """SQL failed on the rows of its inputs, or returned values that do not fit the schema of the rows that it makes.

    Fact: `condition`, Spark's name of the error, or the class of a Java exception.
    """

    code = "derivation-failed"
    title = "The SQL could not be computed"


class NotVerifiable(HeadwaterError):
    """The fold of the dataset's feed does not give its table. Facts: `producer`, or `from_version` where the changes of
    that version have expired.
    """

    code = "not-verifiable"
    title = "The feed of the dataset cannot be verified"


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


class ReportedError(HeadwaterError):
    """The error that a fault is the stored form of, with its code and title."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail, **fault.facts)
        self.code = fault.code
        self.title = fault.title


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
