"""A feed of small commits, each a write of its own, and the merge of its changelog files."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import numpy as np

from bench.table import Table
from bench.trips import trips, upsert_body

_MERGE_SECONDS_MAX = 600.0


def changelog_files(client: httpx2.Client, table: Table) -> int:
    """The number of changelog files that the feed consists of."""
    found: int = (
        client.get(f"/datasets/{table.id}/statistics").raise_for_status().json()["changelog"]["files"]
    )
    return found


def set_services(client: httpx2.Client, table: Table, services: dict[str, Any]) -> None:
    """Replaces the policies of the dataset."""
    path = f"/datasets/{table.id}"
    match = {"If-Match": client.get(path).raise_for_status().headers["ETag"]}
    client.patch(path, json={"services": services}, headers=match).raise_for_status()


def write_small(client: httpx2.Client, table: Table, writes: int, rows: int) -> None:
    """Sends the writes one after another."""
    for number in range(writes):
        keys = np.arange(number * rows, (number + 1) * rows)
        answer = client.post(
            f"/datasets/{table.id}/writes",
            content=upsert_body(trips(keys, ts=1)),
            headers={"Content-Type": "application/json", "Prefer": "wait=60"},
        )
        answer.raise_for_status()
        if answer.json()["state"] != "succeeded":
            raise SystemExit(f"a write that did not succeed: {answer.text}")


def merged(client: httpx2.Client, table: Table) -> None:
    """Turns the service on, and waits until it finds nothing more to merge."""
    begun = time.perf_counter()
    set_services(client, table, {"changelog": {"small_files": 32, "seconds": 0}})
    files, since = changelog_files(client, table), time.perf_counter()
    while time.perf_counter() - since < 5.0:
        if time.perf_counter() - begun > _MERGE_SECONDS_MAX:
            raise SystemExit("the files were not merged in time")
        time.sleep(0.5)
        now = changelog_files(client, table)
        if now != files:
            files, since = now, time.perf_counter()
