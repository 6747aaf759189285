"""One deployment for the folder, and a dataset for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest

from tests.support.deployment import Deployment
from tests.support.http import TLS
from tests.support.table import Table

_numbers = count(1)
FIELDS = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]


@pytest.fixture(scope="package")
def deployment() -> Iterator[Deployment]:
    """Real processes; whichever test kills one starts it again."""
    # Not pytest's own folder, which is closed to the account that Postgres runs as.
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        Deployment.running(Path(directory)) as running,
    ):
        yield running


@pytest.fixture
def client(deployment: Deployment) -> Iterator[httpx2.Client]:
    with deployment.client() as client:
        yield client


@pytest.fixture
def new_table(deployment: Deployment, client: httpx2.Client) -> Callable[..., Table]:
    """Registers datasets of columns id and note with key id, by default."""

    def register(**settings: Any) -> Table:
        definition = {
            "name": f"table_{next(_numbers)}",
            "schema": {"fields": FIELDS},
            "record_key": ["id"],
            "bucket": {"count": 2},
        } | settings
        if not definition["record_key"]:
            del definition["bucket"]
        answer = client.post("/datasets", json=definition)
        assert answer.status_code == 201, answer.text
        key = tuple(definition["record_key"])
        return Table(deployment=deployment, client=client, id=answer.json()["id"], key=key)

    return register


@pytest.fixture
def table(new_table: Callable[..., Table]) -> Table:
    """Columns id and note, key id, two buckets."""
    return new_table()


def tables_of_a_new_tenant(deployment: Deployment, stack: ExitStack, name: str, count: int) -> list[Table]:
    with deployment.client() as operator:
        answer = operator.post("/tenants", json={"name": name})
        assert answer.status_code == 201, answer.text
        key = answer.json()["api_key"]
    client = stack.enter_context(
        httpx2.Client(
            base_url=deployment.url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=90,
            trust_env=False,
            verify=TLS,
        )
    )
    made = []
    for number in range(count):
        definition = {"name": f"t{number}", "schema": {"fields": FIELDS}, "record_key": ["id"]}
        answer = client.post("/datasets", json=definition)
        assert answer.status_code == 201, answer.text
        made.append(Table(deployment=deployment, client=client, id=answer.json()["id"], key=("id",)))
    return made


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes the clients of the test."""
    with ExitStack() as stack:
        yield stack
