"""Options of a write that do not go together: refused, with nothing left behind."""

import pytest

from tests.support.http import problem, upsert

NDJSON = "application/x-ndjson"
LINE = b'{"id":1,"note":"eins"}\n'


@pytest.fixture(autouse=True)
def nothing_is_left(client, orders, service):
    yield
    assert client.get(f"{orders}/timeline").json()["items"] == []
    folder = service.settings.data_dir / "storage"
    assert not [path for path in folder.rglob(f"{orders.rsplit('/', 1)[-1]}/**/*") if path.is_file()]


@pytest.mark.parametrize("given", [{"operation": "insert"}, {"mode": "append"}, {"merge_schema": "true"}])
def test_options_are_given_once(client, orders, given):
    answer = client.post(f"{orders}/writes", params=given, json=upsert({"id": 1}))
    [pointer] = [error["pointer"] for error in problem(answer, 400, "invalid-request")["errors"]]
    assert pointer.removeprefix("/") in given


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"drop_duplicates": "true"}, "/drop_duplicates"),
        ({"operation": "overwrite", "overwrite_scope": "partitions"}, "/overwrite/scope"),
        ({"operation": "overwrite", "overwrite_where": "id = 1"}, "/overwrite/where"),
        ({"operation": "delete_partition"}, "/operation"),
        ({"mode": "ignore", "operation": "delete"}, "/mode"),
        ({"where": "id = 1"}, "/where"),
        ({"batch_id": "1"}, "/writer_id"),
        ({"expected_version": "-1"}, "/expected_version"),
    ],
)
def test_options_of_a_raw_body_that_do_not_go_together(client, orders, given, pointer):
    headers = {"Content-Type": NDJSON}
    answer = client.post(f"{orders}/writes", params=given, content=LINE, headers=headers)
    errors = problem(answer, 400, "invalid-request")["errors"]
    assert pointer in [error["pointer"] for error in errors]


def test_a_batch_needs_no_idempotency_key(client, orders):
    body = {**upsert({"id": 1}), "writer_id": "w", "batch_id": 1}
    answer = client.post(f"{orders}/writes", json=body, headers={"Idempotency-Key": "k"})
    [error] = problem(answer, 400, "invalid-request")["errors"]
    assert error["pointer"] == "/Idempotency-Key"
