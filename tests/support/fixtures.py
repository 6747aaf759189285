"""Fixtures that several folders of tests use; their conftest files import them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for


@pytest.fixture(scope="session")
def redis() -> Iterator[EmbeddedValkey]:
    """A Valkey server, which speaks the Redis protocol."""
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        EmbeddedValkey(Path(directory)) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """The API on a database of its own."""
    with (
        postgres.fresh_database() as name,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        running_service(
            settings_for(postgres.application_url(name), postgres.admin_url(name), redis.url, Path(directory))
        ) as running,
    ):
        yield running
