"""What a process counts and times by itself: requests, jobs that end in it, and its own processor time and memory.

A process has one registry, whose series are bounded: a label is a route template, a status, a kind or a stage, never
a name or an id of a user. What all processes have in common, such as waiting jobs, is gathered by
`app/features/monitoring`.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.process_collector import ProcessCollector

_log = logging.getLogger(__name__)
# A client that sends nothing for so long is left alone: it holds a thread.
_IDLE_SECONDS: Final = 10.0

REGISTRY: Final = CollectorRegistry()
"""The instruments of this process."""
ProcessCollector(registry=REGISTRY)
# A second series for each counter, which nothing here reads.
disable_created_metrics()

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)

REQUESTS: Final = Histogram(
    "http_server_request_duration_seconds",
    "The time from a request to the end of its response, in seconds, by the template of its route.",
    ("http_request_method", "http_route", "http_response_status_code"),
    buckets=_SECONDS,
    registry=REGISTRY,
)
STAGES: Final = Histogram(
    "headwater_job_stage_seconds",
    "The time that a stage of a job took, in seconds, of jobs that ended in this process.",
    ("stage", "kind"),
    buckets=_SECONDS,
    registry=REGISTRY,
)
FINISHED: Final = Counter(
    "headwater_jobs_finished",
    "Jobs that ended in this process.",
    ("kind", "state"),
    registry=REGISTRY,
)
COMMITS: Final = Counter(
    "headwater_commits",
    "Versions that this process has made, by the operation of the timeline.",
    ("operation",),
    registry=REGISTRY,
)
CONFLICTS: Final = Counter(
    "headwater_commit_conflicts",
    "Commits of this process that had to be planned again after the commit of another job.",
    registry=REGISTRY,
)

REQUEST_BEGAN: Final[ContextVar[float | None]] = ContextVar("request_began", default=None)
"""When the current request began, by `time.perf_counter`; None outside of a request."""
# Others are counted as one, since a client may send any word.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def count_request(method: str, route: str | None, status: int, seconds: float) -> None:
    """Counts a request. `route`: the template of its path; None where no route was found. `status`: 0 without one."""
    known_method = method if method in _METHODS else "_OTHER"
    REQUESTS.labels(known_method, route or "", str(status)).observe(seconds)


def serve_metrics(registry: CollectorRegistry, host: str, port: int) -> None:
    """Serves the metrics over HTTP until the process ends, on a thread. `port`: 0: it serves none.

    Where the port is taken, the process goes on without, and its log says so.
    """
    if not port:
        return
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        _log.warning("no metrics are served on port %d of %s: %s", port, host, error)
        return
    handler = server.RequestHandlerClass
    server.RequestHandlerClass = type("MetricsHandler", (handler,), {"timeout": _IDLE_SECONDS})  # type: ignore[arg-type]
