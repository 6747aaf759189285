"""The data files of tables as readers see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.features.objects.service.renderings import Renderings
from app.features.rendered_files.service.data_file import DataFileRendering
from app.features.rendered_files.service.objects import RenderedContent, RenderedObjects
from app.features.rendered_files.service.view import FileView
from app.features.rendered_files.values import RenderedFile, RenderedForm
from app.infra.files.slices.file_slice import SliceReader
from app.kernel.commit.write_plan import WriteScope, reaches
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.evolution import under_schema
from app.kernel.format.errors import GrantNotApplicable
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.row_access import RowAccess


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedFiles:
    """Renders data files, and finds those that were rendered. May be called by many threads at once."""

    objects: RenderedObjects
    renderings: Renderings
    slices: SliceReader

    def require(
        self, dataset: Dataset, definition: DatasetDefinition, access: RowAccess, files: Sequence[DataFile]
    ) -> list[RenderedFile]:
        """The files of a version with what the access shows of them, in this order, without those that have no visible
        row. `definition`: the dataset under the schema of the version. `files`: base files of the version; others have
        no rows of a table and are left out.

        One query if all were rendered before. Raises RenderingUnderWay, GrantNotApplicable, CorruptFile, Unavailable.
        """
        views = self._views(dataset, definition, access)
        renderings = []
        for file in files:
            view = views.of(file.schema_id)
            scope = WriteScope(where=view.bound.where)
            if file.kind is FileKind.BASE and file.live_rows and reaches(scope, view.definition, file):
                renderings.append(DataFileRendering(slices=self.slices, source=file, file_view=view))
        return [
            RenderedFile(
                view=entry.view,
                content=entry.content,
                size_bytes=entry.size_bytes,
                row_count=entry.row_count,
                statistics=entry.statistics,
                source=rendering.source,
                schema_id=rendering.file_view.definition.schema.id,
            )
            for rendering, entry in zip(renderings, self.objects.require(dataset, renderings), strict=True)
            if entry.row_count
        ]

    def find(self, dataset: Dataset, access: RowAccess, view: str, content: str) -> RenderedContent:
        """A rendered file by its digests. It is rendered again if its object was deleted.

        Raises NotFound unless the access shows exactly this, GrantNotApplicable, Unavailable.
        """
        tenant_id = dataset.tenant_id
        for stored in self.objects.store.with_content(tenant_id, dataset.id, view, content):
            file_view = self._view(dataset, access, stored.schema_id, stored.source.schema_id)
            if file_view is not None and file_view.digest == view:
                if stored.entry.is_idle:
                    self.objects.store.touch(tenant_id, dataset.id, [stored.entry.key])
                rendering = DataFileRendering(slices=self.slices, source=stored.source, file_view=file_view)
                return self.objects.content(dataset, rendering, stored.entry)
        raise NotFound("the table has no such rendered file for this reader: load the table again")

    def visible_views(self, dataset: Dataset, access: RowAccess) -> list[str]:
        """The views of rendered files that the access shows exactly. Raises Unavailable."""
        forms = self.objects.store.forms(dataset.tenant_id, dataset.id)
        return sorted({form.view for form in forms if self._shows(dataset, access, form)})

    def _shows(self, dataset: Dataset, access: RowAccess, form: RenderedForm) -> bool:
        try:
            file_view = self._view(dataset, access, form.schema_id, form.file_schema_id)
        except GrantNotApplicable:
            # It has no meaning under the schema of another reader.
            return False
        return file_view is not None and file_view.digest == form.view

    def _view(
        self, dataset: Dataset, access: RowAccess, schema_id: int, file_schema_id: int
    ) -> FileView | None:
        """What the access shows; None for schemas that the dataset does not have in this state."""
        schemas = self._by_id(dataset)
        if schema_id not in schemas or file_schema_id not in schemas:
            return None
        definition = under_schema(dataset.definition, schemas[schema_id])
        return self._views(dataset, definition, access).of(file_schema_id)

    def _views(self, dataset: Dataset, definition: DatasetDefinition, access: RowAccess) -> _Views:
        return _Views(self._by_id(dataset), definition, access, dataset.definition.schema)

    def _by_id(self, dataset: Dataset) -> Mapping[int, Schema]:
        return {schema.id: schema for schema in self.renderings.schemas(dataset)}


class _Views:
    """What an access shows of the files of each schema, at versions of one schema."""

    def __init__(
        self, schemas: Mapping[int, Schema], definition: DatasetDefinition, access: RowAccess, latest: Schema
    ) -> None:
        self._schemas = schemas
        self._definition = definition
        self._access = access
        self._bound = bind_access(access, latest, definition.schema)
        self._views: dict[int, FileView] = {}

    def of(self, file_schema_id: int) -> FileView:
        """What is shown of files of this schema."""
        view = self._views.get(file_schema_id)
        if view is None:
            view = self._views[file_schema_id] = FileView(
                definition=self._definition,
                access=self._access,
                bound=self._bound,
                file_schema=self._schemas[file_schema_id],
            )
        return view
