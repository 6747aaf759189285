"""Which version a reader means: by its number, by a time, or by a name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.catalog.values import Dataset
from app.format.errors import FieldError, InvalidRequest
from app.timeline.ports import ReadLeases, Timeline
from app.versions.ports import NamedVersions


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionOf:
    """Finds versions that can be read."""

    timeline: Timeline
    names: NamedVersions
    leases: ReadLeases

    def find(
        self,
        dataset: Dataset,
        *,
        version: int | None = None,
        as_of: datetime | None = None,
        tag: str | None = None,
        prefix: str = "",
    ) -> int:
        """The version itself, the last one committed by `as_of`, or the one with the name; the latest if none is given.

        `tag`: the name of a tag or savepoint. `prefix`: what the names of the three start with in the request. Raises
        InvalidRequest, NotFound (no such name), VersionExpired.
        """
        specified = {"version": version, "as_of": as_of, "tag": tag}
        named = [name for name, value in specified.items() if value is not None]
        if len(named) > 1:
            raise InvalidRequest(
                f"give {prefix}version, {prefix}as_of or {prefix}tag, not several of them",
                [FieldError(pointer=f"/{prefix}{name}", detail="drop it") for name in named[1:]],
            )
        if tag is not None:
            # Its name keeps it.
            return self.names.get(dataset.tenant_id, dataset.id, tag).version
        if as_of is not None:
            version = self.timeline.version_at(dataset.tenant_id, dataset.id, as_of)
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
        """Raises VersionExpired if a version that there was is not kept any more."""
        if version < dataset.earliest_version:
            self.leases.check(dataset.tenant_id, dataset.id, version)
