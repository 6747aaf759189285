"""Consumers over HTTP: positions that are kept, committed under conditions, and held by one member at a time."""

import time

import pytest

from tests.support.http import problem, upsert

# The feed of the fixture has four changes: two appends, then a correction.


@pytest.fixture
def consumers(feed, orders):
    """The path of the consumers of a feed of four changes."""
    return f"{orders}/consumers"


def put(client, path, body, **headers):
    return client.put(
        path, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def test_consumer_is_created_and_moved(client, consumers, orders):
    made = put(client, f"{consumers}/billing", {"offset": "earliest"}, If_None_Match="*")
    assert made.status_code == 201, made.text
    assert made.headers["etag"] == '"1"'
    consumer = made.json()
    assert consumer == client.get(f"{consumers}/billing").json() | {"lag": consumer["lag"]}
    assert consumer["lag"]["seconds"] > 0
    dataset = client.get(orders).json()
    assert {**consumer, "lag": consumer["lag"]["changes"]} == {
        "name": "billing",
        "dataset": {"id": dataset["id"], "name": "orders"},
        "kind": "reader",
        "revision": 1,
        "offset": 0,
        "head": 4,
        "earliest": 0,
        "lag": 4,
        "max_lag": None,
        "expired": False,
        "lease": None,
        "created_at": consumer["created_at"],
        "moved_at": consumer["created_at"],
        "links": {
            "self": f"/datasets/{dataset['id']}/consumers/billing",
            "dataset": f"/datasets/{dataset['id']}",
            "changes": f"/datasets/{dataset['id']}/changes?consumer=billing",
        },
    } | {"moved_at": consumer["moved_at"]}
    moved = put(client, f"{consumers}/billing", {"offset": 2}, If_Match=made.headers["etag"])
    assert (moved.status_code, moved.headers["etag"], moved.json()["offset"]) == (200, '"2"', 2)
    assert moved.json()["moved_at"] > consumer["moved_at"]
    at_head = put(client, f"{consumers}/billing", {"offset": "now"}, If_Match='"2"').json()
    assert (at_head["offset"], at_head["lag"]) == (4, {"changes": 0, "seconds": 0})


def test_a_consumer_starts_at_a_version_or_a_time(client, consumers, feed):
    times = {change["version"]: change["system_time"] for change in client.get(feed).json()["changes"]}
    starts = [
        ({"since_version": 1}, 0),
        ({"since_version": 2}, 2),
        ({"since_version": 3}, 4),
        ({"since_time": times[1]}, 0),
        ({"since_time": times[2]}, 2),
        ({"offset": "2"}, 2),
    ]
    for number, (start, offset) in enumerate(starts):
        made = put(client, f"{consumers}/c{number}", start)
        assert (made.status_code, made.json()["offset"]) == (201, offset), start
    back = {"since_version": 1, "reset": True}
    assert put(client, f"{consumers}/c2", back, If_Match='"1"').json()["offset"] == 0
    ahead = problem(put(client, f"{consumers}/d", {"since_version": 4}), 409, "offset-ahead")
    assert (ahead["since_version"], ahead["head_version"]) == (4, 2)
    problem(put(client, f"{consumers}/d", {"since_time": "2999-01-01T00:00:00Z"}), 409, "offset-ahead")
    problem(client.get(f"{consumers}/d"), 404, "not-found")


def test_commit_requires_the_current_revision(client, consumers):
    path = f"{consumers}/c"
    problem(put(client, path, {"offset": 0}, If_Match='"1"'), 412, "precondition-failed")
    assert put(client, path, {"offset": 0}).status_code == 201
    problem(put(client, path, {"offset": 1}), 428, "precondition-required")
    problem(put(client, path, {"offset": 1}, If_Match="*"), 428, "precondition-required")
    stale = problem(put(client, path, {"offset": 1}, If_Match='"7"'), 412, "precondition-failed")
    assert (stale["revision"], "version" in stale) == (1, False)
    problem(put(client, path, {"offset": 1}, If_Match="x"), 412, "precondition-failed")
    problem(put(client, path, {"offset": 1}, If_None_Match="*"), 412, "precondition-failed")
    problem(put(client, path, {"offset": 1}, If_None_Match='"1"'), 412, "precondition-failed")
    assert client.get(path).json()["offset"] == 0
    assert put(client, path, {"offset": 1}, If_Match='"1"').status_code == 200


def test_position_moves_forward_unless_it_is_reset(client, consumers):
    path = f"{consumers}/c"
    assert put(client, path, {"offset": 3}).status_code == 201
    refused = problem(put(client, path, {"offset": 2}, If_Match='"1"'), 400, "invalid-request")
    assert refused["errors"] == [
        {"pointer": "/offset", "detail": "expected 3 or more; to go back, send `reset: true` as well"}
    ]
    problem(put(client, path, {"offset": "earliest"}, If_Match='"1"'), 400, "invalid-request")
    assert put(client, path, {"offset": 3}, If_Match='"1"').json()["offset"] == 3
    back = put(client, path, {"offset": 1, "reset": True}, If_Match='"2"')
    assert (back.status_code, back.json()["offset"]) == (200, 1)


def test_position_lies_within_the_feed(client, consumers):
    ahead = problem(put(client, f"{consumers}/c", {"offset": 5}), 409, "offset-ahead")
    assert (ahead["since"], ahead["head"]) == (5, 4)
    problem(client.get(f"{consumers}/c"), 404, "not-found")
    assert put(client, f"{consumers}/c", {"offset": 4}).status_code == 201
    problem(put(client, f"{consumers}/c", {"offset": 5}, If_Match='"1"'), 409, "offset-ahead")


def test_omitted_members_keep_their_values(client, consumers):
    path = f"{consumers}/c"
    lag = {"changes": 10, "seconds": None}
    assert put(client, path, {"offset": 1, "max_lag": lag}).json()["max_lag"] == lag
    wider = put(client, path, {"max_lag": {"seconds": 60}}, If_Match='"1"').json()
    assert (wider["offset"], wider["max_lag"]) == (1, {"changes": None, "seconds": 60})
    kept = put(client, path, {"offset": 2}, If_Match='"2"').json()
    assert kept["max_lag"] == {"changes": None, "seconds": 60}
    assert put(client, path, {"max_lag": None}, If_Match='"3"').json()["max_lag"] is None


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"offset": -1}, "/offset"),
        ({"offset": "later"}, "/offset"),
        ({"since_version": -1}, "/since_version"),
        ({"since_time": "2026-11-21T10:00:00"}, "/since_time"),
        ({"offset": 0, "since_version": 1}, "/since_version"),
        ({"since_version": 1, "since_time": "2026-11-21T10:00:00Z"}, "/since_time"),
        ({}, "/offset"),
        ({"max_lag": {"changes": 1}}, "/offset"),
        ({"offset": 0, "max_lag": {"changes": -1}}, "/max_lag/changes"),
        ({"offset": 0, "max_lag": {"rows": 1}}, "/max_lag/rows"),
        ({"offset": 0, "position": 1}, "/position"),
    ],
)
def test_invalid_body_is_refused_with_its_pointer(client, consumers, body, pointer):
    refused = problem(put(client, f"{consumers}/c", body), 400, "invalid-request")
    assert [error["pointer"] for error in refused["errors"]] == [pointer]


