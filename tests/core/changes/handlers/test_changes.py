"""Reading the feed."""

import io
import json
import threading
import time

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from app.infra.runtime.loopback import LOOPBACK
from tests.support.health import service_checks
from tests.support.http import problem, upsert
from tests.support.service import running_service, settings_for
from tests.support.shares import share

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
SYSTEM = ["offset", "op", "system_time", "event_time", "version", "corrects_offset"]


def ops(changes):
    return [(change["offset"], change["op"], change["version"], change["row"]["id"]) for change in changes]


def test_feed_returns_changes_in_order_with_the_next_position(client, feed):
    page = client.get(feed).json()
    first, second = sorted(change["row"]["id"] for change in page["changes"][:2])
    assert (first, second) == (1, 2)
    assert [change["offset"] for change in page["changes"]] == [0, 1, 2, 3]
    assert [change["op"] for change in page["changes"]] == ["+A", "+A", "-C", "+C"]
    assert [change["version"] for change in page["changes"]] == [1, 1, 2, 2]
    assert [change["row"] for change in page["changes"][2:]] == [
        {"id": 1, "note": "a"},
        {"id": 1, "note": "c"},
    ]
    assert page["changes"][0]["event_time"] is None
    assert page["changes"][0]["system_time"].endswith("Z")
    assert (page["next_since"], page["pending"], page["earliest"]) == (4, 0, 0)


def test_pages_join_to_the_whole_feed(client, feed):
    whole = client.get(feed).json()["changes"]
    since, seen = 0, []
    while page := client.get(feed, params={"since": since, "limit": 1}).json():
        if not page["changes"]:
            break
        seen += page["changes"]
        since = page["next_since"]
        assert page["pending"] == 4 - since
    assert seen == whole


def test_correction_pair_is_never_split(client, feed):
    page = client.get(feed, params={"since": 2, "limit": 1}).json()
    assert [change["op"] for change in page["changes"]] == ["-C", "+C"]
    assert page["next_since"] == 4


def test_media_types_agree(client, feed):
    as_json = client.get(feed).json()["changes"]
    as_ndjson = client.get(feed, headers={"Accept": NDJSON})
    assert [json.loads(line) for line in as_ndjson.text.splitlines()] == as_json
    as_arrow = client.get(feed, headers={"Accept": f"{ARROW}, application/json;q=0.5"})
    table = ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()
    assert table.column_names == [*SYSTEM, "id", "note"]
    corrects = [change["corrects_offset"] for change in as_json]
    assert table.column("corrects_offset").to_pylist() == corrects
    assert table.schema.field("op").type == pa.uint8()
    assert table.column("op").to_pylist() == [0, 0, 2, 3]
    assert table.column("note").to_pylist() == [change["row"]["note"] for change in as_json]
    for answer in (as_ndjson, as_arrow):
        assert answer.headers["headwater-next-since"] == "4"
        assert answer.headers["headwater-pending"] == "0"
        assert answer.headers["headwater-earliest"] == "0"
    assert as_arrow.headers["content-type"] == ARROW


def test_page_of_megabytes_has_what_many_pages_have(client, orders, service):
    lines = "".join(f'{{"id": {number}, "note": "row {number:060}"}}\n' for number in range(20_000))
    upload = client.post(f"{orders}/writes?operation=upsert", content=lines, headers={"Content-Type": NDJSON})
    assert upload.status_code == 202, upload.text
    service.work()
    small, since = [], 0
    while since < 20_000:
        page = client.get(f"{orders}/changes", params={"since": since, "limit": 7_000}).json()
        small += page["changes"]
        since = page["next_since"]
    answers = {
        accept: client.get(f"{orders}/changes", params={"limit": 50_000}, headers={"Accept": accept})
        for accept in ("application/json", NDJSON, ARROW)
    }
    large = answers["application/json"].json()
    assert len(answers["application/json"].content) > 1024**2
    assert large["changes"] == small
    assert (large["next_since"], large["pending"], large["earliest"]) == (20_000, 0, 0)
    assert [json.loads(line) for line in answers[NDJSON].text.splitlines()] == small
    table = ipc.open_stream(io.BytesIO(answers[ARROW].content)).read_all()
    assert table.column("offset").to_pylist() == list(range(20_000))
    assert table.column("note").to_pylist() == [change["row"]["note"] for change in small]
    rows = client.get(f"{orders}/rows", params={"limit": 50_000}).json()
    assert {row["id"] for row in rows["rows"]} == set(range(20_000))
    assert rows["next_page_token"] is None


def test_since_now_is_the_head(client, feed):
    page = client.get(feed, params={"since": "now"}).json()
    assert (page["changes"], page["next_since"]) == ([], 4)


