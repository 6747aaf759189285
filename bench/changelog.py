"""Catching up with a feed of small commits, before and after its changelog files are merged, beside a feed in bulk.

Each small write is a commit of its own. The rates are those of a reader that takes pages of Arrow without parsing them;
the first reading of a file also verifies it.
"""

from __future__ import annotations

import time
from typing import Any

import httpx
import numpy as np

from bench.feed import read_all
from bench.options import parser
from bench.report import publish
from bench.service import running_service
from bench.table import Table
from bench.trips import trips, upsert_body

_MERGE_SECONDS_MAX = 600.0


def changelog_files(client: httpx.Client, table: Table) -> int:
    """The number of changelog files that the feed consists of."""
    found: int = (
        client.get(f"/datasets/{table.id}/statistics").raise_for_status().json()["changelog"]["files"]
    )
    return found


def set_services(client: httpx.Client, table: Table, services: dict[str, Any]) -> None:
    """Replaces the policies of the dataset."""
    path = f"/datasets/{table.id}"
    match = {"If-Match": client.get(path).raise_for_status().headers["ETag"]}
    client.patch(path, json={"services": services}, headers=match).raise_for_status()


def write_small(client: httpx.Client, table: Table, writes: int, rows: int) -> float:
    """Sends the writes one after another; returns the seconds that they took."""
    begun = time.perf_counter()
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
    return time.perf_counter() - begun


def merged(client: httpx.Client, table: Table, small_files: int) -> float:
    """Turns the service on, and waits until it finds nothing more to merge; returns the seconds."""
    begun = time.perf_counter()
    policy = {"changelog": {"small_files": small_files, "seconds": 0}}
    set_services(client, table, policy)
    files, since = changelog_files(client, table), time.perf_counter()
    while time.perf_counter() - since < 5.0:
        if time.perf_counter() - begun > _MERGE_SECONDS_MAX:
            raise SystemExit("the files were not merged in time")
        time.sleep(0.5)
        now = changelog_files(client, table)
        if now != files:
            files, since = now, time.perf_counter()
    return since - begun


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--writes", type=int, default=1_000, help="small writes")
    options.add_argument("--rows", type=int, default=100, help="rows of each")
    options.add_argument("--buckets", type=int, default=4, help="buckets of the dataset")
    options.add_argument("--limit", type=int, default=10_000, help="rows of a page")
    options.add_argument("--small-files", type=int, default=32, help="`services.changelog.small_files`")
    chosen = options.parse_args()
    figures: list[dict[str, Any]] = []
    with running_service(chosen.scratch) as service, service.client() as client:
        api = service.process("app.main")
        bulk = Table.create(service, client, "bulk", buckets=chosen.buckets)
        bulk.write("upsert", np.arange(chosen.writes * chosen.rows), ts=1)
        small = Table.create(service, client, "small", buckets=chosen.buckets)
        set_services(client, small, {"changelog": None, "compaction": None})
        seconds = write_small(client, small, chosen.writes, chosen.rows)

        def measure(name: str, table: Table, **more: Any) -> None:
            files = changelog_files(client, table)
            # Pages of another size, since pages are cached for some seconds.
            for reading, limit in (
                ("first", chosen.limit),
                ("second", chosen.limit - 1),
                ("third", chosen.limit - 2),
            ):
                found = read_all(api, table, form="Arrow", limit=limit)
                wanted = {key: found[key] for key in ("rows", "rows/s", "rows/cpu s", "page p50 ms", "pages")}
                figures.append({"feed": name, "reading": reading, "files": files, **wanted, **more})

        measure("bulk", bulk)
        measure("small, not merged", small, **{"files/write": changelog_files(client, small) / chosen.writes})
        merge_seconds = merged(client, small, chosen.small_files)
        files = changelog_files(client, small)
        measure("small, merged", small, **{"files/write": files / chosen.writes})
    rates = {(each["feed"], each["reading"]): each["rows/s"] for each in figures}
    setup = {
        "writes": chosen.writes,
        "rows of each": chosen.rows,
        "buckets": chosen.buckets,
        "limit": chosen.limit,
        "seconds to write": round(seconds),
        "seconds to merge": round(merge_seconds),
        "not merged ÷ bulk": round(rates["small, not merged", "third"] / rates["bulk", "third"], 3),
        "merged ÷ bulk": round(rates["small, merged", "third"] / rates["bulk", "third"], 3),
    }
    publish("changelog", setup, figures)


if __name__ == "__main__":
    main()
