"""Manifests and manifest lists: Avro files that are functions of their arguments.

A manifest may be listed by many snapshots. Its `version` is the last one that changed what it lists: entries of that
version are added, those of earlier ones exist. Its entries state their own snapshots and sequence numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.schema.schema import Schema
from app.kernel.iceberg.avro import (
    ABSENT,
    FALSE,
    PRESENT,
    TRUE,
    array_bytes,
    avro_file,
    counted,
    json_text,
    long_bytes,
    optional_long,
    optional_text,
    text_bytes,
)
from app.kernel.iceberg.bounds import (
    NO_METRICS,
    MeasuredFile,
    bounded_fields,
    encoded_metrics,
    minimal_bytes,
)
from app.kernel.iceberg.manifest_schemas import entry_schema, fixed_bytes, list_schema
from app.kernel.iceberg.partition_specs import (
    UNPARTITIONED_ID,
    PartitionColumn,
    PartitionValue,
    partition_columns,
    spec_of,
    values_of,
)
from app.kernel.iceberg.schemas import iceberg_schema

DATA: Final = 0
DELETES: Final = 1
DELETE_PATH_ID: Final = 2_147_483_546
"""The id of the column of a position-delete file that has the paths of data files."""
DELETION_VECTOR_OFFSET: Final = 4
_STATUS: Final = {True: long_bytes(1), False: long_bytes(0)}
_CONTENTS: Final = {DATA: "data", DELETES: "deletes"}
_WIDTHS: Final = {"int": 4, "date": 4, "long": 8, "timestamp": 8, "timestamptz": 8}


class DataEntry(MeasuredFile, frozen=True, kw_only=True):
    """A data file. `path` is its whole address, `written_version` the version of the commit that wrote it."""

    path: str
    size_bytes: int
    partition_path: str
    written_version: int
    first_row_id: int | None = None

    @property
    def since(self) -> int:
        """The version that it is an entry since."""
        return self.written_version


class DeleteEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The deleted rows of a data file, in a file of their own.

    `data_path`: the whole address of the data file. `partition_path`: of the data file. `vector_bytes`: the size of
    the blob of a deletion vector in a Puffin file; None for a Parquet file of positions.
    """

    path: str
    size_bytes: int
    data_path: str
    partition_path: str
    cardinality: int
    added_version: int
    vector_bytes: int | None = None

    @property
    def row_count(self) -> int:
        """The number of deleted rows."""
        return self.cardinality

    @property
    def since(self) -> int:
        """The version that it is an entry since."""
        return self.added_version


_Entry = TypeVar("_Entry", DataEntry, DeleteEntry)


