"""Every operation for keys that see a part of a dataset: no response has anything of the rest.

The hidden rows, and the masked column of all rows, hold a marker that is looked for in whatever is sent.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest

from app.access.tenants.values import Grant, KeyScope
from app.infra.identifiers import new_id
from tests.http.test_access_matrix import OF_DATA, OPERATIONS, World, bearer
from tests.support.exports import EVERY_MINUTE, ONCE
from tests.support.http import TLS, problem, upsert
from tests.support.receiver import Message, Receiver, receiving
from tests.support.service import SCOPES, Service
from tests.support.webhooks import work_until

Row = dict[str, Any]
MARKER = "HIDDEN"
METADATA = {"metadata": {"by": MARKER}}
DATASET = {
    "name": "people",
    "schema": {
        "fields": [
            {"name": "region", "type": "string"},
            {"name": "id", "type": "string"},
            {"name": "email", "type": "string", "nullable": False},
            {"name": "level", "type": "int32"},
            {"name": "note", "type": "string"},
        ]
    },
    "record_key": ["region", "id"],
    "partition_by": ["region"],
}
VIEW = "SELECT region, id, email, level, note FROM people"
WHERE = "level < 5"
PART = Grant(datasets="people*", scopes=(KeyScope.READ,), where=WHERE, mask=("email",))
# Of a dataset that a key sees in part: what it gets of it.
SHOWN = {
    *("get_dataset", "get_dataset_schema", "list_dataset_schemas", "read_rows", "create_read"),
    *("create_scan", "download_scan_file", "read_scan_rows"),
    *("get_row", "lookup_rows"),
    *("read_changes", "follow_changes", "read_corrections", "create_export", "list_exports"),
    *(
        "list_consumers",
        "put_consumer",
        "get_consumer",
        "delete_consumer",
        "lease_consumer",
        "release_consumer",
    ),
    *("list_savepoints", "get_savepoint", "list_tags", "get_tag"),
}
HIDDEN = {
    name
    for name in OF_DATA
    if not OPERATIONS[name][1].startswith(("/datasets", "/views", "/sources", "/shares"))
}


def row(region: str, number: str, level: int, note: str) -> Row:
    hidden = f"{MARKER}-{region}" if level > 4 and region != "eu" else region
    return {"region": hidden, "id": number, "email": f"{MARKER}-{number}@x", "level": level, "note": note}


class Part(World):
    """A tenant with a dataset of which some keys see a part, and with what was made of the whole of it."""

    def __init__(self, service: Service, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(service)
        grants = (PART, Grant(datasets="people*", scopes=(KeyScope.WRITE, KeyScope.MANAGE)))
        tenants = service.tenants
        self.reader = tenants.make_key(self.tenant, (KeyScope.READ,), grants=(PART,)).api_key
        self.manager = tenants.make_key(self.tenant, SCOPES[:3], grants=grants).api_key

    def _resources(self) -> dict[str, str]:
        with self.service.client(self.key) as client:

            def post(path: str, body: Row, **more: Any) -> Row:
                answer = client.post(path, json=body, **more)
                assert answer.is_success, answer.text
                self.service.work()
                members: Row = answer.json()
                return members

            dataset = post("/datasets", DATASET)
            post(
                "/datasets/people/writes", upsert(row("eu", "1", 1, "a"), row("us", f"{MARKER}-2", 9, MARKER))
            )
            post(
                "/datasets/people/writes",
                upsert(row("eu", "3", 2, "b"), row("eu", "4", 9, MARKER)) | METADATA,
            )
            post(
                "/datasets/people/writes",
                # One goes out of sight, one comes into sight, one only changes what is masked.
                upsert(
                    row("eu", "3", 9, MARKER),
                    row("eu", "4", 3, "c"),
                    row("eu", "1", 1, "a") | {"email": f"{MARKER}-new"},
                ),
            )
            post(
                "/datasets/people/writes", upsert({"region": MARKER, "id": "5"}) | {"on_error": "quarantine"}
            )
            twice = upsert(row("us", f"{MARKER}-2", 9, MARKER)) | {"operation": "insert"} | METADATA
            failed = post("/datasets/people/writes", twice)
            assert client.get(f"/jobs/{failed['id']}").json()["state"] == "failed"
            self.service.derivation.queries["people_view"] = lambda rows: rows
            post("/views", {"name": "people_view", "sql": VIEW})
            self.unrestricted_read = post("/datasets/people/reads", {"disposition": "files"})["id"]
            post("/datasets/people/savepoints", {"name": "name"})
            client.put("/datasets/people/consumers/name", json={"offset": 0}, headers={"If-None-Match": "*"})
            config = {"path": (self.service.settings.data_dir / "incoming").as_uri(), "format": "ndjson"}
            source = {"name": f"{MARKER}-in", "dataset": "people", "kind": "files", "config": config}
            post("/datasets", DATASET | {"name": "people_2"})
            writes = [
                {"dataset": each, **upsert(row("us", f"{MARKER}-6", 9, MARKER)), **METADATA}
                for each in ("people", "people_2")
            ]
            share = {"name": "sales", "datasets": [{"name": "people"}]}
            grants = [{"dataset": "people", "where": f"note != '{MARKER}'"}]
            return {
                "dataset": dataset["id"],
                "share": post("/shares", share)["id"],
                "recipient": post("/shares/sales/recipients", {"name": MARKER, "grants": grants})["id"],
                "job": failed["id"],
                "webhook": post("/webhooks", {"dataset": "people", "url": self.receiver.url})["id"],
                "view": "people_view",
                "source": post("/sources", source)["id"],
                "export": post("/datasets/people/exports", ONCE)["id"],
                "transaction": post("/transactions", {"writes": writes})["id"],
                "tenant": self.tenant,
                "key": new_id(),
                "name": "name",
                "number": "1",
                "version": "1",
                "part": "part",
                "delivery": new_id(),
            }


@pytest.fixture(scope="module")
def part(service: Service) -> Iterator[Part]:
    with receiving() as receiver:
        part = Part(service, receiver)
        receiver.messages.clear()
        with httpx2.Client(trust_env=False, verify=TLS, timeout=30) as part.client:
            yield part


@pytest.fixture
def reader(part: Part) -> Iterator[httpx2.Client]:
    with part.service.client(part.reader) as client:
        yield client


@pytest.fixture
def whole(part: Part) -> Iterator[httpx2.Client]:
    with part.service.client(part.key) as client:
        yield client


def unmarked(answer: httpx2.Response) -> httpx2.Response:
    """The response, in which nothing is hidden: neither in plain text nor within a token."""
    sent = answer.content + repr(answer.headers).encode()
    assert MARKER.encode() not in sent, (answer.request.url, answer.content)
    for token in re.findall(rb"[A-Za-z0-9_-]{16,}", sent):
        whole = token[: len(token) // 4 * 4]
        assert MARKER.encode() not in base64.urlsafe_b64decode(whole), answer.request.url
    assert answer.status_code < 500, answer.text
    return answer


def ended(client: httpx2.Client, service: Service, answer: httpx2.Response) -> Row:
    assert answer.status_code in (200, 202), answer.text
    service.work()
    job: Row = unmarked(client.get(f"/jobs/{answer.json()['id']}")).json()
    assert job["state"] == "succeeded", job
    return job


# A stream of changes does not end by itself; there is a test of its own.
@pytest.mark.parametrize("name", sorted(OF_DATA.keys() - {"follow_changes"}))
def test_operation_shows_nothing_that_is_hidden(part: Part, name: str) -> None:
    for key in (part.reader, part.manager):
        for dataset in ("people", "people_view"):
            answer = unmarked(part.send(name, bearer(key), part.values | {"dataset": dataset}))
            if answer.request.method == "HEAD" or name in SHOWN:
                continue
            expected = {(404, "not-found")} if name in HIDDEN else {(403, "restricted-grant")}
            kind = answer.json()["type"].removeprefix("/problems/")
            lacks = kind == "forbidden" and key == part.reader
            assert lacks or (answer.status_code, kind) in expected, answer.text
    assert part.send(name, bearer(part.manager), part.values).status_code != 403 or name not in SHOWN


VISIBLE = [
    {"region": "eu", "id": "1", "email": None, "level": 1, "note": "a"},
    {"region": "eu", "id": "4", "email": None, "level": 3, "note": "c"},
]
CHANGES = [
    ("+A", "1", "a"),
    ("+A", "3", "b"),
    ("-R", "3", "b"),
    ("+A", "4", "c"),
    ("-C", "1", "a"),
    ("+C", "1", "a"),
]


@pytest.mark.parametrize("dataset", ["people", "people_view"])
def test_rows_are_the_visible_ones_at_every_version_and_in_every_form(
    part: Part, reader: httpx2.Client, dataset: str
) -> None:
    path = f"/datasets/{dataset}"
    found = reader.get(f"{path}/rows").json()
    assert sorted(found["rows"], key=lambda each: each["id"]) == VISIBLE
    head = found["version"]
    for version in range(head + 1):
        unmarked(reader.get(f"{path}/rows", params={"version": version, "meta": "true", "limit": 1}))
    for accept in ("application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"):
        unmarked(reader.get(f"{path}/rows", headers={"accept": accept}, params={"meta": "true"}))
        for form in ("two_event", "single_event", "retract", "upsert", "debezium", "delta"):
            unmarked(reader.get(f"{path}/changes", headers={"accept": accept}, params={"form": form}))
    job = ended(reader, part.service, reader.post(f"{path}/reads", json={}))
    result = unmarked(reader.get(f"/jobs/{job['id']}/result")).json()
    assert sorted(result["rows"], key=lambda each: each["id"]) == VISIBLE
    assert all(field["nullable"] for field in result["schema"]["fields"])


@pytest.mark.parametrize("dataset", ["people", "people_view"])
def test_scans_have_the_visible_rows(reader: httpx2.Client, dataset: str) -> None:
    found: list[Row] = []
    scan = unmarked(reader.post(f"/datasets/{dataset}/scans", json={})).json()
    for each in scan["parts"]:
        content = unmarked(reader.get(each["links"]["self"])).content
        rows = pq.read_table(io.BytesIO(content))
        assert rows.num_rows == each["rows"]
        found += rows.to_pylist()
    assert sorted(found, key=lambda each: each["id"]) == VISIBLE


@pytest.mark.parametrize("dataset", ["people", "people_view"])
def test_keys_find_visible_rows_only(reader: httpx2.Client, dataset: str) -> None:
    path = f"/datasets/{dataset}/rows"
    keys = [{"region": "eu", "id": number} for number in ("4", "3", "1")]
    items = unmarked(reader.post(f"{path}/lookup", json={"keys": keys})).json()["items"]
    assert [item["row"] for item in items] == [VISIBLE[1], None, VISIBLE[0]]
    assert unmarked(reader.get(f"{path}/eu,4")).json()["row"] == VISIBLE[1]
    problem(unmarked(reader.get(f"{path}/eu,3")), 404, "row-not-found")
    history = unmarked(reader.get(f"{path}/eu,3", params={"history": "true"})).json()
    assert history["row"] is None
    if dataset == "people":
        assert [(each["op"], each["row"]["note"]) for each in history["changes"]] == [
            ("+A", "b"),
            ("-R", "b"),
        ]


def test_feed_that_starts_with_the_table_has_the_visible_rows(reader: httpx2.Client) -> None:
    found = unmarked(reader.get("/datasets/people/changes", params={"since": "snapshot"})).json()
    assert sorted((each["row"] for each in found["changes"]), key=lambda each: each["id"]) == VISIBLE
    page = unmarked(reader.get("/datasets/people/changes", params={"since": "snapshot", "limit": 1}))
    assert page.json()["next_since"].startswith("snapshot:")


def test_changes_are_those_of_the_visible_rows(reader: httpx2.Client) -> None:
    page = unmarked(reader.get("/datasets/people/changes")).json()
    changes = [(each["op"], each["row"]["id"], each["row"]["note"]) for each in page["changes"]]
    assert sorted(changes) == sorted(CHANGES)
    end = page["next_since"]
    with reader.stream("GET", "/datasets/people/changes/events", params={"until": end}) as stream:
        text = stream.read().decode()
    assert MARKER not in text
    assert text.count("event: change") == len(CHANGES)
    polled = reader.get("/datasets/people/changes", params={"feed": "longpoll", "timeout": 0, "since": end})
    assert unmarked(polled).json()["changes"] == []


@pytest.mark.parametrize(
    ("query", "column"),
    [({"where": f"email = '{MARKER}'"}, "email"), ({"where": "level = 1 OR email LIKE 'a%'"}, "email")],
)
def test_masked_column_is_no_oracle(reader: httpx2.Client, query: Row, column: str) -> None:
    for path in ("rows", "changes", "changes/events"):
        members = problem(reader.get(f"/datasets/people/{path}", params=query), 403, "masked-column")
        assert members["column"] == column
    for path, body in (
        ("reads", query),
        ("reads", {"order_by": [{"column": "email"}]}),
        ("reads", {"query": "incremental", "begin": 0, **query}),
        ("exports", ONCE | query),
    ):
        problem(reader.post(f"/datasets/people/{path}", json=body), 403, "masked-column")


@pytest.mark.parametrize("format_", ["ndjson", "csv", "parquet", "arrow"])
def test_export_has_the_visible_part(
    part: Part, reader: httpx2.Client, whole: httpx2.Client, format_: str
) -> None:
    for query in ("changes", "incremental"):
        made = reader.post("/datasets/people/exports", json={"query": query, "format": format_})
        assert made.status_code == 202, made.text
        part.service.work()
        path = made.headers["location"]
        run = unmarked(reader.get(f"{path}/runs/1")).json()
        assert run["state"] == "succeeded", run
        assert run["rows"] == (len(CHANGES) if query == "changes" else len(VISIBLE))
        for file in [each["links"]["self"] for each in run["files"]] + [f"{path}/runs/1/files/manifest.json"]:
            assert MARKER.encode() not in reader.get(file).content
        listed = {each["id"] for each in unmarked(reader.get("/datasets/people/exports")).json()["items"]}
        assert made.json()["id"] in listed
        assert part.values["export"] not in listed
        assert whole.get(path).status_code == 200
    kinds = {
        each["kind"] for each in unmarked(reader.get("/jobs", params={"dataset": "people"})).json()["items"]
    }
    assert "export" in kinds
    assert kinds <= {"export", "read"}


def test_results_made_with_less_restriction_are_hidden(part: Part, reader: httpx2.Client) -> None:
    for job in (part.unrestricted_read, part.values["job"]):
        for path in (
            f"/jobs/{job}",
            f"/jobs/{job}/result",
            f"/jobs/{job}/events",
            f"/jobs/{job}/result/files/x",
        ):
            problem(reader.get(path), 404, "not-found")
    for path in ("", "/runs", "/runs/1", "/runs/1/files/manifest.json"):
        problem(reader.get(f"/exports/{part.values['export']}{path}"), 404, "not-found")
    exports = unmarked(reader.get("/exports?page_size=1000")).json()["items"]
    assert part.values["export"] not in {each["id"] for each in exports}
    for path in ("", "/deliveries"):
        problem(reader.get(f"/webhooks/{part.values['webhook']}{path}"), 404, "not-found")
    assert unmarked(reader.get("/webhooks")).json()["items"] == []
    assert unmarked(reader.get("/views")).json()["items"] == []
    assert len(unmarked(reader.get("/datasets")).json()["items"]) == 3
    same = {"Idempotency-Key": new_id()}
    with part.service.client(part.key) as client:
        assert client.post("/datasets/people/reads", json={}, headers=same).status_code == 202
    problem(reader.post("/datasets/people/reads", json={}, headers=same), 422, "idempotency-mismatch")
    part.service.work()


def test_webhooks_and_schedules_keep_the_restriction_of_their_key(
    part: Part, whole: httpx2.Client, service: Service
) -> None:
    part.receiver.messages.clear()
    tenants = service.tenants
    grants = (PART, Grant(datasets="people*", scopes=(KeyScope.MANAGE,)))
    made_by = tenants.make_key(part.tenant, (KeyScope.READ, KeyScope.MANAGE), grants=grants)
    with service.client(made_by.api_key) as manager:
        hook = manager.post(
            "/webhooks", json={"dataset": "people", "url": part.receiver.url, "since": "earliest"}
        )
        assert hook.status_code == 201, hook.text
        export = manager.post("/datasets/people/exports", json=EVERY_MINUTE)
        assert export.status_code == 202, export.text
        partitions = {"dataset": "people", "url": part.receiver.url, "events": "partitions"}
        assert manager.post("/webhooks", json=partitions).status_code in (403, 422)
        assert {each["id"] for each in manager.get("/webhooks").json()["items"]} == {hook.json()["id"]}
    tenants.revoke_key(part.tenant, made_by.key_id)

    def delivered() -> list[Message]:
        return [each for each in part.receiver.messages if each.data["webhook_id"] == hook.json()["id"]]

    work_until(service, lambda: sum(len(each.data["changes"]) for each in delivered()) >= len(CHANGES))
    assert all(MARKER.encode() not in each.body for each in delivered())
    run = whole.get(f"{export.headers['location']}/runs/1").json()
    assert run["rows"] == len(CHANGES)
    for file in run["files"]:
        assert MARKER.encode() not in whole.get(file["links"]["self"]).content
    for path, etag in ((hook.headers["location"], None), (export.headers["location"], None)):
        assert whole.delete(path, headers={"If-Match": etag or "*"}).status_code == 204


def test_grant_that_does_not_fit_shows_nothing(part: Part, service: Service) -> None:
    for grant in (
        {"where": "continent = 'x'"},
        {"where": "level = 'x'"},
        {"mask": ("phone",)},
        {"where": f"level < 5 OR country = '{MARKER}'"},
    ):
        grants = (Grant(datasets="*", scopes=(KeyScope.READ,), **grant),)
        key = service.tenants.make_key(part.tenant, (KeyScope.READ,), grants=grants).api_key
        with service.client(key) as client:
            for path in ("rows", "changes", "changes/events"):
                problem(client.get(f"/datasets/people/{path}"), 403, "grant-not-applicable")
            for path, body in (("reads", {}), ("exports", ONCE)):
                problem(client.post(f"/datasets/people/{path}", json=body), 403, "grant-not-applicable")


def test_view_needs_unrestricted_read_of_its_inputs(part: Part) -> None:
    with part.service.client(part.manager) as client:
        made = client.post(
            "/views", json={"name": "people_copy", "sql": "SELECT region, id, note FROM people"}
        )
        assert problem(made, 403, "restricted-grant")["dataset"] == "people"
        writes = {"writes": [{"dataset": each, **upsert(VISIBLE[0])} for each in ("people", "people_2")]}
        problem(client.post("/transactions", json=writes), 403, "restricted-grant")


def test_keys_with_restricted_grants_only_read(part: Part, service: Service) -> None:
    with service.client(part.key) as client:

        def make(of_key: list[str], **grant: Any) -> httpx2.Response:
            return client.post(
                "/keys", json={"name": "k", "scopes": of_key, "grants": [{"datasets": "p*", **grant}]}
            )

        for scopes, grant in (
            (["read", "write"], {"where": WHERE}),
            (["read", "manage"], {"mask": ["email"], "scopes": ["read", "manage"]}),
            (["write"], {"mask": ["email"]}),
        ):
            members = problem(make(scopes, **grant), 400, "invalid-request")
            assert members["errors"][0]["pointer"] == "/grants/0/scopes"
        members = problem(make(["read"], where="level <"), 400, "invalid-request")
        assert members["errors"][0]["pointer"] == "/grants/0/where"
        made = make(["read"], where=WHERE, mask=["email"]).json()
        assert made["grants"] == [{"datasets": "p*", "scopes": [], "where": WHERE, "mask": ["email"]}]
        with service.client(made["api_key"]) as reader:
            assert reader.get("/me").json()["grants"] == made["grants"]
            assert len(reader.get("/datasets/people/rows").json()["rows"]) == len(VISIBLE)


def test_several_grants_show_the_rows_of_all(part: Part, service: Service) -> None:
    def seen(*grants: Grant) -> set[tuple[str, bool]]:
        key = service.tenants.make_key(part.tenant, (KeyScope.READ,), grants=grants).api_key
        with service.client(key) as client:
            rows = client.get("/datasets/people/rows").json()["rows"]
            return {(each["id"], each["email"] is None) for each in rows}

    low = Grant(datasets="people", where="level < 2", mask=("email",))
    other = Grant(datasets="p*", where="level = 3")
    assert seen(low) == {("1", True)}
    # No grant shows the address of 1, and one address is as masked as another.
    assert seen(low, other) == {("1", True), ("4", True)}
    assert ("1", False) in seen(low, Grant(datasets="*"))
    assert len(seen(low, Grant(datasets="*"))) > 2


def test_lag_does_not_count_hidden_changes(reader: httpx2.Client, whole: httpx2.Client) -> None:
    path = "/datasets/people/consumers"
    begin = {"json": {"offset": "earliest"}, "headers": {"If-None-Match": "*"}}
    assert whole.put(f"{path}/all", **begin).json()["lag"]["changes"] > len(CHANGES)
    assert {each["name"]: each["lag"] for each in reader.get(path).json()["items"]}["all"] is None
    assert reader.get(f"{path}/all").json()["lag"] is None
    made = reader.put(f"{path}/mine", **begin)
    assert (made.status_code, made.json()["lag"]) == (201, None)
    edges = reader.get("/lineage").json()["edges"]
    assert edges
    assert all(each["lag"] is None for each in edges)


def test_order_of_rows_that_are_equal_does_not_show_a_masked_key(part: Part) -> None:
    with part.service.client(part.key) as client:
        fields = [
            {"name": "id", "type": "int64"},
            {"name": "level", "type": "int64"},
            {"name": "note", "type": "string"},
        ]
        made = client.post(
            "/datasets", json={"name": "ties", "schema": {"fields": fields}, "record_key": ["id"]}
        )
        assert made.is_success, made.text
        written = [{"id": number, "level": 1, "note": f"n{number}"} for number in range(40)]
        client.post("/datasets/ties/writes", json=upsert(*written))
        part.service.work()
    grant = Grant(datasets="ties", mask=("id",))
    key = part.service.tenants.make_key(part.tenant, (KeyScope.READ,), grants=(grant,)).api_key
    with part.service.client(key) as client:
        pages: list[list[int]] = []
        for limit in (100, 7):
            found: list[Row] = []
            token: str | None = None
            while True:
                query = {"order_by": "level", "limit": limit} | ({"page_token": token} if token else {})
                page = client.get("/datasets/ties/rows", params=query).json()
                found += page["rows"]
                token = page["next_page_token"]
                if token is None:
                    break
            assert {row["id"] for row in found} == {None}
            pages.append([int(row["note"][1:]) for row in found])
    assert pages[0] == pages[1]
    assert sorted(pages[0]) == list(range(40))
    steps = [later > earlier for earlier, later in pairwise(pages[0])]
    assert 7 < sum(steps) < 32
