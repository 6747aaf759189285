"""Fixtures for every folder of tests: one embedded Postgres for each process that tests, one database for each module.

Where tests run in several processes, those that start Spark or the whole service run in one of them, one after another,
and first, since they take longest; each other module runs as a whole, in whichever is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from tests.support.examples import a_third_of
from tests.support.fixtures import redis, service
from tests.support.kafka.fixtures import bootstrap, broker, new_topic, registry, topic
from tests.support.mariadb.fixtures import mariadb, mariadb_database
from tests.support.postgres import TestServer
from tests.support.service_fixtures import (
    client,
    events,
    export,
    feed,
    new_client,
    new_view,
    orders,
    receiver,
    register,
    trips,
    write_notes,
)
from tests.support.shares import choose
from tests.support.store_fixtures import (
    accept,
    claim,
    dataset,
    running,
    stores,
    tenant_id,
)

__all__ = [
    "accept",
    "bootstrap",
    "broker",
    "claim",
    "client",
    "dataset",
    "events",
    "export",
    "feed",
    "mariadb",
    "mariadb_database",
    "new_client",
    "new_topic",
    "new_view",
    "orders",
    "receiver",
    "redis",
    "register",
    "registry",
    "running",
    "service",
    "stores",
    "tenant_id",
    "topic",
    "trips",
    "write_notes",
]

# An example takes as long as it takes: a busy machine is no fault.
settings.register_profile("headwater", deadline=None, max_examples=a_third_of(100))
settings.load_profile("headwater")

pytest_plugins = ["tests.support.complete_runs"]

TESTS: Final = Path(__file__).parent
_HEAVY: Final = frozenset({"cluster", "conformance", "engine", "flows", "spark"})


class _ByModule(LoadScopeScheduling):
    """Hands out tests by module, those of the heavy folders as one."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::")[0]
        return "heavy" if Path(module).parts[1] in _HEAVY else module


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByModule | None:
    """Who gives tests to the processes; None for another way to distribute them (`--dist`)."""
    return _ByModule(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the slow ones first, and skips those that are not in the share of the commit."""
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] not in _HEAVY)
    choose(items)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """The id of a value: bytes are named by their argument, since compressed ones can differ with the time of day."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """A Postgres server with a migrated template database."""
    # Not pytest's own folder: every run of pytest closes that to all accounts but one's own, and a Postgres
    # that root starts is another account's.
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        TestServer.running(Path(directory)) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def database_url(postgres: TestServer) -> Iterator[str]:
    """A fresh, migrated database: the URL of the service's login, which owns nothing."""
    with postgres.fresh_database() as name:
        yield postgres.application_url(name)


@pytest.fixture(scope="module")
def database(database_url: str) -> Iterator[Database]:
    """The door to the module's database."""
    database = Database(database_url, application_name="tests", lock_timeout_seconds=10)
    yield database
    database.close()


@pytest.fixture(scope="module")
def administration(postgres: TestServer, database_url: str) -> Iterator[Database]:
    """The module's database with the login that administers tenants and keys."""
    url = postgres.admin_url(database_url.rsplit("/", 1)[1])
    database = Database(url, role=ADMINISTRATOR_ROLE, application_name="tests administration")
    yield database
    database.close()