@pytest.mark.parametrize("name", ["a b", "a:b", "%2e%2e", "x" * 129, "ä"])
def test_invalid_name_is_refused(client, consumers, name):
    refused = problem(put(client, f"{consumers}/{name}", {"offset": 0}), 400, "invalid-request")
    assert refused["errors"][0]["pointer"] == "/name"


def test_consumers_are_listed_by_name(client, consumers):
    for name in ("b", "A", "c.d_e-9"):
        assert put(client, f"{consumers}/{name}", {"offset": 0}).status_code == 201
    first = client.get(consumers, params={"page_size": 2}).json()
    assert [item["name"] for item in first["items"]] == ["A", "b"]
    rest = client.get(consumers, params={"page_token": first["next_page_token"]}).json()
    assert [item["name"] for item in rest["items"]] == ["c.d_e-9"]
    assert rest["next_page_token"] is None
    problem(client.get(consumers, params={"page_token": "x"}), 400, "invalid-request")


def test_deleted_consumer_is_not_found(client, consumers):
    path = f"{consumers}/c"
    put(client, path, {"offset": 0})
    problem(client.delete(path, headers={"If-Match": '"2"'}), 412, "precondition-failed")
    assert client.delete(path, headers={"If-Match": '"1"'}).status_code == 204
    problem(client.get(path), 404, "not-found")
    problem(client.delete(path), 404, "not-found")
    problem(client.post(f"{path}/lease", json={"member": "m", "seconds": 5}), 404, "not-found")


