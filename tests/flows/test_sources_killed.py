"""Sources of every kind but topics, while workers are killed: each record is one row, and none is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from tests.support.deployment import WORKERS, Deployment
from tests.support.paged_api import paged_api
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

STEP = 150
STEPS = 4
PATIENCE_SECONDS = 90
LAGS: dict[str, dict[str, float]] = {
    "sql": {"rows": 0},
    "dataset": {"rows": 0, "seconds": 0.0},
    "files": {"items": 0, "bytes": 0, "seconds": 0.0},
}

Add = Callable[[int, int], None]
"""Adds the records with the ids from one number up to another one."""


def note(number: int) -> dict[str, Any]:
    return {"id": number, "note": f"n{number}"}


@contextmanager
def of_an_api(
    _deployment: Deployment, _new_table: Callable[..., Table]
) -> Iterator[tuple[dict[str, Any], Add]]:
    with paged_api([], page_size=40) as api:
        config = {
            "url": api.url,
            "cursor_parameter": "after",
            "records": "data.items",
            "next_cursor": "paging.next",
        }
        yield (
            {"kind": "http", "config": config},
            lambda first, end: api.records.extend(map(note, range(first, end))),
        )


@contextmanager
def of_a_database(
    deployment: Deployment, _new_table: Callable[..., Table]
) -> Iterator[tuple[dict[str, Any], Add]]:
    parts, name = urlsplit(deployment.owner_url), f"book_{uuid4().hex}"
    with psycopg.connect(deployment.owner_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    url = f"postgresql://{parts.username}@{parts.hostname}:{parts.port}/{name}"
    owner = parts._replace(path=f"/{name}").geturl()

    def add(first: int, end: int) -> None:
        with psycopg.connect(owner) as connection:
            connection.execute(
                "INSERT INTO book SELECT id, 'n' || id FROM generate_series(%s::bigint, %s) AS id",
                [first, end - 1],
            )

    with psycopg.connect(owner) as connection:
        connection.execute("CREATE TABLE book (id bigint, note text)")
    config = {"url": url, "password": parts.password, "table": "public.book", "watermark": "id"}
    yield {"kind": "sql", "config": config}, add


@contextmanager
def of_a_dataset(
    _deployment: Deployment, new_table: Callable[..., Table]
) -> Iterator[tuple[dict[str, Any], Add]]:
    read = new_table()
    yield (
        {"kind": "dataset", "config": {"dataset": read.id, "form": "rows"}},
        lambda first, end: read.write("upsert", [note(number) for number in range(first, end)]) and None,
    )


@contextmanager
def of_a_folder(
    deployment: Deployment, _new_table: Callable[..., Table]
) -> Iterator[tuple[dict[str, Any], Add]]:
    folder = deployment.incoming / f"killed_{uuid4().hex}"
    folder.mkdir(parents=True)

    def add(first: int, end: int) -> None:
        # Three files, so that rounds of two of them follow each other.
        for start in range(first, end, STEP // 3):
            part = folder / f".{start}"
            numbers = range(start, min(start + STEP // 3, end))
            part.write_text("".join(f"{json.dumps(note(number))}\n" for number in numbers))
            part.rename(folder / f"{start:06d}.ndjson")

    config = {"path": folder.as_uri(), "format": "ndjson"}
    yield {"kind": "files", "config": config, "max_items": 2}, add


@share(12)
@pytest.mark.parametrize(
    "origin",
    [of_an_api, of_a_database, of_a_dataset, of_a_folder],
    ids=["http", "sql", "dataset", "files"],
)
def test_each_record_is_one_row_while_workers_are_killed(
    deployment: Deployment, new_table: Callable[..., Table], origin: Callable[..., Any]
) -> None:
    random = Random(origin.__name__)
    # Without a key, a record that is written twice is there twice.
    table = new_table(record_key=[])
    with origin(deployment, new_table) as (members, add):
        add(0, STEP)
        body = {"name": f"in_{uuid4().hex}", "dataset": table.id, "interval_seconds": 0.2, "max_rows": 60}
        # Between the files of a round and its commit.
        with deployment.gates.at_head(table.id) as gate:
            path = table.client.post("/sources", json=body | members).raise_for_status().headers["location"]
            kill(deployment, deployment.arrival(gate)[1])
        # Anywhere.
        for step in range(1, STEPS):
            add(step * STEP, (step + 1) * STEP)
            until(lambda step=step: table.version >= 2 * step, "more rounds", seconds_max=PATIENCE_SECONDS)
            kill(deployment, random.choice(WORKERS))

        until(
            lambda: len(table.rows()) >= STEP * STEPS or table.client.get(path).json()["last_error"],
            "all records",
            seconds_max=PATIENCE_SECONDS,
        )
        # An API does not say how much it has.
        lag = LAGS.get(members["kind"], {})
        until(lambda: table.client.get(path).json()["lag"] == lag, "no lag", seconds_max=PATIENCE_SECONDS)
        source = table.client.get(path).json()
        assert source["last_error"] is None
        # Nothing more comes, of whatever a killed worker had begun.
        rounds = source["rounds"]
        table.client.post(f"{path}/rounds", headers={"Prefer": "wait=30"}).raise_for_status()
        assert table.client.get(path).json()["rounds"] in (rounds, rounds + 1)
        assert sorted((row["id"], row["note"]) for row in table.sound()) == [
            (number, f"n{number}") for number in range(STEP * STEPS)
        ]
        table.client.delete(path)


def kill(deployment: Deployment, worker: str) -> None:
    """Kills a worker, and starts it again."""
    deployment.processes[worker].kill()
    deployment.processes[worker].start(wait=False)
