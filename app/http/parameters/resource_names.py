"""How a response names a resource that it belongs to."""

from __future__ import annotations

from typing import Annotated

import msgspec


class DatasetIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset by its id and its present name."""

    id: str
    """The id, which the dataset keeps when it is renamed."""
    name: Annotated[str, msgspec.Meta(examples=["orders"])]
    """The name."""