def test_position_beyond_the_head_is_refused(client, feed):
    members = problem(client.get(feed, params={"since": 5}), 409, "offset-ahead")
    assert (members["since"], members["head"]) == (5, 4)
    problem(client.get(feed, params={"since": 2**63 - 1}), 409, "offset-ahead")
    problem(client.get(feed, params={"since": 2**63}), 409, "offset-ahead")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("since", "-1"), ("since", "x"), ("since", "1e3"), ("since", "9" * 30),
        ("since_version", "-1"), ("since_version", "x"), ("since_time", "2026-11-21"),
        ("limit", "0"), ("limit", "50001"), ("limit", "ten"), ("feed", "push"), ("timeout", "61"),
        ("since", ["0", "3"]), ("where", ["id = 1", "id = 2"]),
    ],
)  # fmt: skip
def test_invalid_parameter_is_named(client, feed, name, value):
    members = problem(client.get(feed, params={name: value}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == f"/{name}"


def test_unsupported_media_type_is_refused(client, feed):
    members = problem(client.get(feed, headers={"Accept": "application/xml"}), 406, "not-acceptable")
    assert members["available"] == ["application/json", NDJSON, ARROW]
    infinite = client.get(feed, headers={"Accept": "application/json;q=1e999"})
    problem(infinite, 406, "not-acceptable")


class TestLongpoll:
    def test_available_changes_return_immediately(self, client, feed):
        began = time.monotonic()
        assert len(client.get(feed, params={"feed": "longpoll", "timeout": 20}).json()["changes"]) == 4
        assert time.monotonic() - began < 5

    def test_timeout_returns_an_empty_page(self, client, feed):
        began = time.monotonic()
        answer = client.get(feed, params={"feed": "longpoll", "since": 4, "timeout": 1})
        assert answer.status_code == 200
        assert answer.json() == {"changes": [], "next_since": 4, "pending": 0, "earliest": 0, "schema_id": 1}
        assert 0.9 < time.monotonic() - began < 5

    @pytest.mark.parametrize("since", ["4", "now"])
    def test_commit_ends_the_wait(self, client, feed, orders, service, since):
        answers = []
        with service.client(client.headers["authorization"].split()[1]) as second, service.working():
            parameters = {"feed": "longpoll", "since": since, "timeout": 20}
            waiting = threading.Thread(target=lambda: answers.append(second.get(feed, params=parameters)))
            waiting.start()
            time.sleep(0.3)
            began = time.monotonic()
            client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "d"}))
            waiting.join(20)
            assert time.monotonic() - began < 5
        assert ops(answers[0].json()["changes"]) == [(4, "+A", 3, 3)]


@share(2)
def test_long_poll_and_job_wait_work_without_redis(postgres, tmp_path):
    with postgres.fresh_database() as name:
        nowhere = f"redis://{LOOPBACK}:1/0"
        settings = settings_for(postgres.application_url(name), postgres.admin_url(name), nowhere, tmp_path)
        with running_service(settings) as service, service.client(service.new_key("alone")) as client:
            fields = [{"name": "id", "type": "int64"}]
            orders = client.post(
                "/datasets", json={"name": "orders", "schema": {"fields": fields}, "record_key": ["id"]}
            ).headers["location"]
            with service.working():
                written = client.post(
                    f"{orders}/writes", json=upsert({"id": 1}), headers={"Prefer": "wait=20"}
                )
                assert written.status_code == 200, written.text
                page = client.get(f"{orders}/changes", params={"feed": "longpoll", "timeout": 20}).json()
            assert len(page["changes"]) == 1
            redis = service_checks(client)["redis"]
            assert (redis["ok"], redis["severity"]) == (False, "warning")


class TestUntil:
    def test_page_ends_at_until(self, client, feed):
        page = client.get(feed, params={"until": 2}).json()
        assert [change["offset"] for change in page["changes"]] == [0, 1]
        assert (page["next_since"], page["pending"]) == (2, 2)

    def test_page_stops_before_a_pair_that_until_would_split(self, client, feed):
        page = client.get(feed, params={"until": 3}).json()
        assert [change["op"] for change in page["changes"]] == ["+A", "+A"]
        assert (page["next_since"], page["pending"]) == (2, 2)

    @pytest.mark.parametrize(("since", "until"), [(0, 0), (2, 2), (3, 1), (4, 4), (2, 3), ("now", 4)])
    def test_until_at_or_before_since_returns_immediately(self, client, feed, since, until):
        began = time.monotonic()
        parameters = {"feed": "longpoll", "since": since, "until": until, "timeout": 20}
        page = client.get(feed, params=parameters).json()
        assert (page["changes"], page["next_since"]) == ([], 4 if since == "now" else since)
        assert time.monotonic() - began < 5

    def test_until_beyond_the_head_is_waited_for(self, client, feed):
        began = time.monotonic()
        page = client.get(feed, params={"feed": "longpoll", "since": 4, "until": 9, "timeout": 1}).json()
        assert page["changes"] == []
        assert time.monotonic() - began > 0.9

    @pytest.mark.parametrize("until", ["-1", "now", str(2**63), "1.5"])
    def test_invalid_until_is_refused(self, client, feed, until):
        members = problem(client.get(feed, params={"until": until}), 400, "invalid-request")
        assert members["errors"][0]["pointer"] == "/until"


