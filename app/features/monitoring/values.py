"""The metrics that are gathered from the database and from the processes, and their samples."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Final

import msgspec


class MetricKind(str, Enum):
    """The type of a metric in the text format of Prometheus."""

    COUNTER = "counter"
    """Only grows, until what counts starts again."""
    GAUGE = "gauge"


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that is gathered. `help`: one sentence, which the documentation shows, too."""

    name: str
    kind: MetricKind = MetricKind.GAUGE
    labels: tuple[str, ...] = ()
    help: str


class Sample(msgspec.Struct, frozen=True):
    """One value of a metric. `labels`: a value for each label of the metric."""

    name: str
    labels: Mapping[str, str]
    value: float


class Amount(float):
    """A value for texts: the format `{value:row|rows}` is `1 row`, or `1,204 rows`."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        one, bar, many = spec.partition("|")
        if not bar:
            return super().__format__(spec)
        number = f"{float(self):,.0f}"
        return f"{number} {one if number == '1' else many}"


GATHERED: Final[tuple[Metric, ...]] = (
    Metric(name="headwater_workers_alive", help="Worker processes that have polled lately."),
    Metric(
        name="headwater_process_loops_still",
        labels=("process",),
        help="Loops of a process that stand still.",
    ),
    Metric(name="headwater_jobs_waiting", labels=("lane",), help="Jobs that wait for a worker."),
    Metric(
        name="headwater_jobs_oldest_waiting_seconds",
        labels=("lane",),
        help="The time for which the oldest of the jobs that could run has waited, in seconds.",
    ),
    Metric(name="headwater_jobs_running", labels=("lane",), help="Jobs that a process works on."),
    Metric(
        name="headwater_jobs_postponed",
        help="Jobs that wait for the end of an outage of the storage or the database.",
    ),
    Metric(name="headwater_jobs_failed_recently", help="Jobs that have failed within the last 15 minutes."),
    Metric(
        name="headwater_consumer_lag_changes",
        labels=("tenant", "dataset", "consumer"),
        help="Changes that a consumer has not committed, of the 20 consumers that are farthest behind.",
    ),
    Metric(
        name="headwater_consumer_lag_changes_max",
        help="Changes that the consumer farthest behind has not committed.",
    ),
    Metric(
        name="headwater_consumer_lag_changes_count",
        help="Consumers with changes that they have not committed.",
    ),
    Metric(
        name="headwater_consumers_over_max_lag",
        help="Consumers that are farther behind than their own max_lag.",
    ),
    Metric(name="headwater_datasets", help="Datasets of all tenants."),
    Metric(
        name="headwater_datasets_late",
        help="Datasets without a commit for the time of their setting expected_every_seconds; without one for three "
        "times the median gap between their writes, and for 5 minutes, until they are idle after 8 days.",
    ),
    Metric(
        name="headwater_dataset_late_seconds",
        labels=("tenant", "dataset"),
        help="The time since the last commit of a late dataset, in seconds, of the 20 for which it is longest.",
    ),
    Metric(
        name="headwater_views_behind_seconds_max",
        help="The time for which the view farthest behind lacks a change of its inputs, in seconds.",
    ),
    Metric(name="headwater_views_failing", help="Views whose last refresh has failed."),
    Metric(name="headwater_sources_failing", help="Sources whose last round has failed."),
    Metric(
        name="headwater_webhooks_paused",
        help="Webhooks that the service has paused because deliveries failed.",
    ),
    Metric(
        name="headwater_webhooks_failing",
        help="Active webhooks whose receiver did not take the last message.",
    ),
    Metric(name="headwater_quarantine_records", help="Records in quarantine."),
    Metric(
        name="headwater_storage_bytes",
        labels=("tenant",),
        help="Bytes that a tenant stores, of the 1,000 tenants that store most.",
    ),
    Metric(
        name="headwater_quota_used_ratio",
        labels=("tenant", "quota"),
        help="The share of a quota of bytes or rows that is used, of the 20 that are used most.",
    ),
    Metric(
        name="headwater_disk_free_bytes",
        labels=("process", "folder"),
        help="Free bytes of the fullest disk of a process. Its folder: data, storage, or both.",
    ),
    Metric(
        name="headwater_disk_total_bytes",
        labels=("process", "folder"),
        help="Bytes of the fullest disk of a process.",
    ),
    Metric(
        name="headwater_spark_executors",
        labels=("process",),
        help="Executors that a worker has on a cluster.",
    ),
    Metric(
        name="headwater_storage_reachable",
        help="Whether the storage can be written: 1, else 0.",
    ),
    Metric(name="headwater_redis_reachable", help="Whether Redis answers: 1, else 0."),
    Metric(
        name="headwater_gather_ok",
        labels=("part",),
        help="Whether a part of these metrics could be read in the last round: 1, else 0.",
    ),
    Metric(name="headwater_gather_seconds", help="The time that the last round took, in seconds."),
)
"""What the leader of the processes gathers once an interval."""


class DatasetProblem(str, Enum):
    """What is wrong with a dataset."""

    LATE = "late"
    """It has no commit for the time that it states, or for three times the median gap between its writes and 5
    minutes. A view that states no time is late if it lacks a change of an input for 5 minutes, and is not paused.
    """
    SOURCE = "source"
    """The last round of a source that writes it has failed."""
    VIEW = "view"
    """It is a view, and its last refresh has failed."""
    WEBHOOK = "webhook"
    """One of its webhooks is paused since deliveries failed."""


class DatasetFault(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset with a value of a metric that may be that of a fault. `detail`: the value in words.

    `dataset_id`, `dataset`: None for what is of the whole tenant.
    """

    dataset_id: str | None
    dataset: str | None
    value: float
    detail: str


class HourNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of an hour."""

    hour: datetime
    """When it began."""
    writes: int
    """The writes in it."""
    rows_in: int
    """The rows that these have inserted, updated or deleted."""


class DatasetNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a dataset. Those of its table are of its last sample; None before the first."""

    rows: int | None = None
    deleted_rows: int | None = None
    files: int | None = None
    logs: int | None = None
    size_bytes: int | None = None
    sampled_at: datetime | None = None
    writes: int = 0
    rows_in: int = 0
    consumers: int = 0
    lag: int | None = None
    farthest_consumer: str | None = None
    quarantined: int = 0
    problems: tuple[DatasetProblem, ...] = ()


class StoredSums(msgspec.Struct, frozen=True, kw_only=True):
    """What all tenants together store, in bytes."""

    dataset_bytes: Annotated[int, msgspec.Meta(examples=[5368709120])]
    """All files of datasets, as of the last samples: those of earlier versions, of feeds, of exports, of results and of
    the quarantine included.
    """
    quarantine_bytes: Annotated[int, msgspec.Meta(examples=[1048576])]
    """Of these, the files of the quarantine."""
    rendered_bytes: Annotated[int, msgspec.Meta(examples=[268435456])]
    """Files that were rendered for readers of open tables."""
    database_bytes: Annotated[int, msgspec.Meta(examples=[134217728])] | None
    """The database of the service; null if the service may not read it."""
    files_on_disk: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether files are on a disk, not in a bucket."""
    database_on_host: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether the database is on the machine of the process that responds."""


class StoredDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset with the bytes of its files."""

    tenant: Annotated[str, msgspec.Meta(examples=["acme"])]
    """The name of its tenant."""
    dataset: Annotated[str, msgspec.Meta(examples=["orders"])]
    """Its name."""
    dataset_id: str
    """Its id."""
    stored_bytes: Annotated[int, msgspec.Meta(examples=[5368709120])]
    """The bytes of all its files, those of earlier versions, of its feed and of its quarantine included: the largest
    sample of the day.
    """
    size_bytes: Annotated[int, msgspec.Meta(examples=[1073741824])] | None
    """The bytes of the data files of its version; null before the first sample."""
    deleted_at: datetime | None
    """When it was deleted: its files are deleted later, or by `create_reap`. Null for one that exists."""
