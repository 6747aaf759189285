"""Errors of the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import msgspec

from headwater_client.models import FieldError, Job, Transaction

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})
"""The states of jobs and transactions that have ended."""
_TEXT_MAX = 500


class Problem(Exception):
    """The service refused a request, or a job did not succeed.

    Attributes
    ----------
    document
        The whole problem document (RFC 9457) with all its facts, such as `limit_bytes`, `earliest` or `job`.
    json
        The response where it is JSON, but no problem document, such as that of `GET /health/service`; otherwise None.
    """

    def __init__(self, document: Mapping[str, Any], json: str | None = None) -> None:
        self.document = dict(document)
        self.json = json
        super().__init__(self._text())

    @property
    def type(self) -> str:
        """The problem type for comparison in programs: `/problems/<code>`."""
        return str(self.document.get("type", "about:blank"))

    @property
    def code(self) -> str:
        """The last part of the type, such as `schema-mismatch`."""
        return self.type.rsplit("/", 1)[-1]

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self.document.get("status", 0))

    @property
    def title(self) -> str:
        """A summary of the problem type."""
        return str(self.document.get("title", ""))

    @property
    def detail(self) -> str:
        """The description of this occurrence."""
        return str(self.document.get("detail", ""))

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """The faulty parts of the request."""
        return msgspec.convert(self.document.get("errors", ()), tuple[FieldError, ...])

    def _text(self) -> str:
        summary = self.detail or self.title
        # The detail often says the first fault already.
        faults = [
            text for error in self.errors if (text := f"{error.pointer}: {error.detail}") not in summary
        ]
        return "; ".join([f"{self.status} {self.code}: {summary}", *faults])


class JobUnfinished(TimeoutError):
    """The job did not end within the caller's time limit; it continues. `job` is its last known state."""

    def __init__(self, job: Job, seconds: float) -> None:
        self.job = job
        super().__init__(f"job {job.id} is {job.state} after {seconds:g} s ({job.progress.stage})")


class TransactionUnfinished(TimeoutError):
    """The transaction did not end within the caller's time limit; it continues."""

    def __init__(self, transaction: Transaction, seconds: float) -> None:
        self.transaction = transaction
        super().__init__(f"transaction {transaction.id} is {transaction.state} after {seconds:g} s")


def problem_of(response: httpx2.Response) -> Problem:
    """The problem of a response with status 400 or above, including responses of proxies."""
    kind = response.headers.get("content-type", "")
    if kind.startswith("application/problem+json"):
        return Problem(msgspec.json.decode(response.content, type=dict[str, Any]))
    return Problem(
        {
            "type": "about:blank",
            "title": response.reason_phrase,
            "status": response.status_code,
            "detail": response.text[:_TEXT_MAX],
        },
        json=response.text if kind.startswith("application/json") else None,
    )


def problem_of_job(job: Job) -> Problem | None:
    """The problem that ended a job; None if it succeeded or is still running."""
    return _problem_of_end("job", job)


def problem_of_transaction(transaction: Transaction) -> Problem | None:
    """The problem that ended a transaction; None if it succeeded or is still running."""
    return _problem_of_end("transaction", transaction)


def _problem_of_end(kind: str, ended: Job | Transaction) -> Problem | None:
    members = {kind: msgspec.to_builtins(ended)}
    match ended.state:
        case "failed":
            return Problem({**(ended.error or {"title": f"the {kind} failed"}), **members})
        case "cancelled":
            document = {
                "type": "/problems/job-cancelled",
                "title": "The job was cancelled",
                "status": 409,
                "detail": f"{kind} {ended.id} was cancelled",
            }
            return Problem({**document, **members})
    return None
