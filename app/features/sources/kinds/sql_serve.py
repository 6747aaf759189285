"""What a process of its own does for a source of kind `sql`: see `LimitedProcesses`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

import msgspec

from app.features.sources.kinds.sql_dialect import ERRORS, DatabaseOutOfReach, OpenSession, Request
from app.features.sources.kinds.sql_frames import FrameWriter
from app.features.sources.kinds.sql_mysql import open_mysql
from app.features.sources.kinds.sql_postgres import open_postgres
from app.infra.outbound.bounds import ReplyTooLarge

# MySQL and MariaDB have one protocol.
_DIALECTS: Final[Mapping[str, OpenSession]] = {
    "postgresql": open_postgres,
    "mysql": open_mysql,
    "mariadb": open_mysql,
}
# For an error when there is no memory; so large a block is returned to the system.
_RESERVE_BYTES: Final = 1024 * 1024


def serve(request: bytes, answer: BinaryIO) -> None:
    """Answers a `Request` with frames, the last of which may be an error."""
    frames = FrameWriter(answer)
    reserve = bytearray(_RESERVE_BYTES)
    try:
        _answer(msgspec.json.decode(request, type=Request), frames)
    except MemoryError:
        del reserve
        frames.end(ReplyTooLarge("it takes more memory than a row may"))
    except tuple(ERRORS.values()) as error:
        frames.end(error)
    except Exception as error:
        # What clients raise for bytes that do not follow the protocol.
        frames.end(DatabaseOutOfReach(f"the server does not follow the protocol: {error!r}"))


def _answer(request: Request, frames: FrameWriter) -> None:
    with _DIALECTS[request.access.scheme](request.access, request.origin) as session:
        for name, arguments in request.calls:
            result = getattr(session, name)(*arguments)
            if not isinstance(result, Iterator):
                frames.value(result)
                continue
            for row in result:
                frames.row(row)
        frames.end()
