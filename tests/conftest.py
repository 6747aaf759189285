"""Fixtures for every folder of tests: one embedded Postgres for each process that tests, one database for each module.

Where tests run in several processes, those that start Spark or the whole service run in one of them, one after another,
and first, since they take longest; each other module runs as a whole, in whichever is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from app.store.session import Database
from tests.support.postgres import TestServer

TESTS: Final = Path(__file__).parent
_HEAVY: Final = frozenset({"conformance", "engine", "flows"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Says which tests stay together, and puts the slow ones first."""
    for item in items:
        heavy = item.path.relative_to(TESTS).parts[0] in _HEAVY
        item.add_marker(pytest.mark.xdist_group("heavy" if heavy else str(item.path.relative_to(TESTS))))
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] not in _HEAVY)


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
