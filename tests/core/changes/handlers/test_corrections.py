"""Which changes were taken back, over HTTP."""

from tests.support.http import problem

DELETE = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}}


def test_corrected_changes_name_their_corrections(client, service, feed):
    """The feed: two rows, and a correction of the first (see the fixture); then the second goes."""
    dataset = feed.removesuffix("/changes")
    assert client.post(f"{dataset}/writes", json=DELETE).status_code == 202
    service.work()
    changes = client.get(feed).json()["changes"]
    first = next(change["offset"] for change in changes if change["row"]["id"] == 1)
    second = next(change["offset"] for change in changes if change["row"]["id"] == 2)

    page = client.get(f"{feed}/corrected").json()
    times = {change["version"]: change["system_time"] for change in changes}
    assert page == {
        "corrections": [
            {"offset": first, "corrected_by": 2, "op": "-C", "version": 2, "system_time": times[2]},
            {"offset": second, "corrected_by": 4, "op": "-R", "version": 3, "system_time": times[3]},
        ],
        "next_since": 5,
        "pending": 0,
        "earliest": 0,
    }

    def offsets(**parameters):
        return [
            each["offset"]
            for each in client.get(f"{feed}/corrected", params=parameters).json()["corrections"]
        ]

    assert offsets(first_offset=second, last_offset=second) == [second]
    assert offsets(until=4) == [first]
    assert offsets(since=3) == offsets(since_version=3) == offsets(since_time=times[3]) == [second]
    assert offsets(since="now") == []

    start = client.get(f"{feed}/corrected", params={"limit": 1}).json()
    assert [each["offset"] for each in start["corrections"]] == [first]
    assert (start["next_since"], start["pending"]) == (4, 1)
    rest = client.get(f"{feed}/corrected", params={"since": start["next_since"]}).json()
    assert [each["offset"] for each in rest["corrections"]] == [second]


def test_earlier_rows_name_their_later_corrections(client, feed):
    rows = feed.replace("/changes", "/rows")
    then = client.get(rows, params={"version": 1, "corrected_since": True}).json()["rows"]
    found = {row["id"]: (row["_hw_corrected_by"], row["_hw_corrected_version"]) for row in then}
    assert found == {1: (2, 2), 2: (None, None)}
    now = client.get(rows, params={"corrected_since": True, "columns": "note"}).json()["rows"]
    assert {tuple(row) for row in now} == {("note", "_hw_corrected_by", "_hw_corrected_version")}
    assert all(row["_hw_corrected_by"] is None for row in now)


def test_invalid_range_is_refused(client, feed):
    wrong = client.get(f"{feed}/corrected", params={"first_offset": 4, "last_offset": 2})
    assert problem(wrong, 400, "invalid-request")["errors"] == [
        {"pointer": "/last_offset", "detail": "expected at least `first_offset`, 4"}
    ]
    assert problem(client.get(f"{feed}/corrected", params={"since": 99}), 409, "offset-ahead")["head"] == 4
