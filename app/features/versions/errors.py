"""Errors of savepoints, tags and rollbacks."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class NotEnoughWrites(HeadwaterError):
    """The request undoes more versions than writes have made. Facts: `instants`, `writes`, their number."""

    code = "not-enough-writes"
    title = "There are fewer writes than the request undoes"


class NameTaken(HeadwaterError):
    """Another version of the dataset already has the name. Facts: `name`, `version`, `kind`."""

    code = "name-taken"
    title = "Another version has this name"
