"""What is rendered, as features give it."""

from __future__ import annotations

from typing import Protocol

from app.features.rendered_files.values import RenderedRows, RenderingOrigin
from app.infra.files.checksums import HashingSink


class Rendering(Protocol):
    """A file that can be made again at any time, with the same bytes."""

    @property
    def key(self) -> bytes:
        """A digest of all that decides its bytes, within its dataset: at most 32 bytes."""
        ...

    @property
    def view(self) -> str:
        """16 hexadecimal digits: readers that see the same have equal ones."""
        ...

    @property
    def origin(self) -> RenderingOrigin:
        """What it is made of."""
        ...

    def write(self, sink: HashingSink) -> RenderedRows:
        """Writes the file. Called in a thread of its own. Nothing is kept of what it wrote if there are no rows.

        Raises CorruptFile, Unavailable, StorageUnavailable.
        """
        ...
