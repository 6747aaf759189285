"""Rows of exports and of their runs, as users see them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select

from app.access.errors import NotFound
from app.core.catalog.tables import datasets
from app.core.consumers.tables import consumers
from app.core.jobs.repository.job_row import JOB_COLUMNS, job_from
from app.core.jobs.tables import jobs
from app.features.exports.tables import export_runs, exports
from app.features.exports.values import RUNS_SHOWN, Export, ExportRun, ExportState
from app.infra.db.any_of import any_of, matches_any
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page, PageTokens

_NUMBER_MAX: Final = 2**63 - 1
_RUN_COLUMNS: Final = (
    export_runs.c.export_id,
    export_runs.c.number,
    export_runs.c.since,
    export_runs.c.until,
    export_runs.c.version,
    export_runs.c.created_at.label("run_created_at"),
    *JOB_COLUMNS,
)


def consumer_name(export_id: str | ColumnElement[str]) -> Any:
    """The consumer that holds where the export's next run starts."""
    return "export:" + export_id


def find_export(connection: Connection, export_id: str) -> Export:
    """Raises NotFound."""
    row = None
    if is_uuid(export_id):
        row = connection.execute(_exports().where(exports.c.id == export_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no export {export_id}")
    return _export(row, _latest_runs(connection, [export_id]).get(export_id, ()))


def list_exports(
    connection: Connection,
    tenant_id: str,
    dataset_id: str | None,
    state: ExportState | None,
    *,
    page_size: int,
    page_token: str | None,
    patterns: Collection[str] | None = None,
) -> Page:
    """Export items, the latest first: of one dataset unless None, in one state unless None, of datasets whose names
    match a pattern unless None. Raises InvalidRequest for a token that is not valid.
    """
    tokens = PageTokens("exports", tenant_id, dataset_id, state)
    query = _exports()
    if dataset_id is not None:
        query = query.where(exports.c.dataset_id == dataset_id)
    if state is not None:
        query = query.where(exports.c.state == state.value)
    if patterns is not None:
        query = query.where(matches_any(datasets.c.name, patterns))
    if page_token is not None:
        query = query.where(exports.c.id < tokens.id(page_token))
    rows = connection.execute(query.order_by(exports.c.id.desc()).limit(page_size + 1)).all()
    runs = _latest_runs(connection, [row.id for row in rows])
    return tokens.page(rows, page_size, lambda row: row.id, lambda row: _export(row, runs.get(row.id, ())))


def find_followers(
    connection: Connection, limit: int, dataset_ids: Collection[str] | None = None
) -> list[Export]:
    """Up to `limit` exports that have not ended, the earliest first, without their runs.

    `dataset_ids`: of these datasets only; None for all.
    """
    query = _exports().where(exports.c.state != ExportState.ENDED.value).order_by(exports.c.id).limit(limit)
    if dataset_ids is not None:
        query = query.where(any_of(exports.c.dataset_id, dataset_ids))
    return [_export(row, ()) for row in connection.execute(query)]


def list_runs(connection: Connection, export_id: str, *, page_size: int, page_token: str | None) -> Page:
    """ExportRun items, the latest first, without their manifests. Raises NotFound, InvalidRequest."""
    find_export(connection, export_id)
    tokens = PageTokens("export runs", export_id)
    query = _runs().where(export_runs.c.export_id == export_id)
    if page_token is not None:
        query = query.where(export_runs.c.number < tokens.number(page_token, _NUMBER_MAX))
    rows = connection.execute(query.order_by(export_runs.c.number.desc()).limit(page_size + 1)).all()
    return tokens.page(rows, page_size, lambda row: str(row.number), _run)


def find_run(connection: Connection, export_id: str, number: int) -> ExportRun:
    """A run with its manifest. Raises NotFound."""
    find_export(connection, export_id)
    query = _runs().add_columns(export_runs.c.manifest)
    conditions = export_runs.c.export_id == export_id, export_runs.c.number == number
    row = connection.execute(query.where(*conditions)).one_or_none()
    if row is None:
        raise NotFound(f"The export has no run {number}")
    return _run(row)


def run_of_range(connection: Connection, export_id: str, since: int, until: int) -> ExportRun | None:
    """The run of an export over these changes, if there is one."""
    conditions = (
        export_runs.c.export_id == export_id,
        export_runs.c.since == since,
        export_runs.c.until == until,
        export_runs.c.version.is_(None),
    )
    row = connection.execute(_runs().where(*conditions)).one_or_none()
    return None if row is None else _run(row)


def run_of_version(connection: Connection, export_id: str, version: int) -> ExportRun | None:
    """The run of a snapshot of this version, if there is one."""
    conditions = export_runs.c.export_id == export_id, export_runs.c.version == version
    row = connection.execute(_runs().where(*conditions)).one_or_none()
    return None if row is None else _run(row)


def _exports() -> Select[Any]:
    condition = and_(
        consumers.c.dataset_id == exports.c.dataset_id,
        consumers.c.name == func.concat("export:", exports.c.id),
    )
    return (
        select(
            exports.c.id,
            exports.c.tenant_id,
            exports.c.dataset_id,
            datasets.c.name.label("dataset_name"),
            exports.c.definition,
            exports.c.state,
            func.coalesce(exports.c.stopped_at, consumers.c.position).label("offset"),
            exports.c.revision,
            exports.c.created_at,
            exports.c.planned_at,
        )
        .join(datasets, datasets.c.id == exports.c.dataset_id)
        .outerjoin(consumers, condition)
        .where(datasets.c.deleted_at.is_(None))
    )


def _export(row: Any, runs: Sequence[ExportRun]) -> Export:
    values = row._asdict()
    return Export(**{**values, "state": ExportState(values["state"]), "runs": tuple(runs)})


def _runs() -> Select[Any]:
    return select(*_RUN_COLUMNS).join(jobs, jobs.c.id == export_runs.c.job_id)


def _latest_runs(connection: Connection, export_ids: Sequence[str]) -> dict[str, list[ExportRun]]:
    place = func.row_number().over(partition_by=export_runs.c.export_id, order_by=export_runs.c.number.desc())
    ranking = (
        select(export_runs.c.export_id, export_runs.c.number, place.label("place"))
        .where(any_of(export_runs.c.export_id, export_ids))
        .subquery()
    )
    latest = and_(ranking.c.export_id == export_runs.c.export_id, ranking.c.number == export_runs.c.number)
    query = _runs().join(ranking, latest).where(ranking.c.place <= RUNS_SHOWN)
    runs: dict[str, list[ExportRun]] = {}
    for row in connection.execute(query.order_by(export_runs.c.number.desc())):
        runs.setdefault(row.export_id, []).append(_run(row))
    return runs


def _run(row: Any) -> ExportRun:
    values = row._asdict()
    own = {name: values.pop(name) for name in ("export_id", "number", "since", "until")}
    own["version"] = values.pop("version")
    created_at, manifest = values.pop("run_created_at"), values.pop("manifest", None)
    return ExportRun(**own, job=job_from(values), created_at=created_at, manifest=manifest)
