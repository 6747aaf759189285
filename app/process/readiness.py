"""Whether this process can take requests: it has found its database, and is not about to stop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Final

from app.core.jobs.repository.processes import ProcessStore
from app.http.health import Check
from app.infra.db.answers import Answers
from app.infra.sharing.single_flight import SingleFlight, in_daemon_thread
from app.kernel.format.errors import HeadwaterError

_WAIT_SECONDS: Final = 1.5
_log = logging.getLogger(__name__)


def readiness(
    processes: ProcessStore, answers: Answers, draining: threading.Event
) -> Callable[[], Awaitable[list[Check]]]:
    """The function that checks this process; it takes 2 s at most, whatever does not answer.

    `answers`: whether the database answers. `draining`: set when this process is about to stop.
    """
    schema = _Schema(processes)

    async def checks() -> list[Check]:
        if draining.is_set():
            return [Check(name="process", ok=False, detail="it is about to stop: use another one")]
        # The process reports itself from its start on: the first report has found the schema.
        if not processes.has_schema and (fault := await schema.fault()):
            return [Check(name="database", ok=False, detail=fault)]
        detail = "it does not answer: requests get 503 until it does" if answers.silent else ""
        return [Check(name="database", ok=not answers.silent, required=False, detail=detail)]

    return checks


class _Schema:
    """Whether the database has the schema of this release."""

    def __init__(self, processes: ProcessStore) -> None:
        self._processes = processes
        self._searches = SingleFlight[str, Future[str]]()

    async def fault(self) -> str:
        """What is wrong; empty if the schema is there. Waits for the database for a bounded time."""
        search = self._searches.join("schema", lambda: in_daemon_thread(self._search, "schema"))
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(search)), _WAIT_SECONDS)
        except TimeoutError:
            return "it has not answered yet"

    def _search(self) -> str:
        try:
            self._processes.known(0.0)
        except HeadwaterError as error:
            return error.detail
        # For example there are no tables yet, or those of another release. The log has the statement.
        except Exception as error:
            _log.warning("the schema of the database does not match this release: %s", error)
            return "it does not have this release's schema"
        return ""
