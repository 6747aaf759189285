"""The metadata document of a table, rendered once for each state of the table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from app.core.catalog.values import Dataset
from app.core.timeline.repository.pending_writes import PendingWriteStore
from app.core.timeline.values import PendingWrites, keeps_pending
from app.features.iceberg.errors import TableNotCarried
from app.features.iceberg.repository.table_versions import TableVersionStore
from app.features.iceberg.service.manifests import METADATA_SEGMENT, list_name, parent_of
from app.features.iceberg.service.response_pieces import Piece
from app.features.iceberg.service.table_form import TableForm, TableForms
from app.features.iceberg.values import KeptVersion, SnapshotSelection
from app.features.objects.ports import ServedTable
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.instant import Action, RowCounts
from app.kernel.format.schema.schema import Schema
from app.kernel.iceberg.schemas import UncarriedColumn, unreadable_columns
from app.kernel.iceberg.table_metadata import (
    IcebergSnapshot,
    SnapshotVersion,
    TableVersions,
    iceberg_snapshot,
    table_metadata,
)

SNAPSHOTS_MAX: Final = 1_000
"""The latest versions that a table has as snapshots unless a client requests all of them."""
_DIGEST_CHARACTERS: Final = 16
_NAME: Final = re.compile(r"v(\d{1,18})-(\d{1,18})-([0-9a-f]{16})([0-9a-f]{16})\.metadata\.json", re.ASCII)
_OMITTED: Final = (
    "files of an earlier release have the values as unsigned integers of 32 bits, which engines refuse. The columns "
    "come back after `POST /datasets/{dataset}/clusterings`, once the versions before it have expired"
)
# About what a snapshot takes in memory.
_SNAPSHOT_BYTES: Final = 1_500


class DocumentName(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a metadata document below `metadata/`, with what it is rendered from again after later commits and
    cleans.

    `state`: a digest of all that it is rendered from, which is known before it is rendered; `digest`: of its text.
    """

    version: int
    earliest_version: int
    state: str
    digest: str

    def __str__(self) -> str:
        return f"v{self.version}-{self.earliest_version}-{self.state}{self.digest}.metadata.json"


def document_name(text: str) -> DocumentName | None:
    """The name of a document; None for a text of another form."""
    parts = _NAME.fullmatch(text)
    if parts is None:
        return None
    return DocumentName(
        version=int(parts[1]), earliest_version=int(parts[2]), state=parts[3], digest=parts[4]
    )


class RenderedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A metadata document. `first_version`: the first that it has as a snapshot, beside those with a name."""

    metadata: Piece
    name: DocumentName
    first_version: int

    @property
    def metadata_path(self) -> str:
        """The path of the document below the location of the table."""
        return f"{METADATA_SEGMENT}/{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedTables:
    """Renders the metadata of tables.

    `documents`: by all that a document depends on. `snapshots`: by number, those of a table that were rendered last, by
    its id and the digest of its form. They never change, so a commit adds one.
    """

    versions: TableVersionStore
    pending_writes: PendingWriteStore
    forms: TableForms
    documents: ByteCache[tuple[object, ...], RenderedTable]
    snapshots: ByteCache[tuple[str, str], Mapping[int, IcebergSnapshot]]

    def render(self, table: ServedTable, selection: SnapshotSelection) -> RenderedTable:
        """The metadata of the table at the head that its dataset has.

        Raises TableNotCarried for a table that no client could read, GrantNotApplicable, NotFound.
        """
        return self._rendered(_State.of(self.forms.of(table), selection))

    def named(self, table: ServedTable, name: DocumentName) -> RenderedTable | None:
        """The document with a name. Nothing is rendered for a name that no document has.

        None if it is not there any more: the table is rendered in another way since, its names have changed and the
        document is not cached, or one of its versions has expired and files of it are gone.
        """
        dataset, form = table.dataset, self.forms.of(table)
        document = self.documents.get(_by_name(form, name))
        if document is None:
            then = structs.replace(dataset, version=name.version, earliest_version=name.earliest_version)
            form = replace(form, dataset=then)
            states = (_State.of(form, selection) for selection in SnapshotSelection)
            state = next((each for each in states if each.digest == name.state), None)
            document = None if state is None else self._rendered(state)
        if document is None or document.name != name:
            return None
        if document.first_version >= dataset.earliest_version:
            return document
        is_complete = self.versions.has_files_since(dataset.tenant_id, dataset.id, document.first_version)
        return document if is_complete else None

    def _rendered(self, state: _State) -> RenderedTable:
        table = self.documents.get(state.key)
        if table is None:
            first_version = _span(state.form.dataset, state.selection).start
            table = _document(self._table(state.form, state.selection), state, first_version)
            self.documents.put(state.key, table, len(table.metadata.text) + len(table.metadata.deflated))
            self.documents.put(_by_name(state.form, table.name), table, 0)
        return table

    def _table(self, form: TableForm, selection: SnapshotSelection) -> TableVersions:
        dataset, names = form.dataset, _names(form)
        schemas = [form.schemas[number] for number in sorted(form.schemas)]
        self._check_carried(form, schemas)
        pending = self.pending_writes.of(dataset)
        snapshots = self._snapshots(form, _span(dataset, selection), names.values(), pending)
        schema_ids = {each.schema_id for each in snapshots}
        return TableVersions(
            format_version=form.manifests.format_version,
            table_id=dataset.id,
            location=form.location,
            created_at=dataset.created_at,
            definition=form.definition,
            schemas=[schema for schema in schemas if schema.id in schema_ids],
            snapshots=snapshots,
            refs=names,
            properties={
                "headwater.dataset": dataset.definition.name,
                **_omission(form),
                **pending.properties(dataset.version),
            },
            omit=form.omit,
        )

    def _snapshots(
        self, form: TableForm, span: range, others: Collection[int], pending: PendingWrites
    ) -> list[IcebergSnapshot]:
        """The snapshots of the span, and of other versions, in order."""
        dataset, key = form.dataset, (form.dataset.id, form.digest)
        earlier = self.snapshots.get(key) or {}
        missing = [version for version in span if version not in earlier]
        rest = [version for version in others if version not in earlier]
        fresh = dict[int, IcebergSnapshot]()
        if missing or rest:
            fresh_span = range(missing[0], missing[-1] + 1) if missing else range(0)
            versions = self.versions.versions(dataset.tenant_id, dataset.id, fresh_span, rest)
            # The access cannot be applied to versions of other schemas.
            fresh = _by_version(form, [each for each in versions if each.schema_id in form.schemas], pending)
        every = {
            number: snapshot
            for number in sorted({*span, *others})
            if (snapshot := earlier.get(number) or fresh.get(number)) is not None
        }
        if fresh:
            self.snapshots.put(key, every, _SNAPSHOT_BYTES * len(every))
        return list(every.values())

    def _check_carried(self, form: TableForm, schemas: Sequence[Schema]) -> None:
        """Raises TableNotCarried for a column that clients cannot read of files which are there still. Files that are
        rendered for a part have the types of their versions.
        """
        if form.in_part:
            return
        dataset, current = form.dataset, form.definition.schema
        columns = {schema.id: list(unreadable_columns(schema, current)) for schema in schemas}
        earlier = {number: names for number, names in columns.items() if names}
        if earlier and self.versions.has_files_of(dataset.tenant_id, dataset.id, list(earlier)):
            column = next(iter(earlier.values()))[0]
            raise TableNotCarried(
                f"column {column!r} was widened from a whole number to a real one, which Iceberg cannot read of "
                "files that are older: rewrite them with `POST /datasets/{dataset}/clusterings`, in any order",
                column=column,
                dataset=dataset.definition.name,
            )


def _names(form: TableForm) -> dict[str, int]:
    """The versions with a name, up to that of the table."""
    return {name: version for name, version in form.names.items() if 0 < version <= form.dataset.version}


class _State(NamedTuple):
    """All that a document depends on."""

    form: TableForm
    selection: SnapshotSelection
    key: tuple[object, ...]

    @classmethod
    def of(cls, form: TableForm, selection: SnapshotSelection) -> _State:
        """That of a table."""
        dataset = form.dataset
        key = (
            dataset.tenant_id,
            dataset.id,
            dataset.definition.name,
            dataset.version,
            dataset.earliest_version,
            form.digest,
            selection,
            tuple(_names(form).items()),
        )
        return cls(form, selection, key)

    @property
    def digest(self) -> str:
        """A digest of it."""
        return hashlib.sha256(msgspec.json.encode(self.key)).hexdigest()[:_DIGEST_CHARACTERS]


def _omission(form: TableForm) -> dict[str, str]:
    """The columns that are left out, and what brings them back."""
    names = [field.name for field in form.dataset.definition.schema.fields if field.id in form.omit]
    if not names:
        return {}
    return {"headwater.omitted": ", ".join(names), "headwater.omitted-reason": _OMITTED}


def _by_name(form: TableForm, name: DocumentName) -> tuple[object, ...]:
    """The key of a document, which is found as long as the table is rendered in the same way."""
    return form.dataset.tenant_id, form.location, form.digest, name


def _span(dataset: Dataset, selection: SnapshotSelection) -> range:
    """The versions to list beside those with a name."""
    count = {SnapshotSelection.REFS: 1, SnapshotSelection.LATEST: SNAPSHOTS_MAX}.get(
        selection, dataset.version
    )
    first = max(1, dataset.earliest_version, dataset.version - count + 1)
    return range(first, dataset.version + 1)


def _by_version(
    form: TableForm, versions: Sequence[KeptVersion], pending: PendingWrites
) -> dict[int, IcebergSnapshot]:
    """Versions as snapshots. The parent of one is the version before it, also where that is not kept any more."""
    folder = f"{form.location}/{METADATA_SEGMENT}"
    return {
        each.version: iceberg_snapshot(
            _snapshot(each, form, f"{folder}/{list_name(form, each.version)}", pending),
            parent_of(each.version),
            form.manifests.format_version,
        )
        for each in versions
    }


def _snapshot(
    version: KeptVersion, form: TableForm, manifest_list: str, pending: PendingWrites
) -> SnapshotVersion:
    return SnapshotVersion(
        version=version.version,
        committed_at=version.committed_at,
        schema_id=version.schema_id,
        manifest_list=manifest_list,
        operation="overwrite" if form.in_part else _operation(version, form.dataset.definition),
        summary={
            **({} if form.in_part else _summary(version)),
            **pending.properties(version.version),
        },
    )


def _summary(version: KeptVersion) -> dict[str, str | int]:
    """What the commit of a version did, to all rows and files: nothing for who sees a part."""
    return {
        "added-data-files": version.files_added,
        "deleted-data-files": version.files_removed,
        "added-files-size": version.bytes_added,
        "removed-files-size": version.bytes_removed,
        "headwater.action": version.action.value,
        **_counts(version.counts),
    }


def _counts(counts: RowCounts) -> dict[str, int]:
    return {
        f"headwater.rows-{name}": count
        for name, count in (
            ("inserted", counts.inserted),
            ("updated", counts.updated),
            ("deleted", counts.deleted),
        )
        if count
    }


def _operation(version: KeptVersion, definition: DatasetDefinition) -> str:
    """Iceberg's word for what a version does. Readers of appends skip `replace`, so it changes no row for sure."""
    counts = version.counts
    match version.action:
        case Action.COMPACTION | Action.CLUSTERING:
            return "overwrite" if keeps_pending(definition) else "replace"
        case Action.SCHEMA:
            return "append"
        case Action.COMMIT if not counts.updated and not counts.deleted and not version.files_removed:
            return "append"
        case Action.COMMIT if not counts.updated and not counts.inserted:
            return "delete"
    return "overwrite"


def _document(table: TableVersions, state: _State, first_version: int) -> RenderedTable:
    try:
        text = msgspec.json.encode(table_metadata(table))
    except UncarriedColumn as error:
        raise TableNotCarried(str(error), column=error.column) from None
    digest = hashlib.sha256(text).hexdigest()[:_DIGEST_CHARACTERS]
    dataset = state.form.dataset
    name = DocumentName(
        version=dataset.version,
        earliest_version=dataset.earliest_version,
        state=state.digest,
        digest=digest,
    )
    return RenderedTable(metadata=Piece.of(text), name=name, first_version=first_version)
