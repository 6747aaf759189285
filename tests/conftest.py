"""Fixtures for every folder of tests: one embedded Postgres for the run, one database for each module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.store.session import Database
from tests.support.postgres import TestServer


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