def test_consumers_of_another_tenant_are_not_found(client, new_client, consumers):
    put(client, f"{consumers}/c", {"offset": 0})
    other = new_client()
    for answer in (
        other.get(consumers),
        other.get(f"{consumers}/c"),
        put(other, f"{consumers}/c", {"offset": 1}, If_Match='"1"'),
        other.post(f"{consumers}/c/lease", json={"member": "m", "seconds": 5}),
        other.delete(f"{consumers}/c/lease", params={"token": "x"}),
        other.delete(f"{consumers}/c"),
    ):
        problem(answer, 404, "not-found")


def test_reader_commits_and_leases_and_only_a_manager_deletes(client, service, orders, consumers):
    tenant_id = client.get("/me").json()["tenant"]["id"]
    reader, writer, manager = (
        service.client(service.tenants.make_key(tenant_id, (scope,)).api_key)
        for scope in ("read", "write", "manage")
    )
    with reader, writer, manager:
        path = f"{consumers}/c"
        problem(put(writer, path, {"offset": 0}), 403, "forbidden")
        assert put(reader, path, {"offset": 0}).status_code == 201
        problem(lease(writer, path, "m"), 403, "forbidden")
        assert lease(reader, path, "m").status_code == 200
        # Its changes may be removed as soon as it is gone, so a reader does not remove that of another.
        for key in (reader, writer):
            assert problem(key.delete(path), 403, "forbidden")["required_scope"] == "manage"
        assert manager.delete(path).status_code == 204


def lease(client, path, member, seconds=60, **more):
    return client.post(f"{path}/lease", json={"member": member, "seconds": seconds, **more})


def test_lease_excludes_other_members(client, consumers):
    path = f"{consumers}/c"
    put(client, path, {"offset": 1})
    leased = lease(client, path, "a")
    assert leased.status_code == 200, leased.text
    assert leased.headers["etag"] == '"1"'
    assert (leased.json()["offset"], leased.json()["revision"]) == (1, 1)
    assert client.get(path).json()["lease"] == {"member": "a", "until": leased.json()["until"]}
    other = lease(client, path, "b")
    refused = problem(other, 409, "consumer-leased")
    assert (refused["member"], refused["until"]) == ("a", leased.json()["until"])
    assert 1 <= int(other.headers["retry-after"]) <= 61
    problem(put(client, path, {"offset": 2}, If_Match='"1"'), 409, "consumer-leased")
    token = leased.json()["token"]
    assert put(client, path, {"offset": 2, "lease": token}, If_Match='"1"').status_code == 200
    longer = lease(client, path, "a", 120, token=token).json()
    assert longer["token"] == token
    assert longer["until"] > leased.json()["until"]
    # Its bounds are no business of the member's.
    assert put(client, path, {"max_lag": {"changes": 5}}, If_Match='"2"').status_code == 200


