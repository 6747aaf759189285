"""Sources: data that arrive by themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final
from urllib.parse import quote

from headwater_client.calls.jobs import JobCalls
from headwater_client.models import CreateSource, Job, Source, SourcePage
from headwater_client.transport.connection import decoded, made_up

_PATH: Final = "/sources"


class SourceCalls(JobCalls):
    """Registers, lists, runs, pauses, resets and deletes sources."""

    async def create_source(self, new: CreateSource, *, idempotency_key: str | None = None) -> Source:
        """Registers a source; its first round starts at once."""
        return decoded(Source, await self._create(_PATH, new, idempotency_key))

    async def get_source(self, source: Source | str) -> Source:
        """The current state of a source, specified by its value, its id or its name."""
        return decoded(Source, await self._get(source_path(source)))

    def sources(self) -> AsyncGenerator[Source, None]:
        """The tenant's sources by name."""
        return self._items(_PATH, SourcePage)

    async def start_source_round(
        self, source: Source | str, *, idempotency_key: str | None = None, wait: float = 0
    ) -> Job:
        """Starts a round. With `wait`, returns it once it has succeeded: its rows are in the dataset then."""
        path = f"{source_path(source)}/rounds"
        return await self._start(path, idempotency_key=made_up(idempotency_key), wait=wait)

    async def pause_source(self, source: Source | str, *, paused: bool = True) -> Source:
        """Pauses a source, or resumes it, also after it has failed or finished."""
        return await self._changed(source, {"state": "paused" if paused else "active"})

    async def limit_source(
        self,
        source: Source | str,
        *,
        interval_seconds: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        max_items: int | None = None,
    ) -> Source:
        """Changes the bounds of rounds, and the pause between them; None leaves a value as it is."""
        members = {
            "interval_seconds": interval_seconds,
            "max_rows": max_rows,
            "max_bytes": max_bytes,
            "max_items": max_items,
        }
        return await self._changed(
            source, {name: value for name, value in members.items() if value is not None}
        )

    async def reset_source(self, source: Source | str, position: dict[str, Any] | None = None) -> Source:
        """Moves a source to a position, by default to the beginning. It reads again what comes after."""
        return await self._changed(source, {"position": position or {}})

    async def delete_source(self, source: Source | str) -> None:
        """Deletes a source. Its dataset stays."""
        await self._send("DELETE", source_path(source))

    async def _changed(self, source: Source | str, change: dict[str, Any]) -> Source:
        tag = (await self._get(source_path(source))).headers["etag"]
        return decoded(Source, await self._change(source_path(source), change, tag))


def source_path(source: Source | str) -> str:
    """The path of a source."""
    return f"{_PATH}/{quote(source.id if isinstance(source, Source) else source, safe='')}"
