"""Composes the use cases of transactions."""

from __future__ import annotations

from app.core.platform import Platform
from app.features.transactions.repository import TransactionStore
from app.features.transactions.service import AcceptTransaction
from app.features.writes.service.accept import AcceptWrite


def transaction_store(platform: Platform) -> TransactionStore:
    """The transactions that were accepted."""
    return TransactionStore(platform.database)


def accept_transaction(platform: Platform, writes: AcceptWrite) -> AcceptTransaction:
    """Accepts and finds transactions in the API."""
    return AcceptTransaction(
        transactions=transaction_store(platform),
        writes=writes,
    )


def dependencies(platform: Platform, writes: AcceptWrite) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {"transactions": accept_transaction(platform, writes)}
