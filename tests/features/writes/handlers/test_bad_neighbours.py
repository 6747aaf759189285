"""Inserts without a key: a bad record keeps back itself, and a bad write itself, whatever stands beside them."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa
import pytest

ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
CSV = "text/csv"
AT = "2026-11-23T00:00:00Z"


def arrow(*whats, column="what"):
    table = pa.table({column: list(whats)})
    sink = BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.fixture
def send(client, events):
    def run(content, media_type, **params):
        params = {"operation": "insert", **params}
        headers = {"Content-Type": media_type}
        answer = client.post(f"{events}/writes", content=content, headers=headers, params=params)
        assert answer.status_code == 202, answer.text
        return answer.headers["location"]

    return run


@pytest.fixture
def whats(client, events):
    def run():
        return [row["what"] for row in client.get(f"{events}/rows").json()["rows"]]

    return run


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("lines", "bad", "media_type", "header"),
    [
        ([f'{{"at": "{AT}", "what": "{each}"}}' for each in "abc"], '{"at": "never"}', NDJSON, ""),
        ([f'{{"at": "{AT}", "what": "{each}"}}' for each in "abc"], '{"at', NDJSON, ""),
        ([f"{AT},{each}" for each in "abc"], "never,x", CSV, "at,what\n"),
    ],
    ids=["value", "text", "cell"],
)
def test_bad_record_is_quarantined_and_its_neighbours_are_rows(
    client, service, events, send, whats, lines, bad, media_type, header, place
):
    lines = [*lines[:place], bad, *lines[place:]]
    job = send((header + "\n".join(lines) + "\n").encode(), media_type, on_error="quarantine")
    service.work()
    found = client.get(job).json()
    assert (found["state"], found["rows"]["inserted"], found["rows"]["quarantined"]) == ("succeeded", 3, 1)
    assert whats() == ["a", "b", "c"]
    [record] = client.get(f"{events}/quarantine").json()["items"]
    assert record["errors"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_bad_write_fails_alone_among_writes_of_one_commit(client, service, events, send, whats, place):
    jobs = [send(f'{{"what": "{each}"}}\n'.encode(), NDJSON) for each in "ab"[:place]]
    bad = send(arrow("x", column="unknown"), ARROW)
    jobs += [send(f'{{"what": "{each}"}}\n'.encode(), NDJSON) for each in "ab"[place:]]
    jobs.append(send(arrow("c", "d"), ARROW))
    service.work()
    assert client.get(bad).json()["state"] == "failed"
    assert {client.get(job).json()["state"] for job in jobs} == {"succeeded"}
    assert sorted(whats()) == ["a", "b", "c", "d"]
    changes = client.get(f"{events}/changes").json()["changes"]
    assert sorted(change["row"]["what"] for change in changes) == ["a", "b", "c", "d"]
