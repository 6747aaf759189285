"""One dataset: the rows of a version, and the changes up to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from clients.export.feed import write_changes
from clients.export.folder import (
    RECORD_NAME,
    described,
    is_intact,
    partial_path,
    read_record,
    service_checksum,
    write_json,
)
from clients.export.values import DatasetRecord, FeedRange
from headwater_client import DamagedDownload, Dataset, Headwater, Problem
from headwater_client.models import ResultFile

# Two hours: a read job waits for a worker, and then runs for an hour at most.
_READ_SECONDS: Final = 2 * 60 * 60
_TRIES: Final = 3
# The version, the changes or the result are no longer kept. What is there now can be exported.
_EXPIRED: Final = frozenset({"version-expired", "offset-expired", "result-expired"})


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetExport:
    """Exports datasets. `progress` is called with a line for each file."""

    client: Headwater
    progress: Callable[[str], None]

    def run(self, dataset_id: str, folder: Path, partial: Path) -> tuple[Dataset, bool]:
        """Exports the current version to `folder`, by way of `partial`, unless the folder has that version.

        Returns the dataset, and whether the folder had it. What an interrupted export of the version has left in
        `partial` is not downloaded again. Raises Problem, JobUnfinished, DamagedDownload.
        """
        for left in reversed(range(_TRIES)):
            dataset = self.client.get_dataset(dataset_id)
            record = read_record(folder)
            if record is not None and _is_of(dataset, record, complete=True) and is_intact(folder, record):
                return dataset, True
            try:
                self._export(dataset, partial)
            except Problem as problem:
                if problem.code not in _EXPIRED or not left:
                    raise
                shutil.rmtree(partial, ignore_errors=True)
            else:
                break
        if folder.exists():
            shutil.rmtree(folder)
        folder.parent.mkdir(exist_ok=True)
        partial.rename(folder)
        return dataset, False

    def _export(self, dataset: Dataset, folder: Path) -> None:
        record = read_record(folder)
        if record is None or not _is_of(dataset, record, complete=False) or not is_intact(folder, record):
            shutil.rmtree(folder, ignore_errors=True)
            record = self._begun(dataset, folder)
        if record.read_job is None:  # interrupted just before the folder was moved
            return
        record = self._rows(record, record.read_job, folder)
        record = self._changes(dataset, record, folder)
        write_json(folder / RECORD_NAME, replace(record, read_job=None))

    def _begun(self, dataset: Dataset, folder: Path) -> DatasetRecord:
        job = self.client.start_read(dataset, version=dataset.version, format="parquet", disposition="files")
        start = None if _feed_end(dataset) is None else dataset.earliest_offset
        record = DatasetRecord(
            id=dataset.id,
            name=dataset.name,
            version=dataset.version,
            rows=0,
            changes=None if start is None else FeedRange(since=start, next_since=start),
            files=(),
            read_job=job.id,
        )
        return _saved(folder, record)

    def _rows(self, record: DatasetRecord, job: str, folder: Path) -> DatasetRecord:
        self.progress(f"  version {record.version}: read job {job}")
        try:
            self.client.wait(job, seconds=_READ_SECONDS)
        except Problem as problem:
            # The job has failed or is gone: the next export starts another one.
            if not record.files or problem.code == "not-found":
                shutil.rmtree(folder)
            raise
        result = self.client.result_files(job)
        record = replace(record, rows=result.rows)
        there = {file.path for file in record.files}
        for file in result.files:
            path = f"rows/{Path(file.name).name}"
            if path not in there:
                self._download(file, folder / path)
                record = self._with_file(folder, record, path, file.rows)
        return record

    def _download(self, file: ResultFile, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        self.client.download_result_file(file, path)
        if service_checksum(path) != file.checksum:
            path.unlink()
            raise DamagedDownload(f"{file.name} does not have the checksum of the result; export it again")

    def _changes(self, dataset: Dataset, record: DatasetRecord, folder: Path) -> DatasetRecord:
        end = _feed_end(dataset)
        while record.changes is not None and end is not None and record.changes.next_since < end:
            path = f"changes/{record.changes.next_since:020d}.parquet"
            partial = partial_path(folder / path)
            partial.parent.mkdir(exist_ok=True)
            wanted = FeedRange(since=record.changes.next_since, next_since=end)
            written, changes = write_changes(self.client, dataset, wanted, partial)
            partial.replace(folder / path)
            range_ = FeedRange(since=record.changes.since, next_since=written.next_since)
            record = self._with_file(folder, replace(record, changes=range_), path, changes)
        return record

    def _with_file(self, folder: Path, record: DatasetRecord, path: str, rows: int) -> DatasetRecord:
        file = described(folder, path, rows)
        self.progress(f"  {path}: {rows:,} rows, {file.size_bytes:,} bytes")
        return _saved(folder, replace(record, files=(*record.files, file)))


def _saved(folder: Path, record: DatasetRecord) -> DatasetRecord:
    write_json(folder / RECORD_NAME, record)
    return record


def _feed_end(dataset: Dataset) -> int | None:
    """The end of the feed at the dataset's version; None if it has no feed."""
    return None if dataset.changelog.producer == "none" else dataset.next_offset


def _is_of(dataset: Dataset, record: DatasetRecord, *, complete: bool) -> bool:
    if (record.id, record.version) != (dataset.id, dataset.version):
        return False
    end = _feed_end(dataset)
    if record.changes is None or end is None:
        return record.changes is None and end is None
    return record.changes.next_since == end if complete else record.changes.next_since <= end
