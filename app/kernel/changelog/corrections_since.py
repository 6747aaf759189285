"""Where the feed has corrections of the changes before an offset."""

from __future__ import annotations

import msgspec

from app.kernel.format.file_group import ChangelogSegment


class CorrectionsSince(msgspec.Struct, frozen=True, kw_only=True):
    """The segments in which changes from offset `since` on may retract changes before it, in order."""

    since: int
    segments: tuple[ChangelogSegment, ...]
