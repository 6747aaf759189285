"""Random interleavings of writers, workers and their accidents: a transaction happens wholly or not at all, in order.

Each example plays a schedule on three datasets, then lets workers finish what waits.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.catalog.values import Dataset
from app.core.jobs.errors import JobNotCancellable
from app.core.jobs.values import ClaimRules, Job, JobState
from app.core.timeline.values import Fenced
from app.features.transactions.values import NewTransaction
from app.infra.db.session import Database
from app.infra.identifiers import new_id
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.errors import Fault
from tests.support.examples import a_third_of
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores

DATASETS = 3
FAULT = Fault(code="duplicate-key", title="t", detail="d")
_PLACE = st.integers(0, DATASETS - 1)
_STEPS = st.one_of(
    st.tuples(st.just("write"), _PLACE),
    st.tuples(st.just("transaction"), st.lists(_PLACE, min_size=2, max_size=3, unique=True)),
    st.tuples(st.just("claim"), _PLACE),
    st.tuples(st.just("claim"), _PLACE),
    st.tuples(st.sampled_from(["publish", "publish", "fail", "release", "lapse"]), st.integers(0, 5)),
    st.tuples(st.just("cancel"), st.integers(0, 20)),
)
SEVERAL = msgspec.structs.replace(RULES, attempts_max=50, dataset_writers_max=2, group_jobs_max=3)


@dataclass(kw_only=True)
class World:
    """What the schedule has made so far. `groups`: claims that workers believe to hold."""

    stores: Stores
    tenant_id: str
    datasets: list[Dataset]
    rules: ClaimRules
    jobs: list[str] = field(default_factory=list)
    transactions: list[str] = field(default_factory=list)
    groups: list[tuple[list[Job], dict[str, int]]] = field(default_factory=list)

    @classmethod
    def new(cls, stores: Stores, rules: ClaimRules) -> World:
        tenant_id = stores.tenants.add_tenant(f"tenant-{new_id()}")
        datasets = [
            stores.catalog.create(tenant_id, new_id(), definition(f"d{number}")) for number in range(DATASETS)
        ]
        return cls(stores=stores, tenant_id=tenant_id, datasets=datasets, rules=rules)

    def run_step(self, step: str, argument: object) -> None:
        match step, argument:
            case "write", int(place):
                self.jobs.append(
                    self.stores.jobs.accept(self.tenant_id, new_job(self.datasets[place].id)).job.id
                )
            case "transaction", list(places):
                new = NewTransaction(
                    id=new_id(), jobs=tuple(new_job(self.datasets[place].id) for place in places)
                )
                self.stores.transactions.accept(self.tenant_id, new)
                self.transactions.append(new.id)
                self.jobs += [job.id for job in new.jobs]
            case "claim", int(place):
                self.claim(self.datasets[place])
            case "cancel", int(number) if self.jobs:
                self.cancel(self.jobs[number % len(self.jobs)])
            case _, int(number) if self.groups:
                self.end(step, *self.groups.pop(number % len(self.groups)))
        self.check()

    def claim(self, dataset: Dataset) -> bool:
        group = self.stores.jobs.claim(self.tenant_id, dataset.id, "worker", self.rules)
        if group:
            versions = {job.dataset_id: self.version(job.dataset_id) for job in group}
            self.groups.append((group, versions))
        return bool(group)

    def version(self, dataset_id: str) -> int:
        return self.stores.catalog.get(self.tenant_id, dataset_id).version

    def cancel(self, job_id: str) -> None:
        try:
            self.stores.jobs.cancel(self.tenant_id, job_id)
        except JobNotCancellable:
            assert self.stores.jobs.get(self.tenant_id, job_id).state.final

    def end(self, how: str, group: list[Job], versions: dict[str, int]) -> None:
        claims = [job.claim for job in group]
        match how:
            case "fail":
                self.stores.jobs.fail(self.tenant_id, claims[-1], FAULT)
                self.stores.jobs.release(self.tenant_id, claims)
            case "release":
                self.stores.jobs.release(self.tenant_id, claims)
            case "lapse":
                # Of a transaction one lease that runs out is as good as all.
                lapsed = group[:1] if group[0].transaction_id else group
                with self.stores.database.tenant(self.tenant_id) as connection:
                    connection.exec_driver_sql(
                        "UPDATE jobs SET lease_until = clock_timestamp() - interval '1 s' "
                        "WHERE state = 'running' AND id::text = ANY(%s)",
                        ([job.id for job in lapsed],),
                    )
                # The slow worker comes back too late, or in time.
                self.groups.append((group, versions))
            case "publish":
                self.publish(group, versions)

    def publish(self, group: list[Job], versions: dict[str, int]) -> None:
        """Every commit touches one and the same bucket, so who read an earlier version plans again."""
        by_dataset: dict[str, list[Job]] = defaultdict(list)
        for job in group:
            by_dataset[job.dataset_id].append(job)
        commits = [
            commit_of(jobs, [message(0)], read_version=versions[dataset_id])
            for dataset_id, jobs in by_dataset.items()
        ]
        outcome = self.stores.timeline.publish(self.tenant_id, commits)
        if isinstance(outcome, Fenced):
            kept = [job for job in group if job.id in outcome.valid_ids]
            if kept:
                self.groups.append((kept, versions))
        elif isinstance(outcome, Conflicted):
            self.groups.append((group, {**versions, outcome.dataset_id: outcome.head_version}))

    def check(self) -> None:
        for transaction_id in self.transactions:
            members = self.stores.transactions.get(self.tenant_id, transaction_id).jobs
            assert len({job.state for job in members}) == 1, "a transaction is torn"
            assert len({job.attempts for job in members}) == 1

    def finish(self) -> None:
        """Workers go on until nothing waits; each round something must end."""
        while any(not self.stores.jobs.get(self.tenant_id, job).state.final for job in self.jobs):
            if not self.groups and not any(self.claim(dataset) for dataset in self.datasets):
                raise AssertionError("writes wait, and none can go on")
            while self.groups:
                self.end("publish", *self.groups.pop(0))
            self.check()

    def check_order(self) -> None:
        """Of one dataset, writes of later commits were accepted later, and versions have no gaps."""
        for dataset in self.datasets:
            done = [self.stores.jobs.get(self.tenant_id, job) for job in self.jobs]
            mine = [job for job in done if job.dataset_id == dataset.id and job.state is JobState.SUCCEEDED]
            versions = [job.committed_version or 0 for job in mine]
            assert sorted(set(versions)) == list(range(1, self.version(dataset.id) + 1))
            for job, version in zip(mine, versions, strict=True):
                sharing = [other.transaction_id for other in mine if other.committed_version == version]
                assert job.transaction_id is None or sharing == [job.transaction_id]


@settings(
    max_examples=a_third_of(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(schedule=st.lists(_STEPS, min_size=5, max_size=30))
def test_transaction_is_atomic_under_every_interleaving(
    database: Database, administration: Database, schedule: list[tuple[str, object]]
) -> None:
    world = World.new(Stores.on(database, administration), SEVERAL)
    for step, argument in schedule:
        world.run_step(step, argument)
    world.finish()
    world.check_order()


@settings(
    max_examples=a_third_of(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(schedule=st.lists(_STEPS, min_size=5, max_size=30))
def test_writes_of_one_writer_per_dataset_take_effect_in_order_of_acceptance(
    database: Database, administration: Database, schedule: list[tuple[str, object]]
) -> None:
    world = World.new(
        Stores.on(database, administration), msgspec.structs.replace(SEVERAL, dataset_writers_max=1)
    )
    for step, argument in schedule:
        world.run_step(step, argument)
    world.finish()
    world.check_order()
    for dataset in world.datasets:
        jobs = [world.stores.jobs.get(world.tenant_id, job) for job in world.jobs]
        versions = [
            job.committed_version for job in jobs if job.dataset_id == dataset.id and job.committed_version
        ]
        assert versions == sorted(versions)