class ManifestForm(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifests of a table have in common.

    `definition`: with the newest schema. `schemas`: all that files were written under, by id. `omit`: the ids of fields
    that the table is published without.
    """

    definition: DatasetDefinition
    schemas: Mapping[int, Schema]
    format_version: int
    omit: frozenset[int] = frozenset()

    def columns(self, spec_id: int) -> tuple[PartitionColumn, ...]:
        """The fields of one of the table's specs."""
        return () if spec_id == UNPARTITIONED_ID else partition_columns(self.definition)


class PartitionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the partitions of a manifest's entries have in one field of the spec; bounds in Iceberg's binary form."""

    contains_null: bool
    lower: bytes | None
    upper: bytes | None


class ManifestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest list states of a manifest, beside its path."""

    size_bytes: int
    spec_id: int
    content: int
    version: int
    least_version: int
    added_files: int
    added_rows: int
    existing_files: int
    existing_rows: int
    partitions: tuple[PartitionSummary, ...]


class RenderedManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest: its bytes, and what a list states of it."""

    content: bytes
    facts: ManifestFacts


def by_spec(form: ManifestForm, entries: Iterable[_Entry]) -> dict[int, list[_Entry]]:
    """The entries by the id of the partition spec of the manifest that lists them, in the same order.

    A manifest has one spec. Files whose partition has no values under the spec with fields are in the one without.
    """
    columns = partition_columns(form.definition)
    spec_id = spec_of(columns)["spec-id"]
    ids = dict[str, int]()
    groups: dict[int, list[_Entry]] = {}
    for entry in entries:
        path = entry.partition_path
        if path not in ids:
            ids[path] = UNPARTITIONED_ID if values_of(columns, path) is None else spec_id
        groups.setdefault(ids[path], []).append(entry)
    return groups


def data_manifest(
    form: ManifestForm, entries: Sequence[DataEntry], version: int, spec_id: int
) -> RenderedManifest:
    """A manifest of data files. `version`: see above. Raises ValueError for an entry without values under the spec."""
    metrics = encoded_metrics(
        entries, form.definition.schema, form.schemas, bounded_fields(form.definition) - form.omit
    )
    tails = [
        b"".join([each, ABSENT * 4, _row_id(entry, form.format_version), _NO_VECTOR[form.format_version]])
        for entry, each in zip(entries, metrics, strict=True)
    ]
    heads = [
        b"".join(
            [
                _identity(entry.written_version, version),
                long_bytes(DATA),
                text_bytes(entry.path),
                _PARQUET,
            ]
        )
        for entry in entries
    ]
    return _manifest(form, entries, (heads, tails), version, spec_id, DATA)


_PARQUET: Final = text_bytes("PARQUET")
_PUFFIN: Final = text_bytes("PUFFIN")
# The fields from `referenced_data_file` on.
_NO_VECTOR: Final = {2: ABSENT, 3: ABSENT * 3}


def _row_id(entry: DataEntry, format_version: int) -> bytes:
    return b"" if format_version == 2 else optional_long(entry.first_row_id)


def delete_manifest(
    form: ManifestForm, entries: Sequence[DeleteEntry], version: int, spec_id: int
) -> RenderedManifest:
    """A manifest of deletion vectors (format 3) or of files of positions. Raises ValueError as above."""
    heads = [
        b"".join(
            [
                _identity(entry.added_version, version),
                long_bytes(DELETES),
                text_bytes(entry.path),
                _PARQUET if entry.vector_bytes is None else _PUFFIN,
            ]
        )
        for entry in entries
    ]
    tails = [_delete_tail(entry, form.format_version) for entry in entries]
    return _manifest(form, entries, (heads, tails), version, spec_id, DELETES)


def _delete_tail(entry: DeleteEntry, format_version: int) -> bytes:
    parts = [_path_metrics(entry), ABSENT * 4]
    if format_version > 2:
        parts.append(ABSENT)
    parts.append(optional_text(entry.data_path))
    if format_version > 2:
        offset = None if entry.vector_bytes is None else DELETION_VECTOR_OFFSET
        parts.extend([optional_long(offset), optional_long(entry.vector_bytes)])
    return b"".join(parts)


def _path_metrics(entry: DeleteEntry) -> bytes:
    """Bounds of the paths in a file of positions, by which readers find its data file."""
    if entry.vector_bytes is not None:
        return NO_METRICS
    key = long_bytes(DELETE_PATH_ID)
    bound = PRESENT + array_bytes([key + text_bytes(entry.data_path)])
    counts = PRESENT + array_bytes([key + long_bytes(entry.cardinality)])
    nulls = PRESENT + array_bytes([key + long_bytes(0)])
    return b"".join([counts, nulls, ABSENT, bound, bound])


def _identity(since: int, version: int) -> bytes:
    """The fields `status` to `file_sequence_number`."""
    return _STATUS[since == version] + optional_long(since) * 3


def _manifest(
    form: ManifestForm,
    entries: Sequence[DataEntry | DeleteEntry],
    parts: tuple[Sequence[bytes], Sequence[bytes]],
    version: int,
    spec_id: int,
    content: int,
) -> RenderedManifest:
    """`parts`: of each entry, what is before its partition, and what is after its size and the null after it."""
    columns = form.columns(spec_id)
    values = _partitions(columns, entries)
    encoded = {path: _partition(columns, value) for path, value in values.items()}
    records = [
        b"".join(
            [
                head,
                encoded[entry.partition_path],
                long_bytes(entry.row_count),
                long_bytes(entry.size_bytes),
                ABSENT,
                tail,
            ]
        )
        for entry, head, tail in zip(entries, *parts, strict=True)
    ]
    rendered = avro_file(
        entry_schema(columns, form.format_version), _header(form, columns, spec_id, content), records
    )
    facts = _facts(entries, version, len(rendered), spec_id, content, _summaries(columns, values.values()))
    return RenderedManifest(content=rendered, facts=facts)


def _partitions(
    columns: tuple[PartitionColumn, ...], entries: Sequence[DataEntry | DeleteEntry]
) -> dict[str, tuple[PartitionValue, ...]]:
    """The values of the partitions of the entries, by path."""
    values: dict[str, tuple[PartitionValue, ...]] = {}
    for path in {entry.partition_path: None for entry in entries}:
        value = values_of(columns, path) if columns else ()
        if value is None:
            raise ValueError(f"the partition {path!r} has no values under the spec of the manifest")
        values[path] = value
    return values


def _partition(columns: Sequence[PartitionColumn], values: Sequence[PartitionValue]) -> bytes:
    return b"".join(_field_bytes(column.result, value) for column, value in zip(columns, values, strict=True))


def _field_bytes(kind: str, value: PartitionValue) -> bytes:
    """A value of a partition in Avro, of one of Iceberg's types."""
    size = fixed_bytes(kind)
    match value:
        case None:
            return ABSENT
        case bool():
            return PRESENT + (TRUE if value else FALSE)
        case int():
            return PRESENT + (long_bytes(value) if size is None else value.to_bytes(size, "big", signed=True))
        case str():
            return PRESENT + text_bytes(value)
        case bytes():
            return PRESENT + counted(value)


def _header(
    form: ManifestForm, columns: tuple[PartitionColumn, ...], spec_id: int, content: int
) -> dict[str, str]:
    schema = iceberg_schema(form.definition.schema, form.omit)
    return {
        "schema": json_text(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": json_text(spec_of(columns)["fields"]),
        "partition-spec-id": str(spec_id),
        "format-version": str(form.format_version),
        "content": _CONTENTS[content],
    }


def _summaries(
    columns: Sequence[PartitionColumn], values: Collection[tuple[PartitionValue, ...]]
) -> tuple[PartitionSummary, ...]:
    return tuple(
        _summary(column.result, [each[place] for each in values]) for place, column in enumerate(columns)
    )


def _summary(kind: str, values: Sequence[PartitionValue]) -> PartitionSummary:
    # All values have the type of the field, so they are comparable with each other.
    present: list[int] | list[str] = [value for value in values if value is not None]  # type: ignore[assignment]
    return PartitionSummary(
        contains_null=len(present) < len(values),
        lower=_single_value(kind, min(present)) if present else None,
        upper=_single_value(kind, max(present)) if present else None,
    )


def _single_value(kind: str, value: PartitionValue) -> bytes:
    """A value in Iceberg's binary form of one of its types."""
    match value:
        case bool():
            return TRUE if value else FALSE
        case int() if kind in _WIDTHS:
            return value.to_bytes(_WIDTHS[kind], "little", signed=True)
        case int():
            return minimal_bytes(value)
        case str():
            return value.encode()
    return value or b""


def _facts(
    entries: Sequence[DataEntry | DeleteEntry],
    version: int,
    size_bytes: int,
    spec_id: int,
    content: int,
    partitions: tuple[PartitionSummary, ...],
) -> ManifestFacts:
    added = [entry.row_count for entry in entries if entry.since == version]
    rows = sum(entry.row_count for entry in entries)
    return ManifestFacts(
        size_bytes=size_bytes,
        spec_id=spec_id,
        content=content,
        version=version,
        least_version=min((entry.since for entry in entries), default=version),
        added_files=len(added),
        added_rows=sum(added),
        existing_files=len(entries) - len(added),
        existing_rows=rows - sum(added),
        partitions=partitions,
    )


class ListedManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest in a list. `path`: its whole address."""

    path: str
    facts: ManifestFacts


def manifest_list(
    manifests: Sequence[ListedManifest], version: int, parent: int | None, format_version: int
) -> bytes:
    """The manifest list of a snapshot. `parent`: the version before it, None if it is not kept.

    Under format 3 the rows of a snapshot are numbered from 0 in the order of its manifests: a row id is the row's in
    one snapshot, and another snapshot may give it to another row.
    """
    records: list[bytes] = []
    rows = 0
    for manifest in manifests:
        records.append(_listed(manifest, format_version, rows))
        if manifest.facts.content == DATA:
            rows += manifest.facts.added_rows + manifest.facts.existing_rows
    facts = {
        "snapshot-id": str(version),
        "sequence-number": str(version),
        "format-version": str(format_version),
    }
    if parent is not None:
        facts["parent-snapshot-id"] = str(parent)
    if format_version > 2:
        facts["first-row-id"] = "0"
    return avro_file(list_schema(format_version), facts, records)


def _listed(manifest: ListedManifest, format_version: int, first_row: int) -> bytes:
    facts = manifest.facts
    numbers = [
        facts.size_bytes,
        facts.spec_id,
        facts.content,
        facts.version,
        facts.least_version,
        facts.version,
        facts.added_files,
        facts.existing_files,
        0,
        facts.added_rows,
        facts.existing_rows,
        0,
    ]
    parts = [text_bytes(manifest.path), *map(long_bytes, numbers)]
    parts += [PRESENT, array_bytes([_summary_bytes(each) for each in facts.partitions]), ABSENT]
    if format_version > 2:
        parts.append(optional_long(first_row if facts.content == DATA else None))
    return b"".join(parts)


def _summary_bytes(summary: PartitionSummary) -> bytes:
    bounds = [ABSENT if each is None else PRESENT + counted(each) for each in (summary.lower, summary.upper)]
    return b"".join([TRUE if summary.contains_null else FALSE, PRESENT + FALSE, *bounds])
