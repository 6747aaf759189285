"""`headwater compact`, `clean`, `cluster`, `analyze`, `files` and `partitions …`: how a table is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater_client.cli.arguments.names import DatasetName, Names, Texts
from headwater_client.cli.printing.jobs_output import print_job
from headwater_client.cli.printing.output import OUTPUT, Bytes, Output, TableColumn, bytes_text
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import ClusterOrder, File, Partition, PartitionMark

_FILES: Final[Sequence[TableColumn[File]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("KIND", lambda each: each.kind),
    TableColumn("PARTITION", lambda each: each.partition or None),
    TableColumn("SIZE", lambda each: Bytes(each.size_bytes)),
    TableColumn("ROWS", lambda each: each.rows),
    TableColumn("LIVE", lambda each: each.live_rows),
    TableColumn("VERSION", lambda each: each.added_version),
)
_PARTITIONS: Final[Sequence[TableColumn[Partition]]] = (
    TableColumn("PARTITION", lambda each: each.path or None),
    TableColumn("FILES", lambda each: each.base_files + each.logs),
    TableColumn("SIZE", lambda each: Bytes(each.size_bytes)),
    TableColumn("ROWS", lambda each: each.rows if each.exact else f"about {each.rows:,}"),
    TableColumn("CHANGED", lambda each: each.changed_at),
    TableColumn("DONE", lambda each: each.done_at),
)
_MARKS: Final[Sequence[TableColumn[PartitionMark]]] = (
    TableColumn("PARTITION", lambda each: each.path),
    TableColumn("CHANGED", lambda each: each.changed_at),
    TableColumn("DONE", lambda each: each.done_at),
)


def compact(
    dataset: DatasetName,
    /,
    *,
    partitions: Texts = None,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Fold logs and small files of a table into large ones.

    Example: `headwater compact orders`

    Parameters
    ----------
    partitions
        A glob of partition paths, such as day=2026-11-*. May be repeated.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.compact(dataset, partitions=partitions, wait=wait)
    if job.state != "succeeded" or job.result is None:
        print_job(output, dataset, job)
        return
    output.done(f"{dataset}: {_compacted(job.result)}, version {job.committed_version:,}", job)


def _compacted(result: Mapping[str, Any]) -> str:
    if not result["files_removed"]:
        done = "nothing to compact"
    else:
        size = bytes_text(result["bytes"])
        done = f"{result['files_removed']:,} files → {result['files_added']:,} ({size})"
    left = result["file_groups_left"]
    return f"{done}, {left:,} file groups left to the next compaction" if left else done


def clean(
    dataset: DatasetName,
    /,
    *,
    versions: int | None = None,
    days: int | None = None,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Expire old versions of a table. Named versions are kept.

    Example: `headwater clean orders --versions 100`

    Parameters
    ----------
    versions
        Keep this number of versions; without --versions and --days, what the dataset's history says.
    days
        Keep versions that were the latest within these days.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        seconds = None if days is None else days * 86_400
        job = client.clean(dataset, versions=versions, seconds=seconds, wait=wait)
    print_job(output, dataset, job)


def cluster(
    dataset: DatasetName,
    /,
    *,
    columns: Names = None,
    order: ClusterOrder | None = None,
    partitions: Texts = None,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Order the rows of a table by columns, so that filters on these read few rows.

    Example: `headwater cluster orders --columns state`

    Parameters
    ----------
    columns
        The columns; by default those of the dataset's clustering.
    order
        The order of several columns.
    partitions
        A glob of partition paths, such as day=2026-11-*. May be repeated.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.cluster(dataset, columns, order=order, partitions=partitions, wait=wait)
    print_job(output, dataset, job)


def analyze(
    dataset: DatasetName,
    /,
    *,
    wait: float = 600,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Count the distinct values of each column, for the statistics.

    Example: `headwater analyze orders`

    Parameters
    ----------
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.analyze(dataset, wait=wait)
    print_job(output, dataset, job)


def files(
    dataset: DatasetName,
    /,
    *,
    version: int | None = None,
    partition: str | None = None,
    kind: str | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the data files of a version.

    Example: `headwater files orders --kind base`

    Parameters
    ----------
    version
        The number of the version; by default the latest.
    partition
        Only those of this partition, by its path.
    kind
        Only those of this kind, such as base or log.
    """
    with service.client() as client:
        output.items(client.files(dataset, version=version, partition=partition, kind=kind), _FILES)


def list_partitions(
    dataset: DatasetName,
    /,
    *,
    version: int | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """List the partitions of a version.

    Example: `headwater partitions orders`

    Parameters
    ----------
    version
        The number of the version; by default the latest.
    """
    with service.client() as client:
        output.items(client.partitions(dataset, version=version), _PARTITIONS)


def end_partitions(
    dataset: DatasetName, /, *paths: str, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Mark partitions as done: they get no more input. All of them are marked, or none.

    Example: `headwater partitions done visits day=2026-11-21`

    Parameters
    ----------
    paths
        The paths of the partitions.
    """
    with service.client() as client:
        marks = client.end_partitions(dataset, paths)
    output.items(marks, _MARKS)
