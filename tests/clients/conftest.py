"""The service that clients run against, and a tenant for each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx2
import pytest

from headwater_client import Dataset, Headwater, NewDataset, NewField
from tests.support.service import Service

_numbers = count(1)


@pytest.fixture
def api_key(service: Service) -> str:
    """The key of a tenant of its own."""
    return service.new_key(f"client-{next(_numbers)}")


@pytest.fixture
def headwater(service: Service, api_key: str) -> Iterator[Headwater]:
    """The client of that tenant."""
    # A transport of its own: none of the environment's proxies.
    with Headwater(service.url, api_key, transport=httpx2.HTTPTransport()) as client:
        yield client


@pytest.fixture
def readings(headwater: Headwater) -> Dataset:
    """A dataset with a key and columns of the types that JSON has no form for."""
    fields = (
        NewField(name="sensor", type="string"),
        NewField(name="at", type="timestamp"),
        NewField(name="local", type="timestamp_ntz"),
        NewField(name="day", type="date"),
        NewField(name="price", type="decimal(10, 2)"),
        NewField(name="raw", type="binary"),
        NewField(name="value", type="double"),
    )
    return headwater.create_dataset(NewDataset(name="readings", fields=fields, record_key=("sensor",)))


@pytest.fixture
def orders(headwater: Headwater) -> Dataset:
    """Columns id and note, key id."""
    fields = (NewField(name="id", type="int64"), NewField(name="note", type="string"))
    return headwater.create_dataset(NewDataset(name="orders", fields=fields, record_key=("id",), buckets=2))
