"""A server that does as little as possible with a small write, with the libraries of the service.

`python -m bench.smallest_server STEP PORT [DATABASE_URL]` serves on the port until SIGTERM. A step does what the ones
before it do, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
import sqlalchemy as sa
import uvicorn
from anyio import to_thread
from litestar import Litestar, Request, Response, post

from app.infra.runtime.loopback import LOOPBACK
from bench.trips import SCHEMA

ANSWER: Final = "answer"
DECODE: Final = "decode"
INSERT: Final = "insert"
STEPS: Final = {
    ANSWER: "request and response",
    DECODE: "+ JSON rows to Arrow",
    INSERT: "+ one INSERT and COMMIT",
}
_CONNECTIONS: Final = 10


def decode(body: bytes) -> pa.Table:
    """The rows of a write, without any check beyond the types of the columns."""
    return pa.Table.from_pylist(msgspec.json.decode(body)["source"]["rows"], SCHEMA)


def insert_into(url: str) -> Callable[[bytes], None]:
    """What inserts a body into `accepted (body bytea)`, in a transaction of its own."""
    engine = sa.create_engine(url, pool_size=_CONNECTIONS, max_overflow=0)
    statement = sa.text("INSERT INTO accepted (body) VALUES (:body)")

    def insert(body: bytes) -> None:
        with engine.begin() as connection:
            connection.execute(statement, {"body": body})

    return insert


def application(step: str, url: str | None) -> Litestar:
    """The application of a step."""
    insert = None if url is None else insert_into(url)

    @post("/datasets/{name:str}/writes")
    async def accept(name: str, request: Request[Any, Any, Any]) -> Response[dict[str, str]]:
        body = await request.body()
        if step != ANSWER:
            decode(body)
        if insert is not None:
            await to_thread.run_sync(partial(insert, body))
        return Response({"id": name}, status_code=202)

    return Litestar([accept])


def main(step: str, port: str, url: str | None = None) -> None:
    """Serves until SIGTERM."""
    server = application(step, url)
    uvicorn.run(
        server,
        host=LOOPBACK,
        port=int(port),
        loop="uvloop",
        http="httptools",
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
