"""What the manifests and plans of a table are rendered from, beside its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

import msgspec

from app.core.catalog.values import Dataset
from app.core.timeline.values import ValidFile
from app.features.objects.ports import ServedTable
from app.features.objects.service.published_files import FilePublication, ServedFiles, below_data
from app.features.objects.values import table_location
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, DeletionVector
from app.kernel.iceberg.manifests import DataEntry, ManifestForm
from app.kernel.iceberg.omitted_columns import without_columns

DELETES_SEGMENT: Final = "deletes"
"""The first segment of the paths of deleted rows below the location of a table."""
FORMAT_VERSIONS: Final = {"v3": 3, "v2": 2}
"""The version of Iceberg's format of each variant."""
_SUFFIXES: Final = {"v3": ".puffin", "v2": ".parquet"}
# Part of each digest: increment it when the same input is rendered as other bytes.
_EDITION: Final = 1


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """A table in one variant, as it is rendered at this time: under its newest schema, whichever version is read."""

    dataset: Dataset
    variant: str
    files: ServedFiles
    names: Mapping[str, int]
    """The versions of savepoints and tags."""

    @property
    def omit(self) -> frozenset[int]:
        """The ids of fields that the table is published without."""
        return self.files.unreadable

    @cached_property
    def definition(self) -> DatasetDefinition:
        """The dataset as it is published."""
        whole = self.dataset.definition
        return without_columns(whole, self.omit) if self.omit else whole

    @cached_property
    def manifests(self) -> ManifestForm:
        """What its manifests have in common."""
        return ManifestForm(
            definition=self.definition,
            schemas=self.files.schemas,
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
            sorted(self.omit),
            sorted(self.files.visible),
            definition.partition_by,
            definition.record_key,
            definition.ordering_field,
            [self.files.schemas[number] for number in sorted(self.files.schemas)],
        )
        return blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()

    def data_path(self, file: DataFile) -> str:
        """The address of a data file."""
        return f"{self.location}/{self.files.path(file)}"

    def delete_path(self, file: DataFile) -> str:
        """The address of the deleted rows of a data file."""
        name = f"{file.added_version}/{below_data(file.path)}{_SUFFIXES[self.variant]}"
        return f"{self.location}/{DELETES_SEGMENT}/{name}"

    def data_entry(self, file: DataFile) -> DataEntry:
        """The entry of a data file."""
        return DataEntry(
            path=self.data_path(file),
            size_bytes=self.files.size_bytes(file),
            row_count=file.row_count,
            partition_path=file.slot.partition_path,
            schema_id=file.schema_id,
            statistics=file.statistics,
            written_version=file.written_version or 0,
        )


def is_open(table: ServedTable) -> bool:
    """Whether the table is rendered as one of Iceberg: for who sees all of it, in a variant that engines load."""
    return table.variant in FORMAT_VERSIONS and not table.access.restricted


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

    def of(self, dataset: Dataset, variant: str) -> TableForm:
        """Raises NotFound (dataset gone)."""
        publication = self.publication.of(dataset)
        return TableForm(dataset=dataset, variant=variant, files=publication.files, names=publication.names)
