"""The files of a version for who sees a part of the dataset, rendered with what is visible of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Protocol

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.plan_files import FilePlanner
from app.core.timeline.service.version_definition import definition_at
from app.features.iceberg.service.table_form import CACHE_SECONDS, TableForm
from app.features.rendered_files.values import RenderedFile
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.sql.conditions.row_access import RowAccess

_CACHE_BYTES: Final = 16 * 1024 * 1024
# About what a file takes in memory, and a column of its statistics.
_FILE_BYTES: Final = 1_024
_COLUMN_BYTES: Final = 256


def _place(file: DataFile) -> tuple[str, int]:
    # Files with equal visible rows have equal paths.
    return file.path, file.written_version or 0


class FileRenderer(Protocol):
    """Renders data files for an access."""

    def require(
        self, dataset: Dataset, definition: DatasetDefinition, access: RowAccess, files: Sequence[DataFile]
    ) -> Sequence[RenderedFile]:
        """The files with what the access shows of them at a version, without those of which it shows no row.

        `definition`: the dataset under the schema of the version. Raises RenderingUnderWay if that takes longer than a
        request should wait.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class VisibleFiles:
    """The visible files of versions, which never change. `planner`: of versions whose files are known."""

    planner: FilePlanner
    timeline: VersionReader
    renderer: FileRenderer
    clock: Callable[[], float] = monotonic
    _files: ByteCache[tuple[str, int], tuple[float, tuple[DataFile, ...]]] = field(
        default_factory=lambda: ByteCache(_CACHE_BYTES)
    )

    def of(self, form: TableForm, version: int) -> Sequence[DataFile]:
        """The files of a version by path, which does not depend on their order in the table.

        Raises VersionExpired, NotFound (dataset gone), RenderingUnderWay, GrantNotApplicable.
        """
        key = form.digest, version
        until, files = self._files.get(key) or (0.0, ())
        if self.clock() >= until:
            files = self._render(form, version)
            columns = sum(len(each.statistics) for each in files)
            cached = self.clock() + CACHE_SECONDS, files
            self._files.put(key, cached, _FILE_BYTES * (1 + len(files)) + _COLUMN_BYTES * columns)
        return files

    def _render(self, form: TableForm, version: int) -> tuple[DataFile, ...]:
        dataset = form.dataset
        # The conditions of the access have the names of this schema.
        definition = definition_at(self.timeline, dataset, version)
        where = form.bound(definition.schema).where
        groups = self.planner.base_files(dataset, definition, version, where)
        stored = [file for group in groups for file in group.files if file.row_count]
        rendered = self.renderer.require(dataset, definition, form.access, stored)
        return tuple(sorted(map(form.visible_file, rendered), key=_place))
