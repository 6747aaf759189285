"""Values of versions. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec


class CreateNamedVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name for a version."""

    name: str
    """The name: 1–128 letters, digits, `_`, `.` and `-`, not digits alone. Savepoints and tags share their names."""
    version: int | None = None
    """The version; by default the latest when the job runs."""
    keep_seconds: int | None = None
    """For how many seconds the name is kept; until it is deleted by default."""


class CreateRestore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The version to go back to, in exactly one of `version`, `savepoint`, `tag` and `as_of`."""

    version: int | None = None
    """The number of the version."""
    savepoint: str | None = None
    """The name of a savepoint."""
    tag: str | None = None
    """The name of a tag or savepoint."""
    as_of: datetime | None = None
    """A time: the last version committed by then."""
    expected_version: int | None = None
    """The version that the dataset must still have when the restore commits; any by default."""


class CreateRollback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many versions to undo."""

    instants: int = 1
    """How many of the newest versions to undo. Only versions that writes made are counted."""
    expected_version: int | None = None
    """The version that the dataset must still have when the rollback commits; any by default."""


class NamedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version with a name."""

    name: str
    """The name."""
    kind: str
    """Whether it is a savepoint or a tag."""
    version: int
    """The version."""
    automatic: bool
    """Whether `services.tags` or `services.batch_tags` of the dataset made it."""
    created_at: datetime
    """When the version got the name."""
    expires_at: datetime | None
    """When the name expires; null if it does not."""
    links: NamedVersionLinks
    """Paths of related resources."""


class NamedVersionLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where the resources of a named version are."""

    self_: str
    """The savepoint or tag."""
    dataset: str
    """Its dataset."""
    rows: str
    """The rows of the version."""


class NamedVersionPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of named versions, in the order of their names."""

    items: tuple[NamedVersion, ...]
    """The named versions."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
