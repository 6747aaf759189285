"""A running service with tables, and engines that read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Final

import pytest

from app.infra.runtime.valkey import EmbeddedValkey
from tests.open.datasets import OpenDataset, Tenant
from tests.open.engines import Engine, Reader, started
from tests.open.histories import played
from tests.open.tables import TABLES
from tests.support.commit_seed import commit_seed
from tests.support.postgres import TestServer
from tests.support.server_fixtures import fresh_service
from tests.support.service import Service

_FEW: Final = 2
Readers = Callable[[Engine], Reader]


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Readers]:
    """Starts an engine once."""
    with ExitStack() as running:

        @cache
        def start(engine: Engine) -> Reader:
            found = started(engine, tmp_path_factory.mktemp(engine.name))
            running.callback(found.stop)
            return found

        yield start


@pytest.fixture(scope="session")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """One service for all modules, which share tables."""
    with fresh_service(postgres, redis) as running:
        yield running


@pytest.fixture(scope="session")
def tenant(service: Service) -> Iterator[Tenant]:
    """A tenant whose tables all tests read, and none changes."""
    found = Tenant.new(service)
    yield found
    found.client.close()


@pytest.fixture(scope="session")
def few_histories(service: Service) -> Sequence[OpenDataset]:
    """A few random histories, others for each commit."""
    tenant = Tenant.new(service)
    return [played(tenant, f"{commit_seed()} {number}") for number in range(_FEW)]


@pytest.fixture(scope="session")
def table(tenant: Tenant) -> Callable[[str], OpenDataset]:
    """Makes a table of TABLES once."""
    return cache(lambda name: TABLES[name](tenant))
