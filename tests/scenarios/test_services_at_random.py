"""Table services at random between writes, reads and restores: they change neither rows nor feed, whenever they run.

Compactions and clusterings are interrupted: other writes are committed after they have read the table and before they
publish, so that they have to yield.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import httpx2
import pytest

from app.kernel.commit.merge_bundle import MergeBundle
from app.kernel.format.engine_task import Work
from tests.support.service import Service
from tests.support.shares import share

Row = dict[str, Any]
_STEPS: Final = 40
_SEEDS: Final = int(os.environ.get("HISTORIES", "1"))
_FIELDS: Final = [
    {"name": "id", "type": "int64"},
    {"name": "day", "type": "string"},
    {"name": "n", "type": "int64"},
]
_KEYED: Final[Row] = {"record_key": ["id"], "bucket": {"mode": "fixed", "count": 2}}
_MERGE_ON_READ: Final[Row] = {**_KEYED, "table_type": "merge_on_read"}
# The service looks after no table by itself here, and files are small from the beginning.
_BY_HAND: Final[Row] = {"services": {"compaction": None}, "target_bytes": 65_536}
KINDS: Final[dict[str, Row]] = {
    "copy on write": {**_KEYED, "table_type": "copy_on_write"},
    "vectors": _MERGE_ON_READ,
    "logs, as given": {**_MERGE_ON_READ, "changelog": {"producer": "input"}},
    "logs without a feed": {**_MERGE_ON_READ, "changelog": {"producer": "none"}},
    "dynamic, partitioned": {
        "record_key": ["id", "day"],
        "partition_by": ["day"],
        "bucket": {"mode": "dynamic", "count": 2, "target_rows": 5},
        "table_type": "merge_on_read",
    },
    "keys that move": {
        "record_key": ["id"],
        "partition_by": ["day"],
        "bucket": {"mode": "key_dynamic", "count": 2, "target_rows": 5},
        "table_type": "copy_on_write",
    },
    "no key": {"partition_by": ["day"]},
    "no key, vectors": {"partition_by": ["day"], "table_type": "merge_on_read"},
}
_numbers = count(1)
_seen: Counter[str] = Counter()


@dataclass(kw_only=True)
class Life:
    """A table, and what its users know of it: its rows now, and at every version."""

    client: httpx2.Client
    service: Service
    chance: random.Random
    key: tuple[str, ...]
    path: str
    rows: list[Row] = field(default_factory=list)
    past: dict[int, list[Row]] = field(default_factory=lambda: {0: []})
    named: dict[str, int] = field(default_factory=dict)
    interruptions: int = 0

    def run_job(self, what: str, body: Row | None = None, *, ends: str = "succeeded") -> Row:
        """The job of a request, once this process has done it."""
        answer = self.client.post(f"{self.path}/{what}", json=body)
        assert answer.status_code == 202, answer.text
        self.service.work()
        job: Row = self.client.get(answer.json()["links"]["self"]).json()
        assert job["state"] == ends, job
        return job

    @property
    def dataset(self) -> Row:
        found: Row = self.client.get(self.path).json()
        return found

    def read(self, **which: Any) -> list[Row]:
        answer = self.client.get(f"{self.path}/rows", params={"limit": 10_000, **which})
        assert answer.status_code == 200, answer.text
        rows: list[Row] = answer.json()["rows"]
        return rows

    def write(self) -> None:
        """An upsert or a delete of a few rows; of rows without a key, an insert, or a delete by filter."""
        rows = [self._row() for _ in range(self.chance.randint(1, 6))]
        deletes = self.chance.random() < 0.3
        if not self.key:
            if deletes:
                least = self.chance.randrange(30)
                self._send({"operation": "delete", "where": f"n >= 60 AND n < {60 + least}"})
                self.rows = [row for row in self.rows if not 60 <= row["n"] < 60 + least]
            else:
                self._send({"operation": "insert", "source": {"kind": "rows", "rows": rows}})
                self.rows = self.rows + rows
        elif deletes:
            bare = [{name: row[name] for name in self.key} for row in rows]
            self._send({"operation": "delete", "source": {"kind": "rows", "rows": bare}})
            gone = {self._key(row) for row in rows}
            self.rows = [row for row in self.rows if self._key(row) not in gone]
        else:
            self._send({"operation": "upsert", "source": {"kind": "rows", "rows": rows}})
            self.rows = list({self._key(row): row for row in (*self.rows, *rows)}.values())
        self.past[self.dataset["version"]] = self.rows

    def _send(self, body: Row) -> None:
        answer = self.client.post(f"{self.path}/writes", json=body)
        assert answer.status_code == 202, answer.text
        dataset_id = self.path.rsplit("/", 1)[1]
        for waiting in self.service.jobs.runnable(10):
            if waiting.dataset_id == dataset_id:
                self.service.run_writes.run(waiting.tenant_id, dataset_id)
        job = self.client.get(answer.json()["links"]["self"]).json()
        assert job["state"] == "succeeded", job

    def _row(self) -> Row:
        one = self.chance
        return {"id": one.randrange(25), "day": one.choice("ab"), "n": one.randrange(100)}

    def _key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)

    def serve(self, what: str, body: Row | None = None) -> None:
        """A service that changes nothing, though writes may come in between."""
        with self._interrupted():
            before = self.dataset
            self.run_job(what, body)
        after = self.dataset
        _seen[what] += after["version"] > before["version"] + self.interruptions or what == "cleans"
        self.past[after["version"]] = self.rows
        if not self.interruptions:
            assert after["next_offset"] == before["next_offset"]
        self.check()

    @contextmanager
    def _interrupted(self) -> Iterator[None]:
        """Now and then a write is committed while the tasks of a service run."""
        engine, run = self.service.run_writes.engine, self.service.run_writes.engine.run
        self.interruptions = 0

        def running(tasks: Sequence[Any], tag: str) -> list[Any]:
            results = run(tasks, tag)
            services = [task for task in tasks if isinstance(task, MergeBundle) and task.work is Work.TASKS]
            if services and self.chance.random() < 0.5:
                self.interruptions += 1
                _seen["interrupted"] += 1
                engine.run = run
                for _ in range(self.chance.randint(1, 2)):
                    self.write()
                engine.run = running
            return results

        engine.run = running
        try:
            yield
        finally:
            engine.run = run

    def restore(self) -> None:
        """Back to a version that is kept."""
        version = self.chance.choice([each for each in sorted(self.past) if self.is_kept(each)])
        self.run_job("restores", {"version": version})
        self.rows = self.past[version]
        self.past[self.dataset["version"]] = self.rows

    def save(self) -> None:
        name = f"save-{next(_numbers)}"
        self.run_job("savepoints", {"name": name})
        self.named[name] = self.dataset["version"]

    def is_kept(self, version: int) -> bool:
        return version >= self.dataset["earliest_version"] or version in self.named.values()

    def check(self) -> None:
        """The table, its past as far as it is kept, and what has a name are what they were."""
        assert _sorted(self.read()) == _sorted(self.rows)
        for version in self.chance.sample(sorted(self.past), min(4, len(self.past))):
            if self.is_kept(version):
                assert _sorted(self.read(version=version)) == _sorted(self.past[version]), version
            else:
                answer = self.client.get(f"{self.path}/rows", params={"version": version})
                assert answer.status_code == 410, answer.text
                _seen["expired"] += 1
        for name, version in self.named.items():
            assert _sorted(self.read(tag=name)) == _sorted(self.past[version])


def _sorted(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["day"], row["n"]) for row in rows)


@pytest.fixture
def begin(service: Service, client: httpx2.Client) -> Callable[[Row, int], Life]:
    def make(kind: Row, seed: int) -> Life:
        definition = {"name": f"life_{next(_numbers)}", "schema": {"fields": _FIELDS}, **_BY_HAND, **kind}
        answer = client.post("/datasets", json=definition)
        assert answer.status_code == 201, answer.text
        return Life(
            client=client,
            service=service,
            chance=random.Random(seed),
            key=tuple(kind.get("record_key", ())),
            path=answer.headers["location"],
        )

    return make


@share(4)
@pytest.mark.parametrize("seed", range(_SEEDS))
@pytest.mark.parametrize("name", KINDS)
def test_services_between_writes_reads_and_restores_change_neither_rows_nor_feed(
    begin: Callable[[Row, int], Life], name: str, seed: int
) -> None:
    life = begin(KINDS[name], 100 * seed + list(KINDS).index(name))
    steps: list[Callable[[], None]] = [
        *[life.write] * 6,
        *[lambda: life.serve("compactions")] * 2,
        lambda: life.serve("clusterings", {"columns": ["n"]}),
        lambda: life.serve("clusterings", {"columns": ["day", "n"], "order": "z_order"}),
        lambda: life.serve("cleans", {"versions": 5}),
        life.restore,
        life.save,
    ]
    for _ in range(_STEPS):
        life.chance.choice(steps)()
    life.check()
    if KINDS[name].get("changelog") is None:
        found = life.run_job("verifications")["result"]
        assert found["equal"], found


def test_histories_include_every_kind_of_event() -> None:
    happened = ("compactions", "clusterings", "cleans", "interrupted", "expired")
    assert all(_seen[each] for each in happened), _seen
