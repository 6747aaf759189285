"""A view of the flights: the number of late flights by carrier, and the effect of a correction on it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from clients.demo.flights_data import KEY
from clients.demo.screen import Screen
from headwater_client import Change, Dataset, Headwater, NewView, View

_LATE_MINUTES: Final = 60
_WAIT_SECONDS_MAX: Final = 300.0
_SHOWN: Final = 5
LATE_FLIGHTS: Final = NewView(
    name="late_flights",
    sql="""
        SELECT carrier, COUNT(*) AS arrived, SUM(CASE WHEN arr_delay >= 60 THEN 1 ELSE 0 END) AS late
        FROM flights WHERE arr_delay IS NOT NULL GROUP BY carrier
    """,
)


class ViewBehind(Exception):
    """The view does not have the expected rows in time."""


def show_view(screen: Screen, client: Headwater, dataset: Dataset) -> None:
    """Derives a dataset, corrects one flight, and shows the effect on the view.

    Raises ViewBehind, JobUnfinished, Problem.
    """
    began = time.monotonic()
    view = _current(client, client.create_view(LATE_FLIGHTS), client.get_dataset(dataset).next_offset)
    rows = sorted(client.rows(view.id), key=lambda row: row["late"], reverse=True)
    screen.say(
        f"\nThe view late_flights, by SQL over flights, current after {time.monotonic() - began:.1f} s: "
        f"{len(rows)} carriers,\nand their numbers of flights at least {_LATE_MINUTES} minutes late. "
        f"The {len(rows[:_SHOWN])} with the most:"
    )
    table = Table()
    for name in ("carrier", "arrived", "late"):
        table.add_column(name, justify="left" if name == "carrier" else "right")
    for row in rows[:_SHOWN]:
        table.add_row(row["carrier"], f"{row['arrived']:,}", f"{row['late']:,}")
    screen.console.print(table)
    carrier = rows[0]["carrier"]
    wrong = max(
        client.rows(dataset, where=f"carrier = '{carrier}' AND arr_delay >= {_LATE_MINUTES}"),
        key=lambda row: row["arr_delay"],
    )
    screen.say(f"Now {_name(wrong)} is corrected: it was 5 minutes late, not {wrong['arr_delay']:,}.")
    _show_correction(screen, client, dataset, view, {**wrong, "arr_delay": 5})


def _show_correction(
    screen: Screen, client: Headwater, dataset: Dataset, view: View, row: Mapping[str, Any]
) -> None:
    sent = time.monotonic()
    client.write_rows(dataset, [row], wait=_WAIT_SECONDS_MAX)
    head = client.get_dataset(dataset).next_offset
    since = client.get_dataset(view.id).next_offset
    _current(client, view, head)
    seconds = time.monotonic() - sent
    for change in client.changes(view.id, since=since):
        screen.console.print(Text(f"  {_change_line(change)}", style="red" if change.op == "-C" else "green"))
    screen.say(f"The view's own feed had that {seconds:.1f} s after the correction was sent.")


def _current(client: Headwater, view: View, offset: int) -> View:
    """The view once it includes all changes of its input before the offset."""
    deadline = time.monotonic() + _WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        view = client.get_view(view)
        if all(each.offset is not None and each.offset >= offset for each in view.inputs):
            return view
        time.sleep(0.1)
    raise ViewBehind(
        f"the view {view.name} is {view.freshness}: {view.error or 'its refresh takes too long'}"
    )


def _name(row: Mapping[str, Any]) -> str:
    carrier, flight, origin, planned = (row[name] for name in KEY)
    return f"{carrier} {flight} from {origin}, planned for {planned[:16].replace('T', ' ')}"


def _change_line(change: Change) -> str:
    row = ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else value for name, value in change.row.items()
    )
    return f"{change.offset:>3} {change.op} {row}"


def verify(screen: Screen, client: Headwater, dataset: Dataset) -> bool:
    """Verifies the feed against the table on the service. Raises JobUnfinished, Problem."""
    began = time.monotonic()
    found = client.verify(dataset, wait=_WAIT_SECONDS_MAX).result or {}
    verdict = (
        "the table is what its feed says" if found["equal"] else f"they differ: {found['first_difference']}"
    )
    screen.say(
        f"\nVerified on Spark in {time.monotonic() - began:.1f} s: {found['changes']:,} changes folded, "
        f"{found['rows']:,} rows compared, {verdict}."
    )
    return bool(found["equal"])
