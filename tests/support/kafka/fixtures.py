"""One broker for all tests of topics."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.kafka.broker import Broker, KafkaMissing, running_broker
from tests.support.kafka.registry import Registry, running_registry
from tests.support.kafka.topics import Topic


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A Kafka broker. Where none can be started its tests are left out, or fail if KAFKA is `required`."""
    with (
        TemporaryDirectory(prefix="headwater-tests-", ignore_cleanup_errors=True) as directory,
        ExitStack() as stack,
    ):
        try:
            running = stack.enter_context(running_broker(Path(directory) / "kafka"))
        except KafkaMissing as error:
            reason = (
                f"tests of topics need a Kafka broker, from Maven Central with Java 17 and Maven: {error}"
            )
            if os.environ.get("KAFKA") == "required":
                pytest.fail(reason)
            pytest.skip(reason)
        yield running


@pytest.fixture(scope="session")
def bootstrap(broker: Broker) -> str:
    """What clients connect to."""
    return broker.bootstrap


@pytest.fixture
def topic(bootstrap: str) -> Topic:
    """A topic with one partition."""
    return Topic(bootstrap)


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[..., Topic]:
    """Makes topics."""
    return lambda **settings: Topic(bootstrap, **settings)


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A schema registry."""
    with running_registry() as running:
        yield running
