"""Folders of users to which files are copied: which ones a tenant may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.infra.files.folders.admitted import RefusedPath, admitted_root, is_below
from app.infra.files.folders.destination import SETTING
from app.kernel.format.errors import FieldError, InvalidRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Destinations:
    """The folders below which a tenant may have destinations: `roots_of` its id, not those of the service itself."""

    storage_uri: str
    roots_of: Callable[[str], tuple[str, ...]]

    def check(self, tenant_id: str, uri: str) -> None:
        """Raises InvalidRequest for a folder that is not admitted."""
        try:
            admitted_root(uri, self.roots_of(tenant_id), SETTING)
            if is_below(uri, self.storage_uri) or is_below(self.storage_uri, uri):
                raise RefusedPath("the service keeps its own files there")
        except RefusedPath as reason:
            detail = f"{uri} cannot be a destination: {reason}"
            error = FieldError(pointer="/destination", detail=detail)
            raise InvalidRequest(f"destination: {detail}", [error]) from None
