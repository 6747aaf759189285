"""The tasks that copy the files of exports to their destinations. They run in Spark's Python processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import xxhash

from app.features.exports.tasks import PublishedFiles, PublishTask
from app.infra.files.errors import CorruptFile
from app.infra.files.folders.destination import open_destination
from app.infra.files.storage import Storage
from app.kernel.format.result_file import RunFile

_CHUNK_BYTES: Final = 8 * 1024 * 1024


def publish(task: PublishTask, storage: Storage) -> PublishedFiles:
    """Raises DestinationFailed, and CorruptFile for a file that is not the one that was written."""
    destination = open_destination(task.destination, task.roots)
    for file in task.files:
        destination.put(file.name, _checked(storage, file))
    return PublishedFiles()


def _checked(storage: Storage, file: RunFile) -> Iterator[bytes]:
    digest, size = xxhash.xxh3_128(), 0
    with storage.open(file.path) as source:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            yield chunk
    if (size, digest.hexdigest()) != (file.size_bytes, file.checksum):
        raise CorruptFile(f"{file.path} is not what its run has written", path=file.path)
