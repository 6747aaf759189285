"""Transactions: writes to several datasets that are committed together or not at all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headwater_client.models import Dataset, Format, Operation, Transaction, Upload
from headwater_client.problem import FINAL_STATES, TransactionUnfinished, problem_of_transaction
from headwater_client.transport.connection import (
    WAIT_SECONDS_MAX,
    Connection,
    decoded,
    made_up,
    transaction_path,
)
from headwater_client.transport.encode import rows_json
from headwater_client.transport.pages import JSON
from headwater_client.write_options import DEFAULTS, WriteOptions


class DatasetWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One write of a transaction: rows, an upload with its `format`, or (delete) a filter, or partitions by globs."""

    dataset: Dataset | str
    operation: Operation = "upsert"
    rows: Sequence[Mapping[str, Any]] | None = None
    upload: Upload | None = None
    format: Format = "ndjson"
    gzip: bool = False
    where: str | None = None
    partitions: tuple[str, ...] = ()
    options: WriteOptions = DEFAULTS

    def document(self) -> dict[str, Any]:
        """Its JSON form."""
        dataset = self.dataset.id if isinstance(self.dataset, Dataset) else self.dataset
        written: dict[str, Any] = {"dataset": dataset, "operation": self.operation, **self.options.members()}
        if self.rows is not None:
            written["source"] = {"kind": "rows", "rows": msgspec.Raw(rows_json(self.rows))}
        elif self.upload is not None:
            packed = {"compression": "gzip"} if self.gzip else {}
            written["source"] = {
                "kind": "upload", "upload_id": self.upload.id, "format": self.format, **packed
            }  # fmt: skip
        if self.where is not None:
            written["where"] = self.where
        if self.partitions:
            written["partitions"] = list(self.partitions)
        return written


class TransactionCalls(Connection):
    """Writes to several datasets at once."""

    async def transact(
        self, writes: Sequence[DatasetWrite], *, idempotency_key: str | None = None, wait: float = 0
    ) -> Transaction:
        """Writes to 2–16 different datasets: all writes become visible at once, or none.

        Returns the transaction as soon as it is durable. With `wait`, returns it once it has succeeded, and raises
        TransactionUnfinished after this number of seconds, Problem if it fails.
        """
        deadline = time.monotonic() + wait
        first_wait = min(int(wait), WAIT_SECONDS_MAX)
        answer = await self._send(
            "POST",
            "/transactions",
            body=msgspec.json.encode({"writes": [write.document() for write in writes]}),
            headers={
                "Content-Type": JSON,
                "Idempotency-Key": made_up(idempotency_key),
                **({"Prefer": f"wait={first_wait}"} if first_wait else {}),
            },
            patience_seconds=first_wait,
        )
        found = decoded(Transaction, answer)
        return (
            await self.wait_for_transaction(found, seconds=max(deadline - time.monotonic(), 0))
            if wait
            else found
        )

    async def get_transaction(self, transaction: Transaction | str) -> Transaction:
        """The current state of a transaction."""
        return await self._transaction(transaction, 0)

    async def wait_for_transaction(
        self, transaction: Transaction | str, *, seconds: float = 600
    ) -> Transaction:
        """The transaction once it has succeeded. Raises TransactionUnfinished; Problem if it fails or is cancelled."""
        deadline = time.monotonic() + seconds
        found = (
            transaction if isinstance(transaction, Transaction) else await self.get_transaction(transaction)
        )
        while found.state not in FINAL_STATES:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TransactionUnfinished(found, seconds)
            found = await self._transaction(found, min(int(left) + 1, WAIT_SECONDS_MAX))
        if problem := problem_of_transaction(found):
            raise problem
        return found

    async def _transaction(self, transaction: Transaction | str, wait: int) -> Transaction:
        params = {"wait": wait} if wait else {}
        answer = await self._get(transaction_path(transaction), params, patience_seconds=wait)
        return decoded(Transaction, answer)
