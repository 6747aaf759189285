"""`headwater log`, `diff`, `undo`, `restore`, `verify`, `savepoints …` and `tags …`: the versions of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from headwater_client.cli.arguments.names import Before, Count, DatasetName, Names
from headwater_client.cli.arguments.points import point
from headwater_client.cli.failure import CommandError
from headwater_client.cli.printing.jobs_output import print_job
from headwater_client.cli.printing.output import OUTPUT, Bytes, Output, TableColumn, print_table
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Instant, NamedVersion, RowCounts

_WAIT_SECONDS: Final = 600.0


def log(
    dataset: DatasetName,
    /,
    *,
    limit: Count = 50,
    action: Names = None,
    state: Names = None,
    since: Before = None,
    until: Before = None,
    version: int | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print what has changed a dataset, the latest first: writes, restores, table services.

    Example: `headwater log orders --since 1d`

    Parameters
    ----------
    limit
        How many entries, at most.
    action
        Only these actions, such as commit,compaction.
    state
        Only these states, such as completed.
    since
        Only what was requested from this time on, such as 2026-11-29 (UTC), or 12h for the last twelve hours.
    until
        Only what was requested before this time.
    version
        Only what made this version.
    """
    with service.client() as client:
        found = client.timeline(
            dataset, actions=action, states=state, since=since, until=until, version=version
        )
        output.items(islice(found, limit), _LOG)


