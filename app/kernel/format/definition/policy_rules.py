"""The rules of a dataset's table services. Each is a small function that yields the faults it finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from app.kernel.format.clustering import column_faults
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.definition.hive_table import HIVE_NAME, hive_columns
from app.kernel.format.policies import AnalysisPolicy, TableServices

VERSIONS_MAX: Final = 2**63 - 1
# Times that are computed with it stay within the years of Python and of Postgres.
SECONDS_MAX: Final = 2**31 - 1
INSTANTS_MIN: Final = 100
INSTANTS_MAX: Final = 1_000_000
BATCH_TAGS_MAX: Final = 10_000
METASTORE_IDLE_SECONDS_MAX: Final = 86_400
# The most changelog files that are merged at once.
MERGED_FILES_MAX: Final = 1_024
Fault = tuple[str, str]
_Rule = Callable[[TableServices, DatasetDefinition], Iterator[Fault]]


def service_faults(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:
    """Every fault of the services of a dataset: a JSON pointer, and what is expected."""
    for rule in _RULES:
        for pointer, detail in rule(services, dataset):
            yield f"/services{pointer}", detail


def _compaction_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:  # noqa: ARG001
    policy = services.compaction
    if policy is None:
        return
    for name, least in (("logs", 1), ("small_files", 2)):
        bound = getattr(policy, name)
        if bound is not None and bound < least:
            yield f"/compaction/{name}", f"expected {least} or more, or null"
    if policy.seconds is not None and not 1 <= policy.seconds <= SECONDS_MAX:
        yield "/compaction/seconds", f"expected 1–{SECONDS_MAX}, or null"
    if policy.log_ratio is not None and not 0 < policy.log_ratio < math.inf:
        yield "/compaction/log_ratio", "expected a number above 0, or null"
    if policy.deleted_ratio is not None and not 0 < policy.deleted_ratio <= 1:
        yield "/compaction/deleted_ratio", "expected a number above 0, up to 1, or null"


def _changelog_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:  # noqa: ARG001
    policy = services.changelog
    if policy is None:
        return
    if not 2 <= policy.small_files <= MERGED_FILES_MAX:
        yield "/changelog/small_files", f"expected 2 to {MERGED_FILES_MAX}"
    if not 0 <= policy.seconds <= SECONDS_MAX:
        yield "/changelog/seconds", f"expected 0 to {SECONDS_MAX}"


def _tag_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:  # noqa: ARG001
    policy = services.tags
    if policy is not None and policy.keep is not None and policy.keep < 1:
        yield "/tags/keep", "expected 1 or more, or null to keep all"


def _batch_tag_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:  # noqa: ARG001
    policy = services.batch_tags
    if policy is not None and not 1 <= policy.keep <= BATCH_TAGS_MAX:
        yield "/batch_tags/keep", f"expected 1 to {BATCH_TAGS_MAX}"


def _partition_done_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:
    policy = services.partition_done
    if policy is None:
        return
    if not dataset.partition_by:
        yield (
            "/partition_done",
            "the dataset has no partitions; leave it out, or set `partition_by` on the dataset",
        )
    if dataset.bucket.mode is BucketMode.KEY_DYNAMIC and not dataset.looks_up:
        yield (
            "/partition_done",
            "under bucket mode key_dynamic the logs of this dataset belong to no partition, so a change of a partition "
            "cannot be detected; use table_type copy_on_write, or changelog.producer full",
        )
    if policy.idle_seconds is not None and not 1 <= policy.idle_seconds <= SECONDS_MAX:
        yield "/partition_done/idle_seconds", f"expected 1–{SECONDS_MAX}, or null"


def _metastore_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:
    policy = services.metastore
    if policy is None:
        return
    for member, name in (("database", policy.database), ("table", policy.table)):
        if not HIVE_NAME.fullmatch(name):
            yield (
                f"/metastore/{member}",
                "expected 1–128 lower case letters, digits and _, as in Hive's names",
            )
    if policy.idle_seconds is not None and not 1 <= policy.idle_seconds <= METASTORE_IDLE_SECONDS_MAX:
        yield "/metastore/idle_seconds", f"expected 1 to {METASTORE_IDLE_SECONDS_MAX}, or null"
    try:
        hive_columns(dataset)
    except ValueError as error:
        yield "/metastore", str(error)


def _clustering_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:
    policy = services.clustering
    if policy is None:
        return
    for pointer, detail in column_faults(policy.columns, dataset.schema):
        yield f"/clustering/columns{pointer}", detail
    if policy.unclustered_bytes < 1:
        yield "/clustering/unclustered_bytes", "expected 1 or more"


def _analysis_rule(services: TableServices, _dataset: DatasetDefinition) -> Iterator[Fault]:
    policy = services.analysis
    if not isinstance(policy, AnalysisPolicy):
        return
    if policy.changed_ratio is not None and not 0 < policy.changed_ratio < math.inf:
        yield "/analysis/changed_ratio", "expected a number above 0, or null"
    if policy.versions is not None and not 1 <= policy.versions <= VERSIONS_MAX:
        yield "/analysis/versions", f"expected 1–{VERSIONS_MAX}, or null"


def _history_rule(services: TableServices, _dataset: DatasetDefinition) -> Iterator[Fault]:
    policy = services.history
    if policy is None:
        return
    if policy.versions is None and policy.seconds is None:
        yield "/history", "expected 'versions', 'seconds', or both; null keeps every version"
    if policy.versions is not None and not 1 <= policy.versions <= VERSIONS_MAX:
        yield "/history/versions", f"expected 1–{VERSIONS_MAX}, or null"
    if policy.seconds is not None and not 0 <= policy.seconds <= SECONDS_MAX:
        yield "/history/seconds", f"expected 0–{SECONDS_MAX}, or null"


def _timeline_rule(services: TableServices, _dataset: DatasetDefinition) -> Iterator[Fault]:
    if services.timeline is not None and not INSTANTS_MIN <= services.timeline.instants <= INSTANTS_MAX:
        yield "/timeline/instants", f"expected {INSTANTS_MIN}–{INSTANTS_MAX}"


_RULES: Final[tuple[_Rule, ...]] = (
    _compaction_rule,
    _changelog_rule,
    _clustering_rule,
    _analysis_rule,
    _history_rule,
    _timeline_rule,
    _tag_rule,
    _batch_tag_rule,
    _partition_done_rule,
    _metastore_rule,
)
