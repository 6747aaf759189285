"""What handlers of the Iceberg catalogue get from a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.iceberg.values import PATH
from app.http.dependencies import Provided, Provider
from app.http.request import ApiRequest
from app.kernel.format.errors import InvalidRequest

_VARIANT: Final = PATH.count("/") + 1


async def variant(request: ApiRequest) -> str:
    """The variant in the path, which only the paths of variants have a route with."""
    return str(request.scope["path"].split("/")[_VARIANT])


async def public_url(request: ApiRequest, configured_url: Provided[str]) -> str:
    """The address under which clients reach the service, without a slash at its end: the setting, or Host.

    Raises InvalidRequest for a Host that is no address.
    """
    if configured_url:
        return configured_url
    try:
        return str(request.base_url).rstrip("/")
    except ValueError:
        raise InvalidRequest("the header Host is not valid: expected a name and a port up to 65535") from None


PROVIDERS: Final[Mapping[str, Provider]] = {"variant": variant, "public_url": public_url}
