"""`headwater tail`: the feed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any, Final

import httpx2
from cyclopts import Parameter

from headwater_client.cli.changes_output import print_changes
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.moments import length, moment, now
from headwater_client.cli.names import Names, Texts
from headwater_client.cli.output import OUTPUT, Output
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.client import Headwater
from headwater_client.models import Change, ChangesPage
from headwater_client.problem import Problem

_LAST: Final = 20
_PAUSE_SECONDS_MAX: Final = 30.0
_MAY_PASS: Final = frozenset({429, 502, 503, 504})
_NAMED: Final = ("earliest", "now", "snapshot")


def tail(
    dataset: str,
    /,
    *,
    follow: Annotated[bool, Parameter(name=("--follow", "-f"), negative="")] = False,
    since: str | None = None,
    where: str | None = None,
    columns: Names = None,
    partitions: Texts = None,
    op: Annotated[Names, Parameter(allow_leading_hyphen=True)] = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print changes of a dataset, the oldest first. Without -f it ends at the head of the feed.

    A lost connection is made again, and the changes go on where they ended.

    Example: `headwater tail orders -f --where "state = 'paid'"`

    Example: `headwater tail orders --since 1h -o ndjson`

    Parameters
    ----------
    dataset
        The name or the id of the dataset.
    follow
        Wait for further changes, until Ctrl-C.
    since
        An offset, `earliest`, `now`, `snapshot` (the rows first), a time such as 2026-11-29, a length such as 10m, or
        a version such as v12. By default the last 20 changes.
    where
        Only changes whose row, before or after, matches this filter.
    columns
        Only these columns, such as id,state.
    partitions
        A glob of partition paths, such as day=2026-11-*. May be repeated.
    op
        Only these changes: +A (new), -R (gone), -C and +C (corrected, before and after).
    """
    with service.client() as client:
        found = client.get_dataset(dataset)
        filters = {"where": where, "columns": columns, "partitions": partitions}
        start = _start(since, found.next_offset, found.earliest_offset)
        changes = Feed(client, found.id, start, filters).changes(follow=follow)
        if op is not None:
            changes = (change for change in changes if change.op in op)
        print_changes(changes, "table" if output.is_table() else output.output or "ndjson", found.record_key)


def _start(since: str | None, head: int, earliest: int) -> dict[str, Any]:
    """The position as options of a feed. Raises CommandError."""
    if since is None:
        return {"since": max(head - _LAST, earliest)}
    if since.isdecimal():
        return {"since": int(since)}
    if since.startswith("v") and since[1:].isdecimal():
        return {"since_version": int(since[1:])}
    if since in _NAMED:
        return {"since": since}
    back = length(since)
    try:
        return {"since_time": moment(since) if back is None else now() - back}
    except ValueError as error:
        raise CommandError(f"--since {since}: {error}", ExitCode.USAGE) from None


class Feed:
    """The changes of a dataset from a position on, whatever happens to the connection."""

    def __init__(
        self, client: Headwater, dataset: str, start: dict[str, Any], filters: dict[str, Any]
    ) -> None:
        self._client = client
        self._dataset = dataset
        self._start = start
        self._filters = filters
        self._pause_seconds = 1.0

    def changes(self, *, follow: bool) -> Iterator[Change]:
        """The changes up to the head; with `follow` also those to come."""
        for page in self.pages(follow=follow):
            yield from page.changes

    def pages(self, *, follow: bool, limit: int = 1_000) -> Iterator[ChangesPage]:
        """The pages. With `follow`, a service that cannot be reached or is busy is tried again after growing pauses."""
        while True:
            try:
                yield from self._pages(follow, limit)
            except (httpx2.TransportError, Problem) as error:
                if not follow or (isinstance(error, Problem) and error.status not in _MAY_PASS):
                    raise
            else:
                return
            sys.stderr.write(
                f"headwater: the service does not answer; next try in {self._pause_seconds:.0f} s\n"
            )
            time.sleep(self._pause_seconds)
            self._pause_seconds = min(2 * self._pause_seconds, _PAUSE_SECONDS_MAX)

    def _pages(self, follow: bool, limit: int) -> Iterator[ChangesPage]:
        for page in self._client.change_pages(
            self._dataset, **self._start, **self._filters, limit=limit, follow=follow
        ):
            yield page
            self._start = {"since": page.next_since}
            self._pause_seconds = 1.0
