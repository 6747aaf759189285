"""`headwater demo flights`."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import polars as pl
import pyarrow as pa

import app.kernel.arrow  # noqa: F401  (before the first array: it keeps pandas out)
from app.infra.runtime.account import AccountError
from clients.demo import flights_report as report
from clients.demo.embedded import StartFailed, embedded_service
from clients.demo.flights_data import FLIGHTS, KEY, Flights, FlightsMissing, load
from clients.demo.flights_time import take_back
from clients.demo.flights_view import ViewBehind, show_view, verify
from clients.demo.fold import FeedBroken, difference, fold
from clients.demo.replay import Batch, Follower, Written, write_batches
from clients.demo.screen import Screen
from clients.demo.sign_in import sign_in_link
from headwater_client import Dataset, Headwater, JobUnfinished, Problem
from headwater_client.cli.failure import CommandError, ExitCode

_DAYS = 365
_FAILURES = (
    FlightsMissing,
    StartFailed,
    Problem,
    JobUnfinished,
    FeedBroken,
    ViewBehind,
    AccountError,
    httpx2.TransportError,
)


def flights(*, keep: Path | None = None, days: int = _DAYS, in_flight: int = 24, stay: bool = False) -> None:
    """Load a year of flights, replay their departures and arrivals while a consumer follows the feed, and check its
    fold.

    Then derive a view, correct a flight, and show the updated view.


    Starts its own service and stops it at the end. The exit code is 0 only if the fold of the feed equals the table.


    Parameters
    ----------
    keep
        The folder for the service's data, which is kept; by default all data are deleted at the end.
    days
        The number of days to replay.
    in_flight
        The number of concurrent writes. Writes that wait for one dataset are committed together.
    stay
        Keep the service running at the end, until Ctrl-C.
    """
    if not 1 <= days <= _DAYS:
        raise CommandError(f"--days must be from 1 to {_DAYS}, not {days}", ExitCode.USAGE)
    if in_flight < 1:
        raise CommandError(f"--in-flight must be at least 1, not {in_flight}", ExitCode.USAGE)
    # `kill` ends the demo like Ctrl-C: the service is stopped and its folder deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with _data_directory(keep) as data:
            _run(Screen(), data, kept=keep is not None, days=days, in_flight=in_flight, stay=stay)
    except _FAILURES as error:
        raise CommandError(str(error)) from error


@contextmanager
def _data_directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep.expanduser().absolute()
        return
    directory = tempfile.mkdtemp(prefix="headwater-demo-")
    try:
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(screen: Screen, data: Path, *, kept: bool, days: int, in_flight: int, stay: bool) -> None:
    began = time.monotonic()
    screen.say("Reading the flights …")
    source = load(days)
    report.introduce(screen, source)
    screen.say("Starting PostgreSQL, Valkey, the API and a Spark worker …")
    # An explicit transport, so that a proxy of the environment is not used for the loopback address.
    with (
        embedded_service(
            data, lambda text: screen.say(f"  {time.monotonic() - began:4.1f} s: {text}")
        ) as note,
        Headwater(note.url, note.api_key, transport=httpx2.HTTPTransport()) as client,
    ):
        screen.say(f"  all files are in {data}\n")
        dataset = client.create_dataset(FLIGHTS)
        with screen.bars():
            replayed = replay(screen, client, dataset, source, in_flight)
        report.throughput(screen, replayed)
        correction = report.excerpt(screen, replayed.changes)
        report.versions(screen, client, dataset, data)
        equal = check(screen, client, dataset, source, replayed.changes)
        show_view(screen, client, dataset)
        take_back(screen, client, dataset)
        equal &= verify(screen, client, dataset)
        screen.say(f"\nThe whole demo took {time.monotonic() - began:.0f} s.")
        if not equal:
            raise CommandError("the tables differ")
        # On a terminal only: others may read a file or a pipe.
        link = sign_in_link(client, "/console") if stay and screen.console.is_terminal else None
        report.where_next(screen, data, note.url, correction, kept=kept, stays=stay, link=link)
        if stay:
            _wait_for_ctrl_c()


def replay(
    screen: Screen, client: Headwater, dataset: Dataset, source: Flights, in_flight: int
) -> report.Replayed:
    """Loads the schedule and replays every day, while a consumer follows the feed."""
    schedule = Batch(name="schedule", rows=source.schedule(), columnar=True)
    batches = _batches(source)
    reading = screen.bar("consumer follows the feed", None, "changes")
    with Follower(client, dataset, lambda position: reading.move(position, position)) as follower:
        began = time.monotonic()
        [loaded] = _write(screen, client, dataset, [schedule], 1, what="schedule")
        loaded_at = time.monotonic()
        written = _write(screen, client, dataset, batches, in_flight, what="departures and arrivals, by day")
        replayed_at = time.monotonic()
        head = client.get_dataset(dataset).next_offset
        changes = follower.finish(head)
        reading.end(head)
        seen = [
            follower.seen_at(each.job.last_offset + 1) - each.sent_at
            for each in written
            if each.job.last_offset is not None
        ]
    read_from = time.monotonic()
    again = pa.concat_tables(page.table for page in client.change_tables(dataset, since=0))
    return report.Replayed(
        loaded=loaded,
        load_seconds=loaded_at - began,
        written=tuple(written),
        replay_seconds=replayed_at - loaded_at,
        in_flight=in_flight,
        seen_seconds=tuple(seen),
        changes=pl.DataFrame(changes),
        read_seconds=time.monotonic() - read_from,
        read_again_equal=again.equals(changes),
    )


def _batches(source: Flights) -> list[Batch]:
    """The batches by day: first the departures, then the arrivals."""
    kinds = {"departures": source.departures(), "arrivals": source.arrivals()}
    return [
        Batch(name=f"{day}-{kind}", rows=tables[day])
        for day in source.days
        for kind, tables in kinds.items()
        if day in tables
    ]


def _write(
    screen: Screen, client: Headwater, dataset: Dataset, batches: list[Batch], in_flight: int, *, what: str
) -> list[Written]:
    bar = screen.bar(what, len(batches), "rows")
    rows: list[int] = []

    def on_written(each: Written) -> None:
        rows.append(each.rows)
        bar.move(len(rows), sum(rows))

    return write_batches(client, dataset, batches, in_flight=in_flight, on_written=on_written)


def check(
    screen: Screen, client: Headwater, dataset: Dataset, source: Flights, changes: pl.DataFrame
) -> bool:
    """Whether the fold of the feed equals the table, and the table equals the file."""
    began = time.monotonic()
    folded = fold(changes, KEY)
    pages = list(client.row_tables(dataset))
    snapshot = pl.DataFrame(pa.concat_tables(page.table for page in pages))
    table = difference(folded, snapshot, KEY)
    file = difference(folded, pl.DataFrame(source.final()), KEY)
    report.verdict(
        screen,
        version=pages[-1].version,
        rows=folded.height,
        seconds=time.monotonic() - began,
        table=table,
        source=file,
    )
    return not table and not file


def _wait_for_ctrl_c() -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
