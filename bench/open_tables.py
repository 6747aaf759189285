"""Open tables of a whole service over HTTP: loading tables, plans, manifests, scans, and what they leave behind.

The rows of most tables are made directly in Postgres: metadata are rendered from nothing else. DuckDB scans a table
that was loaded over HTTP, and the same files directly.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import Any, Final
from urllib.parse import quote, urlsplit

import fastavro
import httpx2
import numpy as np
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from app.core.catalog.values import Dataset
from bench.open_catalogue import Catalogue
from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import ROOT, publish
from bench.service import API, Service, running_service
from bench.table import Table
from bench.trips import SCHEMA

_READER_PYTHON: Final = ROOT / ".venv-open" / "bin" / "python"
_LOAD_ROWS: Final = 1_000_000
_EMPTY: Final = sha256(b"").hexdigest()
_KEYS: Final = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class OpenTable:
    """A table of the catalogue of a running service."""

    service: Service
    client: httpx2.Client
    name: str

    def load(self, **headers: str) -> httpx2.Response:
        """The response to LoadTable."""
        reply = self.client.get(f"/iceberg/v1/v3/namespaces/headwater/tables/{self.name}", headers=headers)
        if reply.status_code != 304:
            reply.raise_for_status()
        return reply

    def plan(self, **members: Any) -> Row:
        """The first tasks of a scan."""
        return self._post("plan", members)

    def files(self) -> Iterator[str]:
        """The addresses of all data files that a full scan reads."""
        plan = self.plan()
        while True:
            for task in plan.get("file-scan-tasks", ()):
                yield task["data-file"]["file-path"]
            if not plan.get("plan-tasks"):
                return
            [next_task] = plan["plan-tasks"]
            plan = self._post("tasks", {"plan-task": next_task})

    def _post(self, name: str, body: Mapping[str, Any]) -> Row:
        path = f"/iceberg/v1/v3/namespaces/headwater/tables/{self.name}/{name}"
        answer: Row = self.client.post(path, json=body).raise_for_status().json()
        return answer

    def manifest_list(self, loaded: Mapping[str, Any]) -> bytes:
        """The manifest list of the latest snapshot."""
        return self.object(loaded, loaded["metadata"]["snapshots"][-1]["manifest-list"])

    def object(self, loaded: Mapping[str, Any], location: str) -> bytes:
        """The bytes of a file of the table, with the key that came with it."""
        config, address = loaded["config"], urlsplit(location)
        url = config["s3.endpoint"] + quote(address.netloc + address.path, safe="/-_.~")
        request = AWSRequest("GET", url, headers={"X-Amz-Content-SHA256": _EMPTY})
        S3SigV4Auth(Credentials(*map(config.get, _KEYS)), "s3", "us-east-1").add_auth(request)
        return self.client.get(url, headers=dict(request.headers.items())).raise_for_status().content

    def planned_by_client(self, day: int) -> int:
        """The number of files of a day, from the manifest list and all manifests."""
        loaded = self.load().json()
        listed = fastavro.reader(BytesIO(self.manifest_list(loaded)))
        manifests = [self.object(loaded, each["manifest_path"]) for each in listed]  # type: ignore[call-overload, index]
        entries = (entry for manifest in manifests for entry in fastavro.reader(BytesIO(manifest)))
        return sum(entry["data_file"]["partition"]["day"] == day for entry in entries)  # type: ignore[call-overload, index]


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Measures requests to a service, by the clock and in processor time."""

    service: Service

    def row(self, case: str, calls: Sequence[Callable[[], object]]) -> Row:
        """One line of the table. The calls are made one after another."""
        api, rest = self.service.processes(API), tree(self.service.supervisor)
        before = processor_seconds(api), processor_seconds(rest)
        times = []
        for call in calls:
            began = time.perf_counter()
            call()
            times.append((time.perf_counter() - began) * 1_000)
        of_api, of_all = processor_seconds(api) - before[0], processor_seconds(rest) - before[1]
        return {
            "case": case,
            "runs": len(times),
            "p50 (ms)": round(statistics.median(times), 1),
            "max (ms)": round(max(times), 1),
            "api cpu (ms)": round(of_api / len(times) * 1_000, 1),
            "service cpu (ms)": round(of_all / len(times) * 1_000, 1),
        }


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A running service, and tables that are made in its Postgres."""

    service: Service
    client: httpx2.Client
    known: Catalogue
    runs: int

    @property
    def clock(self) -> Clock:
        """What measures."""
        return Clock(service=self.service)

    def table(self, name: str) -> OpenTable:
        """A table by its name."""
        return OpenTable(service=self.service, client=self.client, name=name)

    def loads(self, versions: int) -> list[Row]:
        """LoadTable at a number of versions, and how soon a snapshot follows its commit."""
        dataset = self.known.table("versions", commits=versions, each=1, days=100)
        table = self.table("versions")
        tag = table.load().headers["ETag"]
        cases = {
            "": {"Accept-Encoding": "identity"},
            ", gzip": {"Accept-Encoding": "gzip"},
            ", ETag": {"If-None-Match": tag},
        }
        rows = [
            self.clock.row(
                f"load a table of {versions:,} versions{case}",
                [lambda headers=headers: table.load(**headers) for _ in range(self.runs)],
            )
            for case, headers in cases.items()
        ]
        return [*rows, self.snapshots(dataset, table)]

    def snapshots(self, dataset: Dataset, table: OpenTable) -> Row:
        """From the end of a commit to the response that has its snapshot."""
        head = dataset.version
        rows = []
        for number in range(1, self.runs + 1):
            self.known.commit(dataset, first=head + number, last=head + number, each=1, days=100)
            replies: list[httpx2.Response] = []
            rows.append(self.clock.row("", [lambda into=replies: into.append(table.load())]))
            _expect(replies[0].json()["metadata"]["current-snapshot-id"], head + number)
        return _joined(f"snapshot after a commit, {head:,} versions", rows)

    def plans(self, files: int) -> list[Row]:
        """Plans of one partition of a table of a number of files, by the service and by a client."""
        days = max(files // 100, 1)
        self.known.table("large", commits=days, each=100, days=days)
        table = self.table("large")
        table.plan(filter={"type": "eq", "term": "day", "value": 0})
        plans = [
            lambda day=day: table.plan(filter={"type": "eq", "term": "day", "value": day * 7 % days})
            for day in range(1, self.runs + 1)
        ]
        return [
            self.clock.row(f"plan of a partition of {files:,} files", plans),
            self.clock.row("the same by a client", [lambda: table.planned_by_client(7)]),
            self.clock.row("the same, manifests rendered before", [lambda: table.planned_by_client(8)]),
        ]

    def manifests(self, files: int) -> list[Row]:
        """Manifest lists: nothing rendered before, and after one more commit."""
        cold, warm = [], []
        for number in range(3):
            name = f"many_{number}"
            dataset = self.known.table(name, commits=files, each=1, days=100)
            table = self.table(name)
            cold.append(self._list(table))
            for version in range(dataset.version + 1, dataset.version + 1 + self.runs // 2):
                self.known.commit(dataset, first=version, last=version, each=1, days=100)
                warm.append(self._list(table))
        return [
            _joined(f"manifests of {files:,} files, cold", cold),
            _joined("the same, after one more commit", warm),
        ]

    def _list(self, table: OpenTable) -> Row:
        loaded = table.load().json()
        return self.clock.row("", [lambda: table.manifest_list(loaded)])

    def scans(self, rows: int) -> tuple[list[Row], list[str]]:
        """Full scans by DuckDB, and what it and 100 loads of the table have written."""
        table = Table.create(self.service, self.client, "scanned", buckets=4)
        for first in range(0, rows, _LOAD_ROWS):
            table.write("bulk_insert", np.arange(first, min(rows, first + _LOAD_ROWS)), ts=1)
        before = self.known.written(), self.stored()
        for _ in range(100):
            self.table("scanned").load()
        times = _scanned(self._scan(table))
        after = self.known.written(), self.stored()
        changes = {name: count - before[0].get(name, 0) for name, count in after[0].items()}
        rows_of = ", ".join(f"{name} {count}" for name, count in sorted(changes.items()) if count)
        note = (
            f"written by the scans and 100 loads: {after[1] - before[1]} bytes of files; rows: {rows_of or 0}"
        )
        return [{"case": f"scan of {rows:,} rows, {name}", **row} for name, row in times.items()], [note]

    def _scan(self, table: Table) -> dict[str, list[list[float]]]:
        # Those of the version: loads leave small files behind that later ones have joined.
        names = {address.rpartition("/")[2] for address in self.table("scanned").files()}
        files = [path for path in table.stored() if path.name in names]
        request = {
            "uri": f"{self.service.url}/iceberg",
            "token": self.service.api_key,
            "table": "scanned",
            "files": [str(self.service.storage / path) for path in files],
            "columns": SCHEMA.names,
            "runs": max(self.runs // 4, 3),
        }
        command = [str(_READER_PYTHON), "-m", "bench.open_reader"]
        run = subprocess.run(
            command, input=json.dumps(request), stdout=subprocess.PIPE, cwd=ROOT, text=True, check=True
        )
        times: dict[str, list[list[float]]] = json.loads(run.stdout)
        return times

    def stored(self) -> int:
        """The bytes of all files in the storage."""
        return sum(path.stat().st_size for path in self.service.storage.glob("**/*") if path.is_file())


def _scanned(times: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, Row]:
    return {
        name: {
            "runs": len(each),
            "p50 (ms)": round(statistics.median(wall for wall, _ in each) * 1_000, 1),
            "max (ms)": round(max(wall for wall, _ in each) * 1_000, 1),
            "client cpu (ms)": round(statistics.median(cpu for _, cpu in each) * 1_000, 1),
        }
        for name, each in times.items()
    }


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise SystemExit(f"a client sees snapshot {found}, not {wanted}")


def _joined(case: str, rows: Sequence[Row]) -> Row:
    """The line of measurements that were made one by one."""
    names = ("api cpu (ms)", "service cpu (ms)")
    times = [row["p50 (ms)"] for row in rows]
    return {
        "case": case,
        "runs": len(rows),
        "p50 (ms)": round(statistics.median(times), 1),
        "max (ms)": max(times),
        **{name: round(statistics.mean(row[name] for row in rows), 1) for name in names},
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--files", type=int, default=100_000, help="files of the large table")
    options.add_argument("--versions", type=int, default=10_000, help="versions of a table that is loaded")
    options.add_argument("--rows", type=int, default=10_000_000, help="rows that DuckDB scans; 0 for no scan")
    options.add_argument("--runs", type=int, default=20, help="measured requests and commits")
    chosen = options.parse_args()
    notes: list[str] = []
    with running_service(chosen.scratch) as service, service.client() as client:
        measured = Measurement(service=service, client=client, known=Catalogue.of(service), runs=chosen.runs)
        figures = measured.loads(chosen.versions)
        figures += measured.plans(chosen.files)
        figures += measured.manifests(chosen.files // 10)
        if chosen.rows:
            scans, notes = measured.scans(chosen.rows)
            figures += scans
    parameters = {name: getattr(chosen, name) for name in ("files", "versions", "rows", "runs")}
    publish("open_tables", parameters, figures, notes=notes)


if __name__ == "__main__":
    main()
