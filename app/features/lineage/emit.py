"""Sends what jobs have read and written to a receiver of OpenLineage events."""

from __future__ import annotations

import http.client
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from app.access.errors import NotFound
from app.core.catalog.repository.catalog import CatalogStore
from app.core.jobs.ends import EndOfJob, JobEnds
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.repository.jobs import JobStore
from app.features.lineage.columns import view_columns
from app.features.lineage.events import EndedJob, LineageInput, events_of
from app.features.views.values import View
from app.infra.db.session import Database

_log = logging.getLogger(__name__)
_SECONDS_MAX: Final = 10.0
_JOBS_AT_ONCE: Final = 200
_ANSWER_BYTES_MAX: Final = 4_096
# The receiver takes one event at a time only.
_NO_BATCHES: Final = (404, 405)


class ReceiverFailed(Exception):
    """The receiver did not take the events. The message says why."""


@dataclass(kw_only=True, slots=True)
class LineageReceiver:
    """A receiver of OpenLineage events. `url`: what its paths begin with. `api_key`: empty for none."""

    url: str
    api_key: str
    batches: bool = True
    """Whether it takes several events at a time, as far as is known."""
    _headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._headers = {"Content-Type": "application/json", "User-Agent": "Headwater-OpenLineage/1"}
        if self.api_key:
            self._headers["Authorization"] = f"Bearer {self.api_key}"

    def send(self, events: Sequence[Any]) -> None:
        """Posts the events, all at once or each by itself. Raises ReceiverFailed."""
        if not events:
            return
        target = urlsplit(self.url)
        path = f"{target.path.rstrip('/')}/api/v1/lineage"
        connection = _connection(target.scheme, target.hostname or "", target.port)
        try:
            if self.batches:
                status = self._post(connection, f"{path}/batch", events)
                if status not in _NO_BATCHES:
                    _check(status)
                    return
                self.batches = False
            for event in events:
                _check(self._post(connection, path, event))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ReceiverFailed(f"{type(error).__name__}: {error}") from None
        finally:
            connection.close()

    def _post(self, connection: http.client.HTTPConnection, path: str, body: Any) -> int:
        connection.request("POST", path, msgspec.json.encode(body), self._headers)
        response = connection.getresponse()
        if len(response.read(_ANSWER_BYTES_MAX)) == _ANSWER_BYTES_MAX:
            # The rest of a long answer is not waited for.
            connection.close()
        return response.status


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=_SECONDS_MAX, context=context)
    return http.client.HTTPConnection(host, port, timeout=_SECONDS_MAX)


def _check(status: int) -> None:
    if not 200 <= status < 300:
        raise ReceiverFailed(f"it answered {status}")


@dataclass(kw_only=True, slots=True)
class EmitLineage:
    """One round of the loop. Events that the receiver does not take are sent again, before later ones."""

    ends: JobEnds
    database: Database
    jobs: JobStore
    catalog: CatalogStore
    view_of: Callable[[str, str], View]
    """The view with an id, of a tenant; raises NotFound."""
    receiver: LineageReceiver
    namespace: str
    _unsent: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> None:
        """Sends the events of jobs that have ended since, some hundred at a time. Raises ReceiverFailed."""
        while True:
            if not self._unsent:
                ends, lost = self.ends.take(_JOBS_AT_ONCE)
                if lost:
                    _log.warning("%d jobs were left out of OpenLineage: its receiver is too slow", lost)
                if not ends:
                    return
                reports = [self._report(each) for each in ends]
                self._unsent = [
                    event
                    for report in reports
                    if report is not None
                    for event in events_of(report, self.namespace)
                ]
            self.receiver.send(self._unsent)
            self._unsent = []

    def _report(self, end: EndOfJob) -> EndedJob | None:
        with self.database.tenant(end.tenant_id, shared=True):
            return self._ended(end)

    def _ended(self, end: EndOfJob) -> EndedJob | None:
        """The job with its dataset; None if either is gone."""
        try:
            job = self.jobs.get(end.tenant_id, end.job_id)
        except NotFound:
            return None
        names = self.catalog.names_with_tenant(job.tenant_id, job.dataset_id)
        if names is None:
            return None
        report = EndedJob(job=job, dataset=".".join(names))
        try:
            schema = self.catalog.get(job.tenant_id, job.dataset_id).definition.schema
            report = msgspec.structs.replace(report, schema=schema)
            if job.kind is not JobKind.REFRESH:
                return report
            view = self.view_of(job.tenant_id, job.dataset_id)
        except NotFound:
            return report
        columns = view_columns(view)
        inputs = tuple(
            LineageInput(
                name=f"{names[0]}.{each.dataset.definition.name}", columns=columns.get(each.dataset.id, ())
            )
            for each in view.inputs
        )
        return msgspec.structs.replace(report, sql=view.definition.sql, inputs=inputs)
