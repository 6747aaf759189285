"""Errors of versions and changes that have expired."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class OffsetExpired(HeadwaterError):
    """The position is before the first change that is kept. Facts: `since`, `earliest`."""

    code = "offset-expired"
    title = "The position has expired from the feed"


class VersionExpired(HeadwaterError):
    """The version has expired. Facts: `version`, `earliest`, the first readable version."""

    code = "version-expired"
    title = "The version has expired"
