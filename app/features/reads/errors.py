"""Errors of reads."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class RowNotFound(HeadwaterError):
    """The table has no row of the key. A row that the reader may not see gets the same error.

    Facts: `version`; `tombstone`, if a delete keeps older rows of the key away.
    """

    code = "row-not-found"
    title = "No row has this key"


class ScanTooLarge(HeadwaterError):
    """A scan has more parts than one response lists (facts: `parts`, `parts_max`), or its links would be too long."""

    code = "scan-too-large"
    title = "The scan is too large"


class JobNotFinished(HeadwaterError):
    """The job has not succeeded yet, so it has no result. Fact: `state`."""

    code = "job-not-finished"
    title = "The job has no result yet"
    may_pass = True


class ResultExpired(HeadwaterError):
    """The result of a read job has expired. Fact: `keep_seconds`."""

    code = "result-expired"
    title = "The result has expired"


class NoCommits(HeadwaterError):
    """The request needs commits, and the dataset has none."""

    code = "no-commits"
    title = "The dataset has no commits"
    may_pass = True
