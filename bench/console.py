"""Pages of the console for a tenant of many datasets: the time of each, its processor time, and its requests.

Each page is requested by one reader, one request after another, in rounds over all pages: what the service does beside
them, such as the samples of each minute, then falls on all alike. The milliseconds are those of the whole request, with
the requests that the page itself sends to the API. The last note names the slowest page, and those beyond the target.
Of a busy machine, compare the processor time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import numpy as np

from app.features.console.pages.all import PAGES
from bench.fairness import new_datasets
from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import percentiles, publish
from bench.service import API, Service, finished, running_service
from bench.trips import trips, upsert_body

_VARIABLE = re.compile(r"\{(\w+):\w+\}")
_QUERIES = {
    "/search": "?q=trips_7",
    "/dataset-names": "?text=trips_7",
    # Otherwise it waits for a change.
    "/datasets/{dataset:str}/changes/more": "?wait=0",
}
_FOOTER = '<footer class="same">'
_TARGET_MILLISECONDS = 100


def fill(service: Service, datasets: int, written: int, rows: int) -> Mapping[str, str]:
    """Makes datasets, writes to some of them, and returns a value for each variable in the paths of pages."""
    made = new_datasets(service, datasets)
    with service.client() as client:
        jobs = []
        for number, dataset in enumerate(made[:written]):
            body = upsert_body(trips(np.arange(rows), ts=number))
            headers = {"Content-Type": "application/json"}
            answer = client.post(f"/datasets/{dataset}/writes", content=body, headers=headers)
            jobs.append(answer.raise_for_status().json())
        ended = [finished(client, job) for job in jobs]
        export = client.post(f"/datasets/{made[0]}/exports", json={"query": "changes", "format": "ndjson"})
        export.raise_for_status()
        tenant = client.get("/me").raise_for_status().json()["tenant"]
    return {
        "dataset": "trips_0",
        "job": ended[0]["id"],
        "export": export.json()["id"],
        "tenant": tenant["id"],
    }


@dataclass(kw_only=True, slots=True)
class PageMeasurement:
    """The requests of a page: their times in seconds, and the processor seconds of the API and of the rest."""

    page: str
    address: str
    first: httpx2.Response
    seconds: list[float] = field(default_factory=list)
    api_seconds: float = 0.0
    other_seconds: float = 0.0

    def take(self, service: Service, client: httpx2.Client, requests: int) -> None:
        """Adds this number of requests."""
        api = tree(service.process(API))
        others = [each for each in tree(service.supervisor) if each not in api]
        before = processor_seconds(api), processor_seconds(others)
        for _ in range(requests):
            began = time.perf_counter()
            _page(client, self.address)
            self.seconds.append(time.perf_counter() - began)
        self.api_seconds += processor_seconds(api) - before[0]
        self.other_seconds += processor_seconds(others) - before[1]

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the page."""
        times = percentiles(self.seconds)
        return {
            "page": self.page,
            "p50 ms": times["p50"],
            "p95 ms": times["p95"],
            "api cpu ms": round(1000 * self.api_seconds / len(self.seconds), 1),
            "other cpu ms": round(1000 * self.other_seconds / len(self.seconds), 1),
            "requests": self.first.text.partition(_FOOTER)[2].count("curl "),
            "kB": round(len(self.first.content) / 1000, 1),
        }


def summary(figures: Sequence[Mapping[str, Any]]) -> str:
    """The slowest page, and those whose 95th percentile is beyond the target."""
    slowest = max(figures, key=lambda each: each["p95 ms"])
    beyond = [each["page"] for each in figures if each["p95 ms"] > _TARGET_MILLISECONDS]
    return (
        f"slowest: {slowest['page']} with p95 {slowest['p95 ms']} ms and {slowest['api cpu ms']} cpu ms; "
        f"beyond {_TARGET_MILLISECONDS} ms: {', '.join(beyond) or 'none'}"
    )


def _page(client: httpx2.Client, address: str) -> httpx2.Response:
    answer = client.get(address)
    if answer.status_code >= 500:
        raise SystemExit(f"{address} has status {answer.status_code}: {answer.text[:500]}")
    return answer


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--datasets", type=int, default=1_000, help="datasets of the tenant")
    options.add_argument("--written", type=int, default=50, help="how many of them have rows")
    options.add_argument("--rows", type=int, default=1_000, help="rows of each of these")
    options.add_argument("--requests", type=int, default=5, help="requests of each page in a round")
    options.add_argument("--rounds", type=int, default=20, help="rounds over all pages")
    chosen = options.parse_args()
    pages, left_out = [], []
    with running_service(chosen.scratch) as service:
        variables = fill(service, chosen.datasets, chosen.written, chosen.rows)
        with httpx2.Client(base_url=service.url, timeout=60, trust_env=False) as client:
            begun = client.post("/console/session", data={"api_key": service.api_key})
            if begun.status_code != 303:
                raise SystemExit(f"no session has begun: {begun.text[:500]}")
            for page in PAGES:
                if set(_VARIABLE.findall(page.path)) - variables.keys():
                    left_out.append(page.path)
                    continue
                path = _VARIABLE.sub(lambda found: variables[found[1]], page.path)
                address = f"/console{path}{_QUERIES.get(page.path, '')}"
                first = _page(client, address)
                pages.append(PageMeasurement(page=page.path or "/", address=address, first=first))
            for _ in range(chosen.rounds):
                for each in pages:
                    each.take(service, client, chosen.requests)
    given = {name: getattr(chosen, name) for name in ("datasets", "written", "rows", "requests", "rounds")}
    notes = [f"not measured: {path}" for path in left_out]
    figures = [each.figures for each in pages]
    publish("console", given, figures, notes=[*notes, summary(figures)])


if __name__ == "__main__":
    main()
