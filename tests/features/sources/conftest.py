"""Fixtures of sources."""

from __future__ import annotations

import httpx2
import pytest

from tests.support.service import Service
from tests.support.sources import Incoming


@pytest.fixture
def incoming(client: httpx2.Client, service: Service) -> Incoming:
    """A folder that sources of a tenant of its own may read."""
    return Incoming.of(client, service)
