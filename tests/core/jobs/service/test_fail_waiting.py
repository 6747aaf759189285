"""Writes that wait for a process which cannot be started fail, and the others of their dataset do not."""

from __future__ import annotations

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.service.fail_waiting import FailWaiting
from app.core.jobs.values import Job, JobState
from app.infra.identifiers import new_id
from app.kernel.format.operation import Operation
from tests.support.lakehouse import RULES, definition, new_job
from tests.support.store_fixtures import Stores

REASON = "No module named 'pandas'"


@pytest.fixture
def own_dataset(stores: Stores, tenant_id: str) -> Dataset:
    return stores.catalog.create(tenant_id, new_id(), definition(f"d-{new_id()}"))


def test_waiting_writes_of_the_process_fail_and_name_the_module(
    stores: Stores, tenant_id: str, own_dataset: Dataset
) -> None:
    derives = WriteRequest(operation=Operation.SNAPSHOT, derived=True)

    def accepted(request: WriteRequest | None = None) -> Job:
        new = new_job(own_dataset.id) if request is None else new_job(own_dataset.id, request=request)
        return stores.jobs.accept(tenant_id, new).job

    refreshes = [accepted(derives), accepted(derives)]
    write = accepted()
    announced: list[bool] = []
    failing = FailWaiting(
        jobs=stores.jobs, rules=RULES, owner="worker", announce=lambda: announced.append(True)
    )
    failing.run(WriteProcess.SLOW, tenant_id, own_dataset.id, REASON)
    assert stores.jobs.get(tenant_id, refreshes[0].id).state is JobState.QUEUED
    failing.run(WriteProcess.DERIVED, tenant_id, own_dataset.id, REASON)
    for refresh in refreshes:
        job = stores.jobs.get(tenant_id, refresh.id)
        assert job.state is JobState.FAILED
        assert job.error is not None
        assert f"cannot import a module: {REASON}. The operator installs" in job.error.detail
    assert announced == [True, True]
    # The write behind them goes on in the worker.
    plain = msgspec.structs.replace(RULES, process=WriteProcess.WORKER)
    assert [each.id for each in stores.jobs.claim(tenant_id, own_dataset.id, "worker", plain)] == [write.id]
