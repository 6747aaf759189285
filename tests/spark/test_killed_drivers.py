"""The driver of a stream is killed, restarted from its checkpoint, and cut off from the service."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from headwater_client import Dataset, Headwater, NewDataset, NewField, WriteOptions
from tests.support.left_out import left_out
from tests.support.proxy import BreakingProxy
from tests.support.service import Service
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, left_out("SPARK", "test-spark")]

ROOT = Path(__file__).parents[2]
ROWS = 40
PATIENCE_SECONDS = 120
MERGING = WriteOptions(merge_schema=True)


@dataclass(kw_only=True)
class Driver:
    """The process of a query, with its JVM and Python workers. It is started again once it has ended."""

    arguments: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def ensure(self) -> None:
        """Starts it unless it runs."""
        if self.process is not None and self.process.poll() is None:
            return
        self.kill()
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.spark_driver", *self.arguments],
                cwd=ROOT,
                env={**os.environ, "NO_PROXY": "*", "no_proxy": "*", "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
                # Its group is killed with it.
                start_new_session=True,
            )

    def kill(self) -> None:
        """`kill -9` of all of its processes."""
        process, self.process = self.process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


@contextmanager
def driving(arguments: list[str], log: Path) -> Iterator[Driver]:
    driver = Driver(arguments=arguments, log=log)
    try:
        yield driver
    except BaseException:
        print(log.read_text(errors="replace")[-5_000:])
        raise
    finally:
        driver.kill()


@pytest.fixture
def notes(headwater: Headwater) -> Dataset:
    """Notes by id."""
    fields = (NewField(name="id", type="int64"), NewField(name="note", type="string"))
    return headwater.create_dataset(NewDataset(name="notes", fields=fields, record_key=("id",)))


@pytest.fixture
def copies(headwater: Headwater) -> Dataset:
    """Changes as rows. Without a key, a change that is written twice is there twice."""
    types = (("position", "int64"), ("op", "int16"), ("id", "int64"), ("note", "string"))
    fields = tuple(NewField(name=name, type=kind) for name, kind in types)
    return headwater.create_dataset(NewDataset(name="copies", fields=fields))


def test_each_change_is_one_row_while_drivers_are_killed_and_the_service_is_away(
    service: Service, api_key: str, headwater: Headwater, notes: Dataset, copies: Dataset, tmp_path: Path
) -> None:
    random = Random(14)

    def write(number: int, **more: str) -> None:
        rows = [{"id": number * ROWS // 2 + row, "note": f"{number}", **more} for row in range(ROWS)]
        headwater.write_rows(notes, rows, wait=60)

    def version() -> int:
        return headwater.get_dataset(copies).version

    def until_version(expected: int) -> None:
        def reached() -> bool:
            driver.ensure()
            return version() >= expected

        until(reached, f"version {expected}", seconds_max=PATIENCE_SECONDS)

    with BreakingProxy.before(service.url) as proxy:
        port = int(proxy.url.rpartition(":")[2].strip("/"))
        url = f"http://127.0.0.1:{port}"
        places = [str(tmp_path / "checkpoint"), str(tmp_path / "scratch")]
        with driving([url, api_key, notes.name, copies.name, *places], tmp_path / "log") as driver:
            driver.ensure()
            write(0)
            # Anywhere in a batch: at a random time after the commit of one.
            for number in range(1, 3):
                until_version(version() + 1)
                time.sleep(random.uniform(0, 1))
                driver.kill()
                write(number)
            # The schema changes while the query runs, which does not read the new column.
            until_version(version() + 1)
            headwater.write_rows(notes, [{"id": 10_000, "note": "n", "more": "x"}], wait=60, options=MERGING)
            write(3, more="y")
            # The service is away, for longer than the client tries again.
            until_version(version() + 1)
            proxy.close()
            time.sleep(5)
            with BreakingProxy.before(service.url, port=port):
                write(4, more="z")
                position = headwater.get_dataset(notes).next_offset
                until(
                    lambda: driver.ensure() or len(list(headwater.rows(copies))) >= position,
                    "all changes",
                    seconds_max=PATIENCE_SECONDS,
                )
                starts = driver.starts
                driver.kill()
    expected = [(each.offset, each.row["id"], each.row["note"]) for each in headwater.changes(notes, since=0)]
    found = [(row["position"], row["id"], row["note"]) for row in headwater.rows(copies)]
    assert sorted(found) == expected
    assert starts >= 3
    assert version() >= position // 12
