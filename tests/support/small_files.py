"""Tables whose files are never small, so that every write leaves a file of its own and marks rows in the others."""

from __future__ import annotations

import msgspec

from app.kernel.format.dataset import DatasetDefinition

# Less than the API accepts. A file of a few rows has more than a quarter of it, and no more than all of it.
_TARGET_BYTES = 4_096


def without_small_files(definition: DatasetDefinition) -> DatasetDefinition:
    """The dataset with a target size that a file of a few rows is near."""
    return msgspec.structs.replace(definition, target_bytes=_TARGET_BYTES)
