"""Downloads of files in parts: at most one part is in memory, or requested again after a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headwater_client.calls.jobs import JobCalls

_PART_BYTES: Final = 8 * 1024 * 1024


class DamagedDownload(Exception):
    """A downloaded file does not match the manifest or the result."""


class DownloadCalls(JobCalls):
    """Downloads files."""

    async def _download_parts(self, source: str, size_bytes: int, path: Path) -> None:
        """Writes the file at `source` to `path`."""
        await self._driver.run(path.write_bytes, b"")
        for start in range(0, size_bytes, _PART_BYTES):
            last = min(start + _PART_BYTES, size_bytes) - 1
            part = await self._send("GET", source, headers={"Range": f"bytes={start}-{last}"})
            await self._driver.run(_append, path, part.content)


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
