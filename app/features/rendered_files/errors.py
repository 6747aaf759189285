"""The errors of rendered files."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class RenderingUnderWay(HeadwaterError):
    """Files are being rendered for the reader. Facts: `done`, `total`: of the files that the request needs;
    `retry_after_seconds`.
    """

    code = "rendering-under-way"
    title = "The files are being prepared"

    def __init__(self, ready: int, total: int, retry_after_seconds: int) -> None:
        super().__init__(
            f"{ready} of {total} files are prepared with what this reader may see. Send the request again",
            done=ready,
            total=total,
            retry_after_seconds=retry_after_seconds,
        )
