"""Errors of requests in S3's protocol."""

from __future__ import annotations

from enum import Enum

from app.kernel.format.errors import HeadwaterError


class KeyRefusal(str, Enum):
    """Why a request is refused for its key or its signature, in the words of the protocol, on which clients act."""

    UNKNOWN_KEY = "InvalidAccessKeyId"
    EXPIRED = "ExpiredToken"
    """The client gets another key and repeats the request."""
    WRONG_SIGNATURE = "SignatureDoesNotMatch"
    SKEWED = "RequestTimeTooSkewed"
    WRONG_TOKEN = "InvalidToken"  # noqa: S105
    DENIED = "AccessDenied"


class TableKeyRefused(HeadwaterError):
    """The key for a table, or the signature made with it, does not permit the request (fact: `refusal`)."""

    code = "table-key-refused"
    title = "The key does not permit this request"

    def __init__(self, refusal: KeyRefusal, detail: str) -> None:
        super().__init__(detail, refusal=refusal.value)
        self.refusal = refusal


class TablesReadOnly(HeadwaterError):
    """A request would change a file of a table."""

    code = "tables-read-only"
    title = "Files of tables are read only"


class ObjectRequestUnsupported(HeadwaterError):
    """A request in S3's protocol that is not offered here."""

    code = "object-request-unsupported"
    title = "This request of S3's protocol is not offered"
