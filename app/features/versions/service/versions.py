"""Finds the version that a request names: by number, by time or by name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.features.versions.repository import NamedVersionStore
from app.kernel.format.errors import FieldError, InvalidRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionOf:
    """Finds versions that can be read."""

    timeline: VersionReader
    names: NamedVersionStore
    leases: ReadLeaseStore

    def find(
        self,
        dataset: Dataset,
        *,
        version: int | None = None,
        as_of: datetime | None = None,
        tag: str | None = None,
        prefix: str = "",
    ) -> int:
        """The version, the last one committed by `as_of`, or the one named `tag`; the latest if all are None.

        `tag`: the name of a tag or savepoint. `prefix`: of the three members in the request. Raises InvalidRequest,
        NotFound (no such name), VersionExpired.
        """
        members = {"version": version, "as_of": as_of, "tag": tag}
        names = [name for name, value in members.items() if value is not None]
        if len(names) > 1:
            got = ", ".join(f"{prefix}{name}" for name in names)
            raise InvalidRequest(
                f"give only one of {prefix}version, {prefix}as_of and {prefix}tag; got {got}",
                [FieldError(pointer=f"/{prefix}{name}", detail="omit it") for name in names[1:]],
            )
        if tag is not None:
            # A version with a name is always kept.
            return self.names.get(dataset.tenant_id, dataset.id, tag).version
        if as_of is not None:
            # Not one that was committed since the dataset was read.
            version = min(self.timeline.version_at(dataset.tenant_id, dataset.id, as_of), dataset.version)
        if version is None:
            return dataset.version
        if not 0 <= version <= dataset.version:
            detail = f"expected 0–{dataset.version}, the dataset's version"
            raise InvalidRequest(
                f"there is no version {version}",
                [FieldError(pointer=f"/{prefix}version", detail=detail)],
                head=dataset.version,
            )
        self.check(dataset, version)
        return version

    def check(self, dataset: Dataset, version: int) -> None:
        """Raises VersionExpired for a version that is no longer kept."""
        if version < dataset.earliest_version:
            self.leases.check(dataset.tenant_id, dataset.id, version)
