"""The typed client while nothing works on its jobs, and while the service cannot be reached."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import msgspec
import pytest

from headwater_client import Headwater, JobUnfinished, Problem
from headwater_client.transport.driver import BlockingDriver

JOB = {
    "id": "j", "kind": "write", "state": "queued", "operation": "upsert", "attempts": 0,
    "progress": {"stage": "queued", "done": 0, "total": 0}, "committed_version": None, "first_offset": None,
    "last_offset": None, "error": None, "created_at": "2026-11-21T10:00:00Z", "started_at": None,
    "finished_at": None,
    "rows": dict.fromkeys(("inserted", "updated", "deleted", "unchanged", "late", "quarantined"), 0),
    "result": None, "actor": None, "metadata": {}, "a_member_of_a_later_release": {},
    "links": {"self": "/jobs/j", "events": "/jobs/j/events", "dataset": "/datasets/d", "transaction": None},
}  # fmt: skip


def test_job_of_an_earlier_release_is_read():
    client, _ = answering(job())
    read = client.get_job("j")
    assert (read.timings, read.replans) == ({}, 0)


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between attempts, which take no time here."""
    seconds = []

    async def sleep(_, delay):
        seconds.append(delay)

    # Not the standard library's own: the service, in another thread, sleeps as well.
    monkeypatch.setattr(BlockingDriver, "sleep", sleep)
    return seconds


def test_client_waits_between_attempts():
    client, sent = answering(problem(503, "unavailable", {"retry-after": "1"}), job())
    began = time.monotonic()
    client.get_job("j")
    assert 1 <= time.monotonic() - began < 5
    assert len(sent) == 2


def answering(*answers):
    """A client whose requests get these answers, or errors, in turn; and the requests it has sent."""
    sent, waiting = [], iter(answers)

    def handle(request):
        request.read()
        sent.append(request)
        answer = next(waiting)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Headwater("http://service", "hw_key", transport=httpx2.MockTransport(handle)), sent


def problem(status, code, headers=None):
    document = {"type": f"/problems/{code}", "title": code, "status": status, "detail": "said so"}
    return httpx2.Response(
        status,
        content=msgspec.json.encode(document),
        headers={"content-type": "application/problem+json", **(headers or {})},
    )


def job(**members):
    return httpx2.Response(202, json=JOB | members)


def test_job_that_outlasts_the_wait_is_reported_unfinished_and_continues(headwater, orders):
    began = time.monotonic()
    with pytest.raises(JobUnfinished) as unfinished:
        headwater.write_rows(orders, [{"id": 1, "note": "a"}], wait=1.2)
    assert 1 < time.monotonic() - began < 10
    assert headwater.get_job(unfinished.value.job).state == "queued"
    assert headwater.cancel(unfinished.value.job).state == "cancelled"
    with pytest.raises(Problem, match="job-cancelled"):
        headwater.wait(unfinished.value.job)


def test_write_with_a_lost_response_is_retried_under_the_same_key(pauses):
    client, sent = answering(httpx2.ReadError("gone"), httpx2.RemoteProtocolError("closed"), job())
    assert client.write_rows("orders", [{"id": 1}]).id == "j"
    assert len({request.headers["idempotency-key"] for request in sent}) == 1
    assert {request.content for request in sent} == {b'{"id":1}\n'}
    assert len(pauses) == 2


def test_two_writes_have_two_idempotency_keys(pauses):
    client, sent = answering(job(), job())
    for _ in range(2):
        client.write_rows("orders", [{"id": 1}])
    assert len({request.headers["idempotency-key"] for request in sent}) == 2


def test_retried_file_is_sent_from_its_start(pauses, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_bytes(b"id\n1\n")
    client, sent = answering(httpx2.ReadTimeout("slow"), job())
    client.write("orders", file, "csv")
    assert [request.content for request in sent] == [b"id\n1\n"] * 2


def test_client_waits_as_retry_after_states(pauses):
    busy = problem(503, "unavailable", {"retry-after": "3"})
    client, _ = answering(busy, problem(409, "idempotency-in-flight", {"retry-after": "1"}), job())
    client.write_rows("orders", [{"id": 1}])
    assert pauses == [3, 1]


def test_a_date_in_retry_after_is_honoured(pauses):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    client, _ = answering(problem(429, "too-many-requests", {"retry-after": later}), job())
    client.write_rows("orders", [{"id": 1}])
    assert 25 < pauses[0] <= 30


def test_a_retry_after_of_more_than_a_minute_is_a_problem_at_once(pauses):
    client, sent = answering(problem(503, "unavailable", {"retry-after": "61"}))
    with pytest.raises(Problem) as refused:
        client.write_rows("orders", [{"id": 1}])
    assert (refused.value.status, len(sent), pauses) == (503, 1, [])


def test_a_quota_of_what_exists_is_a_problem_at_once_and_one_that_passes_is_waited_for(pauses):
    client, sent = answering(problem(429, "quota-exceeded", {}))
    with pytest.raises(Problem, match="quota-exceeded"):
        client.write_rows("orders", [{"id": 1}])
    assert (len(sent), pauses) == (1, [])
    client, sent = answering(problem(429, "quota-exceeded", {"retry-after": "5"}), job())
    client.write_rows("orders", [{"id": 1}])
    assert (len(sent), pauses) == (2, [5])


def test_the_health_of_now_is_requested_once(pauses):
    failing = httpx2.Response(503, json={"state": "failing", "checks": {}})
    client, sent = answering(failing)
    with pytest.raises(Problem) as refused:
        client.request("GET", "/health/service")
    assert (refused.value.status, refused.value.json) == (503, failing.text)
    assert (len(sent), pauses) == (1, [])


def test_client_gives_up_after_six_attempts(pauses):
    client, sent = answering(*[problem(503, "unavailable")] * 10)
    with pytest.raises(Problem, match="503 unavailable: said so"):
        client.get_dataset("orders")
    assert len(sent) == 6
    assert pauses == sorted(pauses)
    client, sent = answering(*[httpx2.ConnectError("refused")] * 10)
    with pytest.raises(httpx2.ConnectError):
        client.get_dataset("orders")
    assert len(sent) == 6


def test_request_that_is_not_idempotent_is_not_retried(pauses):
    client, sent = answering(httpx2.ReadError("gone"))
    with pytest.raises(httpx2.ReadError):
        client.cancel("j")
    client, sent = answering(problem(503, "unavailable"))
    with pytest.raises(Problem):
        client.delete_dataset("orders")
    assert len(sent) == 1
    # Nothing was sent where there was no connection.
    client, sent = answering(httpx2.ConnectError("refused"), job(state="cancelled"))
    assert client.cancel("j").state == "cancelled"


def test_refused_request_is_not_retried(pauses):
    client, sent = answering(problem(422, "schema-mismatch"))
    with pytest.raises(Problem):
        client.write_rows("orders", [{"id": 1}])
    assert len(sent) == 1
    assert pauses == []


def test_response_of_a_proxy_is_a_problem():
    client, _ = answering(httpx2.Response(413, text="<h1>Too large</h1>"))
    with pytest.raises(Problem) as refused:
        client.write_rows("orders", [{"id": 1}])
    assert (refused.value.status, refused.value.type) == (413, "about:blank")
    assert "Too large" in refused.value.detail
