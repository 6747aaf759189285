"""The errors of the Iceberg catalogue."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class UnsupportedGrant(HeadwaterError):
    """A token was requested in a way that is not offered. Fact: `grant_types`, those that are."""

    code = "unsupported-grant-type"
    title = "Tokens are not given this way"
