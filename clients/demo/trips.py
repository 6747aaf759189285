"""`headwater demo trips`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Final

from clients.demo.sign_in import sign_in_link
from clients.demo.trip_generator import CITIES, KEY, Row, TripGenerator, trips_dataset
from headwater_client import Dataset, Headwater, Job, JobUnfinished, Problem, WriteOptions
from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.output import print_table
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Operation, Overwrite

_WAIT_SECONDS: Final = 300.0
_ROWS_MAX: Final = 1_000_000
# One of this number of trips is updated, deleted, and in the city whose trips are replaced.
_UPDATED, _DELETED, _REPLACING = 5, 20, 10
_AS_ROWS: Final = WriteOptions()


def trips(
    *, rows: int = 1_000, dataset: str = "trips", seed: int = 1, service: ServiceChoice = SERVICE
) -> None:
    """Write made-up trips to a running service in every way of a quickstart, and read them back.

    Registers a dataset, inserts trips, updates a fifth of them, deletes a twentieth, and replaces those of one city.
    Then reads the table, an earlier version, what changed between two versions, and the feed. The exit code is 0 only
    if every read has the rows that it should have.

    Parameters
    ----------
    rows
        The number of trips to insert.
    dataset
        The name of the dataset to register.
    seed
        The same seed makes the same trips.
    """
    if not _DELETED <= rows <= _ROWS_MAX:
        raise CommandError(f"--rows must be from {_DELETED} to {_ROWS_MAX}, not {rows}", ExitCode.USAGE)
    with service.client() as client:
        try:
            made = client.create_dataset(trips_dataset(dataset))
        except Problem as error:
            if error.code == "dataset-exists":
                raise CommandError(
                    f"there is a dataset {dataset!r} already: choose another name with --dataset",
                    ExitCode.CONFLICT,
                ) from error
            raise
        try:
            _run(Steps(client=client, dataset=made), TripGenerator(seed), rows)
        except JobUnfinished as error:
            raise CommandError(str(error), ExitCode.UNFINISHED) from error


@dataclass(kw_only=True)
class Steps:
    """The writes so far, as lines of a table: what was written, rows sent, version, trips after it."""

    client: Headwater
    dataset: Dataset
    lines: list[tuple[str, int, int | None, int]] = field(default_factory=list)

    def write(
        self,
        operation: Operation,
        rows: list[Row],
        generator: TripGenerator,
        options: WriteOptions = _AS_ROWS,
    ) -> Job:
        """Commits rows."""
        job = self.client.write_rows(
            self.dataset, rows, operation=operation, options=options, wait=_WAIT_SECONDS
        )
        self.lines.append((operation, len(rows), job.committed_version, generator.live))
        return job


def _run(steps: Steps, generator: TripGenerator, rows: int) -> None:
    client, dataset, city = steps.client, steps.dataset, CITIES[0]
    inserted = steps.write("insert", generator.inserts(rows), generator)
    updated = steps.write("upsert", generator.updates(rows // _UPDATED), generator)
    steps.write("delete", generator.deletes(rows // _DELETED), generator)
    replacements = generator.replacements(city, rows // _REPLACING)
    latest = steps.write(
        "overwrite", replacements, generator, WriteOptions(overwrite=Overwrite(scope="partitions"))
    )
    print_table(("OPERATION", "ROWS", "VERSION", "TRIPS AFTER IT"), steps.lines)
    print()

    first = sum(1 for _ in client.rows(dataset, version=inserted.committed_version, columns=["uuid"]))
    now = {_key(row) for row in client.rows(dataset, columns=KEY)}
    in_city = sum(1 for _ in client.rows(dataset, columns=["uuid"], partitions=[f"city={city}"]))
    start, end = updated.first_offset or 0, (updated.last_offset or -1) + 1
    corrections = sum(1 for change in client.changes(dataset, since=start, until=end) if change.op == "+C")
    facts = [
        (f"rows of version {inserted.committed_version}", rows, first),
        (f"rows of version {latest.committed_version}, the latest", generator.live, len(now)),
        (f"of them in {city}, whose trips were replaced", len(replacements), in_city),
        (f"rows that version {updated.committed_version} changed", rows // _UPDATED, corrections),
        ("rows that the whole feed adds up to", generator.live, len(now & _folded(client, dataset))),
    ]
    print_table(("READ", "EXPECTED", "FOUND"), facts)
    if any(expected != found for _, expected, found in facts):
        raise CommandError("a read does not have the rows that it should have")
    print(
        f"\nAll reads agree. The dataset {dataset.name} stays: read its rows, its changes and its timeline."
    )
    if sys.stdout.isatty():
        # Not to a file or a pipe, which others may read.
        link = sign_in_link(client, f"/console/datasets/{dataset.name}")
        print(f"The console has its page. This link signs in once, within 10 minutes:\n  {link}")
    else:
        print("`headwater console` prints a link that signs in to the console, which has its page.")


def _folded(client: Headwater, dataset: Dataset) -> set[tuple[str, str]]:
    """The keys that are live after all changes of the feed."""
    live: set[tuple[str, str]] = set()
    for change in client.changes(dataset, since=0):
        if change.op in ("+A", "+C"):
            live.add(_key(change.row))
        else:
            live.discard(_key(change.row))
    return live


def _key(row: Row) -> tuple[str, str]:
    return row["uuid"], row["city"]