def test_expired_lease_token_never_commits(client, consumers):
    path = f"{consumers}/c"
    put(client, path, {"offset": 0})
    old = lease(client, path, "a", 1).json()["token"]
    deadline = time.monotonic() + 10
    while lease(client, path, "b", 1).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    while client.get(path).json()["lease"] is not None:
        time.sleep(0.05)
    etag = client.get(path).headers["etag"]
    problem(put(client, path, {"offset": 1, "lease": old}, If_Match=etag), 409, "lease-lost")
    problem(lease(client, path, "a", token=old), 409, "lease-lost")
    problem(client.delete(f"{path}/lease", params={"token": old}), 409, "lease-lost")
    # Without any lease who knows the revision may commit.
    assert put(client, path, {"offset": 1}, If_Match=etag).status_code == 200


def test_returning_member_replaces_its_own_lease(client, consumers):
    path = f"{consumers}/c"
    put(client, path, {"offset": 0})
    old = lease(client, path, "a").json()["token"]
    new = lease(client, path, "a").json()["token"]
    assert new != old
    problem(put(client, path, {"offset": 1, "lease": old}, If_Match='"1"'), 409, "lease-lost")
    assert put(client, path, {"offset": 1, "lease": new}, If_Match='"1"').status_code == 200


def test_released_lease_is_free(client, consumers):
    path = f"{consumers}/c"
    put(client, path, {"offset": 0})
    token = lease(client, path, "a").json()["token"]
    for _ in range(2):
        assert client.delete(f"{path}/lease", params={"token": token}).status_code == 204
    assert client.get(path).json()["lease"] is None
    problem(put(client, path, {"offset": 1, "lease": token}, If_Match='"1"'), 409, "lease-lost")
    assert lease(client, path, "b").status_code == 200
    problem(client.delete(f"{path}/lease", params={"token": token}), 409, "lease-lost")
    problem(client.delete(f"{path}/lease"), 400, "invalid-request")


def test_recreated_consumer_rejects_earlier_lease_tokens(client, consumers):
    path = f"{consumers}/c"
    put(client, path, {"offset": 0})
    token = lease(client, path, "a").json()["token"]
    client.delete(path)
    problem(put(client, path, {"offset": 0, "lease": token}), 409, "lease-lost")
    put(client, path, {"offset": 0})
    assert lease(client, path, "a").json()["token"] != token
    problem(put(client, path, {"offset": 1, "lease": token}, If_Match='"1"'), 409, "lease-lost")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"member": "", "seconds": 5}, "/member"),
        ({"member": "a\u0000", "seconds": 5}, "/member"),
        ({"member": "a", "seconds": 0}, "/seconds"),
        ({"member": "a", "seconds": 3601}, "/seconds"),
        ({"member": "a"}, "/seconds"),
    ],
)
def test_invalid_lease_request_is_refused_with_its_pointer(client, consumers, body, pointer):
    put(client, f"{consumers}/c", {"offset": 0})
    refused = problem(client.post(f"{consumers}/c/lease", json=body), 400, "invalid-request")
    assert [error["pointer"] for error in refused["errors"]] == [pointer]


def test_webhook_positions_are_listed_and_read_only(client, orders, consumers):
    made = client.post(
        "/webhooks", json={"dataset": "orders", "url": "https://93.184.215.14/hook", "since": 1}
    )
    assert made.status_code == 201, made.text
    put(client, f"{consumers}/c", {"offset": 0})
    listed = client.get(consumers).json()["items"]
    assert [(item["kind"], item["offset"]) for item in listed] == [("reader", 0), ("webhook", 1)]
    path = listed[1]["links"]["self"]
    shown = client.get(path)
    assert shown.json()["name"] == listed[1]["name"]
    assert shown.json()["lease"] is None
    for answer in (
        put(client, path, {"offset": 2}, If_Match=shown.headers["etag"]),
        put(client, path, {"offset": 2}),
        client.delete(path),
        lease(client, path, "m"),
        client.delete(f"{path}/lease", params={"token": "x"}),
    ):
        assert problem(answer, 409, "consumer-managed")["kind"] == "webhook"
    assert client.get(path).json()["offset"] == 1


# The rows of a version, then the changes after it


