"""When file groups are compacted by themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from app.kernel.commit.compaction_policy import GroupShape, is_due, next_due_at
from app.kernel.format.dataset import Deletes
from app.kernel.format.definition.dataset_definition import with_services
from app.kernel.format.definition.policy_rules import SECONDS_MAX
from app.kernel.format.errors import InvalidDataset
from app.kernel.format.policies import ChangelogPolicy, CompactionPolicy, TableServices, TagPeriod, TagPolicy
from tests.support.lakehouse import definition

DATASET = structs.replace(definition(), target_bytes=4_000)
"""Files of 1,000 bytes and more are not small."""
DAY = 86_400
NOW = datetime(2026, 11, 22, tzinfo=UTC)
TIMES = {7: NOW - timedelta(seconds=60), 8: NOW - timedelta(seconds=10)}
NOTHING = CompactionPolicy(logs=None, log_ratio=None, deleted_ratio=None, small_files=None)
EVERYTHING: dict[str, Any] = {
    "logs": 99, "log_bytes": 99_999, "oldest_log": 7, "base_bytes": 5_000, "base_rows": 10, "deleted_rows": 10,
    "small_files": 99,
}  # fmt: skip


def due(policy: CompactionPolicy, **measures: Any) -> bool:
    return is_due(policy, DATASET, GroupShape(file_group="g", **measures), TIMES, NOW)


@pytest.mark.parametrize(
    ("bound", "measures", "expected"),
    [
        ({"logs": 4}, {"logs": 3}, False),
        ({"logs": 4}, {"logs": 4}, True),
        ({"log_ratio": 1.0}, {"logs": 1, "log_bytes": 4_999, "base_bytes": 5_000}, False),
        ({"log_ratio": 1.0}, {"logs": 1, "log_bytes": 5_000, "base_bytes": 5_000}, True),
        ({"log_ratio": 0.1}, {"logs": 1, "log_bytes": 1_000, "base_bytes": 10_000}, True),
        # The first log of a table, or a few bytes of them, would always be more than what is there.
        ({"log_ratio": 1.0}, {"logs": 1, "log_bytes": 999, "base_bytes": 0}, False),
        ({"log_ratio": 1.0}, {"logs": 9, "log_bytes": 1_000, "base_bytes": 0}, True),
        ({"deleted_ratio": 0.5}, {"base_bytes": 4_000, "base_rows": 100, "deleted_rows": 49}, False),
        ({"deleted_ratio": 0.5}, {"base_bytes": 4_000, "base_rows": 100, "deleted_rows": 50}, True),
        ({"deleted_ratio": 0.5}, {"base_bytes": 900, "base_rows": 100, "deleted_rows": 100}, False),
        ({"deleted_ratio": 0.5}, {"base_bytes": 0, "base_rows": 0, "deleted_rows": 0}, False),
        ({"small_files": 3}, {"small_files": 2}, False),
        ({"small_files": 3}, {"small_files": 3}, True),
        ({"seconds": 30}, {"logs": 1, "oldest_log": 7}, True),
        ({"seconds": 60}, {"logs": 1, "oldest_log": 7}, True),
        ({"seconds": 61}, {"logs": 1, "oldest_log": 7}, False),
        ({"seconds": 30}, {"logs": 1, "oldest_log": 8}, False),
        ({"seconds": 30}, {"small_files": 9}, False),
        ({}, EVERYTHING, False),
    ],
)
def test_each_bound_decides_when_compaction_is_due(
    bound: dict[str, Any], measures: dict[str, Any], expected: bool
) -> None:
    assert due(structs.replace(NOTHING, **bound), **measures) is expected


def test_one_exceeded_bound_makes_compaction_due() -> None:
    for bound in (
        {"logs": 99},
        {"log_ratio": 5.0},
        {"deleted_ratio": 1.0},
        {"small_files": 9},
        {"seconds": 1},
    ):
        assert due(structs.replace(NOTHING, **bound), **EVERYTHING)


def test_next_compaction_is_due_at_the_age_of_the_oldest_log() -> None:
    shapes = [
        GroupShape(file_group="a", oldest_log=8),
        GroupShape(file_group="b", oldest_log=7),
        GroupShape(file_group="c"),
    ]
    policy = structs.replace(NOTHING, seconds=100)
    assert next_due_at(policy, DATASET, shapes, TIMES) == NOW + timedelta(seconds=40)
    latest = structs.replace(NOTHING, seconds=SECONDS_MAX)
    assert next_due_at(latest, DATASET, shapes, TIMES) == NOW + timedelta(seconds=SECONDS_MAX - 60)
    assert next_due_at(policy, DATASET, shapes[2:], TIMES) is None
    assert next_due_at(NOTHING, DATASET, shapes, TIMES) is None


@pytest.mark.parametrize(("keep_seconds", "due_after"), [(0, DAY), (DAY, DAY), (9 * DAY, 9 * DAY)])
def test_tombstone_file_is_compacted_once_its_tombstones_have_ended(
    keep_seconds: int, due_after: int
) -> None:
    """At least a day after it was written, whatever limits there are."""
    dataset = structs.replace(DATASET, deletes=Deletes(keep_seconds=keep_seconds))
    shape = GroupShape(file_group="g", oldest_tombstones=NOW)
    due_at = NOW + timedelta(seconds=due_after)
    assert next_due_at(NOTHING, dataset, [shape], {}) == due_at
    assert not is_due(NOTHING, dataset, shape, {}, due_at - timedelta(microseconds=1))
    assert is_due(NOTHING, dataset, shape, {}, due_at)
    with_log = structs.replace(shape, oldest_log=8)
    assert next_due_at(structs.replace(NOTHING, seconds=60), dataset, [with_log], TIMES) == min(
        due_at, TIMES[8] + timedelta(seconds=60)
    )


@pytest.mark.parametrize(
    ("services", "pointers"),
    [
        (TableServices(compaction=CompactionPolicy(logs=0)), ["/services/compaction/logs"]),
        (
            TableServices(changelog=ChangelogPolicy(small_files=1, seconds=-1)),
            ["/services/changelog/small_files", "/services/changelog/seconds"],
        ),
        (TableServices(changelog=ChangelogPolicy(small_files=1_025)), ["/services/changelog/small_files"]),
        (
            TableServices(compaction=CompactionPolicy(small_files=1, seconds=0)),
            ["/services/compaction/small_files", "/services/compaction/seconds"],
        ),
        (
            TableServices(compaction=CompactionPolicy(seconds=SECONDS_MAX + 1)),
            ["/services/compaction/seconds"],
        ),
        (
            TableServices(compaction=CompactionPolicy(log_ratio=0.0, deleted_ratio=1.01)),
            ["/services/compaction/log_ratio", "/services/compaction/deleted_ratio"],
        ),
        (
            TableServices(compaction=CompactionPolicy(log_ratio=float("nan"), deleted_ratio=float("nan"))),
            ["/services/compaction/log_ratio", "/services/compaction/deleted_ratio"],
        ),
        (TableServices(tags=TagPolicy(period=TagPeriod.DAY, keep=0)), ["/services/tags/keep"]),
    ],
)
def test_invalid_policies_are_refused(services: TableServices, pointers: list[str]) -> None:
    with pytest.raises(InvalidDataset) as refusal:
        with_services(DATASET, services)
    assert [error["pointer"] for error in refusal.value.facts["errors"]] == pointers


def test_valid_policies_are_accepted() -> None:
    for services in (
        TableServices(),
        TableServices(compaction=None, tags=TagPolicy(period=TagPeriod.WEEK, keep=1)),
        TableServices(
            compaction=CompactionPolicy(logs=1, log_ratio=0.01, deleted_ratio=1.0, small_files=2, seconds=1)
        ),
        TableServices(compaction=CompactionPolicy(seconds=SECONDS_MAX)),
        TableServices(compaction=NOTHING),
    ):
        assert with_services(DATASET, services).services == services
