"""When versions were committed, in a form that is small enough for every task."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import numpy as np

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class PackedCommitTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When versions were committed, small enough for every task.

    `differences`: between the times of versions 1, 2, …, compressed; int64 of microseconds since 1970, 0 for an unknown
    one.
    """

    differences: bytes = msgspec.field(name="packed")

    @classmethod
    def of(cls, times: Mapping[int, datetime], version: int) -> PackedCommitTimes:
        """The times of the versions up to this one."""
        micros = np.zeros(version, dtype=np.int64)
        for number, time in times.items():
            micros[number - 1] = (time - _EPOCH) // _MICROSECOND
        return cls(differences=zlib.compress(np.diff(micros, prepend=0).tobytes()))

    def times(self, versions: Iterable[int]) -> dict[int, datetime]:
        """The times of these versions, as far as known."""
        micros = np.cumsum(np.frombuffer(zlib.decompress(self.differences), dtype=np.int64))
        micros_of = {version: int(micros[version - 1]) for version in versions if 0 < version <= len(micros)}
        return {version: _EPOCH + time * _MICROSECOND for version, time in micros_of.items() if time}
