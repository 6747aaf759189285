"""One server for all tests of MariaDB, and a database for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from tests.support.mariadb.server import Mariadb, MariadbMissing, running_mariadb


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Mariadb]:
    """A MariaDB server. Without Maven its tests are left out."""
    with (
        TemporaryDirectory(prefix="headwater-tests-", ignore_cleanup_errors=True) as directory,
        ExitStack() as stack,
    ):
        try:
            running = stack.enter_context(running_mariadb(Path(directory) / "mariadb"))
        except MariadbMissing as error:
            pytest.skip(f"no MariaDB server: {error}")
        yield running


@pytest.fixture
def mariadb_database(mariadb: Mariadb) -> Iterator[str]:
    """The name of a new database."""
    name = f"of_{uuid4().hex}"
    mariadb.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    mariadb.run(f"DROP DATABASE {name}")
