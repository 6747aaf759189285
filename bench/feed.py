"""Serving the feed: one reader, page after page, in each form. The reader takes the bytes and does not parse them.

Rows per second by the clock include the reader's own work on the same machine; rows per second of the API's processor
time say what one core serves.

The same feed with filters, as Arrow: of values that lie anywhere in it, so that all of it has to be scanned, and of
values that only its last write has, where the bounds of row groups rule out the rest.

The table and then the feed (`since=snapshot`), beside a plain read of the table's pages and beside the whole feed.

An old feed of small commits, before and after its changelog files are merged, beside the same rows in one commit. The
first reading of a file also verifies it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx2
import numpy as np
import psutil
import pyarrow.ipc as ipc

from bench.options import parser
from bench.processes import processor_seconds
from bench.report import percentiles, publish
from bench.service import API, Service, running_service
from bench.small_commits import changelog_files, merged, set_services, write_small
from bench.table import Table

FORMS = {
    "JSON": "application/json",
    "NDJSON": "application/x-ndjson",
    "Arrow": "application/vnd.apache.arrow.stream",
}
FILTERS = {
    "none": None,
    "1 %": "fare >= 99",
    "0.01 %": "fare >= 99.99",
    "last write": "ts = 2",
}


def read_all(api: psutil.Process, table: Table, *, form: str, limit: int) -> dict[str, Any]:
    """Reads the feed from its start to its end."""
    seconds_of_pages, size, since = [], 0, 0
    cpu_before, began = processor_seconds([api]), time.perf_counter()
    sent = began
    for page in table.pages(FORMS[form], limit=limit):
        seconds_of_pages.append(time.perf_counter() - sent)
        size += len(page.content)
        since = int(page.headers["headwater-next-since"])
        sent = time.perf_counter()
    seconds, cpu_seconds = time.perf_counter() - began, _spent(api, cpu_before)
    return {
        "form": form,
        "limit": limit,
        "rows": since,
        "pages": len(seconds_of_pages),
        "MB": round(size / 1e6),
        "rows/s": round(since / seconds),
        "api cpu s": round(cpu_seconds, 2),
        "rows/cpu s": round(since / cpu_seconds),
        "MB/cpu s": round(size / 1e6 / cpu_seconds),
        **{f"page {name} ms": value for name, value in percentiles(seconds_of_pages).items()},
    }


def _spent(api: psutil.Process, before: float) -> float:
    """Processor seconds since then: at least one tick of the kernel's clock."""
    return max(processor_seconds([api]) - before, 0.01)


def read_filtered(api: psutil.Process, table: Table, *, selects: str, limit: int) -> dict[str, Any]:
    """Reads what a filter selects of the feed, from its start to its end, as Arrow."""
    cpu_before, began = processor_seconds([api]), time.perf_counter()
    pages = list(table.pages(FORMS["Arrow"], limit=limit, where=FILTERS[selects]))
    seconds, cpu_seconds = time.perf_counter() - began, processor_seconds([api]) - cpu_before
    scanned = int(pages[-1].headers["headwater-next-since"])
    return {
        "filter": selects,
        "looked at": scanned,
        "selected": sum(ipc.open_stream(page.content).read_all().num_rows for page in pages),
        "pages": len(pages),
        "looked at/s": round(scanned / seconds),
        "s": round(seconds, 2),
        "api cpu s": round(cpu_seconds, 2),
    }


def read_table(api: psutil.Process, way: str, form: str, pages: Iterator[httpx2.Response]) -> dict[str, Any]:
    """Reads pages to the end, to have the table."""
    cpu_before, began = processor_seconds([api]), time.perf_counter()
    contents = [page.content for page in pages]
    seconds, cpu_seconds = time.perf_counter() - began, _spent(api, cpu_before)
    if form == "Arrow":
        rows = sum(ipc.open_stream(content).read_all().num_rows for content in contents)
    else:
        rows = sum(content.count(b"\n") for content in contents)
    return {
        "way": way,
        "form": form,
        "rows": rows,
        "pages": len(contents),
        "MB": round(sum(map(len, contents)) / 1e6),
        "s": round(seconds, 2),
        "api cpu s": round(cpu_seconds, 2),
        "rows/cpu s": round(rows / cpu_seconds),
    }


