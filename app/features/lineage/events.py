"""Events of OpenLineage, version 2-0-2 of its specification: https://openlineage.io/spec/2-0-2/OpenLineage.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.values import Job, JobState
from app.features.lineage.values import ColumnEdge
from app.kernel.format.schema.schema import Schema

_SPECIFICATION: Final = "https://openlineage.io/spec"
_EVENT: Final = f"{_SPECIFICATION}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_PRODUCER: Final = "urn:headwater"
_ENDS: Final = {JobState.SUCCEEDED: "COMPLETE", JobState.FAILED: "FAIL", JobState.CANCELLED: "ABORT"}
# The others of these read the dataset, and do not change it.
_WRITES: Final = frozenset(
    {
        JobKind.WRITE,
        JobKind.COMPACTION,
        JobKind.CLUSTERING,
        JobKind.REFRESH,
        JobKind.RESTORE,
        JobKind.ROLLBACK,
        JobKind.SOURCE_ROUND,
        JobKind.CLEAN,
    }
)


class LineageInput(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a job has read, by the name of the tenant and its own. `columns`: those that were read for it."""

    name: str
    columns: tuple[ColumnEdge, ...] = ()


class EndedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has ended, and what it is about. `dataset`: the names of the tenant and of the dataset, with a dot.

    `schema`: that of the dataset now; None if it is gone. `sql`: of a view. `inputs`: of a refresh.
    """

    job: Job
    dataset: str
    schema: Schema | None = None
    sql: str | None = None
    inputs: tuple[LineageInput, ...] = ()


def events_of(report: EndedJob, namespace: str) -> list[dict[str, Any]]:
    """The event of the start of the job, and that of its end; none for a job that has not ended."""
    job = report.job
    if job.state not in _ENDS or job.finished_at is None:
        return []
    facets: dict[str, Any] = {
        "jobType": _facet(
            "2-0-3/JobTypeJobFacet",
            processingType="BATCH",
            integration="HEADWATER",
            jobType=job.kind.value.upper(),
        )
    }
    if report.sql is not None:
        facets["sql"] = _facet("1-0-1/SQLJobFacet", query=report.sql)
    common = {
        "producer": _PRODUCER,
        "schemaURL": _EVENT,
        "run": {"runId": job.id},
        "job": {"namespace": namespace, "name": f"{report.dataset}.{job.kind.value}", "facets": facets},
    }
    inputs, outputs = _inputs(report, namespace), _outputs(report, namespace)
    start = {"eventType": "START", "eventTime": _time(job.started_at or job.created_at), **common}
    end = {"eventType": _ENDS[job.state], "eventTime": _time(job.finished_at), **common}
    return [start | {"inputs": [], "outputs": []}, end | {"inputs": inputs, "outputs": outputs}]


def _inputs(report: EndedJob, namespace: str) -> list[dict[str, Any]]:
    if report.job.kind not in _WRITES:
        return [{"namespace": namespace, "name": report.dataset, "facets": _schema(report.schema)}]
    return [{"namespace": namespace, "name": each.name, "facets": {}} for each in report.inputs]


def _outputs(report: EndedJob, namespace: str) -> list[dict[str, Any]]:
    job = report.job
    if job.kind not in _WRITES:
        return []
    facets = _schema(report.schema)
    if job.committed_version is not None:
        version = str(job.committed_version)
        facets["version"] = _facet("1-0-1/DatasetVersionDatasetFacet", datasetVersion=version)
    if lineage := _columns(report.inputs, namespace):
        facets["columnLineage"] = _facet("1-2-0/ColumnLineageDatasetFacet", fields=lineage)
    rows = job.rows.inserted + job.rows.updated + job.rows.deleted
    statistics = _facet("1-0-2/OutputStatisticsOutputDatasetFacet", rowCount=rows)
    return [
        {
            "namespace": namespace,
            "name": report.dataset,
            "facets": facets,
            "outputFacets": {"outputStatistics": statistics},
        }
    ]


def _columns(inputs: Sequence[LineageInput], namespace: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for each in inputs:
        for column in each.columns:
            origin = {"namespace": namespace, "name": each.name, "field": column.origin}
            fields.setdefault(column.target, {"inputFields": []})["inputFields"].append(origin)
    return fields


def _schema(schema: Schema | None) -> dict[str, Any]:
    if schema is None:
        return {}
    fields = [{"name": each.name, "type": each.type} for each in schema.fields]
    return {"schema": _facet("1-1-1/SchemaDatasetFacet", fields=fields)}


def _facet(name: str, **members: Any) -> Mapping[str, Any]:
    """A facet. `name`: its version and its type."""
    type_ = name.partition("/")[2]
    url = f"{_SPECIFICATION}/facets/{name}.json#/$defs/{type_}"
    return {"_producer": _PRODUCER, "_schemaURL": url, **members}


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
