"""The error of an export."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class ExportEnded(HeadwaterError):
    """The export has reached its end, or was requested to run once. Facts: `offset`, where it stopped; `until`."""

    code = "export-ended"
    title = "The export has ended"
