"""`headwater demo trips`: a quickstart on a running service, whose reads are checked."""

from __future__ import annotations

import pytest

from clients.demo.trip_generator import CITIES, TripGenerator
from tests.support.command_line import command_line, use_service
from tests.support.service import Service


def test_generator_makes_the_same_trips_for_the_same_seed() -> None:
    one, other, another = TripGenerator(1), TripGenerator(1), TripGenerator(2)
    inserted = one.inserts(50)
    assert inserted == other.inserts(50) != another.inserts(50)
    assert one.updates(10) == other.updates(10)
    assert len({row["uuid"] for row in inserted}) == 50
    assert {row["city"] for row in inserted} == set(CITIES)


def test_updates_are_later_and_deleted_trips_are_not_updated() -> None:
    generator = TripGenerator(3)
    inserted = {row["uuid"]: row for row in generator.inserts(40)}
    changed = generator.updates(100)
    assert {row["uuid"] for row in changed} == set(inserted)
    assert all(row["ts"] > inserted[row["uuid"]]["ts"] for row in changed)
    gone = {row["uuid"] for row in generator.deletes(15)}
    assert (len(gone), generator.live) == (15, 25)
    assert not gone & {row["uuid"] for row in generator.updates(100)}
    replaced = generator.replacements(CITIES[0], 4)
    assert {row["city"] for row in replaced} == {CITIES[0]}
    assert generator.live == 4 + sum(row["city"] != CITIES[0] for row in generator.updates(100))


def test_demo_writes_and_reads_trips_on_a_running_service(
    service: Service, api_key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_service(monkeypatch, service.url, api_key)
    headwater = command_line(capsys)
    with service.working():
        printed = headwater("demo", "trips", "--rows", "60").out
    assert "All reads agree" in printed
    assert [line.split()[:3] for line in printed.splitlines()[1:5]] == [
        ["insert", "60", "1"],
        ["upsert", "12", "2"],
        ["delete", "3", "3"],
        ["overwrite", "6", "4"],
    ]
    again = headwater("demo", "trips", "--rows", "60", fails=6)
    assert "choose another name with --dataset" in again.err
    assert "--rows must be from 20" in headwater("demo", "trips", "--rows", "5", fails=2).err
