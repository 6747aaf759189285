"""Which version a reader means."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.features.versions.service.versions import VersionOf
from app.infra.files.storage import LocalStorage
from app.kernel.format.errors import InvalidRequest
from tests.support.retained_versions import RetainedVersions, versions_of
from tests.support.versioned_tables import VersionedTable, committed_at, kind_of, new_versioned_table


@pytest.fixture
def versioned(tmp_path: Path) -> VersionedTable:
    return new_versioned_table(LocalStorage(tmp_path), kind_of("unaware"))


def at(versioned: VersionedTable, version: int, *, earliest: int = 0) -> Dataset:
    """The dataset when its head and the beginning of its history were at these versions."""
    return msgspec.structs.replace(versioned.dataset, version=version, earliest_version=earliest)


@pytest.fixture
def versions(versioned: VersionedTable) -> VersionOf:
    return versions_of(versioned, RetainedVersions(names={"release": 2}, leased=[3]))


def test_version_defaults_to_the_head(versioned: VersionedTable, versions: VersionOf) -> None:
    assert versions.find(at(versioned, 9)) == 9
    assert versions.find(at(versioned, 9), version=0) == 0
    assert versions.find(at(versioned, 9), tag="release") == 2


def test_as_of_selects_the_last_version_committed_by_then(
    versioned: VersionedTable, versions: VersionOf
) -> None:
    moments = {committed_at(4): 4, committed_at(4) - timedelta(microseconds=1): 3, committed_at(0): 0}
    assert {moment: versions.find(at(versioned, 9), as_of=moment) for moment in moments} == moments


def test_as_of_selects_no_version_that_was_committed_since_the_dataset_was_read(
    versioned: VersionedTable, versions: VersionOf
) -> None:
    assert versions.find(at(versioned, 3), as_of=committed_at(4)) == 3


def test_versions_before_the_earliest_are_readable_by_name_or_lease(
    versioned: VersionedTable, versions: VersionOf
) -> None:
    dataset = at(versioned, 9, earliest=5)
    assert versions.find(dataset, version=5) == 5
    assert versions.find(dataset, version=2) == versions.find(dataset, tag="release") == 2
    assert versions.find(dataset, version=3) == 3
    with pytest.raises(VersionExpired):
        versions.find(dataset, version=4)
    with pytest.raises(VersionExpired):
        versions.find(dataset, as_of=committed_at(1))


def test_invalid_version_reference_is_refused(versioned: VersionedTable, versions: VersionOf) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        versions.find(at(versioned, 9), version=10, prefix="from_")
    assert refusal.value.facts["errors"] == [
        {"pointer": "/from_version", "detail": "expected 0–9, the dataset's version"}
    ]
    with pytest.raises(InvalidRequest) as refusal:
        versions.find(at(versioned, 9), version=1, tag="release", as_of=committed_at(1))
    assert [error["pointer"] for error in refusal.value.facts["errors"]] == ["/as_of", "/tag"]
    with pytest.raises(NotFound):
        versions.find(at(versioned, 9), tag="releases")
