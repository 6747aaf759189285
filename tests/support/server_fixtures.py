"""The servers of a process that tests, and a database for each module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for


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


@pytest.fixture(scope="session")
def redis() -> Iterator[EmbeddedValkey]:
    """A Valkey server, which speaks the Redis protocol."""
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        EmbeddedValkey(Path(directory)) as server,
    ):
        yield server


@contextmanager
def fresh_service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """The API on a database and a storage of its own."""
    with (
        postgres.fresh_database() as name,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        running_service(
            settings_for(postgres.application_url(name), postgres.admin_url(name), redis.url, Path(directory))
        ) as running,
    ):
        yield running


class FolderServices:
    """One running service, for the tests of one folder: rounds over all tenants stay short."""

    def __init__(self, postgres: TestServer, redis: EmbeddedValkey) -> None:
        self._servers = (postgres, redis)
        self._running = ExitStack()
        self._current: tuple[Path, Service] | None = None

    def of(self, folder: Path) -> Service:
        """The service of the folder. That of another one ends."""
        if self._current is None or self._current[0] != folder:
            self.close()
            self._current = (folder, self._running.enter_context(fresh_service(*self._servers)))
        return self._current[1]

    def close(self) -> None:
        """Ends the service that runs."""
        self._current = None
        self._running.close()


@pytest.fixture(scope="session")
def folder_services(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[FolderServices]:
    """The service of the folder whose tests run."""
    services = FolderServices(postgres, redis)
    yield services
    services.close()


@pytest.fixture(scope="module")
def service(folder_services: FolderServices, request: pytest.FixtureRequest) -> Service:
    """The API on a database that the modules of a folder share."""
    return folder_services.of(request.path.parent)
