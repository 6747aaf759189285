"""Trees of objects that no listing has."""

from __future__ import annotations

from collections.abc import Sequence

from app.features.objects.ports import ServedTable
from app.features.objects.values import ObjectEntry


class UnlistedTree:
    """A tree whose objects are in no listing (`ObjectTree`): readers find them in responses, and a listing would have
    to make all of them.
    """

    def listing(
        self,
        table: ServedTable,  # noqa: ARG002
        prefix: str,  # noqa: ARG002
        after: str,  # noqa: ARG002
        limit: int,  # noqa: ARG002
    ) -> Sequence[ObjectEntry]:
        """Nothing."""
        return ()
