"""Read jobs over HTTP: started, waited for, and their results as rows."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.service import Service

Row = dict[str, Any]


def read_job(client: httpx.Client, service: Service, path: str, **asked: Any) -> Row:
    """A read job that has succeeded."""
    answer = client.post(f"{path}/reads", json=asked)
    assert answer.status_code == 202, answer.text
    service.work()
    job: Row = client.get(answer.headers["location"]).json()
    assert job["state"] == "succeeded", job
    return job


def result_rows(client, job):
    pass
