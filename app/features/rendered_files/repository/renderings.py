"""Renderings in Postgres: what is listed and found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Select, and_, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from app.core.timeline.repository.data_file_rows import FILE_COLUMNS, data_file
from app.core.timeline.tables import files
from app.features.rendered_files.tables import rendered_files
from app.features.rendered_files.values import RenderedForm, RenderingEntry, RenderingOrigin, StoredRendering
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

IDLE_SECONDS: Final = 600.0
"""A use is recorded if the last one was recorded longer ago."""
_NOW: Final = func.clock_timestamp()
_STORED: Final = ("key", "view", "content", "size_bytes", "row_count", "statistics", "path")
_MADE: Final = ("content", "size_bytes", "row_count", "statistics", "path")
_OBJECT: Final = (
    *(rendered_files.c[name] for name in _STORED),
    (rendered_files.c.used_at < seconds_ago(IDLE_SECONDS)).label("is_idle"),
)
# A rendering is served as long as its data file has the entry that was rendered.
_SOURCE: Final = and_(
    files.c.dataset_id == rendered_files.c.dataset_id,
    files.c.path == rendered_files.c.data_path,
    files.c.added_version == rendered_files.c.origin_version,
)
_PATH: Final = rendered_files.c.view + "/" + rendered_files.c.content + ".parquet"


class RenderingStore:
    """Renderings of datasets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, tenant_id: str, dataset_id: str, keys: Collection[bytes]) -> dict[bytes, RenderingEntry]:
        """Those with the keys, by key. Raises Unavailable."""
        query = select(*_OBJECT).where(
            rendered_files.c.dataset_id == dataset_id, any_of(rendered_files.c.key, keys)
        )
        with self._database.tenant(tenant_id) as connection:
            return {row.key: _rendered(row) for row in connection.execute(query)}

    def touch(self, tenant_id: str, dataset_id: str, keys: Collection[bytes]) -> None:
        """Records that they are used. Raises Unavailable."""
        with self._database.tenant(tenant_id) as connection:
            connection.execute(
                update(rendered_files)
                .where(rendered_files.c.dataset_id == dataset_id, any_of(rendered_files.c.key, keys))
                .values(used_at=_NOW)
            )

    def put(
        self, tenant_id: str, dataset_id: str, entry: RenderingEntry, origin: RenderingOrigin
    ) -> RenderingEntry:
        """Stores a rendering, or the object of one that has none. Returns what is stored: that of another process if it
        was first. Raises Unavailable.

        Of one whose object was deleted, the bytes may be others now: then those of before are not found any more.
        """
        row = {
            "dataset_id": dataset_id,
            **{name: getattr(entry, name) for name in _STORED},
            "data_path": origin.data_path,
            "origin_version": origin.version,
            "schema_id": origin.schema_id,
        }
        new = insert(rendered_files).values(row)
        statement = new.on_conflict_do_update(
            index_elements=["tenant_id", "dataset_id", "key"],
            set_={**{name: new.excluded[name] for name in _MADE}, "used_at": _NOW},
            where=rendered_files.c.path.is_(None),
        )
        with self._database.tenant(tenant_id) as connection:
            connection.execute(statement)
            stored = connection.execute(
                select(*_OBJECT).where(
                    rendered_files.c.dataset_id == dataset_id, rendered_files.c.key == entry.key
                )
            )
            return _rendered(stored.one())

    def drop_object(self, tenant_id: str, dataset_id: str, entry: RenderingEntry) -> None:
        """Records that the object of a rendering is missing or damaged. Raises Unavailable."""
        with self._database.tenant(tenant_id) as connection:
            connection.execute(
                update(rendered_files)
                .where(
                    rendered_files.c.dataset_id == dataset_id,
                    rendered_files.c.key == entry.key,
                    rendered_files.c.path == entry.path,
                )
                .values(path=None)
            )

    def with_content(
        self, tenant_id: str, dataset_id: str, view: str, content: str
    ) -> Sequence[StoredRendering]:
        """Renderings of data files that have this view and these bytes. Raises Unavailable."""
        query = (
            select(*FILE_COLUMNS, rendered_files.c.schema_id.label("view_schema_id"), *_labelled())
            .select_from(rendered_files)
            .join(files, _SOURCE)
            .where(
                rendered_files.c.dataset_id == dataset_id,
                rendered_files.c.view == view,
                rendered_files.c.content == content,
                rendered_files.c.row_count > 0,
            )
        )
        with self._database.tenant(tenant_id) as connection:
            return [
                StoredRendering(
                    entry=RenderingEntry(
                        **{name: getattr(row, f"rendered_{name}") for name in (*_STORED, "is_idle")}
                    ),
                    source=data_file(row),
                    schema_id=row.view_schema_id,
                )
                for row in connection.execute(query)
            ]

    def forms(self, tenant_id: str, dataset_id: str) -> Sequence[RenderedForm]:
        """The views of the renderings of data files, and what they depend on. Raises Unavailable."""
        query = (
            select(
                rendered_files.c.view,
                rendered_files.c.schema_id,
                files.c.schema_id.label("file_schema_id"),
            )
            .select_from(rendered_files)
            .join(files, _SOURCE)
            .where(rendered_files.c.dataset_id == dataset_id, rendered_files.c.row_count > 0)
            .distinct()
        )
        with self._database.tenant(tenant_id) as connection:
            return [RenderedForm(**row._asdict()) for row in connection.execute(query)]

    def listing(
        self, tenant_id: str, dataset_id: str, views: Collection[str], prefix: str, after: str, limit: int
    ) -> Mapping[tuple[str, str], int]:
        """The sizes of the first rendered files of the views, by view and content, whose paths begin with `prefix` and
        are after `after`, in the order of their paths. Raises Unavailable.
        """
        query = (
            _listed(dataset_id, views)
            .where(_PATH.startswith(prefix, autoescape=True), literal(after) < _PATH)
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            return {(row.view, row.content): row.size_bytes for row in connection.execute(query)}


def _listed(dataset_id: str, views: Collection[str]) -> Select[Any]:
    columns = rendered_files.c.view, rendered_files.c.content, rendered_files.c.size_bytes
    return (
        select(*columns)
        .distinct()
        .select_from(rendered_files)
        .join(files, _SOURCE)
        .where(
            rendered_files.c.dataset_id == dataset_id,
            any_of(rendered_files.c.view, views),
            rendered_files.c.row_count > 0,
        )
        .order_by(rendered_files.c.view, rendered_files.c.content)
    )


def _labelled() -> list[Any]:
    return [column.label(f"rendered_{column.name}") for column in _OBJECT]


def _rendered(row: Any) -> RenderingEntry:
    return RenderingEntry(**row._asdict())
