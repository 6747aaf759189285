"""The alerts of the service: each is a condition on a metric, as data, with what to do about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from app.features.alerts.values import Severity

RUNBOOK: Final = "docs/monitoring.md#alerts"
"""The document with the conditions of all alerts, and what to do about each."""
_MEBIBYTE: Final = 1024 * 1024
_HOUR: Final = 3600


class Condition(StrEnum):
    """How the value of a metric compares with the threshold while the alert is active."""

    ABOVE = ">"
    BELOW = "<"
    ABSENT = "absent"
    """There is no value. Only Prometheus can find that out: nothing of the service runs then."""


class Subject(StrEnum):
    """What an alert is about. Those about tenants and datasets are for their users, too."""

    SERVICE = "the service"
    TENANT = "a tenant"
    DATASET = "a dataset"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert. It is fired once its condition has held for `for_seconds`, for any series of the metric.

    `per`: the metric is divided by this one. `window_seconds`: its increase in this time counts, not its value.
    `setting`: the setting of the process that replaces the threshold. `about`: one about datasets or tenants is also
    evaluated for each tenant with webhooks for alerts. `detail`: a value in words, with its unit. `start_seconds`: it
    is not fired sooner after the start of the process that evaluates it. `hold_seconds`: it is resolved once its
    condition has not held for this time. `follows`: for a tenant, its detail changes while it is active, since it
    names several things; that of others has the value for which it was fired.
    """

    name: str
    severity: Severity
    metric: str
    condition: Condition = Condition.ABOVE
    threshold: float = 0
    per: str = ""
    window_seconds: int = 0
    setting: str = ""
    about: Subject = Subject.SERVICE
    for_seconds: int
    start_seconds: int = 0
    hold_seconds: int = 0
    follows: bool = False
    detail: str
    summary: str
    action: str


