"""What the manifests and plans of a table are rendered from, beside its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.timeline.values import ValidFile
from app.features.objects.ports import ServedTable
from app.features.objects.service.published_files import FilePublication, ServedFiles, below_data
from app.features.objects.values import table_location
from app.features.rendered_files.values import RenderedFile
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import GrantNotApplicable
from app.kernel.format.file_group import DataFile, DeletionVector
from app.kernel.format.partition.fields import parse_partition
from app.kernel.format.schema.schema import Schema
from app.kernel.iceberg.manifests import DataEntry, ManifestForm
from app.kernel.iceberg.omitted_columns import without_columns
from app.kernel.sql.conditions.bound_access import BoundAccess, bind_access
from app.kernel.sql.conditions.row_access import RowAccess, access_digest

DELETES_SEGMENT: Final = "deletes"
"""The first segment of the paths of deleted rows below the location of a table."""
FORMAT_VERSIONS: Final = {"v3": 3, "v2": 2}
"""The version of Iceberg's format of each variant."""
CACHE_SECONDS: Final = 600.0
"""For how long what is rendered is used: values of files that are gone since are in no response for longer."""
_SUFFIXES: Final = {"v3": ".puffin", "v2": ".parquet"}
# Part of each digest: increment it when the same input is rendered as other bytes.
_EDITION: Final = 1


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """A table in one variant, as it is rendered at this time for who has an access to it: under its newest schema,
    whichever version is read.

    Who sees a part of the dataset gets other files: those of `VisibleFiles`. What else is different is decided here.
    """

    dataset: Dataset
    variant: str
    access: RowAccess
    files: ServedFiles
    names: Mapping[str, int]
    """The versions of savepoints and tags."""

    @property
    def in_part(self) -> bool:
        """Whether rows or values are hidden."""
        return self.access.restricted

    @property
    def omit(self) -> frozenset[int]:
        """The ids of fields that the table is published without."""
        return frozenset() if self.in_part else self.files.unreadable

    @cached_property
    def schemas(self) -> Mapping[int, Schema]:
        """The schemas by id. In part: those that the access fits, whose masked columns are nullable."""
        schemas = self.files.schemas
        return _visible_schemas(self.access, self.dataset, schemas) if self.in_part else schemas

    @cached_property
    def definition(self) -> DatasetDefinition:
        """The dataset as it is published. Raises GrantNotApplicable."""
        whole = self.dataset.definition
        if self.in_part:
            return self.visible_definition(whole)
        return without_columns(whole, self.omit) if self.omit else whole

    @cached_property
    def manifests(self) -> ManifestForm:
        """What its manifests have in common."""
        return ManifestForm(
            definition=self.definition,
            schemas=self.schemas,
            format_version=FORMAT_VERSIONS[self.variant],
            omit=self.omit,
        )

    @property
    def location(self) -> str:
        """The address of the table, without a trailing slash."""
        return table_location(self.dataset.id, self.variant)

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits: tables with equal digests render equal files as equal bytes."""
        definition = self.dataset.definition
        parts = (
            _EDITION,
            self.location,
            access_digest(self.access).hex(),
            sorted(self.omit),
            [] if self.in_part else sorted(self.files.visible),
            definition.partition_by,
            definition.record_key,
            definition.ordering_field,
            [self.files.schemas[number] for number in sorted(self.files.schemas)],
        )
        return blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()

    def bound(self, schema: Schema) -> BoundAccess:
        """The access to rows of a schema. Raises GrantNotApplicable."""
        return bind_access(self.access, self.dataset.definition.schema, schema)

    def visible_definition(self, definition: DatasetDefinition) -> DatasetDefinition:
        """The dataset under one of its schemas, as the access shows it: masked columns are nullable, and determine no
        partitions. Raises GrantNotApplicable.
        """
        bound = self.bound(definition.schema)
        partition_by = [
            entry for entry in definition.partition_by if not bound.hides_any(parse_partition(entry).path[:1])
        ]
        schema = _visible_schema(definition.schema, bound)
        return replace(definition, schema=schema, partition_by=tuple(partition_by))

    def visible_file(self, rendered: RenderedFile) -> DataFile:
        """A rendered file as the file of a version. Its path is below the location of the table, and it is a file group
        of its own: nothing of it is of hidden rows or columns.
        """
        return replace(
            rendered.source,
            path=rendered.path,
            file_group=rendered.path,
            slot=replace(rendered.source.slot, partition_path=self._visible_partition(rendered.source)),
            size_bytes=rendered.size_bytes,
            row_count=rendered.row_count,
            statistics=rendered.statistics,
            schema_id=rendered.schema_id,
            deletion_vector=None,
            index_file=None,
        )

    def _visible_partition(self, file: DataFile) -> str:
        """The path of the partition without the values of masked columns. Empty if the file is of no one partition."""
        segments = file.slot.partition_path.split("/")
        entries, visible = self.dataset.definition.partition_by, set(self.definition.partition_by)
        if len(segments) != len(entries):
            return ""
        return "/".join(segment for segment, entry in zip(segments, entries, strict=True) if entry in visible)

    def data_path(self, file: DataFile) -> str:
        """The address of a data file."""
        return f"{self.location}/{file.path if self.in_part else self.files.path(file)}"

    def size_bytes(self, file: DataFile) -> int:
        """The exact size of a data file."""
        return file.size_bytes if self.in_part else self.files.size_bytes(file)

    def delete_path(self, file: DataFile) -> str:
        """The address of the deleted rows of a data file."""
        name = f"{file.added_version}/{below_data(file.path)}{_SUFFIXES[self.variant]}"
        return f"{self.location}/{DELETES_SEGMENT}/{name}"

    def data_entry(self, file: DataFile) -> DataEntry:
        """The entry of a data file."""
        return DataEntry(
            path=self.data_path(file),
            size_bytes=self.size_bytes(file),
            row_count=file.row_count,
            partition_path=file.slot.partition_path,
            schema_id=file.schema_id,
            statistics=file.statistics,
            written_version=file.written_version or 0,
        )


def _visible_schemas(access: RowAccess, dataset: Dataset, schemas: Mapping[int, Schema]) -> dict[int, Schema]:
    """Those that the access fits, with nullable masked columns: versions of other schemas cannot be read."""
    visible: dict[int, Schema] = {}
    for number, schema in schemas.items():
        try:
            bound = bind_access(access, dataset.definition.schema, schema)
        except GrantNotApplicable:
            continue
        visible[number] = _visible_schema(schema, bound)
    return visible


def _visible_schema(schema: Schema, bound: BoundAccess) -> Schema:
    fields = [replace(each, nullable=True) if each.name in bound.masked else each for each in schema.fields]
    return replace(schema, fields=tuple(fields))


def stored_suffix(variant: str) -> str:
    """What the paths of deleted rows end with, behind that of the data file."""
    return _SUFFIXES[variant]


def vector_of(file: DataFile) -> DeletionVector:
    """The deletion vector of a file that has one."""
    assert file.deletion_vector is not None
    return file.deletion_vector


def has_vector(valid: ValidFile) -> bool:
    """Whether the file has deleted rows."""
    return valid.file.deletion_vector is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableForms:
    """The forms of tables at this time."""

    publication: FilePublication

    def of(self, table: ServedTable) -> TableForm:
        """Raises NotFound (dataset gone, or a variant that is no table of Iceberg), GrantNotApplicable."""
        if table.variant not in FORMAT_VERSIONS:
            raise NotFound(f"the variant {table.variant!r} is no table of Iceberg")
        dataset = table.dataset
        publication = self.publication.of(dataset)
        form = TableForm(
            dataset=dataset,
            variant=table.variant,
            access=table.access,
            files=publication.files,
            names=publication.names,
        )
        form.bound(dataset.definition.schema)
        return form
