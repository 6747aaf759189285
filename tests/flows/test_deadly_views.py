"""Views and transforms whose SQL uses up the memory of its process, beside the writes of another tenant."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.flows.conftest import tables_of_a_new_tenant
from tests.support.deployment import WORKERS, Deployment
from tests.support.left_out import left_out
from tests.support.waiting import until

pytestmark = [
    pytest.mark.stack,
    # They take one to two minutes.
    left_out("SECURITY_EXAMPLES", "security"),
]

NOTE = "x" * 1_000
# 1.6 GB of one note: more than the heap, less than what a value may have.
TRIPLED = 13
# 1.6 GB of a note of 100 kB.
COPIES = 16_000


def test_view_that_exhausts_its_memory_fails_after_two_deaths_beside_writes(
    deployment: Deployment, stack: ExitStack
) -> None:
    [notes] = tables_of_a_new_tenant(deployment, stack, "greedy", 1)
    [other] = tables_of_a_new_tenant(deployment, stack, "modest", 1)
    notes.write("upsert", [{"id": 1, "note": NOTE}])
    sql = "SELECT id, note FROM t0"
    for level in range(TRIPLED):
        sql = f"SELECT id, concat(note, note, note) AS note FROM ({sql}) AS l{level}"
    workers = {name: deployment.processes[name].pid for name in WORKERS}
    answer = notes.client.post("/views", json={"name": "deadly", "sql": sql})
    assert answer.status_code == 201, answer.text
    path = answer.json()["links"]["self"]

    def failed() -> dict[str, Any] | None:
        other.write("upsert", [{"id": 1, "note": "modest"}])
        view: dict[str, Any] = notes.client.get(path).json()
        return view["error"]

    error = until(failed, "the view to fail", seconds_max=240)
    assert error["type"] == "/problems/process-killed"
    refreshes = deployment.query(
        "SELECT state, deaths FROM jobs WHERE dataset_id = %s", path.rpartition("/")[2]
    )
    assert refreshes == [("failed", 2)]
    written = deployment.query("SELECT DISTINCT state, attempts FROM jobs WHERE dataset_id = %s", other.id)
    assert written == [("succeeded", 1)]
    assert all(deployment.processes[name].alive for name in WORKERS)
    assert workers == {name: deployment.processes[name].pid for name in WORKERS}


def test_transform_that_exhausts_its_memory_fails_its_source_after_two_deaths_beside_writes(
    deployment: Deployment, stack: ExitStack
) -> None:
    [notes] = tables_of_a_new_tenant(deployment, stack, "thirsty", 1)
    [other] = tables_of_a_new_tenant(deployment, stack, "sober", 1)
    folder = deployment.incoming / "deadly"
    folder.mkdir(parents=True)
    (folder / "1.ndjson").write_text(f'{{"id": 1, "n": "{NOTE * 100}"}}\n')
    body = {
        "name": "deadly",
        "dataset": notes.id,
        "kind": "files",
        "config": {"path": folder.as_uri(), "format": "ndjson"},
        "transform": {
            "sql": f"SELECT id, concat({', '.join('n' * COPIES)}) AS note FROM source",
            "fields": [{"name": "id", "type": "int64"}, {"name": "n", "type": "string"}],
        },
    }
    answer = notes.client.post("/sources", json=body)
    assert answer.status_code == 201, answer.text

    def failed() -> dict[str, Any] | None:
        other.write("upsert", [{"id": 1, "note": "modest"}])
        source: dict[str, Any] = notes.client.get(answer.headers["location"]).json()
        return source["last_error"]

    error = until(failed, "the source to fail", seconds_max=240)
    assert error["type"] == "/problems/process-killed"
    assert notes.client.get(answer.headers["location"]).json()["state"] == "failed"
    assert deployment.query("SELECT state, deaths FROM jobs WHERE dataset_id = %s", notes.id) == [
        ("failed", 2)
    ]
    written = deployment.query("SELECT DISTINCT state, attempts FROM jobs WHERE dataset_id = %s", other.id)
    assert written == [("succeeded", 1)]
