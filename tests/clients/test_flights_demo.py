"""The flights demo on a service whose tasks run in this process; `tests/flows` runs the command itself."""

import io
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from clients.demo import flights_report as report
from clients.demo.flights import check, flights, replay
from clients.demo.flights_data import FLIGHTS, load
from clients.demo.flights_time import take_back
from clients.demo.fold import FeedBroken
from clients.demo.screen import Screen
from headwater_client.cli.failure import CommandError


@pytest.fixture
def screen():
    return Screen(Console(file=io.StringIO(), width=160, highlight=False))


def output_of(screen):
    return screen.console.file.getvalue()


def test_demo_replays_follows_and_checks_a_day(service, headwater, screen):
    source, dataset = load(1), headwater.create_dataset(FLIGHTS)
    with service.working(), screen.bars():
        replayed = replay(screen, headwater, dataset, source, in_flight=2)
    arrived = source.frame.filter(pl.col("status") == "arrived").height
    assert replayed.changes.height == 3 * source.frame.height + 2 * arrived
    assert replayed.read_again_equal
    assert [each.rows for each in replayed.written] == [source.frame.height, arrived]
    assert check(screen, headwater, dataset, source, replayed.changes)

    report.introduce(screen, source)
    report.throughput(screen, replayed)
    position = report.excerpt(screen, replayed.changes)
    assert next(headwater.changes(dataset, since=position)).op == "-C"
    report.versions(screen, headwater, dataset, Path(service.settings.data_dir))
    report.where_next(screen, Path("data"), service.url, position, kept=True, stays=False)
    for words in (
        "no two rows share one",
        "p95",
        "rows/s",
        "changes/s",
        "-C",
        # Writes that wait together are committed together: how many versions there are depends on the machine.
        f"version {headwater.get_dataset(dataset).version}",
        ".venv/bin/headwater up --port 8080 --data data &",
        "until [ -e data/headwater.json ]",
        "data/operator.key",
    ):
        assert words in output_of(screen), words

    corrected = {**next(headwater.rows(dataset, where="arr_delay >= 600")), "arr_delay": 5}
    with service.working():
        headwater.write_rows(dataset, [corrected], wait=60)
        take_back(screen, headwater, dataset)
    assert "-C" in output_of(screen).rpartition("was undone")[2]
    assert next(headwater.rows(dataset, where="arr_delay >= 600")) != corrected

    # A value that was put and never taken back differs from the table; one that was taken back breaks the feed.
    changes = replayed.changes
    wrong = pl.col("distance") + (pl.col("offset") == changes.height - 1)
    assert not check(screen, headwater, dataset, source, changes.with_columns(distance=wrong))
    assert "1 with other values" in output_of(screen)
    with pytest.raises(FeedBroken):
        check(
            screen,
            headwater,
            dataset,
            source,
            changes.with_columns(distance=pl.col("distance") + pl.col("op")),
        )


@pytest.mark.parametrize("options", [{"days": 0}, {"days": 366}, {"in_flight": 0}])
def test_invalid_options_are_refused_before_the_start(options):
    with pytest.raises(CommandError, match="must be"):
        flights(**options)
