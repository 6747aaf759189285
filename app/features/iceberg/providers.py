"""What handlers of the Iceberg catalogue get from a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.iceberg.values import PATH
from app.http.dependencies import Provider
from app.http.request import ApiRequest

_VARIANT: Final = PATH.count("/") + 1


async def variant(request: ApiRequest) -> str:
    """The variant in the path, which only the paths of variants have a route with."""
    return str(request.scope["path"].split("/")[_VARIANT])


PROVIDERS: Final[Mapping[str, Provider]] = {"variant": variant}
