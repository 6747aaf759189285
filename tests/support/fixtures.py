"""Fixtures that several folders of tests use; their conftest files import them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.runtime.redis import EmbeddedRedis
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for


@pytest.fixture(scope="session")
def redis() -> Iterator[EmbeddedRedis]:
    """A Redis server."""
    with TemporaryDirectory(prefix="headwater-tests-") as directory, EmbeddedRedis(Path(directory)) as server:
        yield server


@pytest.fixture(scope="session")
def service(postgres: TestServer, redis: EmbeddedRedis) -> Iterator[Service]:
    """The API on a database of its own."""
    with (
        postgres.fresh_database() as name,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        running_service(settings_for(postgres.application_url(name), redis.url, Path(directory))) as running,
    ):
        yield running
