"""Options of a write that do not go together: refused, with nothing left behind."""

import pytest

from tests.support.http import problem, upsert

NDJSON = "application/x-ndjson"
LINE = b'{"id":1,"note":"eins"}\n'


@pytest.fixture(autouse=True)
def no_job_and_no_file_is_left(client, orders, service):
    yield
    assert client.get(f"{orders}/timeline").json()["items"] == []
    folder = service.settings.data_dir / "storage"
    assert not [path for path in folder.rglob(f"{orders.rsplit('/', 1)[-1]}/**/*") if path.is_file()]


@pytest.mark.parametrize(
    "parameters", [{"operation": "insert"}, {"mode": "append"}, {"merge_schema": "true"}]
)
def test_option_in_both_query_and_body_is_refused(client, orders, parameters):
    answer = client.post(f"{orders}/writes", params=parameters, json=upsert({"id": 1}))
    [pointer] = [error["pointer"] for error in problem(answer, 400, "invalid-request")["errors"]]
    assert pointer.removeprefix("/") in parameters


@pytest.mark.parametrize(
    ("parameters", "pointer"),
    [
        ({"drop_duplicates": "true"}, "/drop_duplicates"),
        ({"operation": "bulk_insert", "combine": "false"}, "/combine"),
        ({"operation": "bulk_insert", "sort_by": ["id", "none"]}, "/sort_by/1"),
        ({"operation": "insert", "sort_by": "id"}, "/sort_by"),
        ({"operation": "overwrite", "overwrite_scope": "partitions"}, "/overwrite/scope"),
        ({"operation": "overwrite", "overwrite_where": "id = 1"}, "/overwrite/where"),
        ({"operation": "delete_partition"}, "/operation"),
        ({"mode": "ignore", "operation": "delete"}, "/mode"),
        ({"where": "id = 1"}, "/where"),
        ({"operation": "upsert", "order": "arrival"}, "/order"),
        ({"operation": "delete", "order": "ordering_field"}, "/order"),
        ({"batch_id": "1"}, "/writer_id"),
        ({"expected_version": "-1"}, "/expected_version"),
    ],
)
def test_conflicting_options_of_a_raw_body_are_refused(client, orders, parameters, pointer):
    headers = {"Content-Type": NDJSON}
    answer = client.post(f"{orders}/writes", params=parameters, content=LINE, headers=headers)
    errors = problem(answer, 400, "invalid-request")["errors"]
    assert pointer in [error["pointer"] for error in errors]


def test_batch_refuses_an_idempotency_key(client, orders):
    body = {**upsert({"id": 1}), "writer_id": "w", "batch_id": 1}
    answer = client.post(f"{orders}/writes", json=body, headers={"Idempotency-Key": "k"})
    [error] = problem(answer, 400, "invalid-request")["errors"]
    assert error["pointer"] == "/Idempotency-Key"
