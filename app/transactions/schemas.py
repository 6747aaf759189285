"""The JSON forms of what the API answers with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.http.encoding import PROBLEM
from app.http.problems import fault_document
from app.jobs.schemas import JobResponse, job_response, transaction_path
from app.jobs.values import JobState
from app.transactions.values import Transaction


class TransactionLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a transaction is."""

    self_: str


class TransactionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets that happen together or not at all.

    `jobs`: in the order of the request; they end together. `error`: what made the one fail that failed them all.
    """

    id: str
    state: JobState
    jobs: list[JobResponse]
    error: Annotated[dict[str, Any], PROBLEM] | None
    created_at: datetime
    links: TransactionLinks


def transaction_response(transaction: Transaction) -> TransactionResponse:
    """The JSON form of a transaction."""
    return TransactionResponse(
        id=transaction.id,
        state=transaction.state,
        jobs=[job_response(job) for job in transaction.jobs],
        error=None if transaction.error is None else fault_document(transaction.error),
        created_at=transaction.created_at,
        links=TransactionLinks(self_=transaction_path(transaction.id)),
    )
