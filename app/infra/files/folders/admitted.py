"""Folders and prefixes of tenants: only those below the roots that the operator admits."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

_SCHEMES = ("file", "s3")


class RefusedPath(ValueError):
    """A path that must not be used. The message has the reason."""


def roots_of_tenant(roots: Sequence[str], tenant_id: str) -> tuple[str, ...]:
    """The roots of a tenant. `{tenant_id}` in a root stands for the id of the tenant."""
    return tuple(root.replace("{tenant_id}", tenant_id) for root in roots)


def admitted_root(uri: str, roots: Sequence[str], setting: str) -> str:
    """The root below which a URI is. `setting`: the name of the setting with the roots.

    Raises RefusedPath with the reason.
    """
    if not unquote(uri).isprintable():
        raise RefusedPath("a path has no control characters")
    parts = urlsplit(uri)
    if parts.scheme not in _SCHEMES:
        raise RefusedPath("expected file:///folder or s3://bucket/prefix")
    if parts.query or parts.fragment:
        raise RefusedPath("a path has no query and no fragment; encode ? as %3F and # as %23")
    path = unquote(parts.path)
    if ".." in path.split("/"):
        raise RefusedPath("a path has no `..`")
    if not roots:
        raise RefusedPath(f"this deployment admits no folder: its operator names folders in {setting}")
    for root in roots:
        if is_below(uri, root):
            return root
    raise RefusedPath(f"it is below none of the folders that the operator has named in {setting}")


def is_below(uri: str, root: str) -> bool:
    """Whether a URI is that of a root, or of something below it. Links are not followed."""
    parts, root_parts = urlsplit(uri), urlsplit(root)
    if (root_parts.scheme, root_parts.netloc) != (parts.scheme, parts.netloc):
        return False
    return path_is_below(unquote(parts.path), unquote(root_parts.path))


def path_is_below(path: str, root: str) -> bool:
    """The same for plain paths."""
    path, root = posixpath.normpath(path or "/"), posixpath.normpath(root or "/")
    return path == root or path.startswith(f"{root.rstrip('/')}/")
