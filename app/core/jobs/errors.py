"""Errors of jobs."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class BatchOutOfOrder(HeadwaterError):
    """A batch of a stream has a lower number than the last one and was never received. Fact: `last_batch_id`."""

    code = "batch-out-of-order"
    title = "A later batch of this writer was already accepted"


class BatchMismatch(HeadwaterError):
    """A batch of a stream was accepted with other rows. Fact: `job_id`, the job of these."""

    code = "batch-mismatch"
    title = "The batch was accepted with other rows"


class TransactionFailed(HeadwaterError):
    """Another write of the transaction failed, so this one was not made. Fact: `cause`, its code."""

    code = "transaction-failed"
    title = "Another write of the transaction failed"


class JobNotCancellable(HeadwaterError):
    """The job has ended already."""

    code = "job-ended"
    title = "The job has ended already"


class AttemptsExhausted(HeadwaterError):
    """Every attempt at the job ended without a result. Fact: `attempts`."""

    code = "attempts-exhausted"
    title = "The job failed after its last attempt"


class ProcessKilled(HeadwaterError):
    """The process in which the job computed its rows was killed, again when it ran nothing else: most likely, they need
    more memory than it has. It has changed nothing. Fact: `deaths`.
    """

    code = "process-killed"
    title = "The job has killed its process"


class TimeLimitExceeded(HeadwaterError):
    """The job ran for longer than one job may, and was stopped. It has changed nothing. Fact: `limit_seconds`."""

    code = "time-limit-exceeded"
    title = "The job took too long"


class EngineStopped(Exception):
    """The tasks were stopped on request. Only the requester sees this error."""


class JobCancelled(HeadwaterError):
    """The job that the request waited for was cancelled."""

    code = "job-cancelled"
    title = "The job was cancelled"