def read_ways(api: psutil.Process, table: Table, *, limit: int) -> Iterator[dict[str, Any]]:
    """The ways to have the table: its rows, its rows as the start of the feed, and all changes."""
    for form in ("NDJSON", "Arrow"):
        accept = FORMS[form]
        yield read_table(api, "rows", form, table.row_pages(accept, limit=limit))
        yield read_table(api, "since=snapshot", form, table.pages(accept, limit=limit, since="snapshot"))
        yield read_table(api, "since=0", form, table.pages(accept, limit=limit))


def read_old(
    service: Service, client: httpx2.Client, *, writes: int, rows: int, buckets: int, limit: int
) -> Iterator[dict[str, Any]]:
    """Catches up with a feed of small commits, and with the same rows in one commit."""
    bulk = Table.create(service, client, "bulk", buckets=buckets)
    bulk.write("upsert", np.arange(writes * rows), ts=1)
    small = Table.create(service, client, "small", buckets=buckets)
    set_services(client, small, {"changelog": None, "compaction": None})
    write_small(client, small, writes, rows)

    def readings(feed: str, table: Table) -> Iterator[dict[str, Any]]:
        files = changelog_files(client, table)
        # Pages of another size each time, since pages are cached for some seconds.
        for number, reading in enumerate(("first", "second", "third")):
            figures = read_all(service.process(API), table, form="Arrow", limit=limit - number)
            columns = ("rows", "pages", "rows/s", "rows/cpu s", "page p50 ms")
            yield {"feed": feed, "files": files, "reading": reading} | {
                name: figures[name] for name in columns
            }

    yield from readings("in bulk", bulk)
    yield from readings("small commits, not merged", small)
    merged(client, small)
    yield from readings("small commits, merged", small)


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=2_000_000, help="change rows in the feed")
    options.add_argument("--limit", type=int, default=10_000, help="rows of a page")
    options.add_argument(
        "--large-limit", type=int, default=50_000, help="rows of a page of the whole feed, besides"
    )
    options.add_argument(
        "--buckets", type=int, default=4, help="buckets of the dataset, one changelog file each"
    )
    options.add_argument(
        "--small-writes", type=int, default=1_000, help="commits of the old feed; 0 leaves it out"
    )
    options.add_argument("--small-rows", type=int, default=100, help="rows of each of them")
    chosen = options.parse_args()
    with running_service(chosen.scratch) as service, service.client() as client:
        api = service.process(API)
        table = Table.create(service, client, "trips", buckets=chosen.buckets)
        table.write("bulk_insert", np.arange(chosen.rows // 2), ts=0)
        # The second half of the feed: corrections, two change rows for every row written.
        table.write("upsert", np.arange(chosen.rows // 4), ts=1)
        # One more write, small, of rows that no other has.
        table.write("upsert", np.arange(chosen.rows // 2, chosen.rows // 2 + chosen.rows // 1_000), ts=2)
        # The first reading of a file also checks it.
        read_all(api, table, form="Arrow", limit=chosen.limit)
        figures = [
            read_all(api, table, form=form, limit=limit)
            for limit in (chosen.limit, chosen.large_limit)
            for form in FORMS
        ]
        filtered = [read_filtered(api, table, selects=each, limit=chosen.limit) for each in FILTERS]
        ways = list(read_ways(api, table, limit=chosen.limit))
        small = {"writes": chosen.small_writes, "rows": chosen.small_rows}
        setting = {"limit": chosen.limit, "buckets": chosen.buckets}
        old = list(read_old(service, client, **small, **setting)) if chosen.small_writes else []
    publish("feed", setting, figures)
    publish("feed-filtered", setting, filtered)
    publish("feed-snapshot", setting, ways)
    if old:
        publish("feed-old", small | setting, old)


if __name__ == "__main__":
    main()
