"""Trips of a taxi company, made up: new ones, updates of earlier ones, and trips to delete."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any, Final

from headwater_client import NewDataset, NewField

CITIES: Final = ("chennai", "san_francisco", "sao_paulo")
KEY: Final = ("uuid", "city")
_PEOPLE: Final = 1_000

Row = dict[str, Any]


def trips_dataset(name: str) -> NewDataset:
    """The registration of a dataset of trips: keyed by trip and city, partitioned by city."""
    types = {
        "uuid": "string",
        "city": "string",
        "ts": "timestamp",
        "rider": "string",
        "driver": "string",
        "begin_lat": "double",
        "begin_lon": "double",
        "end_lat": "double",
        "end_lon": "double",
        "fare": "decimal(10, 2)",
    }
    return NewDataset(
        name=name,
        fields=tuple(NewField(name=field, type=kind) for field, kind in types.items()),
        record_key=KEY,
        ordering_field="ts",
        partition_by=("city",),
    )


class TripGenerator:
    """Makes the same trips for the same seed. It keeps the keys of the trips that it has made and not deleted."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  (no secrets)
        self._keys: list[tuple[str, str]] = []
        self._minutes = 0

    def inserts(self, count: int) -> list[Row]:
        """Trips with new keys."""
        keys = [
            (str(uuid.UUID(int=self._random.getrandbits(128), version=4)), self._random.choice(CITIES))
            for _ in range(count)
        ]
        self._keys += keys
        return self._trips(keys)

    def updates(self, count: int) -> list[Row]:
        """Later states of trips that it has made: at most one of each."""
        return self._trips(self._random.sample(self._keys, min(count, len(self._keys))))

    def deletes(self, count: int) -> list[Row]:
        """The keys of trips that it has made, and does not change again."""
        gone = self._random.sample(self._keys, min(count, len(self._keys)))
        removed = set(gone)
        self._keys = [key for key in self._keys if key not in removed]
        return [dict(zip(KEY, key, strict=True)) for key in gone]

    def replacements(self, city: str, count: int) -> list[Row]:
        """Trips with new keys, to replace all trips of a city."""
        self._keys = [key for key in self._keys if key[1] != city]
        keys = [(str(uuid.UUID(int=self._random.getrandbits(128), version=4)), city) for _ in range(count)]
        self._keys += keys
        return self._trips(keys)

    @property
    def live(self) -> int:
        """The number of trips that are there."""
        return len(self._keys)

    def _trips(self, keys: Sequence[tuple[str, str]]) -> list[Row]:
        # Each batch is an hour later than the one before, so that its rows win.
        self._minutes += 60
        hour, minute = divmod(self._minutes, 60)
        day, hour = divmod(hour, 24)
        number = self._random.random
        return [
            {
                "uuid": key,
                "city": city,
                "ts": f"2026-01-{1 + day % 28:02d}T{hour:02d}:{minute:02d}:00Z",
                "rider": f"rider-{self._random.randrange(_PEOPLE):03d}",
                "driver": f"driver-{self._random.randrange(_PEOPLE):03d}",
                "begin_lat": number(),
                "begin_lon": number(),
                "end_lat": number(),
                "end_lon": number(),
                "fare": f"{100 * number():.2f}",
            }
            for key, city in keys
        ]
