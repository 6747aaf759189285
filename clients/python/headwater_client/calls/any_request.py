"""Requests that no method of the client covers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from headwater_client.transport.connection import Connection
from headwater_client.transport.driver import Body


class AnyRequestCalls(Connection):
    """Sends any request."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        patience_seconds: float = 0,
    ) -> httpx2.Response:
        """The response to any request, if it is a success. Raises Problem, httpx2.TransportError.

        Reads, and requests with an `Idempotency-Key`, are retried. `patience_seconds`: additional time for the
        response, for requests that wait.
        """
        return await self._send(
            method, path, params=params, headers=headers, body=body, patience_seconds=patience_seconds
        )
