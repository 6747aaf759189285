"""Errors of files."""

from __future__ import annotations

from app.infra.errors import StorageFull, StorageUnavailable
from app.kernel.format.errors import HeadwaterError


class CorruptFile(HeadwaterError):
    """A data file's size, checksum or content is not what its commit recorded. Fact: `path`."""

    code = "corrupt-file"
    title = "A data file is damaged"


def without_place(error: HeadwaterError) -> HeadwaterError:
    """An outage of the storage for users: the place of a file in the storage, which names the tenant, says nothing."""
    path = error.facts.get("path")
    if not isinstance(error, StorageFull | StorageUnavailable) or path is None:
        return error
    detail = error.detail.replace(path, "a file") if path else error.detail
    return error.restored(detail, {name: fact for name, fact in error.facts.items() if name != "path"})


def without_path(error: HeadwaterError) -> HeadwaterError:
    """The error for a reader that sees a part of the dataset: the path of a file has values of its partition."""
    if not isinstance(error, CorruptFile):
        return error
    return CorruptFile("a file of the dataset is damaged or missing; the log of the service names it")


class DestinationFailed(HeadwaterError):
    """The files of a run cannot be written to the destination of their export. Fact: `destination`."""

    code = "destination-failed"
    title = "The destination takes no files"


class OrderTooLarge(HeadwaterError):
    """Rows in order would take more files or rows than one request reads. Facts: `files_max`, `rows_max`."""

    code = "order-too-large"
    title = "The order needs too many rows for one request"
