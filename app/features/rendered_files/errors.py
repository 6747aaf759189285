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


class RenderingFailed(HeadwaterError):
    """A file cannot be rendered, for a reason that is not of the environment. Facts: `attempts` of the process;
    `retry_after_seconds`, before which it is not tried again.
    """

    code = "rendering-failed"
    title = "A file cannot be prepared"

    def __init__(self, attempts: int, retry_after_seconds: int) -> None:
        super().__init__(
            "a file cannot be prepared with what this reader may see; the log of the service has the cause. It is "
            f"tried again in {retry_after_seconds} s",
            attempts=attempts,
            retry_after_seconds=retry_after_seconds,
        )
