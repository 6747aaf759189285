"""Versions of tables in memory that have names, or are held."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from app.access.errors import NotFound
from app.core.jobs.kinds.named_version import NamedVersion, VersionKind
from app.core.timeline.errors import VersionExpired
from app.features.versions.service.versions import VersionOf
from tests.support.versioned_tables import VersionedTable, committed_at


@dataclass(kw_only=True)
class RetainedVersions:
    """What `NamedVersions.get` and `ReadLeases` say of one dataset. `held` are versions with a lease."""

    names: Mapping[str, int] = field(default_factory=dict)
    leased: Collection[int] = ()
    readers: dict[str, int] = field(default_factory=dict)
    bounds: dict[str, float | None] = field(default_factory=dict)

    def get(self, tenant_id: str, dataset_id: str, name: str) -> NamedVersion:
        if name not in self.names:
            raise NotFound(f"No version of this dataset is named {name!r}")
        version = self.names[name]
        return NamedVersion(
            name=name,
            kind=VersionKind.TAG,
            version=version,
            automatic=False,
            created_at=committed_at(version),
            expires_at=None,
        )

    def check(self, tenant_id: str, dataset_id: str, version: int) -> None:
        if version not in {*self.leased, *self.names.values()}:
            raise VersionExpired("gone", version=version)

    def acquire(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        reader: str,
        seconds: float,
        *,
        superseded_seconds_max: float | None = None,
    ) -> None:
        self.readers[reader] = version
        self.bounds[reader] = superseded_seconds_max

    def acquire_feed(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        reader: str,
        seconds: float,
        *,
        superseded_seconds_max: float | None = None,
    ) -> None:
        self.readers[reader] = version

    def release(self, tenant_id: str, dataset_id: str, reader: str) -> None:
        self.readers.pop(reader, None)


def versions_of(versioned: VersionedTable, kept: RetainedVersions | None = None) -> VersionOf:
    """Finds versions of a table in memory."""
    kept = kept or RetainedVersions()
    return VersionOf(timeline=versioned, names=kept, leases=kept)