def consumed(client, orders, path, revision, pages):
    """Up to this number of pages of one change, each committed before the next is read; and the last revision."""
    changes = []
    for _ in range(pages):
        page = client.get(f"{orders}/changes", params={"consumer": "c", "limit": 1}).json()
        changes += page["changes"]
        moved = put(client, path, {"offset": page["next_since"]}, If_Match=f'"{revision}"')
        assert (moved.status_code, moved.json()["offset"]) == (200, page["next_since"])
        revision += 1
        if not page["pending"]:
            break
    return changes, revision


def test_consumer_starts_with_the_table_and_resumes_within_it(client, consumers, orders, service):
    path = f"{consumers}/c"
    table = client.get(f"{orders}/rows").json()["rows"]
    made = put(client, path, {"offset": "snapshot"})
    assert (made.status_code, made.json()["offset"], made.json()["lag"]["changes"]) == (
        201,
        "snapshot:2:0:0",
        0,
    )
    first, revision = consumed(client, orders, path, 1, pages=1)
    within = client.get(path).json()["offset"]
    assert within.startswith("snapshot:2:")
    assert client.post(f"{consumers}/c/lease", json={"member": "m", "seconds": 1}).json()["offset"] == within
    [listed] = client.get(consumers).json()["items"]
    assert listed["offset"] == within
    # What is written meanwhile is not among the rows, but after them.
    assert client.post(f"{orders}/writes", json=upsert({"id": 9, "note": "d"})).status_code == 202
    service.work()
    token = client.post(f"{consumers}/c/lease", json={"member": "m", "seconds": 1}).json()["token"]
    client.delete(f"{consumers}/c/lease", params={"token": token})
    rest, revision = consumed(client, orders, path, revision, pages=9)
    rows = [change["row"] for change in first + rest]
    assert sorted(rows, key=repr) == sorted([*table, client.get(f"{orders}/rows/9").json()["row"]], key=repr)
    assert [change["op"] for change in first + rest] == ["+A"] * len(rows)
    assert client.get(path).json()["offset"] == 5
    # The stream starts there as well.
    events = client.get(f"{orders}/changes/events", params={"consumer": "c", "until": 5})
    assert events.status_code in (200, 204)


def test_position_within_a_version_moves_forward_unless_it_is_reset(client, consumers):
    path = f"{consumers}/c"
    assert put(client, path, {"offset": "snapshot:2:0:1"}).json()["offset"] == "snapshot:2:0:1"
    for back in ("snapshot:2:0:0", "snapshot:1:0:1", 3, "earliest"):
        refused = problem(put(client, path, {"offset": back}, If_Match='"1"'), 400, "invalid-request")
        assert "`snapshot:2:0:1` or more" in refused["errors"][0]["detail"], back
    assert (
        put(client, path, {"offset": "snapshot:2:1:0"}, If_Match='"1"').json()["offset"] == "snapshot:2:1:0"
    )
    assert put(client, path, {"max_lag": {"changes": 9}}, If_Match='"2"').json()["offset"] == "snapshot:2:1:0"
    assert put(client, path, {"offset": 4}, If_Match='"3"').json()["offset"] == 4
    problem(put(client, path, {"offset": "snapshot"}, If_Match='"4"'), 400, "invalid-request")
    again = put(client, path, {"offset": "snapshot", "reset": True}, If_Match='"4"')
    assert (again.status_code, again.json()["offset"]) == (200, "snapshot:2:0:0")


def test_position_within_a_version_is_checked(client, consumers):
    ahead = problem(put(client, f"{consumers}/c", {"offset": "snapshot:9:0:0"}), 409, "offset-ahead")
    assert (ahead["since_version"], ahead["head_version"]) == (9, 2)
    for offset in ("snapshot:", "snapshot:1", "snapshots"):
        problem(put(client, f"{consumers}/c", {"offset": offset}), 400, "invalid-request")
    two = {"offset": "snapshot", "since_version": 1}
    problem(put(client, f"{consumers}/c", two), 400, "invalid-request")
    problem(client.get(f"{consumers}/c"), 404, "not-found")
