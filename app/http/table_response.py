"""Tables as response bodies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc as ipc

from app.kernel.format.schema.types import annotated

NDJSON: Final = "application/x-ndjson"
CSV: Final = "text/csv"
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"


def arrow_stream(table: pa.Table) -> bytes:
    """The table as an Arrow IPC stream. The ids of its fields stay in the metadata of the schema."""
    # A buffer that grows would copy the page, which may have megabytes, several times.
    size_counter = pa.MockOutputStream()
    _write(table, size_counter)
    buffer = pa.allocate_buffer(size_counter.size())
    _write(table, pa.FixedSizeBufferWriter(buffer))
    return bytes(buffer.to_pybytes())


async def streamed(run: Callable[..., Awaitable[Any]], parts: Iterator[bytes]) -> AsyncGenerator[bytes]:
    """The parts of a content, made as fast as they are sent. `run`: calls a function in a thread."""
    try:
        while (part := await run(next, parts, None)) is not None:
            if part:
                yield part
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with ipc.new_stream(sink, annotated(table.schema)) as writer:
        writer.write_table(table)
