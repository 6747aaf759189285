"""The metadata of commits: texts by key, which their writers choose, and their bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec

from app.kernel.format.member_errors import escaped

METADATA_ENTRIES_MAX: Final = 32
METADATA_VALUE_CHARACTERS_MAX: Final = 1_024
METADATA_BYTES_MAX: Final = 4_096
"""The most bytes of the metadata of a write, as JSON."""
METADATA_KEY: Final = r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}"
"""The pattern of a key."""
_KEY: Final = re.compile(METADATA_KEY)


class CommitMetadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A commit whose writes have metadata."""

    version: int
    """The version that it made."""
    committed_at: datetime
    """When that was."""
    metadata: Annotated[tuple[dict[str, str], ...], msgspec.Meta(examples=[[{"run": "nightly-7"}]])]
    """The metadata of each of its writes that has some, in the order of their acceptance."""


def metadata_faults(metadata: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the metadata of a write: a pointer relative to it, and what is expected."""
    if len(metadata) > METADATA_ENTRIES_MAX:
        yield "", f"expected at most {METADATA_ENTRIES_MAX} entries, got {len(metadata)}"
    for key, value in metadata.items():
        pointer = f"/{escaped(key)}"
        if not _KEY.fullmatch(key):
            yield (
                pointer,
                "expected a key of 1–128 letters, digits, '_', '-', '.' or '/', the first a letter, a digit or '_'",
            )
        if len(value) > METADATA_VALUE_CHARACTERS_MAX:
            yield pointer, f"expected at most {METADATA_VALUE_CHARACTERS_MAX} characters, got {len(value)}"
    size_bytes = metadata_bytes([metadata])
    if size_bytes > METADATA_BYTES_MAX:
        yield "", f"expected at most {METADATA_BYTES_MAX} bytes of JSON, got {size_bytes}"


def metadata_bytes(metadata: object) -> int:
    """The size of metadata as JSON."""
    return len(msgspec.json.encode(metadata))
