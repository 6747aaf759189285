"""Which changes were taken back, over HTTP."""

from tests.support.http import problem

DELETE = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}}


def test_corrected_changes_name_what_took_them_back(client, service, feed):
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
        "next_page_token": None,
    }
    only = client.get(f"{feed}/corrected", params={"from": second, "to": second + 1}).json()["corrections"]
    assert [each["offset"] for each in only] == [second]

    start = client.get(f"{feed}/corrected", params={"limit": 1}).json()
    assert [each["offset"] for each in start["corrections"]] == [first]
    rest = client.get(f"{feed}/corrected", params={"page_token": start["next_page_token"]}).json()
    assert [each["offset"] for each in rest["corrections"]] == [second]


def test_a_look_back_tells_what_was_taken_back_since(client, feed):
    rows = feed.replace("/changes", "/rows")
    then = client.get(rows, params={"version": 1, "corrected_since": True}).json()["rows"]
    found = {row["id"]: (row["_hw_corrected_by"], row["_hw_corrected_version"]) for row in then}
    assert found == {1: (2, 2), 2: (None, None)}
    now = client.get(rows, params={"corrected_since": True, "columns": "note"}).json()["rows"]
    assert {tuple(row) for row in now} == {("note", "_hw_corrected_by", "_hw_corrected_version")}
    assert all(row["_hw_corrected_by"] is None for row in now)


def test_a_range_that_is_none_is_refused(client, feed):
    assert problem(client.get(f"{feed}/corrected", params={"from": 4, "to": 2}), 400, "invalid-request")[
        "errors"
    ] == [{"pointer": "/from", "detail": "expected at most `to`, 2"}]
    assert problem(client.get(f"{feed}/corrected", params={"to": 99}), 409, "offset-ahead")["head"] == 4
