"""Which version a reader means."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from app.catalog.values import Dataset
from app.files.storage import LocalStorage
from app.format.errors import InvalidRequest, NotFound, VersionExpired
from app.versions.service.versions import VersionOf
from tests.support.past_tables import Past, committed_at, kind_of, new_past
from tests.support.past_versions import KeptVersions, versions_of


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return new_past(LocalStorage(tmp_path), kind_of("unaware"))


def at(past: Past, version: int, *, earliest: int = 0) -> Dataset:
    """The dataset when its head and the beginning of its history were at these versions."""
    return msgspec.structs.replace(past.dataset, version=version, earliest_version=earliest)


@pytest.fixture
def versions(past: Past) -> VersionOf:
    return versions_of(past, KeptVersions(names={"release": 2}, held=[3]))


def test_it_is_the_head_unless_one_is_named(past: Past, versions: VersionOf) -> None:
    assert versions.find(at(past, 9)) == 9
    assert versions.find(at(past, 9), version=0) == 0
    assert versions.find(at(past, 9), tag="release") == 2


def test_a_time_means_the_last_version_committed_by_then(past: Past, versions: VersionOf) -> None:
    moments = {committed_at(4): 4, committed_at(4) - timedelta(microseconds=1): 3, committed_at(0): 0}
    assert {moment: versions.find(at(past, 9), as_of=moment) for moment in moments} == moments


def test_versions_before_the_history_are_read_by_name_or_while_they_are_held(
    past: Past, versions: VersionOf
) -> None:
    dataset = at(past, 9, earliest=5)
    assert versions.find(dataset, version=5) == 5
    assert versions.find(dataset, version=2) == versions.find(dataset, tag="release") == 2
    assert versions.find(dataset, version=3) == 3
    with pytest.raises(VersionExpired):
        versions.find(dataset, version=4)
    with pytest.raises(VersionExpired):
        versions.find(dataset, as_of=committed_at(1))


def test_what_names_no_version_is_refused(past: Past, versions: VersionOf) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        versions.find(at(past, 9), version=10, prefix="from_")
    assert refusal.value.facts["errors"] == [
        {"pointer": "/from_version", "detail": "expected 0–9, the dataset's version"}
    ]
    with pytest.raises(InvalidRequest) as refusal:
        versions.find(at(past, 9), version=1, tag="release", as_of=committed_at(1))
    assert [error["pointer"] for error in refusal.value.facts["errors"]] == ["/as_of", "/tag"]
    with pytest.raises(NotFound):
        versions.find(at(past, 9), tag="releases")
