"""Transactions: writes to several datasets that are accepted in one database transaction."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, insert, select, text, update

from app.access.errors import NotFound
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.repository.accept import insert_jobs
from app.core.jobs.repository.job_row import JOB_COLUMNS, job_of
from app.core.jobs.tables import jobs, transactions
from app.core.jobs.values import failed_by_service
from app.features.transactions.values import AcceptedTransaction, NewTransaction, Transaction
from app.infra.db.columns import CURRENT_TENANT
from app.infra.db.session import Database
from app.kernel.format.identifiers import is_uuid

# Transactions of a tenant are accepted one after another. Two that share several datasets then wait in the same order
# in each of them, so they cannot wait for each other.
_LOCK: Final = text(f"SELECT pg_advisory_xact_lock(hashtextextended('transactions ' || {CURRENT_TENANT}, 0))")


class TransactionStore:
    """Transactions in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def accept(self, tenant_id: str, new: NewTransaction) -> AcceptedTransaction:
        """Queues its jobs in one transaction of the database, all or none.

        A key that is known returns its transaction, unless that failed for a reason of the service's own. Raises
        IdempotencyMismatch, NotFound (a dataset is gone), QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            return _accept(connection, new)

    def get(self, tenant_id: str, transaction_id: str) -> Transaction:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return _get(connection, transaction_id)

    def find_by_key(self, tenant_id: str, idempotency_key: str, request_hash: str) -> Transaction | None:
        """The transaction that `accept` would replay. Raises IdempotencyMismatch."""
        with self._database.tenant(tenant_id) as connection:
            return _find(connection, idempotency_key, request_hash)


def _accept(connection: Connection, new: NewTransaction) -> AcceptedTransaction:
    connection.execute(_LOCK)
    if new.idempotency_key is not None:
        transaction = _find(connection, new.idempotency_key, new.request_hash)
        if transaction is not None:
            return AcceptedTransaction(transaction=transaction, is_replay=True)
        # A transaction that failed for a reason of the service's own releases its key.
        condition = transactions.c.idempotency_key == new.idempotency_key
        connection.execute(update(transactions).where(condition).values(idempotency_key=None))
    live = share_datasets(connection, {job.dataset_id for job in new.jobs})
    for job in new.jobs:
        if job.dataset_id not in live:
            raise NotFound(f"there is no dataset {job.dataset_id}")
    values = {"id": new.id, "idempotency_key": new.idempotency_key, "request_hash": new.request_hash}
    connection.execute(insert(transactions).values(values))
    insert_jobs(connection, new.jobs, new.id)
    return AcceptedTransaction(transaction=_get(connection, new.id), is_replay=False)


def _find(connection: Connection, idempotency_key: str, request_hash: str) -> Transaction | None:
    query = select(transactions.c.id, transactions.c.request_hash)
    row = connection.execute(query.where(transactions.c.idempotency_key == idempotency_key)).one_or_none()
    if row is None:
        return None
    if row.request_hash != request_hash:
        raise IdempotencyMismatch(transaction_id=row.id)
    transaction = _get(connection, row.id)
    return None if failed_by_service(transaction.state, transaction.error) else transaction


def _get(connection: Connection, transaction_id: str) -> Transaction:
    row: Any = None
    if is_uuid(transaction_id):
        query = select(transactions.c.id, transactions.c.created_at)
        row = connection.execute(query.where(transactions.c.id == transaction_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no transaction {transaction_id}")
    members = select(*JOB_COLUMNS).where(jobs.c.transaction_id == transaction_id).order_by(jobs.c.seq)
    own_jobs = tuple(job_of(each) for each in connection.execute(members))
    return Transaction(id=row.id, jobs=own_jobs, created_at=row.created_at)
