"""A random history of several clients on a running service, and its check against the reference model."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from tests.kernel.commit.reference import Table as Model
from tests.support.table import Row, Table, by_key, fold
from tests.support.threads import together

CLIENTS = 4
WRITES_EACH = 8
FIELDS = {"region": "string", "id": "int32", "seen": "int64", "note": "string"}
KEY = ["region", "id"]
SYMBOLS = {Op.APPEND: "+A", Op.RETRACT: "-R", Op.CORRECT_FROM: "-C", Op.CORRECT_TO: "+C"}
ORDER = """SELECT j.id::text FROM jobs j JOIN instants i ON i.job_id = j.id
    WHERE j.dataset_id = %s AND j.state = 'succeeded'
    ORDER BY j.committed_version, i.version IS NULL, j.seq"""

Write = tuple[Operation, list[Row]]
Submit = Callable[[Table, str, Sequence[Row]], str]


def settings_of(seed: int) -> Row:
    """The dataset of a history: every other one has an ordering field."""
    fields = [{"name": name, "type": kind} for name, kind in FIELDS.items()]
    settings: Row = {"ordering_field": "seen"} if seed % 2 == 0 else {}
    return {
        "schema": {"fields": fields},
        "record_key": KEY,
        "partition_by": ["region"],
        "bucket": {"count": 3},
        **settings,
    }


def run_clients(
    table: Table,
    seed: int,
    submit: Submit = Table.submit,
    *,
    writes_each: int = WRITES_EACH,
    minutes: int = 1,
) -> dict[str, Write]:
    """Sends every client's writes, the clients at the same time; the writes by job. `submit` returns the job's id.

    `minutes`: within which a job must end, and all that a client does.
    """

    def run(number: int) -> dict[str, Write]:
        rng = random.Random(f"{seed}-{number}")
        sent = {}
        with table.deployment.client() as http:
            own = Table(deployment=table.deployment, client=http, id=table.id, key=table.key)
            for _ in range(writes_each):
                operation, rows = _random_write(rng)
                sent[submit(own, operation.value, rows)] = operation, rows
                if rng.random() < 0.3:
                    own.ended(list(sent)[-1], minutes=minutes)
        return sent

    parts = together(
        [lambda number=number: run(number) for number in range(CLIENTS)], seconds_max=60 * minutes
    )
    return {job_id: write for part in parts for job_id, write in part.items()}


def check_history(table: Table, writes: Mapping[str, Write], ordering_field: str | None) -> None:
    """Waits for all jobs, and compares table, feed and jobs with the writes one after another, at every version."""
    ended = {job_id: table.ended(job_id, minutes=3) for job_id in writes}
    for job_id, job in ended.items():
        inserts = writes[job_id][0].refuses_live_keys
        assert job["state"] == "succeeded" or (
            inserts and job["error"]["type"] == "/problems/duplicate-key"
        ), job
    table.sound()
    order = [job_id for (job_id,) in table.deployment.query(ORDER, table.id)]
    assert set(order) == {job_id for job_id, job in ended.items() if job["state"] == "succeeded"}
    assert len(order) == len(set(order))
    accepted = "SELECT id::text FROM jobs WHERE dataset_id = %s AND kind = 'write'"
    assert {job_id for (job_id,) in table.deployment.query(accepted, table.id)} == set(writes)
    _replay(
        table,
        Model(dataset=_definition(ordering_field)),
        [(ended[job_id], *writes[job_id]) for job_id in order],
    )


def _random_write(rng: random.Random) -> Write:
    operation = rng.choices(
        [Operation.UPSERT, Operation.INSERT, Operation.DELETE, Operation.BULK_INSERT], [6, 2, 3, 1]
    )[0]
    # Inserts stay small: among few keys, a larger one would never fall into a gap.
    inserts = operation.refuses_live_keys
    return operation, [_random_row(rng) for _ in range(rng.randint(1, 3 if inserts else 200))]


def _random_row(rng: random.Random) -> Row:
    return {
        "region": rng.choice(["", "eu", "ü"]),
        "id": rng.randint(0, 40),
        "seen": rng.choice([None, *range(6)]),
        "note": rng.choice([None, "", "a", "b"]),
    }


def _definition(ordering_field: str | None) -> DatasetDefinition:
    fields = [CreateField(name=name, type=kind) for name, kind in FIELDS.items()]
    return define_dataset(
        CreateDataset(
            name="model",
            schema=CreateSchema(fields=fields),
            record_key=KEY,
            ordering_field=ordering_field,
        )
    )


def _replay(table: Table, model: Model, writes: Sequence[tuple[Row, Operation, list[Row]]]) -> None:
    """Applies the writes to the model in the order of their versions, and compares each version."""
    changes = table.changes()
    for at, (job, operation, rows) in enumerate(writes):
        write = replace(model.plain(operation, rows), keep=model.dataset.keep_seconds)
        assert not model.refuses(write), f"an insert met a live key: {job}"
        counts = model.apply_write(write)
        assert {name: job["rows"][name] for name in counts} == counts
        version = job["committed_version"]
        if at + 1 == len(writes) or writes[at + 1][0]["committed_version"] != version:
            seen = [change for change in changes if change["version"] <= version]
            expected = {key: dict(row) for key, row in model.live.items()}
            assert by_key(table.rows(version), KEY) == expected
            assert fold(seen, KEY) == expected
            assert _by_steps(seen) == _by_steps(
                [{"op": SYMBOLS[Op(op)], "row": dict(row)} for op, row in model.feed]
            )


def _by_steps(changes: Sequence[Row]) -> dict[tuple[Any, ...], list[tuple[str, Row]]]:
    """What happened to each key, in order: keys of different buckets have no order of their own."""
    steps: dict[tuple[Any, ...], list[tuple[str, Row]]] = {}
    for change in changes:
        steps.setdefault(tuple(change["row"][name] for name in KEY), []).append((change["op"], change["row"]))
    return steps
