"""Entries of timelines, from the rows of instants, their commits and their jobs."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, select

from app.access.tenants.tables import api_keys, token_subjects
from app.core.jobs.job_parameters import parameters_of
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.tables import instants, jobs
from app.core.timeline.instants import InstantFilter, InstantRecord
from app.core.timeline.tables import commits
from app.core.timeline.values import WINNER_VERSION, changed_range
from app.infra.db.any_of import any_of
from app.kernel.format.instant import Action, InstantState

_ACTOR: Final = func.coalesce(instants.c.actor, jobs.c.actor)
# The version of a savepoint or tag was made by another instant.
_OWN_COMMIT: Final = and_(
    commits.c.dataset_id == instants.c.dataset_id,
    commits.c.version == instants.c.version,
    commits.c.action == instants.c.action,
)
_OF_INSTANT: Final = (
    "id", "action", "operation", "state", "job_id", "version", "requested_at", "completed_at", "counts",
    "metadata",
)  # fmt: skip
_OF_COMMIT: Final = (
    "schema_id", "files_added", "files_removed", "bytes_added", "bytes_removed", "first_offset", "next_offset",
    "watermark",
)  # fmt: skip
_OF_JOB: Final = ("transaction_id", "started_at", "error", "request", "task", "result", "replans")
_RESTORES: Final = frozenset({Action.RESTORE, Action.ROLLBACK})

# A literal in the statement, so that the planner matches it with the condition of an index.
OPEN_INSTANT: Final = instants.c.state.in_(
    bindparam(
        "open_states",
        [InstantState.REQUESTED.value, InstantState.INFLIGHT.value],
        expanding=True,
        literal_execute=True,
    )
)


def chosen_instants(instant_filter: InstantFilter) -> list[ColumnElement[bool]]:
    """The conditions of a filter."""
    conditions: list[ColumnElement[bool]] = []
    if instant_filter.actions is not None:
        conditions.append(any_of(instants.c.action, [action.value for action in instant_filter.actions]))
    if instant_filter.states is not None:
        conditions.append(any_of(instants.c.state, [state.value for state in instant_filter.states]))
    if instant_filter.since is not None:
        conditions.append(instants.c.requested_at >= instant_filter.since)
    if instant_filter.until is not None:
        conditions.append(instants.c.requested_at < instant_filter.until)
    if instant_filter.from_version is not None:
        conditions.append(instants.c.version >= instant_filter.from_version)
    if instant_filter.to_version is not None:
        conditions.append(instants.c.version <= instant_filter.to_version)
    return conditions


def latest_instants(
    connection: Connection, *conditions: ColumnElement[bool], limit: int
) -> list[InstantRecord]:
    """Entries that match the conditions, latest request first."""
    query = _entries().where(*conditions).order_by(instants.c.id.desc()).limit(limit)
    return [_record(row) for row in connection.execute(query)]


def oldest_instants(
    connection: Connection, *conditions: ColumnElement[bool], limit: int
) -> list[InstantRecord]:
    """Entries that match the conditions, earliest request first, with what archives have of them."""
    query = _entries().where(*conditions).order_by(instants.c.id).limit(limit)
    records = (_record(row) for row in connection.execute(query))
    return [replace(record, replans=None, winner_version=None) for record in records]


def _entries() -> Select[Any]:
    return (
        select(
            *(instants.c[name] for name in _OF_INSTANT),
            *(commits.c[name] for name in _OF_COMMIT),
            *(jobs.c[name] for name in _OF_JOB),
            _ACTOR.label("actor"),
            func.coalesce(api_keys.c.name, token_subjects.c.subject).label("actor_name"),
        )
        .join_from(instants, commits, _OWN_COMMIT, isouter=True)
        .join(jobs, jobs.c.id == instants.c.job_id, isouter=True)
        .join(api_keys, api_keys.c.id == _ACTOR, isouter=True)
        .join(token_subjects, token_subjects.c.id == _ACTOR, isouter=True)
    )


def _record(row: Any) -> InstantRecord:
    values = row._asdict()
    counts, first, after = values.pop("counts"), values.pop("first_offset"), values.pop("next_offset")
    write_request, task, result = values.pop("request"), values.pop("task"), values.pop("result")
    result = dict(result or {})
    winner_version = result.pop(WINNER_VERSION, None)
    request = write_request if task is None else task
    if row.files_added is None:
        values |= {"files_added": 0, "files_removed": 0, "bytes_added": 0, "bytes_removed": 0}
    first_offset, last_offset = (None, None) if first is None else changed_range(counts, first, after)
    writes = isinstance(request, WriteRequest)
    values |= {
        "action": Action(row.action),
        "state": InstantState(row.state),
        "metadata": row.metadata or {},
        "parameters": {
            **({} if request is None else parameters_of(request)),
            # The target of a rollback is found when it runs.
            **(result if Action(row.action) in _RESTORES else {}),
        },
        "winner_version": winner_version if writes else None,
        "writer_id": request.options.writer_id if writes else None,
        "batch_id": request.options.batch_id if writes else None,
    }
    return InstantRecord(**values, rows=counts, first_offset=first_offset, last_offset=last_offset)
