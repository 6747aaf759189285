"""The typed client back in time: names, restores, rollbacks and comparisons."""

from __future__ import annotations

import pytest

from headwater_client import Problem


@pytest.fixture
def versions(service, headwater, orders):
    """Three versions, each with a row more."""
    for number in (1, 2, 3):
        headwater.write_rows(orders, [{"id": number, "note": "a"}])
        service.work()
    return orders


def ids(headwater, dataset, **at) -> list[int]:
    return sorted(row["id"] for row in headwater.rows(dataset, **at))


def test_versions_are_named_read_restored_and_compared(service, headwater, versions):
    with service.working():
        headwater.create_savepoint(versions, "first", version=1, wait=30)
        headwater.create_tag(versions, "now", keep_seconds=60, wait=30)
        assert [(each.name, each.version) for each in headwater.savepoints(versions)] == [("first", 1)]
        [tag] = headwater.tags(versions)
        assert (tag.version, tag.expires_at is None) == (3, False)
        assert ids(headwater, versions, tag="first") == [1]
        restored = headwater.restore(versions, "first", wait=30)
        assert restored.result == {"from_version": 3, "to_version": 1}
        assert ids(headwater, versions) == [1]
        headwater.roll_back(versions, wait=30)
        assert ids(headwater, versions) == [1, 2, 3]
        found = headwater.compare(versions, "first", 2, wait=30).result
        assert found["rows"] == {"added": 1, "removed": 0, "changed": 0, "unchanged": 1}
        headwater.delete_tag(versions, "now")
        headwater.delete_savepoint(versions, "first")
        with pytest.raises(Problem) as gone:
            headwater.restore(versions, "first")
        assert gone.value.code == "not-found"


def test_clean_removes_versions_without_a_name(service, headwater, versions):
    with service.working():
        headwater.create_tag(versions, "first", version=1, wait=30)
        found = headwater.clean(versions, versions=1, seconds=0, wait=30).result
        assert (found["earliest_version"], found["versions_expired"]) == (3, 2)
    assert ids(headwater, versions, tag="first") == [1]
    assert headwater.get_dataset(versions).earliest_version == 3
    with pytest.raises(Problem) as gone:
        ids(headwater, versions, version=2)
    assert gone.value.code == "version-expired"
