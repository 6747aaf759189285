"""The form in which a reader gets a table: the format of the response, and the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.access.tenants.values import Principal
from app.core.timeline.ports import VersionReader
from app.core.timeline.repository.pending_writes import PendingWriteStore
from app.core.timeline.service.version_definition import definition_at
from app.features.objects.service.published_files import FilePublication, ServedFiles
from app.features.sharing.values import DeletedRows, SharedTable
from app.kernel.delta.actions import ZONELESS_FEATURE, ResponseFormat, TableFormat, reader_features
from app.kernel.delta.schemas import by_name, has_uuid, has_zoneless_times, without_columns
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bound_access import BoundAccess, bind_access

CAPABILITIES: str = "delta-sharing-capabilities"
"""The header with what a reader can read."""


class ReaderCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader can read. `formats`: of responses. `features`: of the format `delta`, in lower case; None for a
    reader that does not say.
    """

    formats: frozenset[ResponseFormat]
    features: frozenset[str] | None = None

    @classmethod
    def of(cls, text: str) -> ReaderCapabilities:
        """Those of a header. Without one, a reader reads the format `parquet`. Raises InvalidRequest."""
        parts = (part.partition("=") for part in text.lower().split(";"))
        values = {name.strip(): {each.strip() for each in rest.split(",")} for name, _, rest in parts}
        formats = frozenset(each for each in ResponseFormat if each.value in values.get("responseformat", ()))
        if "responseformat" in values and not formats:
            detail = "expected responseformat=parquet, responseformat=delta, or both"
            raise InvalidRequest.of_member(CAPABILITIES, detail)
        features = values.get("readerfeatures")
        return cls(
            formats=formats or frozenset({ResponseFormat.PARQUET}),
            features=None if features is None else frozenset(features),
        )


class TableRead(msgspec.Struct, frozen=True, kw_only=True):
    """Who reads a table. `url`: the root of the service, for links."""

    principal: Principal
    table: SharedTable
    url: str
    capabilities: ReaderCapabilities


@dataclass(frozen=True, kw_only=True)
class SharedForm:
    """A table at a version, as a reader gets it.

    `definition`: the dataset under the schema of the version. `access`: what the reader sees under that schema.
    `files`: the data files as recipients get them.
    """

    definition: DatasetDefinition
    access: BoundAccess
    files: ServedFiles
    format: TableFormat


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedForms:
    """The forms of tables at this time."""

    publication: FilePublication
    timeline: VersionReader
    pending_writes: PendingWriteStore

    def of(self, read: TableRead, version: int, *, states_version: bool) -> SharedForm:
        """The form of the table's rows at a version. `states_version`: whether the response states it.

        Raises InvalidRequest for a reader that cannot read it, GrantNotApplicable, NotFound (dataset gone).
        """
        table = read.table
        latest = table.dataset.definition
        definition = definition_at(self.timeline, table.dataset, version)
        bound = bind_access(table.access, latest.schema, definition.schema)
        files = self.publication.of(table.dataset, shows_own=False).files
        schemas = tuple(files.schemas[number] for number in sorted(files.schemas))
        has_vectors = table.deleted_rows is DeletedRows.VECTOR and not table.access.restricted
        by_id = not table.access.restricted and not by_name(schemas, latest.schema)
        needs = {"columns were renamed": by_id, "deleted rows are in deletion vectors": has_vectors}
        table_format = _format(read, definition.schema, bound, needs)
        is_delta = table_format.response_format is ResponseFormat.DELTA
        table_format = msgspec.structs.replace(
            table_format,
            by_id=is_delta,
            version=version if states_version else None,
            has_vectors=has_vectors,
            properties=self.pending_writes.of(table.dataset).properties(version),
        )
        if is_delta:
            _check_features(read.capabilities, table_format)
        return SharedForm(definition=definition, access=bound, files=files, format=table_format)

    def of_changes(self, read: TableRead, schema: Schema, first: int) -> TableFormat:
        """The form of the table's changes from a version on. All files have the names of one schema, so columns are
        found by name: readers of changes find them only so.

        Raises InvalidRequest for a reader that cannot read it, GrantNotApplicable.
        """
        bound = bind_access(read.table.access, read.table.dataset.definition.schema, schema)
        table_format = msgspec.structs.replace(_format(read, schema, bound, {}), version=first)
        if table_format.response_format is ResponseFormat.DELTA:
            # The client for Python reads such times in changes, too, and does not say so.
            _check_features(read.capabilities, table_format, ignore=[ZONELESS_FEATURE])
        return table_format


def _format(read: TableRead, schema: Schema, access: BoundAccess, needs: Mapping[str, bool]) -> TableFormat:
    """The columns, and the format of a response. `needs`: see `_chosen_format`. Raises InvalidRequest."""
    times = {"there are times without a zone": has_zoneless_times(schema)}
    response_format = _chosen_format(read.capabilities, {**needs, **times})
    is_delta = response_format is ResponseFormat.DELTA
    omit = [field for field in schema.fields if is_delta and has_uuid(field)]
    return TableFormat(
        response_format=response_format,
        table_id=read.table.dataset.id,
        name=read.table.name,
        schema=without_columns(schema, {field.id for field in omit}),
        nullable=frozenset(field.id for field in schema.fields if field.name in access.masked),
        without=tuple(field.name for field in omit),
    )


def _chosen_format(capabilities: ReaderCapabilities, needs: Mapping[str, bool]) -> ResponseFormat:
    """The format of a response. `needs`: the reasons for `delta`, and whether they hold. Raises InvalidRequest."""
    reasons = [reason for reason, holds in needs.items() if holds]
    if ResponseFormat.DELTA in capabilities.formats and (
        reasons or ResponseFormat.PARQUET not in capabilities.formats
    ):
        return ResponseFormat.DELTA
    if reasons:
        detail = (
            f"expected responseformat=delta (use_delta_format=True in Python), since {', '.join(reasons)}"
        )
        raise InvalidRequest.of_member(CAPABILITIES, detail, "the table cannot be read in the format parquet")
    return ResponseFormat.PARQUET


def _check_features(capabilities: ReaderCapabilities, table: TableFormat, ignore: Sequence[str] = ()) -> None:
    """Raises InvalidRequest if the reader says what it can read, and does not name what it needs for the table."""
    if capabilities.features is None:
        return
    for name in reader_features(table):
        if name not in ignore and name.lower() not in capabilities.features:
            detail = f"expected readerfeatures with {name}, which the table needs: use a later release of the client"
            raise InvalidRequest.of_member(CAPABILITIES, detail, "the client cannot read the table")
