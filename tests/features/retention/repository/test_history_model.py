"""Random histories of commits, names, holds and cleans, held to a model of plain sets after every step.

Every version that is to be readable has all its files; the others have lost those which no readable one has.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from sqlalchemy import delete, insert, select

from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.tables import files, named_versions
from app.features.retention.repository.history import HistoryStore
from app.infra.db.session import Database
from app.infra.identifiers import new_id
from app.kernel.format.policies import HistoryPolicy
from tests.support.examples import a_third_of
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores

_WHO = st.sampled_from("abc")
_STEPS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 2), st.just("")),
    st.tuples(st.just("write"), st.integers(0, 2), st.just("")),
    st.tuples(st.sampled_from(["name", "hold"]), st.integers(0, 30), _WHO),
    st.tuples(st.sampled_from(["unname", "release"]), st.just(0), _WHO),
    st.tuples(st.just("clean"), st.integers(1, 4), st.just("")),
)


@dataclass(kw_only=True)
class World:
    """A dataset, and what it should be. `files`: paths by version and bucket. `pins`: versions by name or reader."""

    stores: Stores
    dataset: Dataset
    files: list[dict[int, str]] = field(default_factory=lambda: [{}])
    earliest: int = 0
    pins: dict[str, set[int]] = field(default_factory=dict)

    @classmethod
    def new(cls, stores: Stores) -> World:
        tenant_id = stores.tenants.add_tenant(f"tenant-{new_id()}")
        return cls(stores=stores, dataset=stores.catalog.create(tenant_id, new_id(), definition()))

    @property
    def place(self) -> tuple[str, str]:
        return self.dataset.tenant_id, self.dataset.id

    @property
    def head(self) -> int:
        return len(self.files) - 1

    def readable(self) -> set[int]:
        pinned = {version for versions in self.pins.values() for version in versions}
        return {*range(self.earliest, self.head + 1), *pinned}

    def run_step(self, step: str, number: int, who: str) -> None:
        version = number % (self.head + 1)
        match step:
            case "write":
                self._write(number)
            case "name" if version in self.readable() and f"name {who}" not in self.pins:
                self._name(version, who)
            case "unname":
                self._unname(who)
            case "hold":
                self._acquire(version, who)
            case "release":
                ReadLeaseStore(self.stores.database).release(*self.place, who)
                self.pins.pop(who, None)
            case "clean":
                self._clean(number)

    def _write(self, bucket: int) -> None:
        """A new file of the bucket, in place of the one that it has."""
        tenant_id, dataset_id = self.place
        self.stores.jobs.accept(tenant_id, new_job(dataset_id))
        jobs = self.stores.jobs.claim(tenant_id, dataset_id, "worker", RULES)
        made, after = message(bucket), dict(self.files[-1])
        if bucket in after:
            made = structs.replace(made, removed=(after[bucket],))
        after[bucket] = made.added[0].path
        self.stores.timeline.publish_one(tenant_id, commit_of(jobs, [made], read_version=self.head))
        self.files.append(after)

    def _name(self, version: int, who: str) -> None:
        with self.stores.database.tenant(self.dataset.tenant_id) as connection:
            new = {"dataset_id": self.dataset.id, "name": who, "kind": "tag", "version": version}
            connection.execute(insert(named_versions).values(new))
        self.pins[f"name {who}"] = {version}

    def _unname(self, who: str) -> None:
        with self.stores.database.tenant(self.dataset.tenant_id) as connection:
            connection.execute(delete(named_versions).where(named_versions.c.name == who))
        self.pins.pop(f"name {who}", None)

    def _acquire(self, version: int, who: str) -> None:
        leases = ReadLeaseStore(self.stores.database)
        if version in self.readable():
            leases.acquire(*self.place, version, who, 60)
            self.pins.setdefault(who, set()).add(version)
            return
        with pytest.raises(VersionExpired):
            leases.acquire(*self.place, version, who, 60)

    def _clean(self, versions: int) -> None:
        history = HistoryStore(self.stores.database)
        before = self.readable()
        self.earliest = max(self.earliest, self.head - versions + 1)
        beginning = history.advance_start(*self.place, HistoryPolicy(versions=versions))
        assert beginning.earliest_version == self.earliest
        assert beginning.expired_versions == len(before - self.readable())
        since = 0
        while (gone := history.expire_files(*self.place, since, 2)).files == 2:
            since = gone.until
        history.remove_files(*self.place, unused_seconds=0, limit=1_000)
        kept = {path for version in self.readable() for path in self.files[version].values()}
        with self.stores.database.tenant(self.dataset.tenant_id) as connection:
            listed = select(files.c.path).where(files.c.dataset_id == self.dataset.id)
            assert set(connection.execute(listed).scalars()) == kept

    def check(self) -> None:
        leases = ReadLeaseStore(self.stores.database)
        readable = self.readable()
        for version, wanted in enumerate(self.files):
            if version in readable:
                found = self.stores.timeline.live_files(*self.place, version, None)
                assert {file.path for file in found} == set(wanted.values())
            else:
                with pytest.raises(VersionExpired):
                    self.stores.timeline.live_files(*self.place, version, None)
        for since in range(self.head + 1):
            assert leases.first_kept(*self.place, since) == min(each for each in readable if each >= since)


@settings(
    max_examples=a_third_of(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(_STEPS, min_size=8, max_size=20))
def test_retained_versions_have_all_their_files_and_no_other_file_stays(
    database: Database, administration: Database, steps: list[tuple[str, int, str]]
) -> None:
    world = World.new(Stores.on(database, administration))
    for step in steps:
        world.run_step(*step)
        if step[0] == "clean":
            world.check()
    world.check()
