"""Errors of writes and uploads."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


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


class LinksUnavailable(HeadwaterError):
    """The service gives no links to its storage: it is a folder, or they are turned off."""

    code = "links-unavailable"
    title = "The storage gives no links"


class UploadIncomplete(HeadwaterError):
    """A write names an upload whose bytes were not sent to its link. Facts: `upload_id`, `size_bytes` (announced)."""

    code = "upload-incomplete"
    title = "The bytes of the upload are not there"
    may_pass = True
