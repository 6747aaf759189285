"""Restores the flights to their state before the correction."""

from __future__ import annotations

import time

from rich.text import Text

from clients.demo.flights_data import KEY
from clients.demo.screen import Screen
from headwater_client import Dataset, Headwater

_WAIT_SECONDS_MAX = 300.0


def take_back(screen: Screen, client: Headwater, dataset: Dataset) -> None:
    """Undoes the last write, tags the resulting version, and reads by the tag.

    Raises JobUnfinished, Problem.
    """
    before, began = client.get_dataset(dataset), time.monotonic()
    undone = client.roll_back(dataset, wait=_WAIT_SECONDS_MAX)
    seconds = time.monotonic() - began
    screen.say(
        f"\nThe correction was undone in {seconds:.1f} s: version {undone.committed_version:,} has the rows of "
        f"version {before.version - 1:,} again. The feed has the change:"
    )
    for change in client.changes(dataset, since=before.next_offset):
        row = f"{' '.join(str(change.row[name]) for name in KEY)}, {change.row['arr_delay']:,} minutes late"
        line = Text(f"  {change.offset:,} {change.op} {row}")
        line.stylize("red" if change.op == "-C" else "green")
        screen.console.print(line)
    client.create_tag(dataset, "as-flown", wait=_WAIT_SECONDS_MAX)
    late = sum(1 for _ in client.rows(dataset, tag="as-flown", where="arr_delay >= 600"))
    screen.say(f"The tag of that version is as-flown; {late:,} of its flights were at least ten hours late.")
