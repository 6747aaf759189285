"""The files that pages load. Their addresses have a digest of their content, so they are cached for ever."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from litestar import get
from litestar.params import PathParameter

from app.access.errors import NotFound
from app.features.console.handlers.responses import POLICY
from app.features.console.rendering import asset_version, assets
from app.http.auth import PUBLIC
from app.http.response import ApiResponse

# The framework adds the charset to texts.
_TYPES: Final = {
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
AssetName: TypeAlias = Annotated[str, PathParameter(description="The name of a file.")]
AssetVersion: TypeAlias = Annotated[str, PathParameter(description="A digest of the files.")]


@get("/console/static/{release:str}/{name:str}", opt={PUBLIC: True})
async def get_asset(release: AssetVersion, name: AssetName) -> ApiResponse[bytes]:
    """A file of the console."""
    content = assets().get(name)
    if content is None or release != asset_version():
        raise NotFound(f"the console has no file {name!r}")
    media_type = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Content-Security-Policy": POLICY}
    return ApiResponse(content, media_type=media_type, headers=headers)
