"""An application that shares a cluster: its settings, its executors, and its end by the master."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from py4j.clientserver import ClientServerConnection
from pyspark.errors import PySparkException

from tests.support.spark import task_setup
from workers.engine.jvm import MODULE_OPTIONS
from workers.engine.large_tasks import LargeTurns
from workers.engine.spark_engine import SparkEngine, _PackedTask
from workers.engine.spark_job import missing_module, results_of
from workers.engine.spark_settings import ClusterShare, cluster_settings, large_turns, socket_folder
from workers.engine.task_setup import TaskSetup

SHARE = ClusterShare(cores_max=6, executor_cores=2, executor_memory_bytes=3 * 1024**3)


def as_they_are(_number: int, items: Iterable[bytes]) -> Iterator[bytes]:
    return iter(items)


def test_small_job_asks_the_jvm_for_no_class_by_its_name(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    send = ClientServerConnection.send_command

    def recorded(connection: ClientServerConnection, command: str) -> str:
        sent.append(command)
        return str(send(connection, command))

    monkeypatch.setattr(ClientServerConnection, "send_command", recorded)
    context = engine._spark().sparkContext
    assert results_of(context.parallelize([b"a", b"b"], 2), as_they_are) == [b"a", b"b"]
    assert sent
    assert [each for each in sent if each.startswith("r\n")] == []


def test_results_of_a_job_are_the_bytes_of_its_tasks_in_their_order(engine: SparkEngine) -> None:
    items = [b"", b"a" * 3_000_000, bytes(range(256)), b"b"]
    context = engine._spark().sparkContext
    for partitions in (1, 2, 4):
        assert results_of(context.parallelize(items, partitions), as_they_are) == items
    assert results_of(context.parallelize([], 2), as_they_are) == []


def test_temporary_files_are_in_the_scratch_folder(engine: SparkEngine) -> None:
    context = engine._spark().sparkContext
    assert results_of(context.parallelize([b"a", b"b"], 2), as_they_are) == [b"a", b"b"]
    scratch = Path(context.getConf().get("spark.local.dir", ""))
    jvm: Any = context._jvm
    temporary = Path(jvm.java.io.File.createTempFile("probe", None).getParent())
    assert temporary == scratch
    assert Path(jvm.java.lang.System.getProperty("java.io.tmpdir")) == scratch
    names = {each.name for each in scratch.iterdir()}
    assert [each for each in names if each.endswith(".sock")]
    assert [each for each in names if each.startswith("spark-")]


def test_jvm_opens_what_spark_opens_for_itself(engine: SparkEngine) -> None:
    jvm: Any = engine.jvm()
    options = str(jvm.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()).split()
    assert list(MODULE_OPTIONS) == [each for each in options if "incubator" not in each]


def test_sockets_are_in_the_folder_for_temporary_files_if_their_path_would_be_too_long(
    tmp_path: Path,
) -> None:
    assert socket_folder(Path("/data/spark/worker-17-a1b2c3")) == Path("/data/spark/worker-17-a1b2c3")
    assert socket_folder(tmp_path / ("w" * 60)) == Path(tempfile.gettempdir())


def test_application_takes_no_more_than_its_share() -> None:
    settings = cluster_settings(SHARE)
    assert settings["spark.cores.max"] == "6"
    assert settings["spark.executor.cores"] == "2"
    assert settings["spark.executor.instances"] == "3"
    assert settings["spark.executor.memory"] == "3072m"
    assert settings["spark.executorEnv.OMP_NUM_THREADS"] == "1"
    # What is not set is left to Spark.
    assert not {name for name in settings if "driver" in name or "Port" in name or "dynamic" in name}


def test_idle_executors_are_given_back_with_dynamic_allocation() -> None:
    settings = cluster_settings(
        ClusterShare(cores_max=6, executor_cores=2, executor_memory_bytes=1024**3, dynamic_allocation=True)
    )
    assert settings["spark.dynamicAllocation.minExecutors"] == "1"
    assert settings["spark.dynamicAllocation.maxExecutors"] == "3"
    assert "spark.executor.instances" not in settings


def test_wait_for_a_host_is_checked_as_often_as_it_lasts() -> None:
    settings = cluster_settings(replace(SHARE, locality_wait_seconds=0.25))
    assert settings["spark.locality.wait"] == settings["spark.scheduler.revive.interval"] == "250ms"
    assert not any("locality" in name or "revive" in name for name in cluster_settings(SHARE))


def test_addresses_and_ports_are_those_of_the_settings() -> None:
    share = ClusterShare(
        cores_max=1,
        executor_cores=1,
        executor_memory_bytes=1024**3,
        driver_host="worker-1",
        bind_address="10.0.0.1",
        driver_port=7078,
        block_manager_port=7079,
    )
    settings = cluster_settings(share)
    assert settings["spark.driver.host"] == "worker-1"
    assert settings["spark.driver.bindAddress"] == "10.0.0.1"
    assert (settings["spark.driver.port"], settings["spark.blockManager.port"]) == ("7078", "7079")


def engine_on(master: str, *, holders: int, stopped: bool, deaths: list[str], tmp_path: Any) -> SparkEngine:
    """An engine whose session answers as one on this master does. `holders`: of blocks, the driver included."""
    java = SimpleNamespace(
        isStopped=lambda: stopped, getExecutorMemoryStatus=lambda: SimpleNamespace(size=lambda: holders)
    )
    context = SimpleNamespace(
        master=master,
        _jvm=None,
        _jsc=SimpleNamespace(sc=lambda: java),
        _gateway=SimpleNamespace(proc=SimpleNamespace(poll=lambda: None)),
    )
    session: Any = SimpleNamespace(sparkContext=context)
    engine = SparkEngine(
        lambda: session,
        task_setup(tmp_path, tmp_path),
        turns=large_turns("local[1]"),
        on_death=lambda: deaths.append("the session has ended"),
    )
    engine.jvm()
    return engine


@pytest.mark.parametrize(
    ("master", "holders", "executors"),
    [("spark://h:7077", 3, 2), ("spark://h:7077", 1, 0), ("local[2]", 1, None)],
)
def test_executors_of_a_cluster_are_counted_without_the_driver(
    master: str, holders: int, executors: int | None, tmp_path: Any
) -> None:
    deaths: list[str] = []
    engine = engine_on(master, holders=holders, stopped=False, deaths=deaths, tmp_path=tmp_path)
    assert engine.executors() == executors
    assert engine.alive()
    assert deaths == []


def test_worker_ends_when_the_master_has_ended_its_application(tmp_path: Any) -> None:
    deaths: list[str] = []
    engine = engine_on("spark://h:7077", holders=1, stopped=True, deaths=deaths, tmp_path=tmp_path)
    assert engine.executors() == 0
    assert not engine.alive()
    assert deaths == ["the session has ended"]


@pytest.mark.parametrize(("master", "cores"), [("local[1]", 1), ("local[3]", 3), ("local", 1)])
def test_tenant_has_as_many_large_tasks_as_this_machine_has_cores(master: str, cores: int) -> None:
    assert large_turns(master) == LargeTurns(at_a_time=cores + 1, per_tenant=cores)


def test_cores_of_this_machine_are_counted() -> None:
    assert large_turns("local[*]").per_tenant == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("cores", "at_a_time", "per_tenant"),
    [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 3, 3), (5, 4, 3), (16, 15, 14)],
)
def test_large_tasks_leave_cores_of_a_cluster_to_others(cores: int, at_a_time: int, per_tenant: int) -> None:
    share = ClusterShare(cores_max=cores, executor_cores=1, executor_memory_bytes=2**30)
    assert large_turns("spark://h:7077", share) == LargeTurns(at_a_time=at_a_time, per_tenant=per_tenant)


def without_a_module(_setup: TaskSetup, _number: int, _items: Iterable[bytes]) -> Iterator[bytes]:
    import_module("headwater_module_that_nothing_installs")
    return iter(())


def test_module_that_a_task_lacks_is_an_error_of_imports(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.engine.spark_engine.run_partition", without_a_module)
    with pytest.raises(ImportError, match="No module named 'headwater_module_that_nothing_installs'"):
        engine._run_round([_PackedTask(data=b"", key=None)], "tenant/job-1")


def test_other_errors_of_tasks_are_no_errors_of_imports() -> None:
    assert missing_module(PySparkException("ImportError is a word of this text")) is None
    assert missing_module(ValueError("ImportError: no")) is None
