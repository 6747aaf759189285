"""The errors of the Iceberg catalogue."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class UnsupportedGrant(HeadwaterError):
    """A token was requested in a way that is not offered. Fact: `grant_types`, those that are."""

    code = "unsupported-grant-type"
    title = "Tokens are not given this way"


class TableNotCarried(HeadwaterError):
    """Clients of the format cannot read the table as it is. Fact: `column`."""

    code = "table-not-carried"
    title = "The table cannot be read in this format"
