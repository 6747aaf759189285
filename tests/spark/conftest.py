"""A Spark session with the data source `headwater`, beside a real service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import httpx2
import pytest
from pyspark.sql import DataFrame, SparkSession

from app.infra.runtime.java import java_home
from headwater_client import Dataset, Headwater, NewDataset, NewField
from headwater_client.spark import register
from tests.support.service import Service
from workers.engine.session import start_session
from workers.engine.spark_settings import session_settings

_numbers = count(1)


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for the folder. Its workers inherit the environment of its JVM."""
    scratch = tmp_path_factory.mktemp("spark")
    before = dict(os.environ)
    os.environ |= {"JAVA_HOME": str(java_home(scratch)), "NO_PROXY": "*", "no_proxy": "*"}
    session = start_session(session_settings("local[2]", scratch, driver_memory="512m"), scratch)
    try:
        register(session)
        yield session
    finally:
        session.stop()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(autouse=True)
def worker(service: Service) -> Iterator[None]:
    with service.working():
        yield


@pytest.fixture
def api_key(service: Service) -> str:
    """The key of a tenant of its own."""
    return service.new_key(f"spark-{next(_numbers)}")


@pytest.fixture
def headwater(service: Service, api_key: str) -> Iterator[Headwater]:
    """The client of that tenant."""
    with Headwater(service.url, api_key, transport=httpx2.HTTPTransport()) as client:
        yield client


@pytest.fixture
def connection(service: Service, api_key: str) -> dict[str, str]:
    """The options that name service and tenant."""
    return {"url": service.url, "api_key": api_key}


@pytest.fixture
def configure(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Sets a setting of the session for the test."""
    before: dict[str, str] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def read(spark: SparkSession, connection: dict[str, str]) -> Callable[..., DataFrame]:
    """Loads a dataset."""

    def load(path: str, **options: Any) -> DataFrame:
        return spark.read.format("headwater").options(**connection, **options).load(path)

    return load


@pytest.fixture
def save(connection: dict[str, str]) -> Callable[..., None]:
    """Saves a data frame."""

    def write(rows: DataFrame, path: str, mode: str = "append", **options: Any) -> None:
        rows.write.format("headwater").options(**connection, **options).mode(mode).save(path)

    return write


@pytest.fixture
def orders(headwater: Headwater) -> Dataset:
    """Columns id, note and day, key id, partitioned by day."""
    names = {"id": "int64", "note": "string", "day": "date"}
    return headwater.create_dataset(
        NewDataset(
            name="orders",
            fields=tuple(NewField(name=name, type=kind) for name, kind in names.items()),
            record_key=("id", "day"),
            partition_by=("day",),
        )
    )
