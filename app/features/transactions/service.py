"""Accepts transactions: writes to several datasets, each validated and staged as alone, but recorded together."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.jobs.values import NewJob
from app.features.transactions.repository import TransactionStore
from app.features.transactions.values import AcceptedTransaction, NewTransaction, Transaction
from app.features.writes.service.accept import AcceptWrite, checked_write
from app.features.writes.values import IncomingWrite
from app.infra.identifiers import new_id
from app.kernel.format.errors import FieldError, HeadwaterError, InvalidRequest


class IncomingTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction as parsed by the API: references to datasets, and the write to each.

    `request_hash`: covers everything that identifies the request.
    """

    writes: tuple[tuple[str, IncomingWrite], ...]
    idempotency_key: str | None = None
    request_hash: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptTransaction:
    """Accepts transactions, all writes of each or none, and returns accepted ones."""

    transactions: TransactionStore
    writes: AcceptWrite

    def get(self, tenant_id: str, transaction_id: str) -> Transaction:
        """A transaction that was accepted. Raises NotFound."""
        return self.transactions.get(tenant_id, transaction_id)

    def accept(
        self, tenant_id: str, incoming: IncomingTransaction, catalog: DatasetLookup
    ) -> AcceptedTransaction:
        """Checks and records a transaction. `catalog`: where its datasets are looked up.

        Raises IdempotencyMismatch, and what `AcceptWrite.accept` raises for one of its writes, with pointers to that
        write.
        """
        if incoming.idempotency_key is not None:
            transaction = self.transactions.find_by_key(
                tenant_id, incoming.idempotency_key, incoming.request_hash
            )
            if transaction is not None:
                return AcceptedTransaction(transaction=transaction, is_replay=True)
        checked_writes = self._checked(tenant_id, incoming, catalog)
        new_jobs: list[NewJob] = []
        try:
            for number, (dataset, write) in enumerate(checked_writes):
                new_jobs.append(self._prepare(number, dataset, write))
            new = NewTransaction(
                id=new_id(),
                jobs=tuple(new_jobs),
                idempotency_key=incoming.idempotency_key,
                request_hash=incoming.request_hash,
            )
            outcome = self.transactions.accept(tenant_id, new)
        except HeadwaterError:
            self._withdraw(new_jobs)
            raise
        if outcome.is_replay:
            self._withdraw(new_jobs)
        else:
            self.writes.wake()
        return outcome

    def _checked(
        self, tenant_id: str, incoming: IncomingTransaction, catalog: DatasetLookup
    ) -> list[tuple[Dataset, IncomingWrite]]:
        """The writes with their datasets, before anything is stored for any of them."""
        checked_writes: list[tuple[Dataset, IncomingWrite]] = []
        places: dict[str, int] = {}
        for number, (reference, write) in enumerate(incoming.writes):
            dataset = catalog.get(tenant_id, reference)
            earlier = places.setdefault(dataset.id, number)
            if earlier != number:
                detail = f"write {earlier} is to this dataset already: a transaction has one write for each"
                raise _refused(f"/writes/{number}/dataset", detail)
            if write.options.writer_id is not None or write.options.batch_id is not None:
                detail = (
                    "batches are of one dataset; a transaction is made safe to retry by its Idempotency-Key"
                )
                raise _refused(f"/writes/{number}/writer_id", detail)
            try:
                checked_writes.append((dataset, checked_write(write, dataset)))
            except HeadwaterError as error:
                raise _placed(error, number) from None
        return checked_writes

    def _prepare(self, number: int, dataset: Dataset, write: IncomingWrite) -> NewJob:
        try:
            return self.writes.prepare(dataset, write)
        except HeadwaterError as error:
            raise _placed(error, number) from None

    def _withdraw(self, new_jobs: list[NewJob]) -> None:
        for new in new_jobs:
            self.writes.inputs.withdraw(new)


def _refused(pointer: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, [FieldError(pointer=pointer, detail=detail)])


def _placed(error: HeadwaterError, number: int) -> HeadwaterError:
    """The error of one write, with pointers to that write in the request."""
    facts, detail = {**error.facts, "write": number}, error.detail
    if "errors" in facts:
        place = f"/writes/{number}"
        # The detail of an invalid member begins with its pointer.
        if detail.startswith("/"):
            detail = place + detail
        facts["errors"] = [{**fault, "pointer": place + fault["pointer"]} for fault in facts["errors"]]
    return error.restored(detail, facts)
