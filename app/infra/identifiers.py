"""New ids: ordered by time, created where they are needed, never reused. They read the clock and random bits."""

from __future__ import annotations

import os
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def new_id() -> str:
    """A UUID version 7 (RFC 9562): 48 bits of Unix milliseconds, then random bits, so that indexes stay local."""
    raw = bytearray((time.time_ns() // 1_000_000).to_bytes(6, "big") + os.urandom(10))
    raw[6] = (raw[6] & 0x0F) | 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def id_at(moment: datetime) -> str:
    """A new UUID version 7 of a moment: as `new_id`, with its microseconds before the random bits.

    Ids of moments are ordered as these are.
    """
    milliseconds, microseconds = divmod((moment - _EPOCH) // timedelta(microseconds=1), 1_000)
    raw = bytearray(milliseconds.to_bytes(6, "big") + microseconds.to_bytes(2, "big") + os.urandom(8))
    raw[6] |= 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def new_instant_id(now: datetime | None = None) -> str:
    """The id of one attempt to change a dataset: `yyyyMMddHHmmssffffff-rrrrrr`, sortable by request time.

    The order of commits is never derived from it, but from versions, which the commit transaction assigns.
    """
    moment = now or datetime.now(UTC)
    return f"{moment:%Y%m%d%H%M%S%f}-{os.urandom(3).hex()}"


def random_hex(size_bytes: int) -> str:
    """Random bytes as hexadecimal digits, which make the name of a file new."""
    return os.urandom(size_bytes).hex()
