"""The preferred hosts of tasks: the same ones again, and only the share of a host that joins or leaves moves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark import SparkContext

from app.kernel.changelog.verification import FoldTask
from app.kernel.commit.merge_bundle import MergeBundle
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.dataset import DatasetDefinition, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import Slot, bucket_file_group
from tests.support.spark import task_setup
from workers.engine.executor_hosts import ExecutorHosts, placed
from workers.engine.placement import Partition, host_of, key_of, partitions_of
from workers.engine.spark_engine import SparkEngine
from workers.engine.spark_settings import large_turns
from workers.engine.task_setup import _hot_folder

HOSTS = [f"10.0.0.{number}" for number in range(1, 9)]
KEYS = [f"t/d/bucket={number}" for number in range(4_000)]


def dataset(table_type: TableType) -> DatasetDefinition:
    schema = CreateSchema(fields=[CreateField(name="id", type="int64")])
    bucket = CreateBucket(count=4)
    return define_dataset(
        CreateDataset(name="t", schema=schema, record_key=["id"], table_type=table_type, bucket=bucket)
    )


def merge(bucket: int, table_type: TableType = TableType.MERGE_ON_READ) -> MergeTask:
    slot = Slot(partition_path="", bucket=bucket)
    return MergeTask(
        dataset=dataset(table_type),
        slot=slot,
        file_group=bucket_file_group(slot),
        files=(),
        segments=(),
        intents={},
        attempt="a",
        data_prefix="t/d",
    )


def hosts_of(hosts: list[str]) -> dict[str, str | None]:
    return {key: host_of(key, hosts) for key in KEYS}


def test_host_of_a_group_does_not_depend_on_the_order_of_hosts() -> None:
    assert hosts_of(HOSTS) == hosts_of(HOSTS[::-1])
    assert host_of("t/d/bucket=1", ["a", "b", "c"]) == "a", "frozen: workers of two releases agree"


def test_hosts_get_about_equal_shares_of_groups() -> None:
    counts = Counter(hosts_of(HOSTS).values())
    assert set(counts) == set(HOSTS)
    assert max(counts.values()) < 1.25 * len(KEYS) / len(HOSTS)
    assert min(counts.values()) > 0.75 * len(KEYS) / len(HOSTS)


@pytest.mark.parametrize("gone", HOSTS)
def test_only_groups_of_a_host_that_leaves_move(gone: str) -> None:
    before, after = hosts_of(HOSTS), hosts_of([host for host in HOSTS if host != gone])
    assert {key for key in KEYS if before[key] != after[key]} == {key for key in KEYS if before[key] == gone}
    # They go to all others, and come back when the host does.
    assert len({after[key] for key in KEYS if before[key] == gone}) == len(HOSTS) - 1


def test_groups_that_move_when_a_host_joins_go_to_that_host() -> None:
    before, after = hosts_of(HOSTS), hosts_of([*HOSTS, "10.0.0.9"])
    moved = [key for key in KEYS if before[key] != after[key]]
    assert {after[key] for key in moved} == {"10.0.0.9"}
    assert len(moved) < 1.5 * len(KEYS) / (len(HOSTS) + 1)


def test_task_without_key_or_hosts_prefers_none() -> None:
    assert host_of(None, HOSTS) is None
    assert host_of("t/d/bucket=1", []) is None


def test_key_is_the_file_group_of_one_task_and_the_dataset_of_a_bundle() -> None:
    one, two = merge(1), merge(2)
    assert key_of(MergeBundle(tasks=(one,))) == f"t/d/{one.file_group}"
    assert key_of(MergeBundle(tasks=(one, two))) == "t/d"


def test_task_that_uses_no_copies_has_no_key() -> None:
    assert key_of(MergeBundle(tasks=(merge(1, TableType.COPY_ON_WRITE),))) is None
    verification = FoldTask(dataset=merge(1).dataset, start=(), files=(), segments=(), schemas={})
    assert key_of(verification) is None


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_every_task_is_in_one_partition_of_its_host(count: int) -> None:
    preferred = [None if number % 5 == 0 else "abc"[number % 3] for number in range(20)]
    partitions = partitions_of(preferred, count)
    assert sorted(number for each in partitions for number in each.tasks) == list(range(20))
    for each in partitions:
        assert {preferred[number] for number in each.tasks} == {each.host}
    assert len(partitions) < count + len({*preferred})


class Executors:
    """A session's answers on who holds blocks; counts the questions."""

    def __init__(self, *holders: str) -> None:
        self.holders = [*holders]
        self.questions = 0
        spark = SimpleNamespace(
            conf=lambda: {"spark.driver.host": "10.0.0.1"},
            getExecutorMemoryStatus=lambda: SimpleNamespace(keys=self._keys),
        )
        self.context: Any = SimpleNamespace(master="spark://h:7077", _jsc=SimpleNamespace(sc=lambda: spark))

    def _keys(self) -> Any:
        self.questions += 1
        return SimpleNamespace(mkString=lambda separator: separator.join(self.holders))


def test_hosts_are_those_of_executors_and_read_at_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("workers.engine.executor_hosts.time.monotonic", lambda: now[0])
    executors = Executors("10.0.0.1:7079", "10.0.0.3:1", "10.0.0.2:1", "10.0.0.2:2", "fd00::1:5")
    hosts = ExecutorHosts()
    for _ in range(3):
        assert hosts.alive(executors.context) == ("10.0.0.2", "10.0.0.3", "fd00::1")
    assert executors.questions == 1
    executors.holders = ["10.0.0.1:7079", "10.0.0.1:5"]
    now[0] += 2
    assert hosts.alive(executors.context) == ("10.0.0.1",), "an executor beside the driver counts"
    assert executors.questions == 2


def test_engine_on_this_machine_prefers_no_host(tmp_path: Path) -> None:
    engine = SparkEngine(
        lambda: pytest.fail("it was started"),
        task_setup(tmp_path, tmp_path),
        turns=large_turns("local[1]"),
        on_death=lambda: None,
        prefers_hosts=True,
    )
    task: Any = SimpleNamespace(key="t/d/bucket=1")
    local: Any = SimpleNamespace(master="local[2]")
    assert engine._preferred_hosts(local, [task]) == [None]
    cluster = Executors("10.0.0.1:7079", "10.0.0.2:1").context
    assert engine._preferred_hosts(cluster, [task]) == ["10.0.0.2"]


def test_placed_tasks_run_in_order_also_if_their_hosts_are_gone(engine: SparkEngine) -> None:
    context: SparkContext = engine._spark().sparkContext
    tasks = [b"a", b"b" * 70_000, b"", b"\x00\xff"]
    partitions = [Partition(host="gone", tasks=(0, 2)), Partition(host=None, tasks=(1, 3))]
    assert ExecutorHosts().alive(context) == (), "only the driver holds blocks"
    found = placed(context, tasks, partitions)
    assert found.glom().collect() == [[b"a", b""], [b"b" * 70_000, b"\x00\xff"]]
    java: Any = found._jrdd.rdd()
    preferences = [java.preferredLocations(part).mkString(",") for part in java.partitions()]
    assert preferences == ["gone", ""]


def test_machine_of_an_executor_may_specify_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = task_setup(tmp_path, tmp_path)
    executor = replace(here, scratch="")
    assert _hot_folder(executor) == tmp_path / "hot"
    monkeypatch.setenv("HEADWATER_EXECUTOR_DIR", "/local disk")
    assert _hot_folder(executor) == Path("/local disk/hot")
    assert _hot_folder(here) == tmp_path / "hot", "the variable of a worker is for executors"
