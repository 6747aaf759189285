"""`headwater ls`, `show`, `create`, `rename` and `delete`: datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from headwater_client.cli.arguments.documents import json_of
from headwater_client.cli.arguments.names import DatasetName, InputFile, Names, Texts
from headwater_client.cli.arguments.schema_text import columns_of
from headwater_client.cli.arguments.write_flags import pair
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.output import OUTPUT, Bytes, Output, TableColumn, print_table
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Dataset, MergeMode, Statistics

_LIST: Final[Sequence[TableColumn[Dataset]]] = (
    TableColumn("NAME", lambda each: each.name),
    TableColumn("KEY", lambda each: ",".join(each.record_key) or None),
    TableColumn("VERSION", lambda each: each.version),
    TableColumn("CHANGES", lambda each: each.next_offset),
    TableColumn("COMMITTED", lambda each: each.committed_at),
    TableColumn("LABELS", lambda each: _labels(each.labels)),
    TableColumn("DESCRIPTION", lambda each: each.description),
)


def list_datasets(*, label: Texts = None, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """List datasets by name.

    Example: `headwater ls --label team:sales`

    Parameters
    ----------
    label
        Only datasets with this label, such as team:sales. May be repeated.
    """
    labels = dict(pair("--label", text) for text in label or ())
    with service.client() as client:
        output.items(client.datasets(labels=labels), _LIST)


def show(dataset: DatasetName, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Print a dataset: its columns, its size, and how far its feed is.

    Example: `headwater show orders`
    """
    with service.client() as client:
        found = client.get_dataset(dataset)
        if not output.is_table():
            output.item(found)
            return
        statistics = client.statistics(found)
    print_table(None, [(name, value) for name, value in _facts(found, statistics) if value is not None])
    print()
    columns = [(each.name, each.type, each.nullable, each.doc) for each in found.schema.fields]
    print_table(("COLUMN", "TYPE", "NULLABLE", "DESCRIPTION"), columns)


def create(
    name: str | None = None,
    /,
    *,
    schema: str | None = None,
    key: Names = None,
    ordering_field: str | None = None,
    merge_mode: MergeMode | None = None,
    partition_by: Names = None,
    description: str | None = None,
    label: Texts = None,
    file: InputFile | None = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Register a dataset, by its columns, or by the JSON body of POST /datasets.

    `headwater write NAME FILE --create` registers a dataset by the columns of a file.

    Example: `headwater create orders --schema id:int64,state:string,at:timestamp --key id --ordering-field at`

    Example: `headwater create --file orders.json`

    Parameters
    ----------
    name
        The name.
    schema
        The columns, such as id:int64,price:decimal(9,2).
    key
        The fields that identify a row, such as id; without them the dataset is append-only.
    ordering_field
        Of two rows with one key, the one with the larger value of this field wins.
    merge_mode
        What happens to rows with one key. By default a row replaces the one before as a whole; with partial, columns
        that are null or missing in a row keep their values.
    partition_by
        The partition fields, such as day or `bucket(16, id)`.
    description
        What the dataset is for.
    label
        A label, such as team:sales. May be repeated.
    file
        A file with the JSON body, to which the other flags are added; - reads the standard input.
    """
    body: dict[str, Any] = {} if file is None else json_of(file)
    if name is not None:
        body["name"] = name
    if schema is not None:
        body["schema"] = {"fields": columns_of(schema)}
    chosen = {
        "record_key": key,
        "ordering_field": ordering_field,
        "merge_mode": merge_mode,
        "partition_by": partition_by,
        "description": description,
        "labels": None if label is None else dict(pair("--label", text) for text in label),
    }
    body |= {member: value for member, value in chosen.items() if value is not None}
    if "name" not in body or "schema" not in body:
        raise CommandError("a dataset needs a name, and --schema or --file", ExitCode.USAGE)
    with service.client() as client:
        answer = client.request(
            "POST",
            "/datasets",
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode(body),
        )
    made = msgspec.json.decode(answer.content, type=Dataset)
    output.done(f"Dataset {made.name} has the id {made.id}.", made)


def rename(
    dataset: DatasetName, to: str, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Give a dataset another name. It keeps its id.

    Example: `headwater rename orders orders_2026`

    Parameters
    ----------
    to
        The new name.
    """
    with service.client() as client:
        found = client.rename_dataset(dataset, to)
    output.done(f"The dataset is called {found.name}.", found)


def delete(
    dataset: DatasetName,
    /,
    *,
    confirm: Annotated[str, Parameter()],
    service: ServiceChoice = SERVICE,
) -> None:
    """Delete a dataset with its rows and its feed.

    Example: `headwater delete orders --confirm orders`

    Parameters
    ----------
    confirm
        The same, once more.
    """
    if confirm != dataset:
        raise CommandError(f"--confirm must be {dataset}", ExitCode.USAGE)
    with service.client() as client:
        client.delete_dataset(dataset)
    print(f"Dataset {dataset} is deleted.")


def _facts(found: Dataset, statistics: Statistics) -> list[tuple[str, object]]:
    return [
        ("name", found.name),
        ("id", found.id),
        ("description", found.description),
        ("labels", _labels(found.labels)),
        ("key", ",".join(found.record_key) or None),
        ("ordering field", found.ordering_field),
        ("partitioned by", ",".join(found.partition_by) or None),
        ("table type", found.table_type),
        ("merge mode", found.merge_mode),
        ("version", found.version),
        ("committed", found.committed_at),
        ("rows", statistics.rows.live if statistics.rows.exact else f"about {statistics.rows.live:,}"),
        ("size", Bytes(statistics.size_bytes.base + statistics.size_bytes.logs)),
        ("deleted rows", statistics.rows.deleted),
        ("files", _files(statistics)),
        ("partitions", statistics.partitions),
        ("changes", statistics.changelog.changes),
        ("feed", f"{found.earliest_offset} to {found.next_offset}"),
        ("consumers", statistics.consumers.count),
        ("jobs", f"{statistics.jobs.running} running, {statistics.jobs.queued} queued"),
    ]


def _files(statistics: Statistics) -> str:
    files = statistics.files
    return f"{files.base:,} base files ({files.small:,} small), {files.logs:,} logs, {files.postponed:,} postponed"


def _labels(labels: dict[str, str]) -> str | None:
    return " ".join(f"{key}:{value}" for key, value in labels.items()) or None
