"""The client's I/O interface: sends requests, waits, and reads and writes files.

The operations are coroutines over this interface, and do no I/O of their own. `BlockingDriver` never suspends, so the
blocking client runs a coroutine to its end at once; `AsyncDriver` suspends in the event loop.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, closing
from pathlib import Path
from typing import IO, Any, Final, Literal, Protocol, TypeVar

import httpx2
import msgspec

Result = TypeVar("Result")


class FileBody(Protocol):
    """A file that is sent, such as a Path: opened for each attempt, and never in memory as a whole."""

    def open(self, mode: Literal["rb"]) -> IO[bytes]: ...

    def stat(self) -> os.stat_result: ...


Body = bytes | FileBody
"""The body of a request: bytes, or a file."""

_CHUNK_BYTES: Final = 256 * 1024
_CONNECT_SECONDS: Final = 30.0
_READ_SECONDS: Final = 60.0
# Some programs reach only the service, and not its storage.
_UNREACHABLE: Final = (httpx2.ConnectError, httpx2.ConnectTimeout)
_VARIABLES: Final = ("HEADWATER_URL", "HEADWATER_API_KEY")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its credential. `patience_seconds`: additional time for the response of the service.

    `linked`: a link to the storage that answers is followed, without the credential. `destination`: the file that gets
    the content of a success, which is then not in memory.
    """

    method: str
    path: str
    params: dict[str, Any] = {}
    headers: dict[str, str] = {}
    body: Body | None = None
    patience_seconds: float = 0.0
    linked: bool = False
    destination: Path | None = None

    def without_link(self) -> Request:
        """The request, to be answered by the service itself."""
        headers = {name: value for name, value in self.headers.items() if name != "Prefer"}
        return msgspec.structs.replace(self, headers=headers, linked=False)

    @property
    def timeout(self) -> httpx2.Timeout:
        """The timeouts of the request's steps."""
        return httpx2.Timeout(_CONNECT_SECONDS, read=_READ_SECONDS + self.patience_seconds)


class Driver(Protocol):
    """Sends requests with a credential, waits, and does file work."""

    async def send(self, request: Request) -> httpx2.Response:
        """The response, whatever its status. Raises httpx2.TransportError."""

    async def sleep(self, seconds: float) -> None:
        """Waits."""

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """The result of work that reads or writes files."""


class BlockingDriver:
    """Sends requests in the calling thread. Several threads may use it at once."""

    def __init__(self, url: str, api_key: str, transport: httpx2.BaseTransport | None) -> None:
        self._client = httpx2.Client(base_url=url, headers=_credential(api_key), transport=transport)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    async def send(self, request: Request) -> httpx2.Response:
        """See `Driver`."""
        if request.body is not None and not isinstance(request.body, bytes):
            with request.body.open("rb") as content:
                return self._client.send(self._built(request, content))
        response = self._response(request)
        link = response.next_request
        if request.linked and link is not None:
            response.close()
            try:
                response = self._client.send(link, stream=request.destination is not None)
            except _UNREACHABLE:
                response = self._response(request.without_link())
        if request.destination is not None:
            with closing(response):
                self._save(response, request.destination)
        return response

    def _response(self, request: Request) -> httpx2.Response:
        return self._client.send(self._built(request, request.body), stream=request.destination is not None)

    def _save(self, response: httpx2.Response, destination: Path) -> None:
        if not response.is_success:
            response.read()
            return
        with destination.open("wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)

    async def sleep(self, seconds: float) -> None:
        """See `Driver`."""
        time.sleep(seconds)  # noqa: ASYNC251 - this driver blocks

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """See `Driver`."""
        return work(*arguments)

    def _built(self, request: Request, content: Any) -> httpx2.Request:
        return self._client.build_request(
            request.method,
            request.path,
            # An empty mapping would remove the query of a link.
            params=request.params or None,
            headers=request.headers,
            content=content,
            timeout=request.timeout,
        )


class AsyncDriver:
    """Sends requests in the running event loop of asyncio."""

    def __init__(self, url: str, api_key: str, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._client = httpx2.AsyncClient(base_url=url, headers=_credential(api_key), transport=transport)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def send(self, request: Request) -> httpx2.Response:
        """See `Driver`."""
        headers = dict(request.headers)
        if request.body is not None and not isinstance(request.body, bytes):
            headers["Content-Length"] = str((await self.run(request.body.stat)).st_size)
            content: bytes | AsyncIterator[bytes] | None = self._chunks(request.body)
        else:
            content = request.body
        response = await self._response(request, headers, content)
        link = response.next_request
        if request.linked and link is not None:
            await response.aclose()
            try:
                response = await self._client.send(link, stream=request.destination is not None)
            except _UNREACHABLE:
                plain = request.without_link()
                response = await self._response(plain, plain.headers, None)
        if request.destination is not None:
            async with aclosing(response):
                await self._save(response, request.destination)
        return response

    async def _response(self, request: Request, headers: Mapping[str, str], content: Any) -> httpx2.Response:
        built = self._client.build_request(
            request.method,
            request.path,
            params=request.params or None,
            headers=headers,
            content=content,
            timeout=request.timeout,
        )
        return await self._client.send(built, stream=request.destination is not None)

    async def _save(self, response: httpx2.Response, destination: Path) -> None:
        if not response.is_success:
            await response.aread()
            return
        file: IO[bytes] = await self.run(destination.open, "wb")
        try:
            async for chunk in response.aiter_bytes(_CHUNK_BYTES):
                await self.run(file.write, chunk)
        finally:
            await self.run(file.close)

    async def sleep(self, seconds: float) -> None:
        """See `Driver`."""
        await asyncio.sleep(seconds)

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """See `Driver`."""
        return await asyncio.to_thread(work, *arguments)

    async def _chunks(self, body: FileBody) -> AsyncIterator[bytes]:
        file: IO[bytes] = await self.run(body.open, "rb")
        try:
            while chunk := await self.run(file.read, _CHUNK_BYTES):
                yield chunk
        finally:
            file.close()


def credentials(environment: Mapping[str, str]) -> tuple[str, str]:
    """The URL and the API key that the environment names. Raises LookupError for a variable that is not set."""
    missing = [name for name in _VARIABLES if not environment.get(name)]
    if missing:
        raise LookupError(
            f"set the environment variable {' and '.join(missing)}, or call the class with url, api_key"
        )
    url, api_key = (environment[name] for name in _VARIABLES)
    return url, api_key


def _credential(api_key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"}
