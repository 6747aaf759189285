"""Tenants beside each other: the work of one does not wait for the queue of another."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.flows.conftest import tables_of_a_new_tenant
from tests.support.deployment import Deployment
from tests.support.left_out import left_out

pytestmark = [
    pytest.mark.stack,
    # They take half a minute. The model of the queue always runs.
    left_out("SECURITY_EXAMPLES", "security"),
]

DATASETS = 4
WRITES_EACH = 10


def test_write_is_committed_before_the_queue_of_another_tenant_has_ended(
    deployment: Deployment, stack: ExitStack
) -> None:
    noisy = tables_of_a_new_tenant(deployment, stack, "noisy", DATASETS)
    [quiet] = tables_of_a_new_tenant(deployment, stack, "quiet", 1)
    for name in ("first", "second"):
        deployment.processes[name].wait_ready()
    with deployment.frozen("first", "second"):
        # Each is a commit of its own.
        flood = [
            table.submit("overwrite", [{"id": number, "note": "noisy"}])
            for number in range(WRITES_EACH)
            for table in noisy
        ]
        last = quiet.submit("upsert", [{"id": 1, "note": "quiet"}])
    quiet.succeeded(last)
    for job_id in flood:
        noisy[0].succeeded(job_id)
    query = """SELECT count(*) FILTER (WHERE c.committed_at < own.committed_at), count(*)
        FROM commits c, commits own WHERE c.dataset_id = ANY(%s::uuid[]) AND own.dataset_id = %s"""
    [(before, all_of_them)] = deployment.query(query, [table.id for table in noisy], quiet.id)
    assert all_of_them == DATASETS * WRITES_EACH
    # With threads that stay with a dataset, all queues are about to end.
    assert before < all_of_them * 3 / 4
