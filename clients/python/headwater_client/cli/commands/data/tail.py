"""`headwater tail`: the feed."""

from __future__ import annotations

from typing import Annotated, Any, Final

from cyclopts import Parameter

from headwater_client.cli.arguments.names import DatasetName, Names, Texts
from headwater_client.cli.arguments.positions import position
from headwater_client.cli.feed import resumed
from headwater_client.cli.printing.changes_output import print_changes
from headwater_client.cli.printing.output import OUTPUT, Output
from headwater_client.cli.service import SERVICE, ServiceChoice

_LAST: Final = 20


def tail(
    dataset: DatasetName,
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
        filters: dict[str, Any] = {"where": where, "columns": columns, "partitions": partitions}
        start = _start(since, found.next_offset, found.earliest_offset)
        pages = resumed(
            lambda since: client.change_pages(found.id, **since, **filters, follow=follow),
            start,
            follow=follow,
        )
        changes = (change for page in pages for change in page.changes if op is None or change.op in op)
        print_changes(changes, "table" if output.is_table() else output.output or "ndjson", found.record_key)


def _start(since: str | None, head: int, earliest: int) -> dict[str, Any]:
    """The position as options of a feed. Raises CommandError."""
    return {"since": max(head - _LAST, earliest)} if since is None else position("--since", since)
