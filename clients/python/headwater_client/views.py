"""Views: datasets that are derived from others by SQL, and updated with them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from headwater_client.connection import decoded
from headwater_client.feed import walk_list
from headwater_client.jobs import JobCalls
from headwater_client.pages import JSON
from headwater_client.values import Bucket, DatasetIdentity, Job, TableType

_PATH: Final = "/views"


class NewView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A view to register. `record_key`: None for the key that follows from the SQL, `()` for no key."""

    name: str
    sql: str
    record_key: tuple[str, ...] | None = None
    partition_by: tuple[str, ...] = ()
    table_type: TableType | None = None
    bucket: Bucket | None = None


class ViewInput(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a view reads. The view includes its changes before `offset`, those of versions up to `version`.

    `relation`: its name in the SQL. `lag`: the number of changes that the view does not include yet.
    """

    relation: str
    dataset: DatasetIdentity
    offset: int
    version: int
    lag: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A view. Its `id` and its `name` are those of its dataset, which is read like any other.

    `state`: `active` or `paused`. `freshness`: `current`, `behind` or `failed`; if failed, `error` is the problem.
    """

    id: str
    name: str
    sql: str
    record_key: tuple[str, ...]
    inputs: tuple[ViewInput, ...]
    mode: str
    state: str
    freshness: str
    error: dict[str, Any] | None
    version: int
    refreshed_at: datetime | None
    created_at: datetime


class ViewPage(msgspec.Struct, frozen=True, kw_only=True):
    """Views by name."""

    items: tuple[View, ...]
    next_page_token: str | None


class ViewCalls(JobCalls):
    """Registers, lists, refreshes, pauses and deletes views."""

    async def create_view(self, new: NewView) -> View:
        """Registers a view; its first refresh is queued."""
        answer = await self._send(
            "POST", _PATH, body=msgspec.json.encode(new), headers={"Content-Type": JSON}
        )
        return decoded(View, answer)

    async def get_view(self, view: View | str) -> View:
        """The current state of a view, specified by its value, its id or its name."""
        return decoded(View, await self._get(view_path(view)))

    async def views(self) -> AsyncGenerator[View, None]:
        """The tenant's views by name."""
        async for page in walk_list(
            partial(self._get, _PATH), partial(decoded, ViewPage), {"page_size": 1_000}
        ):
            for item in page.items:
                yield item

    async def refresh_view(self, view: View | str, *, wait: float = 0) -> Job:
        """Starts a refresh. With `wait`, returns it once it has succeeded: the view then has all current changes."""
        return await self._start(f"{view_path(view)}/refreshes", idempotency_key=None, wait=wait)

    async def pause_view(self, view: View | str, *, paused: bool = True) -> View:
        """Pauses or resumes the automatic refreshes of a view. A paused view can still be refreshed."""
        etag = (await self._get(view_path(view))).headers["ETag"]
        answer = await self._send(
            "PATCH",
            view_path(view),
            body=msgspec.json.encode({"state": "paused" if paused else "active"}),
            headers={"Content-Type": JSON, "If-Match": etag},
        )
        return decoded(View, answer)

    async def delete_view(self, view: View | str) -> None:
        """Deletes a view and its dataset."""
        await self._send("DELETE", view_path(view))


def view_path(view: View | str) -> str:
    """The path of a view."""
    return f"{_PATH}/{quote(view.id if isinstance(view, View) else view, safe='')}"
