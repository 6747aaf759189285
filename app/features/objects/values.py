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
"""The variants of a table that have a location: with deletion vectors, and with position deletes."""
KEY_SECONDS: Final = 3_600
"""For how long a key for a table can be used, in seconds. Files outlive the expiry of their versions by as much."""


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