ALERTS: Final[tuple[Alert, ...]] = (
    Alert(
        name="no-worker",
        severity=Severity.CRITICAL,
        metric="headwater_workers_alive",
        condition=Condition.BELOW,
        threshold=1,
        for_seconds=30,
        start_seconds=120,
        detail="{value:worker|workers} alive",
        summary="No worker is alive. Reads go on; writes are accepted and wait.",
        action="Start a worker, or restart or kill the one that hangs: GET /health/service has it as not alive. Read "
        "the end of its log for the reason.",
    ),
    Alert(
        name="no-metrics",
        severity=Severity.CRITICAL,
        metric="headwater_workers_alive",
        condition=Condition.ABSENT,
        for_seconds=120,
        detail="no value",
        summary="No process gathers metrics: no API and no worker answers, or Postgres does not.",
        action="Check the processes of the API, and Postgres.",
    ),
    Alert(
        name="loop-stands-still",
        severity=Severity.WARNING,
        metric="headwater_process_loops_still",
        for_seconds=30,
        detail="{value:loop stands|loops stand} still",
        summary="A loop of a process has completed no round for a long time.",
        action="Read the log of the process for the error of the loop; restart the process if it hangs.",
    ),
    Alert(
        name="disk-low",
        severity=Severity.WARNING,
        metric="headwater_disk_free_bytes",
        per="headwater_disk_total_bytes",
        condition=Condition.BELOW,
        threshold=0.1,
        for_seconds=60,
        detail="{size} free, minimum {minimum}",
        summary="Less than a tenth of a disk is free. Writes stop when it is full.",
        action="Delete datasets and start a reap (POST /storage/reaps), shorten the history of others, or enlarge the "
        "disk.",
    ),
    Alert(
        name="disk-full",
        severity=Severity.CRITICAL,
        metric="headwater_disk_free_bytes",
        condition=Condition.BELOW,
        threshold=512 * _MEBIBYTE,
        setting="disk_free_bytes_min",
        for_seconds=0,
        detail="{size} free, minimum {minimum}",
        summary="A disk has less free space than HEADWATER_DISK_FREE_BYTES_MIN.",
        action="Delete datasets and start a reap (POST /storage/reaps), or enlarge the disk. Jobs that wait for space "
        "resume by themselves.",
    ),
    Alert(
        name="storage-unreachable",
        severity=Severity.CRITICAL,
        metric="headwater_storage_reachable",
        condition=Condition.BELOW,
        threshold=1,
        for_seconds=30,
        detail="it cannot be written",
        summary="The storage cannot be written. Writes wait.",
        action="Check the storage server or its disk, and the network. Jobs resume by themselves.",
    ),
    Alert(
        name="redis-unreachable",
        severity=Severity.WARNING,
        metric="headwater_redis_reachable",
        condition=Condition.BELOW,
        threshold=1,
        for_seconds=60,
        detail="it does not answer",
        summary="Redis does not answer. Work and changes are found by polling, which is slower.",
        action="Start Redis. Nothing is lost.",
    ),
    Alert(
        name="jobs-postponed",
        severity=Severity.WARNING,
        metric="headwater_jobs_postponed",
        for_seconds=60,
        hold_seconds=90,
        detail="{value:job waits|jobs wait}",
        summary="Jobs wait for the end of an outage of the storage or the database.",
        action="See the storage and the database; the jobs resume by themselves.",
    ),
    Alert(
        name="job-waits-long",
        severity=Severity.WARNING,
        metric="headwater_jobs_oldest_waiting_seconds",
        threshold=600,
        for_seconds=60,
        detail="the oldest job has waited for {value:,.0f} s",
        summary="A job has waited for a worker for more than ten minutes.",
        action="Add workers or cores, or see which tenant's jobs occupy them (headwater usage).",
    ),
    Alert(
        name="jobs-fail",
        severity=Severity.WARNING,
        metric="headwater_jobs_failed_recently",
        threshold=20,
        for_seconds=0,
        detail="{value:job has|jobs have} failed",
        summary="More than 20 jobs have failed within 15 minutes.",
        action="List failed jobs (GET /jobs?state=failed), and read their errors.",
    ),
    Alert(
        name="dataset-late",
        severity=Severity.WARNING,
        metric="headwater_dataset_late_seconds",
        about=Subject.DATASET,
        for_seconds=60,
        detail="no commit for {value:,.0f} s",
        summary="A dataset has had no commit for its expected time, or three times the usual time between writes.",
        action="See whether its producer or its source runs. All late ones of a tenant: GET /overview with its key.",
    ),
    Alert(
        name="consumer-behind",
        severity=Severity.WARNING,
        metric="headwater_consumer_lag_changes_max",
        threshold=1_000_000,
        about=Subject.DATASET,
        for_seconds=900,
        detail="{value:change|changes} behind",
        summary="A consumer has not committed more than a million changes.",
        action="See which one by headwater_consumer_lag_changes; start it, or delete it if nothing reads any more.",
    ),
    Alert(
        name="consumer-over-max-lag",
        severity=Severity.WARNING,
        metric="headwater_consumers_over_max_lag",
        about=Subject.DATASET,
        for_seconds=60,
        detail="{value:consumer|consumers}",
        summary="A consumer is farther behind than its max_lag, so changes that it has not committed may expire.",
        action="Start it, or raise its max_lag (PUT /datasets/{dataset}/consumers/{consumer}) until it has caught up.",
    ),
    Alert(
        name="view-behind",
        severity=Severity.WARNING,
        metric="headwater_views_behind_seconds_max",
        threshold=900,
        about=Subject.DATASET,
        for_seconds=60,
        detail="{value:,.0f} s behind",
        summary="A view lacks changes of its inputs that are older than 15 minutes.",
        action="See its freshness and its error (GET /views), and whether workers have cores left.",
    ),
    Alert(
        name="view-failed",
        severity=Severity.WARNING,
        metric="headwater_views_failing",
        about=Subject.DATASET,
        for_seconds=0,
        detail="{value:view|views}",
        summary="The last refresh of a view has failed. It keeps its rows of before.",
        action="Read the error of the view (GET /views); correct its SQL or its inputs, and resume it if it is paused.",
    ),
    Alert(
        name="source-failing",
        severity=Severity.WARNING,
        metric="headwater_sources_failing",
        about=Subject.DATASET,
        for_seconds=300,
        detail="{value:source|sources}",
        summary="The last round of a source has failed.",
        action="Read last_error of the source (GET /datasets/{dataset}/sources), and see the system that it reads.",
    ),
    Alert(
        name="webhook-paused",
        severity=Severity.WARNING,
        metric="headwater_webhooks_paused",
        about=Subject.DATASET,
        follows=True,
        for_seconds=0,
        detail="{value:webhook|webhooks}",
        summary="A webhook is paused because its receiver did not take its messages.",
        action="Read the error of the webhook, repair its receiver, and set its state to active.",
    ),
    Alert(
        name="webhook-failing",
        severity=Severity.WARNING,
        metric="headwater_webhooks_failing",
        about=Subject.DATASET,
        follows=True,
        for_seconds=300,
        detail="{value:webhook|webhooks}",
        summary="The receiver of a webhook does not take messages. After further failures the webhook is paused.",
        action="Read what the receiver answers (GET /webhooks/{webhook}/attempts), and repair it.",
    ),
    Alert(
        name="quota-nearly-used",
        severity=Severity.WARNING,
        metric="headwater_quota_used_ratio",
        threshold=0.9,
        about=Subject.TENANT,
        for_seconds=60,
        detail="{value:.0%} used",
        summary="More than 90 % of storage_bytes, rows_per_day or bytes_per_day is used. Writes stop at 100 %.",
        action="See what uses it (headwater usage). Delete data, write less until the next day (UTC), or have an "
        "operator raise the quota (PATCH /tenants/{tenant}).",
    ),
    Alert(
        name="quarantine-grows",
        severity=Severity.WARNING,
        metric="headwater_quarantine_records",
        window_seconds=_HOUR,
        about=Subject.DATASET,
        for_seconds=0,
        detail="{value:record|records}",
        summary="Bad records were put into the quarantine within an hour.",
        action="List them with their errors (GET /datasets/{dataset}/quarantine), repair their producer, and redrive.",
    ),
    Alert(
        name="spark-without-executors",
        severity=Severity.WARNING,
        metric="headwater_spark_executors",
        condition=Condition.BELOW,
        threshold=1,
        for_seconds=60,
        detail="{value:executor|executors}",
        summary="A worker has no executor on its cluster of Spark, and runs nothing.",
        action="Add cores to the cluster, or lower HEADWATER_SPARK_CORES_MAX of the workers.",
    ),
)
"""All alerts. Checks, events, rules of Prometheus and documentation are made from these."""
