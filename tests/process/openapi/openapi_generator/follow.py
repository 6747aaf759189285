"""Registers a dataset, writes to it, waits for the jobs, follows the feed as a consumer and exports it.

Uses the client that OpenAPI Generator makes. Takes HEADWATER_URL and HEADWATER_API_KEY from the environment; prints
what it saw as one line of JSON.
"""

from __future__ import annotations

import json
import os
from typing import Any

from headwater_api import ApiClient, Configuration
from headwater_api.api import ChangesApi, ConsumersApi, DatasetsApi, ExportsApi, JobsApi, WritesApi
from headwater_api.exceptions import UnprocessableEntityException
from headwater_api.models import (
    CreateDataset,
    CreateExport,
    CreateField,
    CreateSchema,
    CreateWrite,
    ExportFormat,
    ExportQuery,
    Job,
    JobState,
    Operation,
    PutConsumer,
    RowsSource,
    WriteSource,
)

client = ApiClient(
    Configuration(host=os.environ["HEADWATER_URL"], access_token=os.environ["HEADWATER_API_KEY"])
)
jobs, writes, changes_api = JobsApi(client), WritesApi(client), ChangesApi(client)


def ended(job: Job) -> Job:
    """The job once it has succeeded."""
    while job.state in (JobState.QUEUED, JobState.RUNNING):
        job = jobs.get_job(job.id, wait=20)
    assert job.state == JobState.SUCCEEDED, job.error
    return job


def upsert(dataset: str, *rows: dict[str, Any]) -> Job:
    """The job of a write."""
    source = WriteSource(RowsSource(kind="rows", rows=list(rows)))
    return writes.create_write(dataset, CreateWrite(operation=Operation.UPSERT, source=source))


datasets, consumers, exports = DatasetsApi(client), ConsumersApi(client), ExportsApi(client)
fields = [CreateField(name="sensor", type="string"), CreateField(name="value", type="double")]
dataset = datasets.create_dataset(
    CreateDataset(name="readings", schema=CreateSchema(fields=fields), record_key=["sensor"])
)
first = ended(upsert(dataset.id, {"sensor": "a", "value": 1.5}))
second = ended(upsert(dataset.id, {"sensor": "a", "value": 2.5}))

changes: list[Any] = []
since = 0
while len(changes) < 3:
    page = changes_api.read_changes(dataset.id, since=str(since), feed="longpoll")
    changes += [each.actual_instance for each in page.changes]
    since = page.next_since.actual_instance

consumer = consumers.put_consumer(dataset.id, "follower", PutConsumer.from_dict({"offset": since}))
export = exports.create_export(
    dataset.id, CreateExport(query=ExportQuery.CHANGES, format=ExportFormat.NDJSON)
)
ended(jobs.get_job(export.runs[0].job_id))
run = exports.get_export_run(export.id, export.runs[0].number)

try:
    upsert(dataset.id, {"sensor": None})
except UnprocessableEntityException as error:
    problem = json.loads(error.body)["type"]
else:
    problem = None
print(
    json.dumps(
        {
            "versions": [first.committed_version, second.committed_version],
            "changes": [[change.offset, change.op.value, change.row] for change in changes],
            "since": since,
            "consumer": [consumer.offset.actual_instance, consumer.lag.changes],
            "exported": [run.rows, len(run.files)],
            "problem": problem,
        }
    )
)
