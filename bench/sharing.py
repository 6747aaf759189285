"""Delta Sharing of a whole service over HTTP: queries of many files, and the feed as a change data feed.

The files of the table that is queried are rows of Postgres: links are made from nothing else. The changes are those of
rows that were loaded.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import httpx2
import numpy as np

from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.repository.shares import ShareStore
from app.features.sharing.values import DeletedRows, NewRecipient, NewShare, new_share_token
from app.infra.identifiers import new_id
from bench.open_catalogue import Catalogue
from bench.open_tables import Clock, Row
from bench.options import parser
from bench.processes import processor_seconds
from bench.report import publish
from bench.service import API, Service, running_service
from bench.table import Table

_WAIT_SECONDS = 600.0
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """A recipient of the share `bench`, which has some datasets."""

    client: httpx2.Client

    @classmethod
    def of(cls, service: Service, known: Catalogue, names: list[str]) -> Recipient:
        """A recipient of all rows of these datasets."""
        database, token = known.stores.database, new_share_token()
        tables = {known.stores.catalog.get(known.tenant_id, name).id: name for name in names}
        new_share = NewShare(name="bench", deleted_rows=DeletedRows.RENDERED, tables=tables)
        share = ShareStore(database).add(known.tenant_id, new_id(), new_share)
        new = NewRecipient(name="reader", grants=None, expires_at=None, requests_per_second=None)
        ShareRecipientStore(database).add(
            known.tenant_id, share.id, new_id(), new, token, created_by=known.tenant_id
        )
        headers = {"Authorization": f"Bearer {token}"}
        return cls(client=httpx2.Client(base_url=service.url, headers=headers, trust_env=False, timeout=120))

    def query(self, table: str, response_format: str) -> int:
        """The number of files of a table."""
        headers = {"delta-sharing-capabilities": f"responseformat={response_format}"}
        path = f"/delta-sharing/shares/bench/schemas/default/tables/{table}/query"
        reply = self.client.post(path, json={}, headers=headers)
        reply.raise_for_status()
        return reply.text.count("\n") - 2

    def changes(self, table: str) -> httpx2.Response:
        """The changes of a table, once they are rendered."""
        path = f"/delta-sharing/shares/bench/schemas/default/tables/{table}/changes"
        end = time.monotonic() + _WAIT_SECONDS
        while True:
            reply = self.client.get(path, params={"startingVersion": 1})
            if reply.status_code != 503 or time.monotonic() > end:
                reply.raise_for_status()
                return reply
            time.sleep(_PAUSE_SECONDS)


def _changes(service: Service, reader: Recipient, count: int) -> list[Row]:
    rows = []
    for case in ("first request", "requests after it"):
        before, began = processor_seconds(service.processes(API)), time.perf_counter()
        reader.changes("feed")
        wall = time.perf_counter() - began
        seconds = processor_seconds(service.processes(API)) - before
        rows.append(
            {
                "case": f"{count:,} changes as a change data feed, {case}",
                "runs": 1,
                "p50 (ms)": round(wall * 1_000, 1),
                "api cpu (ms)": round(seconds * 1_000, 1),
                "changes per cpu second": round(count / seconds) if seconds else 0,
            }
        )
    return rows


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--files", type=int, default=1_000, help="files of a query")
    options.add_argument("--changes", type=int, default=1_000_000, help="changes that are read; 0 for none")
    options.add_argument("--runs", type=int, default=20, help="measured queries")
    chosen = options.parse_args()
    with running_service(chosen.scratch) as service, service.client() as client:
        known = Catalogue.of(service)
        known.table("files", commits=1, each=chosen.files, days=100)
        names = ["files"]
        if chosen.changes:
            table = Table.create(service, client, "feed", buckets=4)
            table.write("bulk_insert", np.arange(chosen.changes), ts=1)
            names.append("feed")
        reader = Recipient.of(service, known, names)
        figures: list[dict[str, Any]] = []
        for response_format in ("parquet", "delta"):
            if reader.query("files", response_format) != chosen.files:
                raise SystemExit("a query has not all files")
            calls = [lambda form=response_format: reader.query("files", form) for _ in range(chosen.runs)]
            clock = Clock(service=service)
            figures.append(clock.row(f"query of {chosen.files:,} files, {response_format}", calls))
        if chosen.changes:
            figures += _changes(service, reader, chosen.changes)
        reader.client.close()
    publish("sharing", {name: getattr(chosen, name) for name in ("files", "changes", "runs")}, figures)


if __name__ == "__main__":
    main()
