"""Versions with a name: savepoints and tags."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from types import NoneType
from typing import Annotated, Final

import msgspec

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TaskRequest
from app.kernel.format.instant import Action


class NameVersionTask(TaskRequest, frozen=True, kw_only=True):
    """Names a version (None: the head when it runs). The name keeps the version, and reads and restores can use it.

    `keep_seconds`: the lifetime of the name; None for no limit.
    """

    name: str
    version: int | None = None
    keep_seconds: int | None = None


class SavepointTask(NameVersionTask, frozen=True, kw_only=True, tag="savepoint"):
    """A name that also keeps the feed since the version."""


class TagTask(NameVersionTask, frozen=True, kw_only=True, tag="tag"):
    """A name for readers."""


class VersionKind(str, Enum):
    """The kind of a name: a savepoint, which also keeps the feed since the version, or a tag for readers."""

    SAVEPOINT = "savepoint"
    TAG = "tag"


class NamedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version with a name, readable as long as the name exists."""

    name: Annotated[str, msgspec.Meta(examples=["before-import"])]
    """The name."""
    kind: VersionKind
    """Whether it is a savepoint or a tag."""
    version: int
    """The version."""
    automatic: bool
    """Whether `services.tags` or `services.batch_tags` of the dataset made it."""
    created_at: datetime
    """When the version got the name."""
    expires_at: datetime | None
    """When the name expires; null if it does not."""


SAVEPOINT: Final = JobDeclaration(
    name=JobKind.SAVEPOINT, request=SavepointTask, result=NoneType, action=Action.SAVEPOINT
)
TAG: Final = JobDeclaration(name=JobKind.TAG, request=TagTask, result=NoneType, action=Action.TAG)