class TestColumns:
    def test_rows_have_the_selected_columns_in_order(self, client, feed):
        as_json = client.get(feed, params={"columns": "note"}).json()["changes"]
        assert sorted(change["row"]["note"] for change in as_json[:2]) == ["a", "b"]
        assert [change["row"] for change in as_json[2:]] == [{"note": "a"}, {"note": "c"}]
        as_ndjson = client.get(feed, params={"columns": "note"}, headers={"Accept": NDJSON})
        assert [json.loads(line) for line in as_ndjson.text.splitlines()] == as_json
        as_arrow = client.get(feed, params={"columns": "note,id"}, headers={"Accept": ARROW})
        table = ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()
        assert table.column_names == [*SYSTEM, "note", "id"]

    @pytest.mark.parametrize("columns", ["nope", "id,id", "", "id,op", "_hw_op"])
    def test_unknown_column_is_refused(self, client, feed, columns):
        members = problem(client.get(feed, params={"columns": columns}), 400, "invalid-request")
        assert members["errors"][0]["pointer"] == "/columns"

    def test_event_time_does_not_require_its_column(self, client, service):
        fields = [{"name": "at", "type": "timestamp"}, {"name": "n", "type": "int8"}]
        new = {"name": "timed", "schema": {"fields": fields}, "event_time_field": "at"}
        path = client.post("/datasets", json=new).headers["location"]
        rows = [{"at": "2026-03-01T00:00:00Z", "n": 1}]
        client.post(f"{path}/writes", json={"operation": "insert", "source": {"kind": "rows", "rows": rows}})
        service.work()
        (change,) = client.get(f"{path}/changes", params={"columns": "n"}).json()["changes"]
        assert (change["event_time"], change["row"]) == ("2026-03-01T00:00:00Z", {"n": 1})


class TestExpired:
    """A feed of which the first two changes are kept no longer."""

    @pytest.fixture
    def cut(self, feed, service):
        with service.database.relay() as connection:
            query = "SELECT tenant_id FROM heads WHERE next_offset = 4"
            tenants = connection.exec_driver_sql(query).scalars().all()
        for tenant in tenants:
            with service.database.tenant(str(tenant)) as connection:
                connection.exec_driver_sql("UPDATE heads SET earliest_offset = 2 WHERE next_offset = 4")
        return feed

    @pytest.mark.parametrize("since", [0, 1])
    def test_expired_position_is_gone_in_pages_and_streams(self, client, cut, since):
        for answer in (
            client.get(cut, params={"since": since}),
            client.get(cut, params={"since": since, "feed": "longpoll", "where": "id = 1"}),
            client.get(f"{cut}/events", params={"since": since, "until": 4}),
            client.get(f"{cut}/events", params={"since": 2}, headers={"Last-Event-ID": str(since)}),
        ):
            members = problem(answer, 410, "offset-expired")
            assert (members["since"], members["earliest"]) == (since, 2)
        problem(client.get(cut), 410, "offset-expired")

    def test_cached_page_is_gone_with_its_changes(self, client, feed, request):
        page = {"since": 1, "limit": 1}
        assert client.get(feed, params=page).json()["pending"] == 2
        request.getfixturevalue("cut")
        problem(client.get(feed, params=page), 410, "offset-expired")

    def test_since_earliest_reads_the_rest(self, client, cut):
        page = client.get(cut, params={"since": "earliest"}).json()
        assert ([change["offset"] for change in page["changes"]], page["earliest"]) == ([2, 3], 2)
        assert page == client.get(cut, params={"since": 2}).json()
        events = client.get(f"{cut}/events", params={"since": "earliest", "until": 4})
        assert "id: 2\n" in events.text
        assert "id: 4\n" in events.text

    def test_earliest_of_a_whole_feed_is_its_start(self, client, feed):
        assert client.get(feed, params={"since": "earliest"}).json() == client.get(feed).json()
