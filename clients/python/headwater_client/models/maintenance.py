"""Values of maintenance. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

import msgspec

from headwater_client.models.datasets import ClusterOrder


class CreateClean(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which versions to keep, instead of those of the dataset's `services.history`. Without members it is the history
    of the dataset; where that is null, all versions are kept.
    """

    versions: int | None = None
    """Keeps this many of the latest versions."""
    seconds: int | None = None
    """Keeps the versions that were the latest at any time in this many seconds."""


class CreateClustering(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to order rows; by default as `services.clustering` of the dataset says."""

    columns: tuple[str, ...] | None = None
    """The columns to order rows by."""
    order: ClusterOrder | None = None
    """The curve or order in which the columns are combined."""
    partitions: tuple[str, ...] | None = None
    """Globs of partition paths: the partitions that match one; all by default."""


class CreateCompaction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to compact."""

    partitions: tuple[str, ...] | None = None
    """Globs of partition paths: the partitions that match one; all by default."""


class ReapReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a reap has deleted."""

    files: int
    """The number of files."""
    complete: bool
    """Whether it is through with all deleted datasets; otherwise request another one."""
