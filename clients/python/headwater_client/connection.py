"""A connection with a credential, and where the resources are that it asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx
import msgspec

from headwater_client.pages import JSON
from headwater_client.transport import Transport
from headwater_client.values import Dataset, Job, Transaction

WAIT_SECONDS_MAX: Final = 60


class Connection:
    """What all calls share. Closed by `close`, or as a context."""

    def __init__(self, url: str, api_key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._transport = Transport(url, api_key, transport)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The client that HEADWATER_URL and HEADWATER_API_KEY describe. Raises KeyError."""
        return cls(environment["HEADWATER_URL"], environment["HEADWATER_API_KEY"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections."""
        self._transport.close()

    def _get(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        accept: str = JSON,
        patience_seconds: float = 0,
    ) -> httpx.Response:
        return self._transport.send(
            "GET",
            path,
            params=params,
            headers={"Accept": accept},
            repeatable=True,
            patience_seconds=patience_seconds,
        )


def dataset_path(dataset: Dataset | str) -> str:
    """Where a dataset is, given as its value, its id or its name."""
    return f"/datasets/{quote(dataset.id if isinstance(dataset, Dataset) else dataset, safe='')}"


def job_path(job: Job | str) -> str:
    """Where a job is."""
    return f"/jobs/{quote(job.id if isinstance(job, Job) else job, safe='')}"


def transaction_path(transaction: Transaction | str) -> str:
    """Where a transaction is."""
    name = transaction.id if isinstance(transaction, Transaction) else transaction
    return f"/transactions/{quote(name, safe='')}"


def decoded(kind: Any, response: httpx.Response) -> Any:
    """The value in a JSON response."""
    return msgspec.json.decode(response.content, type=kind)
