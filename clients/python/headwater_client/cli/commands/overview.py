"""`headwater overview`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from headwater_client.cli.arguments.names import Texts
from headwater_client.cli.printing.output import OUTPUT, Bytes, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.client import Headwater
from headwater_client.models import DatasetOverview, OverviewPage


def overview(*, label: Texts = None, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Print all datasets in numbers: rows, size, freshness, lag and problems, about a minute old.

    Example: `headwater overview`

    Parameters
    ----------
    label
        Only datasets with this label, such as team:sales. May be repeated.
    """
    with service.client() as client:
        output.items(_datasets(client, label), _COLUMNS)


def _datasets(client: Headwater, labels: Sequence[str] | None) -> Iterator[DatasetOverview]:
    params: dict[str, Any] = {"page_size": 1_000} | ({} if labels is None else {"label": list(labels)})
    while True:
        answer = client.request("GET", "/overview", params=params)
        page = msgspec.json.decode(answer.content, type=OverviewPage)
        yield from page.items
        if page.next_page_token is None:
            return
        params["page_token"] = page.next_page_token


_COLUMNS: Final[Sequence[TableColumn[DatasetOverview]]] = (
    TableColumn("NAME", lambda each: each.dataset),
    TableColumn("VERSION", lambda each: each.version),
    TableColumn("COMMITTED", lambda each: each.committed_at),
    TableColumn("ROWS", lambda each: each.rows),
    TableColumn("AS OF", lambda each: each.sampled_at),
    TableColumn("SIZE", lambda each: None if each.size_bytes is None else Bytes(each.size_bytes)),
    TableColumn("FILES", lambda each: each.files),
    TableColumn("WRITES/24H", lambda each: each.writes),
    TableColumn("ROWS/24H", lambda each: each.rows_in),
    TableColumn("LAG", lambda each: each.lag),
    TableColumn("PROBLEMS", lambda each: ",".join(each.problems or ()) or None),
)
