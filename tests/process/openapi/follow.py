"""Registers a dataset, writes to it, waits for the jobs, follows the feed as a consumer and exports it.

Takes HEADWATER_URL and HEADWATER_API_KEY from the environment; prints what it saw as one line of JSON.
"""

import json
import os
from pathlib import Path

from headwater_api import AuthenticatedClient
from headwater_api.api.changes import read_changes
from headwater_api.api.consumers import put_consumer
from headwater_api.api.datasets import change_dataset, create_dataset, list_dataset_schemas
from headwater_api.api.exports import create_export, get_export_run
from headwater_api.api.jobs import get_job
from headwater_api.api.writes import create_upload, create_write
from headwater_api.models import (
    AddField,
    AddFieldKind,
    CreateDataset,
    CreateExport,
    CreateField,
    CreateSchema,
    CreateWrite,
    Dataset,
    Export,
    ExportFormat,
    ExportQuery,
    ExportRun,
    Feed,
    Format,
    Job,
    JobState,
    Operation,
    Problem,
    PutConsumer,
    RenameField,
    RenameFieldKind,
    RowsSource,
    RowsSourceKind,
    RowsSourceRowsItem,
    SchemaPage,
    UpdateDataset,
    UploadSource,
    UploadSourceKind,
)
from headwater_api.types import File

client = AuthenticatedClient(
    base_url=os.environ["HEADWATER_URL"],
    token=os.environ["HEADWATER_API_KEY"],
    raise_on_unexpected_status=True,
    timeout=60,
)


def ended(job: Job | Problem | None) -> Job:
    """The job once it has succeeded."""
    assert isinstance(job, Job), job
    while job.state in (JobState.QUEUED, JobState.RUNNING):
        found = get_job.sync(job.id, client=client, wait=20)
        assert isinstance(found, Job), found
        job = found
    assert job.state == JobState.SUCCEEDED, job.error
    return job


def write(dataset: Dataset, source: RowsSource | UploadSource) -> Job:
    """The ended job of an upsert."""
    body = CreateWrite(operation=Operation.UPSERT, source=source)
    return ended(create_write.sync(dataset.id, client=client, body=body))


def rows(*members: dict[str, object]) -> RowsSource:
    """Rows in the request itself."""
    return RowsSource(kind=RowsSourceKind.ROWS, rows=[RowsSourceRowsItem.from_dict(each) for each in members])


fields = [CreateField(name="sensor", type_="string"), CreateField(name="value", type_="double")]
dataset = create_dataset.sync(
    client=client,
    body=CreateDataset(name="readings", schema=CreateSchema(fields=fields), record_key=["sensor"]),
)
assert isinstance(dataset, Dataset), dataset
first = write(dataset, rows({"sensor": "a", "value": 1.5}))

with Path(os.environ["UPLOAD"]).open("rb") as content:
    upload = create_upload.sync(dataset.id, client=client, body=File(payload=content))
assert not isinstance(upload, Problem), upload
second = write(dataset, UploadSource(kind=UploadSourceKind.UPLOAD, upload_id=upload.id, format_=Format.CSV))

changes, since = [], 0
while len(changes) < 3:
    page = read_changes.sync(dataset.id, client=client, since=str(since), feed=Feed.LONGPOLL)
    assert not isinstance(page, Problem), page
    changes += page.changes
    since = page.next_since

consumer = put_consumer.sync(dataset.id, "follower", client=client, body=PutConsumer(offset=since))
assert consumer is not None
assert not isinstance(consumer, Problem), consumer
export = create_export.sync(
    dataset.id,
    client=client,
    body=CreateExport(query=ExportQuery.CHANGES, format_=ExportFormat.NDJSON),
)
assert isinstance(export, Export), export
ended(get_job.sync(export.runs[0].job_id, client=client))
run = get_export_run.sync(export.id, export.runs[0].number, client=client)
assert isinstance(run, ExportRun), run

refused = create_write.sync(
    dataset.id, client=client, body=CreateWrite(operation=Operation.UPSERT, source=rows({"sensor": None}))
)
assert isinstance(refused, Problem), refused
# The later version is that of the second write.
changed = change_dataset.sync(
    dataset.id,
    client=client,
    body=UpdateDataset(
        changes=[
            RenameField(kind=RenameFieldKind.RENAME, name="value", to="celsius"),
            AddField(kind=AddFieldKind.ADD, field=CreateField(name="place", type_="string")),
        ]
    ),
    if_match=f'"{second.committed_version}"',
)
assert isinstance(changed, Dataset), changed
first_page = read_changes.sync(dataset.id, client=client, limit=1, schema="1")
assert not isinstance(first_page, Problem), first_page
schemas = list_dataset_schemas.sync(dataset.id, client=client)
assert isinstance(schemas, SchemaPage), schemas
print(
    json.dumps(
        {
            "versions": [first.committed_version, second.committed_version],
            "changes": [[change.offset, change.op.value, change.row.to_dict()] for change in changes],
            "since": since,
            "consumer": [consumer.offset, consumer.lag.changes],
            "exported": [run.rows, len(run.files)],
            "problem": refused.type_,
            "fields": [field.name for field in changed.schema.fields],
            "told_under": [first_page.schema_id, *first_page.changes[0].row.to_dict()],
            "schemas": [schema.id for schema in schemas.items],
        }
    )
)
