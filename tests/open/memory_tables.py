"""All that a reader gets of a table in memory of the catalogue: rendered files, and the documents that name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from app.access.errors import NotFound
from app.core.timeline.service.plan_files import FilePlanner
from app.core.timeline.values import PendingWrites
from app.features.iceberg.plans import PlanRequest
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.part_manifests import PartManifests
from app.features.iceberg.service.plans import PlanScans
from app.features.iceberg.service.table_form import TableForms
from app.features.iceberg.service.visible_files import VisibleFiles
from app.features.objects.ports import ServedTable
from app.features.objects.service.published_files import ServedFiles, TablePublication
from app.features.rendered_files.service.tree import RenderedTree
from app.features.sharing.service.table_forms import ReaderCapabilities, SharedForms, TableRead
from app.features.sharing.service.table_queries import FileHints, TableQueries, TableVersion
from app.features.sharing.values import DeletedRows, SharedTable
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.storage import LocalStorage
from app.kernel.format.errors import GrantNotApplicable, HeadwaterError
from app.kernel.sql.conditions.row_access import RowAccess
from tests.open.planted_tables import PlantedTable
from tests.support.rendered_tables import rendered_files_of
from tests.support.versioned_tables import VersionedTable

Part = tuple[str, bytes]
"""What it is, and its bytes."""
LIMITED: Final = "actions of the first rows"
_LIMITED: Final = FileHints(limit=1)
_DELTA: Final = "responseformat=delta;readerfeatures=deletionvectors,columnmapping,timestampntz"
_CONDITIONS: Final[tuple[Any, ...]] = (
    None,
    {"type": "gt", "term": "level", "value": 4},
    {"type": "eq", "term": "note", "value": "Q7"},
    {"type": "lt", "term": "account", "value": 2**62},
)


@dataclass(frozen=True)
class _Publication:
    """All schemas and columns of a table."""

    versioned: VersionedTable

    def of(self, *_: Any, **__: Any) -> TablePublication:
        schemas = {
            each.id: each for each in (*self.versioned.schemas.values(), self.versioned.table.dataset.schema)
        }
        visible = frozenset(field.id for schema in schemas.values() for field in schema.fields)
        return TablePublication(files=ServedFiles(schemas=schemas, visible=visible), names={})


class _Links:
    """Links that have the path only."""

    ends_at = 0

    def signer(self, *_: Any) -> _Links:
        return self

    def link(self, path: str) -> str:
        return f"https://example.org/{path}"


class _AllVersions:
    def check(self, *_: Any) -> None:
        pass


class _NothingWaits:
    """No write waits for a compaction."""

    def of(self, *_: Any) -> PendingWrites:
        return PendingWrites()


class ServedFromMemory:
    """A table, and what serves it."""

    def __init__(self, table: PlantedTable) -> None:
        versioned, storage = table.versioned, table.storage
        assert isinstance(storage, LocalStorage)
        vectors: Any = VectorReader(storage)
        publication: Any = _Publication(versioned)
        planner, timeline = FilePlanner(timeline=versioned), versioned
        rendered = rendered_files_of(versioned, storage, versioned.table.slices)
        self.table = table
        self.dataset = versioned.dataset
        self.tree = RenderedTree(files=rendered)
        self.forms = TableForms(publication=publication)
        visible: Any = VisibleFiles(planner=planner, timeline=timeline, renderer=rendered)  # type: ignore[arg-type]
        self.manifests = PartManifests(files=visible)
        self.plans = PlanScans(
            planner=planner,
            timeline=timeline,  # type: ignore[arg-type]
            forms=self.forms,
            deletes=DeleteFiles(vectors=vectors),
            visible=visible,
        )
        self.queries = TableQueries(
            forms=SharedForms(
                publication=publication,
                timeline=timeline,  # type: ignore[arg-type]
                pending_writes=_NothingWaits(),  # type: ignore[arg-type]
            ),
            timeline=timeline,  # type: ignore[arg-type]
            versions=_AllVersions(),  # type: ignore[arg-type]
            planner=planner,
            rendered_files=rendered,
            vectors=vectors,
            links=_Links(),  # type: ignore[arg-type]
        )

    def parts(self, access: RowAccess, version: int) -> Iterator[Part]:
        """The bytes of a version for a reader, also of what is refused; those of each file once."""
        sent: set[str] = set()
        for warehouse in ("v3", "v2"):
            served = ServedTable(dataset=self.dataset, variant=warehouse, access=access)
            yield from self._of_iceberg(served, version, sent)
        yield from self._of_sharing(access, version)

    def _of_iceberg(self, served: ServedTable, version: int, sent: set[str]) -> Iterator[Part]:
        form = self.forms.of(served)
        yield (
            "schemas",
            msgspec.json.encode([form.digest, form.definition.schema, list(form.schemas.values())]),
        )
        for name, manifest in self.manifests.of(form, version).items():
            yield name, name.encode() + manifest.content + repr(manifest.facts).encode()
            yield name, manifest.content
        for condition in _CONDITIONS:
            try:
                plan = self.plans.plan(served, PlanRequest(snapshot_id=version, filter=condition))
            except HeadwaterError as error:
                yield f"plan {condition}", repr((error.detail, error.facts)).encode()
                continue
            yield f"plan {condition}", msgspec.json.encode(plan)
            for task in plan.file_scan_tasks:
                path = task.data_file.file_path.removeprefix(f"{form.location}/rendered/")
                if path in sent:
                    continue
                sent.add(path)
                content = self.tree.find(served, path)
                data = content.read(0, content.size_bytes)
                assert len(data) == task.data_file.file_size_in_bytes == content.size_bytes
                yield path, data

    def _of_sharing(self, access: RowAccess, version: int) -> Iterator[Part]:
        table = SharedTable(
            share_id="s",
            share="s",
            name="t",
            dataset=self.dataset,
            access=access,
            deleted_rows=DeletedRows.VECTOR,
        )
        read = TableRead(
            principal=None,  # type: ignore[arg-type]
            table=table,
            url="https://example.org",
            capabilities=ReaderCapabilities.of(_DELTA),
        )
        for hints in (FileHints(), FileHints(predicates=("level > 4",)), _LIMITED):
            lines = self.queries.files(read, TableVersion(version=version), hints).lines
            # Which file is the first is decided by its random name.
            name = LIMITED if hints is _LIMITED else f"actions {hints}"
            yield name, b"\n".join(lines)
            for line in lines:
                yield name, line

    def opened(self, access: RowAccess, path: str) -> bytes | None:
        """The bytes of a file that was rendered for any reader; None if this one does not get it."""
        served = ServedTable(dataset=self.dataset, variant="v3", access=access)
        try:
            content = self.tree.find(served, path)
        except (NotFound, GrantNotApplicable):
            return None
        return content.read(0, content.size_bytes)
