"""The logs of all processes of a real deployment contain no secret."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.support.deployment import Deployment
from tests.support.receiver import receiving
from tests.support.table import Table

pytestmark = pytest.mark.stack

WRONG_KEY = "hw_" + "W" * 43


def passwords(deployment: Deployment) -> set[str]:
    """The passwords in the settings of the processes."""
    values = [value for each in deployment.processes.values() for value in each.spec.environment.values()]
    urls = [urlsplit(value) for value in values if "://" in value]
    return {url.password for url in urls if url.password}


def test_logs_contain_no_secret(deployment: Deployment, table: Table) -> None:
    client = table.client
    secrets = {"headers": deployment.api_key, "refused header": WRONG_KEY} | {
        f"password {number}": password for number, password in enumerate(sorted(passwords(deployment)))
    }
    assert len(secrets) > 3
    with receiving() as receiver:
        # A receiver that fails is logged by the workers.
        receiver.answer(500, 500, 500)
        body = {"dataset": table.id, "url": f"{receiver.url}/?token=hidden-in-url"}
        made = client.post("/webhooks", json=body, headers={"Idempotency-Key": "once"}).json()
        secrets["webhook"], secrets["query of a URL"] = made["secret"], "hidden-in-url"
        rotated = client.post(f"{made['links']['self']}/rotate-secret").json()
        secrets["rotated webhook"] = rotated["secret"]
        client.post(f"{made['links']['self']}/tests")
        table.write("upsert", [{"id": 1, "note": "note-in-a-row"}])
        secrets["row"] = "note-in-a-row"
        client.delete(made["links"]["self"])
    # Refusals: a wrong key, a key in the query, in the body, in a request that is not HTTP.
    client.get("/datasets", headers={"Authorization": f"Bearer {WRONG_KEY}"})
    client.get("/datasets", params={"api_key": deployment.api_key})
    client.post("/datasets", json={"name": deployment.api_key, "secret": made["secret"]})
    client.post("/datasets", content=b'{"secret": "' + made["secret"].encode())
    client.get("/datasets", headers={"X-Request-Id": f"bad {deployment.api_key}", "X-Filler": "y" * 70_000})
    # Failures with a traceback: the files of the dataset are gone.
    query = "SELECT path FROM files WHERE dataset_id = %s AND removed_version IS NULL"
    for (path,) in deployment.query(query, table.id):
        (deployment.storage / path).unlink()
    failed = client.get(f"{table.path}/rows", params={"where": "note <> 'note-in-a-filter'"})
    secrets["filter"] = "note-in-a-filter"
    assert failed.status_code == 500
    logs = {name: process.log() for name, process in deployment.processes.items()}
    assert "corrupt-file" in logs["api"]
    assert {
        (name, kind) for name, log in logs.items() for kind, text in secrets.items() if text in log
    } == set()
