"""The parts that all operations share: requests with retries, and the paths of resources."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from headwater_client.models import Dataset, Job, Transaction
from headwater_client.problem import problem_of
from headwater_client.transport.driver import Body, Driver, Request
from headwater_client.transport.pages import JSON
from headwater_client.transport.retry import delay_after_error, delay_after_problem, is_repeatable
from headwater_client.transport.walk import ItemPage, walk_list

WAIT_SECONDS_MAX: Final = 60
_LOGGER: Final = logging.getLogger("headwater_client")

Kind = TypeVar("Kind")
Item = TypeVar("Item")


class Connection:
    """Sends requests through a driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        repeatable: bool = False,
        patience_seconds: float = 0.0,
        linked: bool = False,
        destination: Path | None = None,
    ) -> httpx2.Response:
        """The response, if it is a success.

        Reads and requests with an idempotency key are retried while the service cannot be reached or is busy.
        `repeatable`: so is this request. `linked`, `destination`: see `Request`. Raises Problem, httpx2.TransportError.
        """
        request = Request(
            method=method,
            path=path,
            params=dict(params or {}),
            headers=dict(headers or {}),
            body=body,
            patience_seconds=patience_seconds,
            linked=linked,
            destination=destination,
        )
        repeatable = repeatable or is_repeatable(request)
        attempt = 1
        while True:
            try:
                response = await self._driver.send(request)
            except httpx2.TransportError as error:
                delay = delay_after_error(attempt, error, repeatable=repeatable)
                if delay is None:
                    raise
                reason = f"no response: {error}"
            else:
                if response.is_success:
                    return response
                problem = problem_of(response)
                retry_after = response.headers.get("retry-after")
                delay = delay_after_problem(attempt, problem, retry_after, repeatable=repeatable)
                if delay is None:
                    raise problem
                reason = str(problem)
            _LOGGER.info("%s %s: %s; attempt %d in %.1f s", method, path, reason, attempt + 1, delay)
            await self._driver.sleep(delay)
            attempt += 1

    async def _get(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        accept: str = JSON,
        patience_seconds: float = 0,
    ) -> httpx2.Response:
        headers = {"Accept": accept}
        return await self._send(
            "GET", path, params=params, headers=headers, patience_seconds=patience_seconds
        )

    async def _create(self, path: str, value: Any, idempotency_key: str | None) -> httpx2.Response:
        """The response to a request that creates something once, however often it is sent: `made_up` is its key."""
        return await self._send(
            "POST",
            path,
            body=msgspec.json.encode(value),
            headers={"Content-Type": JSON, "Idempotency-Key": made_up(idempotency_key)},
        )

    async def _change(self, path: str, value: Any, tag: str) -> httpx2.Response:
        """The response to a change of the resource that has this ETag."""
        return await self._send(
            "PATCH",
            path,
            body=msgspec.json.encode(value),
            headers={"Content-Type": JSON, "If-Match": tag},
        )

    async def _items(
        self, path: str, page_type: type[ItemPage[Item]], params: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Item, None]:
        """The items of all pages of a list. Parameters that are None are left out."""
        wanted = {"page_size": 1_000, **given(params or {})}
        async for page in walk_list(partial(self._get, path), partial(decoded, page_type), wanted):
            for item in page.items:
                yield item


def made_up(idempotency_key: str | None) -> str:
    """The caller's key, or a new one for this call."""
    return idempotency_key or str(uuid.uuid4())


def given(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def dataset_path(dataset: Dataset | str) -> str:
    """The path of a dataset, specified by its value, its id or its name."""
    return f"/datasets/{quote(dataset.id if isinstance(dataset, Dataset) else dataset, safe='')}"


def job_path(job: Job | str) -> str:
    """The path of a job."""
    return f"/jobs/{quote(job.id if isinstance(job, Job) else job, safe='')}"


def transaction_path(transaction: Transaction | str) -> str:
    """The path of a transaction."""
    name = transaction.id if isinstance(transaction, Transaction) else transaction
    return f"/transactions/{quote(name, safe='')}"


def decoded(kind: type[Kind], response: httpx2.Response) -> Kind:
    """The value in a JSON response."""
    return msgspec.json.decode(response.content, type=kind)
