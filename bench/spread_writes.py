"""Small writes spread over many datasets, of one tenant or of many: how many are committed in a second, and their cost.

Each client sends its next write, to the next dataset in turn, when its last one is committed. So the waiting writes are
those of many datasets, and each dataset has few. The cost is processor time by program.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from bench.fairness import new_datasets, new_tenant
from bench.options import chosen_cluster, parser
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.small_writes import in_turn, requests, send

_KEYS = 10_000
_WARM_SECONDS = 4.0


def measure(
    service: Service, *, tenants: int, datasets: int, clients: int, rows: int, seconds: float
) -> dict[str, Any]:
    """One line of the table: `datasets` divided among `tenants`."""
    owners = [new_tenant(service, f"spread-{datasets}-{tenants}-{number}") for number in range(tenants)]
    sources = [
        requests(owner, dataset, rows=rows, keys=_KEYS, wait=True)
        for owner in owners
        for dataset in new_datasets(owner, datasets // tenants)
    ]
    source = in_turn(sources)
    asyncio.run(send(service, source, clients, _WARM_SECONDS))
    before, began = service.processor_seconds(), time.perf_counter()
    answers = asyncio.run(send(service, source, clients, seconds))
    took, after = time.perf_counter() - began, service.processor_seconds()
    if failed := [job for _, job in answers if job["state"] != "succeeded"]:
        raise SystemExit(f"{len(failed)} writes did not succeed: {msgspec.json.encode(failed[0]).decode()}")
    cost = {name: round((after[name] - before[name]) / len(answers) * 1000, 1) for name in after}
    return {
        "tenants": tenants,
        "datasets": datasets,
        "writes": len(answers),
        "committed/s": round(len(answers) / took, 1),
        **{f"{name} ms": value for name, value in percentiles([each for each, _ in answers]).items()},
        "cpu ms/write": round(sum(cost.values()), 1),
        **{f"{name} cpu": value for name, value in cost.items()},
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__, cluster=True)
    options.add_argument(
        "--datasets", type=int, nargs="*", default=[1, 10, 100], help="datasets of one tenant"
    )
    options.add_argument(
        "--tenants", type=int, nargs="*", default=[100], help="tenants with one dataset each"
    )
    options.add_argument("--clients", type=int, default=50, help="clients at a time")
    options.add_argument("--rows", type=int, default=100, help="rows of a write")
    options.add_argument("--seconds", type=float, default=15.0, help="how long the clients send")
    chosen = options.parse_args()
    given = {name: getattr(chosen, name) for name in ("clients", "rows", "seconds")}
    cluster = chosen_cluster(chosen)
    with running_service(chosen.scratch, cluster=cluster) as service:
        figures = [measure(service, tenants=1, datasets=count, **given) for count in chosen.datasets]
        figures += [measure(service, tenants=count, datasets=count, **given) for count in chosen.tenants]
    publish(f"spread-writes{cluster.name if cluster else ''}", given, figures)


if __name__ == "__main__":
    main()
