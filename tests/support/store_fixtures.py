"""One tenant with one dataset for each test, in the module's database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.access.tenants.repository.credentials import CredentialStore
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.repository.outbox import OutboxStore
from app.core.jobs.values import ClaimRules, Job
from app.features.transactions.repository import TransactionStore
from app.infra.db.session import Database
from app.infra.identifiers import new_id
from app.process.features import COMMIT_PARTICIPANTS, stores_on
from tests.support.administration import Administration
from tests.support.lakehouse import RULES, OneByOne, definition, new_job


@dataclass(frozen=True)
class Stores:
    """Every store on one database."""

    database: Database
    keys: CredentialStore
    tenants: Administration
    catalog: CatalogStore
    jobs: JobStore
    transactions: TransactionStore
    timeline: OneByOne
    changelog: ChangelogStore
    outbox: OutboxStore

    @classmethod
    def on(cls, database: Database, administration: Database | None = None) -> Stores:
        """`administration`: with the administration's login, for `tenants`."""
        core = stores_on(database)
        return cls(
            database=database,
            keys=CredentialStore(database),
            tenants=Administration(administration or database),
            catalog=core.catalog,
            jobs=core.jobs,
            transactions=TransactionStore(database),
            timeline=OneByOne(database, COMMIT_PARTICIPANTS),
            changelog=ChangelogStore(database),
            outbox=OutboxStore(database),
        )


@pytest.fixture
def stores(database: Database, administration: Database) -> Stores:
    return Stores.on(database, administration)


@pytest.fixture
def tenant_id(stores: Stores) -> str:
    return stores.tenants.add_tenant(f"tenant-{new_id()}")


@pytest.fixture
def dataset(stores: Stores, tenant_id: str) -> Dataset:
    return stores.catalog.create(tenant_id, new_id(), definition())


@pytest.fixture
def accept(stores: Stores, tenant_id: str, dataset: Dataset) -> Callable[[], Job]:
    """Accepts one more write to the dataset."""
    return lambda: stores.jobs.accept(tenant_id, new_job(dataset.id)).job


@pytest.fixture
def claim(stores: Stores, tenant_id: str, dataset: Dataset) -> Callable[..., list[Job]]:
    """Claims what waits, under the rules given."""

    def run(rules: ClaimRules = RULES, owner: str = "worker") -> list[Job]:
        return stores.jobs.claim(tenant_id, dataset.id, owner, rules)

    return run


@pytest.fixture
def running(accept: Callable[[], Job], claim: Callable[..., list[Job]]) -> Callable[[], Job]:
    """Accepts one more write and claims it."""

    def run() -> Job:
        accept()
        [job] = claim()
        return job

    return run
