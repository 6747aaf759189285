"""The JSON of transactions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.core.jobs.schemas import JobResponse, job_response, transaction_path
from app.core.jobs.values import JobState
from app.features.transactions.values import Transaction
from app.features.writes.schemas import WriteMembers
from app.http.encoding import PROBLEM
from app.http.problems import fault_document


class CreateDatasetWrite(WriteMembers, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write of a transaction."""

    dataset: str
    """The id or the name of the dataset to write to."""


class CreateTransaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Writes to 2–16 different datasets."""

    writes: Annotated[list[CreateDatasetWrite], msgspec.Meta(min_length=2, max_length=16)]
    """The writes, one for each dataset."""


class TransactionLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a transaction's resources."""

    self_: Annotated[str, msgspec.Meta(examples=["/transactions/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"])]
    """The transaction."""


class TransactionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets, all or nothing."""

    id: str
    """Its id."""
    state: JobState
    """The state that all its jobs have in common."""
    jobs: list[JobResponse]
    """Its writes, in the order of the request; they end together."""
    error: Annotated[dict[str, Any], PROBLEM] | None
    """Why the write failed that failed all others."""
    created_at: datetime
    """When it was accepted."""
    links: TransactionLinks
    """The paths of its resources."""


def transaction_response(transaction: Transaction) -> TransactionResponse:
    """The JSON of a transaction."""
    return TransactionResponse(
        id=transaction.id,
        state=transaction.state,
        jobs=[job_response(job) for job in transaction.jobs],
        error=None if transaction.error is None else fault_document(transaction.error),
        created_at=transaction.created_at,
        links=TransactionLinks(self_=transaction_path(transaction.id)),
    )