def diff(
    dataset: DatasetName,
    since: str,
    until: str | None = None,
    /,
    *,
    wait: float = _WAIT_SECONDS,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Count the rows that differ between two versions, by column.

    Example: `headwater diff orders 12 15`

    Example: `headwater diff orders 1h`

    Parameters
    ----------
    since
        A version such as 12, the name of a tag, a time such as 2026-11-29 (UTC), or 1h for an hour ago.
    until
        The other version; by default the latest.
    wait
        How many seconds to wait for the end.
    """
    with service.client() as client:
        job = client.compare(dataset, point(since), None if until is None else point(until), wait=wait)
    result: dict[str, Any] = job.result or {}
    if not output.is_table():
        output.item(result)
        return
    print(f"version {result['from_version']:,} to {result['to_version']:,}")
    print_table(("ROWS", "COUNT"), list(result["rows"].items()))
    if result["columns"]:
        print()
        print_table(("COLUMN", "ROWS WITH ANOTHER VALUE"), list(result["columns"].items()))
    for change in result["schema"]:
        print(f"schema: {change}")


def undo(
    dataset: DatasetName,
    /,
    *,
    writes: int = 1,
    expected_version: int | None = None,
    wait: float = _WAIT_SECONDS,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Take back the newest writes of a dataset, by a write whose changes are in the feed.

    Example: `headwater undo orders`

    Parameters
    ----------
    writes
        How many versions that writes have made.
    expected_version
        Fail unless the dataset is at this version.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.roll_back(dataset, writes, expected_version=expected_version, wait=wait)
    print_job(output, dataset, job)


def restore(
    dataset: DatasetName,
    to: str,
    /,
    *,
    expected_version: int | None = None,
    wait: float = _WAIT_SECONDS,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Give a dataset the rows of an earlier version, by a write whose changes are in the feed.

    Example: `headwater restore orders 12`

    Example: `headwater restore orders before-import`

    Parameters
    ----------
    to
        A version such as 12, the name of a tag or savepoint, a time such as 2026-11-29 (UTC), or 1h for an hour ago.
    expected_version
        Fail unless the dataset is at this version.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.restore(dataset, point(to), expected_version=expected_version, wait=wait)
    print_job(output, dataset, job)


def verify(
    dataset: DatasetName,
    /,
    *,
    version: int | None = None,
    wait: float = _WAIT_SECONDS,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Fold the feed of a dataset, and compare the result with its table. The exit code is 1 if they differ.

    Example: `headwater verify orders`

    Parameters
    ----------
    version
        The number of the version; by default the latest.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.verify(dataset, version=version, wait=wait)
    if job.state != "succeeded" or job.result is None:
        print_job(output, dataset, job)
        return
    found = job.result
    compared = f"{found['rows']:,} rows, {found['changes']:,} changes, version {found['version']:,}"
    if found["equal"]:
        output.done(f"{dataset}: feed and table are equal: {compared}", job)
        return
    if not output.is_table():
        output.item(job)
    raise CommandError(
        f"{dataset}: feed and table differ: {found['differences']:,} differences of {compared}. "
        f"The first one: {msgspec.json.encode(found['first_difference']).decode()}"
    )


def list_savepoints(
    dataset: DatasetName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """List the savepoints of a dataset by name.

    Example: `headwater savepoints orders`
    """
    with service.client() as client:
        output.items(client.savepoints(dataset), _NAMED)


def list_tags(dataset: DatasetName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """List the tags of a dataset by name.

    Example: `headwater tags orders`
    """
    with service.client() as client:
        output.items(client.tags(dataset), _NAMED)


def savepoint(
    dataset: DatasetName,
    name: str,
    /,
    *,
    version: int | None = None,
    keep_days: int | None = None,
    wait: float = _WAIT_SECONDS,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Keep a version of a dataset for restores, and the feed since then.

    Example: `headwater savepoint orders before-import --keep-days 30`

    Parameters
    ----------
    name
        The name of the savepoint.
    version
        The number of the version; by default the latest.
    keep_days
        For how many days; by default until it is deleted.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.create_savepoint(
            dataset, name, version=version, keep_seconds=_seconds(keep_days), wait=wait
        )
    print_job(output, dataset, job)


def tag(
    dataset: DatasetName,
    name: str,
    /,
    *,
    version: int | None = None,
    keep_days: int | None = None,
    wait: float = _WAIT_SECONDS,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Name a version of a dataset for reads.

    Example: `headwater tags create orders q3`

    Parameters
    ----------
    name
        The name of the tag.
    version
        The number of the version; by default the latest.
    keep_days
        For how many days; by default until it is deleted.
    wait
        How many seconds to wait for the end; 0 does not wait.
    """
    with service.client() as client:
        job = client.create_tag(dataset, name, version=version, keep_seconds=_seconds(keep_days), wait=wait)
    print_job(output, dataset, job)


def delete_savepoint(dataset: DatasetName, name: str, /, *, service: ServiceChoice = SERVICE) -> None:
    """End a savepoint: its version is kept no longer than the history says.

    Example: `headwater savepoints delete orders before-import`

    Parameters
    ----------
    name
        The name of the savepoint.
    """
    with service.client() as client:
        client.delete_savepoint(dataset, name)
    print(f"Savepoint {name} is deleted.")


def delete_tag(dataset: DatasetName, name: str, /, *, service: ServiceChoice = SERVICE) -> None:
    """End a tag: its version is kept no longer than the history says.

    Example: `headwater tags delete orders q3`

    Parameters
    ----------
    name
        The name of the tag.
    """
    with service.client() as client:
        client.delete_tag(dataset, name)
    print(f"Tag {name} is deleted.")


def _seconds(days: int | None) -> int | None:
    return None if days is None else days * 86_400


def _counts(rows: RowCounts) -> str | None:
    signs = (("+", rows.inserted), ("~", rows.updated), ("-", rows.deleted))
    return " ".join(f"{sign}{number:,}" for sign, number in signs if number) or None


def _error(entry: Instant) -> str | None:
    return None if entry.error is None else str(entry.error.get("title"))


_LOG: Final[Sequence[TableColumn[Instant]]] = (
    TableColumn("VERSION", lambda each: each.version),
    TableColumn("REQUESTED", lambda each: each.requested_at),
    TableColumn("ACTION", lambda each: each.action),
    TableColumn("OPERATION", lambda each: each.operation),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("ROWS", lambda each: _counts(each.rows)),
    TableColumn("ADDED", lambda each: Bytes(each.bytes_added)),
    TableColumn("BY", lambda each: each.actor_name or each.actor),
    TableColumn(
        "METADATA", lambda each: " ".join(f"{key}:{value}" for key, value in each.metadata.items()) or None
    ),
    TableColumn("ERROR", _error),
)
_NAMED: Final[Sequence[TableColumn[NamedVersion]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("VERSION", lambda each: each.version),
    TableColumn("AUTOMATIC", lambda each: each.automatic),
    TableColumn("CREATED", lambda each: each.created_at),
    TableColumn("EXPIRES", lambda each: each.expires_at),
)
