"""Java and Spark: their versions, whether a standalone master answers, and its cores."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from http.client import HTTPException
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import msgspec

from app.infra.runtime.java import JavaError, java_home, probe
from app.infra.settings import MEBIBYTE, Settings
from app.process.doctor.values import Diagnosis, failed, ok, warning

_SECONDS_MAX: Final = 5.0
_PORT: Final = 7077
_UI_PORT: Final = 8080
_PAGE_BYTES_MAX: Final = 16 * MEBIBYTE
# The web interface shows the version of Spark in this element.
_VERSION: Final = re.compile(r'class="version\b[^>]*>\s*(\d[^<\s]*)')


class SparkWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker of a standalone master. Memory is in MiB."""

    state: str
    cores: int
    coresused: int
    memory: int
    memoryused: int


class SparkCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What a standalone master reports about its cluster, with the names of its own JSON."""

    status: str
    workers: tuple[SparkWorker, ...] = ()


def java_checks(settings: Settings) -> list[Diagnosis]:
    """The Java that runs Spark."""
    try:
        home = java_home(settings.data_dir, os.environ)
    except JavaError as error:
        return [failed("java", str(error))]
    runtime = probe(home / "bin" / "java")
    return [ok("java", f"Java {runtime.major} in {home}" if runtime else f"Java in {home}")]


def spark_checks(settings: Settings) -> list[Diagnosis]:
    """The masters of the settings: only those of standalone clusters are connected to."""
    mine = version("pyspark")
    master = settings.spark_master
    if not master.startswith("spark://"):
        return [ok("spark", f"Spark {mine} with {master}")]
    unreachable_masters = [each for each in masters(master) if not _listens(*each)]
    if len(unreachable_masters) == len(masters(master)):
        places = ", ".join(f"{host}:{port}" for host, port in unreachable_masters)
        return [failed("spark", f"the master of HEADWATER_SPARK_MASTER does not answer at {places}")]
    url = settings.spark_ui_url or f"http://{masters(master)[0][0]}:{_UI_PORT}"
    try:
        page, report = _read(url).decode(errors="replace"), _read(f"{url.rstrip('/')}/json/")
        cluster = msgspec.json.decode(report, type=SparkCluster)
    except (OSError, HTTPException, ValueError, msgspec.MsgspecError) as error:
        detail = (
            f"the master answers, but its web interface at {url} does not say how many cores are free "
            f"({error}): set HEADWATER_SPARK_UI_URL"
        )
        return [warning("spark", detail)]
    version_match = _VERSION.search(page)
    theirs = version_match[1] if version_match else "unknown"
    return [version_check(mine, theirs), cluster_check(cluster, settings)]


def masters(url: str) -> list[tuple[str, int]]:
    """The hosts and ports of `spark://HOST:PORT,HOST:PORT`."""
    places = [urlsplit(f"//{each}") for each in url.removeprefix("spark://").split(",")]
    return [(place.hostname or "", place.port or _PORT) for place in places]


def version_check(mine: str, theirs: str) -> Diagnosis:
    """Whether the cluster runs the Spark of this process."""
    if mine != theirs:
        return failed(
            "spark", f"the cluster runs Spark {theirs}, this process {mine}: they must be the same version"
        )
    return ok("spark", f"Spark {mine} on a standalone cluster")


def cluster_check(cluster: SparkCluster, settings: Settings) -> Diagnosis:
    """Whether there is room for the executors of one more worker process."""
    alive = [worker for worker in cluster.workers if worker.state == "ALIVE"]
    if cluster.status != "ALIVE" or not alive:
        return failed("spark cores", "the cluster has no live Spark worker: writes would wait")
    executor_needs = settings.spark_executor_cores, settings.spark_executor_memory_bytes // MEBIBYTE
    if not any(worker.cores >= executor_needs[0] and worker.memory >= executor_needs[1] for worker in alive):
        return failed(
            "spark cores",
            f"no Spark worker has the {executor_needs[0]} cores and {executor_needs[1]} MiB of one executor: lower "
            "HEADWATER_SPARK_EXECUTOR_CORES or HEADWATER_SPARK_EXECUTOR_MEMORY_BYTES",
        )
    total, used_cores = sum(worker.cores for worker in alive), sum(worker.coresused for worker in alive)
    detail = f"{total - used_cores} of {total} cores are free on {len(alive)} Spark workers"
    if not _have_room(alive, executor_needs):
        return warning(
            "spark cores",
            f"{detail}: another worker process would wait for an executor of {executor_needs[0]} cores and "
            f"{executor_needs[1]} MiB",
        )
    return ok("spark cores", detail)


def _have_room(workers: Iterable[SparkWorker], executor_needs: tuple[int, int]) -> bool:
    return any(
        worker.cores - worker.coresused >= executor_needs[0]
        and worker.memory - worker.memoryused >= executor_needs[1]
        for worker in workers
    )


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_SECONDS_MAX):
            return True
    except OSError:
        return False


def _read(url: str) -> bytes:
    # Without the proxies of the environment: the address is internal.
    with build_opener(ProxyHandler({})).open(url, timeout=_SECONDS_MAX) as response:
        return bytes(response.read(_PAGE_BYTES_MAX))
