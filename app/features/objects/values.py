"""Values of the files of tables: entries of listings, and keys for one table."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

BUCKET: Final = "hw-tables"
"""The bucket that all tables are in."""
REGION: Final = "us-east-1"
"""The region that clients have to state."""
VARIANTS: Final = ("v3", "v2")
"""The variants of a table that engines load: with deletion vectors, and with position deletes."""
SHARE: Final = "share"
"""The variant of a table whose files recipients of shares get, by links: without rows that are deleted."""
SHARE_VECTORS: Final = "share-vectors"
"""The variant of recipients that get files with deleted rows as they are stored, with a vector."""


class ObjectEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a listing. `path`: relative to the segment of its tree. `etag`: without quotes."""

    path: str
    size_bytes: int
    etag: str


class VendedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key for the files of one table, as clients of S3 take it. `session_token`: None if the key needs no token."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None
    expires_at: datetime

    def __repr__(self) -> str:
        return f"VendedKey(access_key_id={self.access_key_id!r}, expires_at={self.expires_at!r})"


def table_location(dataset_id: str, variant: str) -> str:
    """The address of a table, without a trailing slash."""
    return f"s3://{BUCKET}/{dataset_id}/{variant}"


ADDRESS_BYTES_MAX: Final = 1_024
"""The longest address of an object, as in S3."""


class ObjectAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where an object is: the table, the first segment of its path, which names a tree, and the rest of the path."""

    dataset_id: str
    variant: str
    segment: str
    path: str


class ListedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a page. `key`: its path below the bucket."""

    key: str
    size_bytes: int
    etag: str


class ObjectPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a listing, in the order of the bytes of the keys. `next_after`: None for the last page."""

    objects: list[ListedObject]
    common_prefixes: list[str]
    next_after: str | None


def table_prefix(dataset_id: str, variant: str) -> str:
    """The part of the keys of a table's objects that all of them have."""
    return f"{dataset_id}/{variant}/"


def object_address(key: bytes) -> ObjectAddress | None:
    """The address that a key is, below the bucket; None for a key that no object can have.

    Such keys have empty segments, or segments of dots, characters of control, bytes that are no UTF-8, or are too long.
    """
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return None
    segments = text.split("/", 3)
    plain = text.isprintable() and not any(each in ("", ".", "..") for each in text.split("/"))
    if len(key) > ADDRESS_BYTES_MAX or len(segments) < 4 or not plain:
        return None
    dataset_id, variant, segment, path = segments
    return ObjectAddress(dataset_id=dataset_id, variant=variant, segment=segment, path=path)
