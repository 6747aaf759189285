"""Headwater at the work of `bench.workload`: a whole service, written to over HTTP. Its systems are tables of several
settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
import pyarrow as pa

from bench.in_process import InProcess
from bench.lake import Omitted
from bench.service import JobFailed, Service
from bench.table import Table, run_seconds

_ARROW: Final = "application/vnd.apache.arrow.stream"
_PAGE_ROWS: Final = 10_000


class Headwater:
    """Tables of some settings in a running service."""

    version = ""

    def __init__(
        self, service: Service, client: httpx2.Client, name: str, settings: Mapping[str, str], *, buckets: int
    ) -> None:
        self.name = name
        self.works = service.supervisor
        self.holds = service.process("workers.main")
        self._service = service
        self._client = client
        self._settings = settings
        self._buckets = buckets
        self._tables: list[Table] = []
        self._in_process = InProcess.of(service)
        self._job: dict[str, Any] = {}

    @property
    def readers(self) -> Sequence[psutil.Process]:
        """None: files are read in this process."""
        return ()

    def create(self) -> None:
        """Another dataset."""
        name = f"trips_{self.name}_{len(self._tables)}"
        with _accepted():
            self._tables.append(
                Table.create(self._service, self._client, name, buckets=self._buckets, **self._settings)
            )

    @property
    def _table(self) -> Table:
        return self._tables[-1]

    def stage(self, file: Path) -> dict[str, Any]:
        """An upload."""
        with _accepted():
            return self._table.upload(file)

    def insert(self, source: dict[str, Any]) -> Mapping[str, float]:
        """An insert, which refuses keys that are there."""
        return self._commit("insert", source=source)

    def bulk_insert(self, source: dict[str, Any]) -> Mapping[str, float]:
        """A bulk_insert, which refuses keys that are there, and stores rows by key."""
        return self._commit("bulk_insert", source=source)

    def upsert(self, source: dict[str, Any]) -> Mapping[str, float]:
        """An upsert."""
        return self._commit("upsert", source=source)

    def delete(self, where: str) -> Mapping[str, float]:
        """A delete by filter."""
        return self._commit("delete", where=where)

    def _commit(self, operation: str, **members: Any) -> Mapping[str, float]:
        with _accepted():
            self._job = self._table.commit(operation, **members)
        return {"run": run_seconds(self._job)}

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """The feed of the commit: by the service's own reader in this process, and over HTTP; none of an idle one."""
        if self._job["first_offset"] is None:
            return {}
        since, until = self._job["first_offset"], self._job["last_offset"] + 1
        return {
            "changes": partial(self._in_process.changes, self._table.id, since, until),
            "changes over HTTP": partial(self._pages, since, until),
        }

    def _pages(self, since: int, until: int) -> int:
        reached = since
        for page in self._table.pages(_ARROW, limit=_PAGE_ROWS, since=since, until=until):
            reached = int(page.headers["headwater-next-since"])
        return reached - since

    def read(self, where: str | None) -> int:
        """Files as one task would read them."""
        return self._in_process.rows(self._table.id, where)

    def rows(self) -> Iterator[pa.Table]:
        """Files as a task would read them."""
        return self._in_process.blocks(self._table.id)

    def files(self) -> dict[Path, int]:
        """Data, changes, staged rows and whatever else is in the dataset's folder, uploads included."""
        folder = Path(self._in_process.folder(self._table.id))
        return {path.relative_to(folder): size for path, size in self._table.stored().items()}


@contextmanager
def _accepted() -> Iterator[None]:
    """Puts a refusal, or a failure, into the words that its problem document has for it."""
    try:
        yield
    except httpx2.HTTPStatusError as error:
        refused = error.response.is_client_error
        raise Omitted(_description(error.response.json(), refused=refused)) from error
    except JobFailed as error:
        raise Omitted(_description(error.problem, refused=False)) from error


def _description(problem: Mapping[str, Any], *, refused: bool) -> str:
    detail = problem.get("detail") or problem["title"]
    faults = [f"{fault['pointer']}: {fault['detail']}" for fault in problem.get("errors", ())]
    what = "not accepted by the service" if refused else "failed in the service"
    return f"{what}: {'; '.join([detail, *(fault for fault in faults if fault not in detail)])}"
