"""The hint of reads of an earlier version: whether later commits have corrected their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

CORRECTED_HEADER: Final[Mapping[str, str]] = {
    "Headwater-Corrected": "`true` or `false`, as the member `corrected`; absent where it is."
}


def corrected_header(corrected: bool | msgspec.UnsetType | None) -> dict[str, str]:
    """The header; nothing if it is not known."""
    if corrected is None or corrected is msgspec.UNSET:
        return {}
    return {"Headwater-Corrected": "true" if corrected else "false"}


def corrected_member(corrected: bool | None) -> bytes:
    """A further member of a JSON object, with a comma before it; nothing if it is not known."""
    return b"" if corrected is None else b',"corrected":' + msgspec.json.encode(corrected)
