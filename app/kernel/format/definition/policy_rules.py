"""The rules of a dataset's table services. Each is a small function that yields the faults it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
LOGS_MAX: Final = 10_000
SMALL_FILES_MAX: Final = 10_000
TAGS_MAX: Final = 1_000_000
UNCLUSTERED_BYTES_MAX: Final = 2**50
SERVICE_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "compaction.logs": (1, LOGS_MAX),
    "compaction.small_files": (2, SMALL_FILES_MAX),
    "compaction.seconds": (1, SECONDS_MAX),
    "changelog.small_files": (2, MERGED_FILES_MAX),
    "changelog.seconds": (0, SECONDS_MAX),
    "clustering.unclustered_bytes": (1, UNCLUSTERED_BYTES_MAX),
    "analysis.versions": (1, VERSIONS_MAX),
    "history.versions": (1, VERSIONS_MAX),
    "history.seconds": (0, SECONDS_MAX),
    "timeline.instants": (INSTANTS_MIN, INSTANTS_MAX),
    "tags.keep": (1, TAGS_MAX),
    "batch_tags.keep": (1, BATCH_TAGS_MAX),
    "partition_done.idle_seconds": (1, SECONDS_MAX),
    "metastore.idle_seconds": (1, METASTORE_IDLE_SECONDS_MAX),
}
"""The least and the largest value of each whole number of the services, by its place in `services`."""
RATIO_MAX: Final = 1_000_000
Fault = tuple[str, str]
_Rule = Callable[[TableServices, DatasetDefinition], Iterator[Fault]]


def service_faults(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:
    """Every fault of the services of a dataset: a JSON pointer, and what is expected."""
    for rule in _RULES:
        for pointer, detail in rule(services, dataset):
            yield f"/services{pointer}", detail


def _number_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:  # noqa: ARG001
    for place, (least, largest) in SERVICE_BOUNDS.items():
        service, _, name = place.partition(".")
        value = getattr(getattr(services, service), name, None)
        if value is not None and not least <= value <= largest:
            yield f"/{service}/{name}", f"expected {least}–{largest}, got {value}"


def _compaction_rule(services: TableServices, dataset: DatasetDefinition) -> Iterator[Fault]:  # noqa: ARG001
    policy = services.compaction
    if policy is None:
        return
    if policy.log_ratio is not None and not 0 < policy.log_ratio <= RATIO_MAX:
        yield "/compaction/log_ratio", f"expected a number above 0, up to {RATIO_MAX}, or null"
    if policy.deleted_ratio is not None and not 0 < policy.deleted_ratio <= 1:
        yield "/compaction/deleted_ratio", "expected a number above 0, up to 1, or null"


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


def _analysis_rule(services: TableServices, _dataset: DatasetDefinition) -> Iterator[Fault]:
    policy = services.analysis
    if not isinstance(policy, AnalysisPolicy):
        return
    if policy.changed_ratio is not None and not 0 < policy.changed_ratio <= RATIO_MAX:
        yield "/analysis/changed_ratio", f"expected a number above 0, up to {RATIO_MAX}, or null"


def _history_rule(services: TableServices, _dataset: DatasetDefinition) -> Iterator[Fault]:
    policy = services.history
    if policy is None:
        return
    if policy.versions is None and policy.seconds is None:
        yield "/history", "expected 'versions', 'seconds', or both; null keeps every version"


_RULES: Final[tuple[_Rule, ...]] = (
    _number_rule,
    _compaction_rule,
    _clustering_rule,
    _analysis_rule,
    _history_rule,
    _partition_done_rule,
    _metastore_rule,
)
