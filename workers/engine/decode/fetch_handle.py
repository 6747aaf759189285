"""The fetch task: reads a part of a source to the storage of its dataset. It runs in Spark's Python processes."""

from __future__ import annotations

from app.files.storage import Storage
from app.sources.kinds.registry import KINDS
from app.sources.output import FetchOutput
from app.sources.ports import Fetched
from app.sources.tasks import FetchTask


def fetch(task: FetchTask, storage: Storage) -> Fetched:
    """Raises SourceUnavailable, SourceFailed, MalformedBody, StorageFull."""
    with FetchOutput(storage, task.prefix, task.quarantine) as output:
        part = KINDS[task.kind].fetch(task.place, task.part, task.limits, output)
    return output.fetched(part)
