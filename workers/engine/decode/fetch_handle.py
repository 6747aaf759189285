"""The fetch task: reads a part of a source to the storage of its dataset. It runs in Spark's Python processes."""

from __future__ import annotations

from app.features.sources.kinds.registry import KINDS
from app.features.sources.output import FetchOutput
from app.features.sources.ports import Fetched
from app.features.sources.tasks import FetchTask
from app.infra.files.storage import Storage


def fetch(task: FetchTask, storage: Storage) -> Fetched:
    """Raises SourceUnavailable, SourceFailed, MalformedBody, StorageFull."""
    with FetchOutput(storage, task.prefix, task.quarantine) as output:
        part = KINDS[task.kind].fetch(task.place, task.part, task.limits, output)
    return output.fetched(part)
