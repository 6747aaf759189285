"""What transactions serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.core.platform import Platform
from app.features.transactions.handlers import create_transaction, get_transaction
from app.features.transactions.repository import TransactionStore
from app.features.transactions.service import AcceptTransaction
from app.features.writes.compose import accept_write
from app.http.auth import Resource


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    transactions = TransactionStore(platform.database)
    return {"transactions": AcceptTransaction(transactions=transactions, writes=accept_write(platform))}


def _resources(platform: Platform) -> dict[str, Resource]:
    catalog, transactions = platform.stores.catalog, TransactionStore(platform.database)

    def datasets(tenant_id: str, transaction_id: str) -> list[str]:
        transaction = transactions.get(tenant_id, transaction_id)
        return catalog.names(tenant_id, [job.dataset_id for job in transaction.jobs])

    # A transaction writes: what its jobs report may be of any row.
    return {"transaction": Resource(datasets=datasets, access=lambda *_: None)}


API: Final = FeatureApi(
    name="transactions",
    routes=(
        create_transaction,
        get_transaction,
    ),
    dependencies=_dependencies,
    resources=_resources,
)
