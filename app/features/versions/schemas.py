"""JSON forms of versions: names, restores, rollbacks and comparisons."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias
from urllib.parse import quote

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.named_version import NamedVersion
from app.features.versions.values import RestorePoint, Time, VersionNumber
from app.kernel.paging import Page

_INSTANTS_MAX: Final = 10_000
_KEEP_SECONDS_MAX: Final = 10**10

_Name: TypeAlias = Annotated[str, msgspec.Meta(examples=["before-import"])]


class CreateNamedVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name for a version."""

    name: _Name
    """The name: 1–128 letters, digits, `_`, `.` and `-`, not digits alone. Savepoints and tags share their names."""
    version: VersionNumber | None = None
    """The version; by default the latest when the job runs."""
    keep_seconds: Annotated[int, msgspec.Meta(ge=1, le=_KEEP_SECONDS_MAX)] | None = None
    """For how many seconds the name is kept; until it is deleted by default."""


class NamedVersionLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where the resources of a named version are."""

    self_: str
    """The savepoint or tag."""
    dataset: str
    """Its dataset."""
    rows: str
    """The rows of the version."""


class NamedVersionResponse(NamedVersion, frozen=True, kw_only=True):
    """A version with a name."""

    links: NamedVersionLinks
    """Paths of related resources."""


class NamedVersionPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of named versions, in the order of their names."""

    items: list[NamedVersionResponse]
    """The named versions."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class CreateRestore(RestorePoint, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version to go back to, in exactly one of `version`, `savepoint`, `tag` and `as_of`."""

    expected_version: VersionNumber | None = None
    """The version that the dataset must still have when the restore commits; any by default."""


class CreateRollback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many versions to undo."""

    instants: Annotated[int, msgspec.Meta(ge=1, le=_INSTANTS_MAX)] = 1
    """How many of the newest versions to undo. Only versions that writes made are counted."""
    expected_version: VersionNumber | None = None
    """The version that the dataset must still have when the rollback commits; any by default."""


class CreateComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The two versions, each by its number, a time or a name; the latest by default."""

    from_version: VersionNumber | None = None
    """The number of the first version."""
    from_as_of: Time | None = None
    """A time: the first version is the last one committed by then."""
    from_tag: str | None = None
    """The name of a tag or savepoint of the first version."""
    to_version: VersionNumber | None = None
    """The number of the second version."""
    to_as_of: Time | None = None
    """A time: the second version is the last one committed by then."""
    to_tag: str | None = None
    """The name of a tag or savepoint of the second version."""


def named_version_response(dataset: Dataset, named_version: NamedVersion) -> NamedVersionResponse:
    """The JSON form of a named version."""
    path = f"/datasets/{dataset.id}"
    name = quote(named_version.name, safe="")
    links = NamedVersionLinks(
        self_=f"{path}/{named_version.kind.value}s/{name}", dataset=path, rows=f"{path}/rows?tag={name}"
    )
    return NamedVersionResponse(**msgspec.structs.asdict(named_version), links=links)


def named_version_page(dataset: Dataset, page: Page) -> NamedVersionPage:
    """The JSON form of a page of named versions."""
    items = [named_version_response(dataset, named_version) for named_version in page.items]
    return NamedVersionPage(items=items, next_page_token=page.next_token)
