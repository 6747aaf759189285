"""Views: datasets that are derived from others by SQL, and updated with them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import quote

from headwater_client.calls.jobs import JobCalls
from headwater_client.models import ChangeOriginsPage, CreateView, Job, View, ViewPage
from headwater_client.transport.connection import decoded, made_up

_PATH: Final = "/views"


class ViewCalls(JobCalls):
    """Registers, lists, refreshes, pauses and deletes views."""

    async def create_view(self, new: CreateView, *, idempotency_key: str | None = None) -> View:
        """Registers a view; its first refresh is queued."""
        return decoded(View, await self._create(_PATH, new, idempotency_key))

    async def get_view(self, view: View | str) -> View:
        """The current state of a view, specified by its value, its id or its name."""
        return decoded(View, await self._get(view_path(view)))

    def views(self) -> AsyncGenerator[View, None]:
        """The tenant's views by name."""
        return self._items(_PATH, ViewPage)

    async def refresh_view(
        self, view: View | str, *, idempotency_key: str | None = None, wait: float = 0
    ) -> Job:
        """Starts a refresh. With `wait`, returns it once it has succeeded: the view then has all current changes."""
        path = f"{view_path(view)}/refreshes"
        return await self._start(path, idempotency_key=made_up(idempotency_key), wait=wait)

    async def find_origins(self, view: View | str, *, since: int = 0, limit: int = 100) -> ChangeOriginsPage:
        """The changes of a view from an offset on, each with the change of the view's input that it was made of."""
        params = {"since": since, "limit": limit}
        return decoded(ChangeOriginsPage, await self._get(f"{view_path(view)}/origins", params))

    async def pause_view(self, view: View | str, *, paused: bool = True) -> View:
        """Pauses or resumes the automatic refreshes of a view. A paused view can still be refreshed."""
        tag = (await self._get(view_path(view))).headers["etag"]
        change = {"state": "paused" if paused else "active"}
        return decoded(View, await self._change(view_path(view), change, tag))

    async def delete_view(self, view: View | str) -> None:
        """Deletes a view and its dataset."""
        await self._send("DELETE", view_path(view))


def view_path(view: View | str) -> str:
    """The path of a view."""
    return f"{_PATH}/{quote(view.id if isinstance(view, View) else view, safe='')}"
