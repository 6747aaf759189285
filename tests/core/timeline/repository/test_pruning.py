"""Files that Postgres leaves out by their statistics, against the rules in Python and against the rows of the files."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.repository.live_files import _first_files
from app.core.timeline.repository.pruning import pruned_files
from app.core.timeline.service.live_groups import AFTER_ALL
from app.core.timeline.service.plan_files import FilePlanner
from app.core.timeline.values import Published
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import ColumnStatistics, DataFile, FileKind, Slot, bucket_file_group
from app.kernel.format.index.column_bounds import stored_bound
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import RowFilter, may_match
from app.kernel.sql.conditions.tree import Filter
from tests.support.lakehouse import commit_of, data_file
from tests.support.query_plans import plan_of, rows_read, scans
from tests.support.store_fixtures import Stores

FILES = 60
WORDS = [
    "",
    "a",
    "a b",
    "a!",
    "ab",
    "b",
    "Z",
    "é",
    "日",
    "\U0001f600",
    'a"b',
    "a\\b",
    "a\nb",
    "a\0b",
    "\0",
    '"2":{',
    "z" * 80,
]
TIMES = [
    dt.datetime.fromisoformat(text)
    for text in (
        "2024-01-01T00:00:00",
        "2024-01-01T00:00:00.500",
        "2024-01-01T00:00:01",
        "1969-12-31T23:59:59",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59.999",
    )
]
PATTERNS = ["a%", "a", "%b", "a_", "", "日%", "a b%", "Z%"]
VALUES: dict[str, list[Any]] = {
    "int32": [-5, -1, 0, 1, 2, 3, 10, 2**31 - 1, -(2**31)],
    "int64": [2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0, 7],
    "float": [0.1, -0.0, 1.5, 3.4e38, 1e-45],
    "double": [0.1, 0.30000000000000004, 1e308, 5e-324, -2.5, 0.0, 1e23],
    "decimal(9, 2)": [decimal.Decimal(text) for text in ("0.00", "-0.01", "2.40", "10.00", "9999999.99")],
    "decimal(38, 10)": [decimal.Decimal(text) for text in ("0E-10", "1E-10", "-1E-10", f"{'9' * 28}.5")],
    "string": WORDS,
    "boolean": [True, False],
    "date": [moment.date() for moment in TIMES],
    "timestamp": [moment.replace(tzinfo=dt.UTC) for moment in TIMES],
    "timestamp(ms)": [moment.replace(tzinfo=dt.UTC) for moment in TIMES],
    "timestamp_ntz": TIMES,
    "uuid": [uuid.UUID(int=number).bytes for number in (0, 1, 2**127, 2**128 - 1)],
    "binary": [b"", b"\0", b"a", b"\xff"],
}
COLUMNS = {f"c{number}": kind for number, kind in enumerate(VALUES)}

_MANY_FILES = """
    INSERT INTO files (dataset_id, path, file_group, partition_path, bucket, added_version, size_bytes, row_count,
        checksum, schema_id, statistics)
    SELECT %(dataset)s, 'many/' || day || '/' || number, 'day=' || day || '/append-' || number, 'day=' || day, 0, 1,
        1, 1, '', 1, '{"2":{"minimum":1,"maximum":2,"null_count":0}}'
    FROM (SELECT '2025-07-' || lpad(day::text, 2, '0') AS day FROM generate_series(1, 60) AS day) AS days,
        generate_series(1, 50) AS number
"""


def literal(kind: str, value: Any) -> str:
    """The value as a literal of conditions."""
    match value:
        case bool():
            return str(value).upper()
        case int() | float() | decimal.Decimal():
            return format(value, "f") if isinstance(value, decimal.Decimal) else repr(value)
        case bytes() if kind == "uuid":
            return f"'{uuid.UUID(bytes=value)}'"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat().replace('+00:00', 'Z')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'"


def condition(random: Random, depth: int = 2) -> str:
    """The text of any condition."""
    if depth and random.random() < 0.6:
        parts = [condition(random, depth - 1) for _ in range(random.randint(1, 3))]
        text = random.choice([" AND ", " OR "]).join(f"({part})" for part in parts)
        return f"NOT ({text})" if random.random() < 0.3 else text
    name, kind = random.choice(list(COLUMNS.items()))

    def value() -> str:
        text = literal(kind, random.choice(VALUES[kind]))
        return text if "\0" not in text else literal(kind, "a")

    form = random.random()
    if form < 0.15:
        return f"{name} IS {random.choice(['', 'NOT '])}NULL"
    if form < 0.35:
        values = ", ".join(value() for _ in range(random.choice([1, 2, 20])))
        return f"{name} {random.choice(['', 'NOT '])}IN ({values})"
    if form < 0.6 and kind == "string":
        return f"{name} {random.choice(['', 'NOT '])}LIKE '{random.choice(PATTERNS)}'"
    operators = ["=", "<>"] if kind == "boolean" else ["=", "<>", "<", "<=", ">", ">="]
    return f"{name} {random.choice(operators)} {value()}"


@pytest.fixture
def typed(stores: Stores, tenant_id: str, dataset: Dataset) -> DatasetDefinition:
    """A definition with a column of each type."""
    fields = [
        CreateField(name="id", type="int64"),
        *(CreateField(name=n, type=t) for n, t in COLUMNS.items()),
    ]
    return define_dataset(
        CreateDataset(
            name="typed",
            schema=CreateSchema(fields=fields),
            record_key=["id"],
            bucket=CreateBucket(count=4),
        )
    )


def file_of(table: pa.Table, definition: DatasetDefinition, bucket: int, random: Random) -> DataFile:
    """A file with these rows, with statistics as writers keep them; of some columns unknown."""
    statistics = {}
    for field in definition.schema.fields[1:]:
        if random.random() < 0.1:
            continue
        column = table.column(field.name)
        values = [value for value in column.to_pylist() if value is not None]
        kept = {} if random.random() < 0.1 else {
            "minimum": stored_bound(min(values, default=None), field.data_type()),
            "maximum": stored_bound(max(values, default=None), field.data_type()),
        }  # fmt: skip
        nulls = None if random.random() < 0.1 else column.null_count
        statistics[str(field.id)] = ColumnStatistics(**kept, null_count=nulls)
    slot = Slot(partition_path="", bucket=bucket)
    return msgspec.structs.replace(
        data_file(bucket, rows=table.num_rows),
        statistics=statistics,
        slot=slot,
        file_group=bucket_file_group(slot),
    )


def pruned(stores: Stores, dataset: Dataset, where: Filter, definition: DatasetDefinition) -> set[str]:
    """The paths of the files that Postgres leaves."""
    selection = RowFilter(where=where, schema=definition.schema)
    found = stores.timeline.files_of_groups(
        dataset.tenant_id, dataset.id, 1, (FileKind.BASE,), "", AFTER_ALL, 1_000, selection
    )
    return {file.path for file in found.files}


@pytest.mark.parametrize("seed", range(3))
def test_pruned_files_are_those_of_the_rules(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
    typed: DatasetDefinition,
    seed: int,
) -> None:
    random = Random(seed)
    tables: dict[str, pa.Table] = {}
    added: list[DataFile] = []
    for _ in range(FILES):
        count = random.randint(1, 3)
        rows: dict[str, Any] = {
            name: [random.choice([None, *VALUES[kind]]) for _ in range(count)]
            for name, kind in COLUMNS.items()
        }
        arrow = pa.schema([field for field in typed.schema.to_arrow() if field.name != "id"])
        table = pa.table(rows, schema=arrow).append_column("id", pa.array(range(count), pa.int64()))
        added.append(file_of(table, typed, random.randrange(4), random))
        tables[added[-1].path] = table
    groups = {file.file_group for file in added}
    messages = [
        CommitMessage(
            file_group=group,
            removed=(),
            added=tuple(file for file in added if file.file_group == group),
            changelog=(),
        )
        for group in groups
    ]
    assert isinstance(stores.timeline.publish_one(tenant_id, commit_of([running()], messages)), Published)
    planner = FilePlanner(timeline=stores.timeline)
    fewer = 0
    for _ in range(50):
        where = parse_filter(condition(random), typed.schema)
        kept = pruned(stores, dataset, where, typed)
        possible = {
            file.path for file in added if may_match(where, file.statistics, typed.schema, file.row_count)
        }
        holding = {path for path, table in tables.items() if pc.any(matches(where, table)).as_py()}
        assert holding <= possible <= kept, where.text
        planned = {
            file.path for group in planner.base_files(dataset, typed, 1, where) for file in group.files
        }
        assert planned == possible, where.text
        fewer += len(kept) < FILES
    assert fewer > 15


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("c0 = 3", 1), ("c0 < 1", 1), ("c0 >= 5", 5), ("c0 IN (2, 7)", 2), ("NOT (c0 < 8)", 2),
        ("c6 = 'w4'", 1), ("c6 LIKE 'w7%'", 1), ("c6 > 'w8'", 1), ("c4 = 1.50", 1), ("c3 <= 0.25", 1),
        ("c8 = DATE '2024-01-03'", 1), ("c9 >= TIMESTAMP '2024-01-09T00:00:00Z'", 2), ("c1 IS NULL", 10),
        ("c1 IS NOT NULL", 0), ("c0 IS NULL", 0), ("c0 = 3 AND c6 = 'w4'", 0), ("c0 = 3 OR c6 = 'w4'", 2),
        ("c12 < '00000000-0000-0000-0000-000000000002'", 2),
    ],
)  # fmt: skip
def test_each_type_is_pruned_by_postgres(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job], typed: DatasetDefinition,
    where: str, count: int,
) -> None:  # fmt: skip
    def value(kind: str, number: int) -> Any:
        day = dt.date(2024, 1, 1) + dt.timedelta(days=number)
        return {
            "int32": number, "string": f"w{number}", "decimal(9, 2)": decimal.Decimal(number) / 2,
            "double": number / 4 + 0.25, "date": day,
            "timestamp": dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC), "uuid": uuid.UUID(int=number).bytes,
        }.get(kind)  # fmt: skip

    ids = {field.name: field for field in typed.schema.fields}
    added = []
    for number in range(10):
        statistics = {}
        for name, kind in COLUMNS.items():
            bound = stored_bound(value(kind, number), ids[name].data_type())
            statistics[str(ids[name].id)] = ColumnStatistics(
                minimum=bound, maximum=bound, null_count=int(bound is None)
            )
        added.append(msgspec.structs.replace(data_file(0), statistics=statistics))
    message = CommitMessage(file_group=added[0].file_group, removed=(), added=tuple(added), changelog=())
    assert isinstance(stores.timeline.publish_one(tenant_id, commit_of([running()], [message])), Published)
    assert len(pruned(stores, dataset, parse_filter(where, typed.schema), typed)) == count


def test_files_of_other_partitions_are_not_read(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job], typed: DatasetDefinition
) -> None:
    one = CommitMessage(file_group=data_file().file_group, removed=(), added=(data_file(),), changelog=())
    assert isinstance(stores.timeline.publish_one(tenant_id, commit_of([running()], [one])), Published)
    selection = RowFilter(where=parse_filter("c0 < 100", typed.schema), schema=typed.schema)
    query = _first_files(pruned_files(selection))
    values = {
        "dataset": dataset.id, "version": 1, "kinds": ["base"], "limit": 1_000,
        "first": "day=2025-07-07/", "end": "day=2025-07-070",
    }  # fmt: skip
    with stores.database.tenant(tenant_id) as connection:
        connection.exec_driver_sql(_MANY_FILES, {"dataset": dataset.id})
        plan = plan_of(connection, query.params(values))
        assert rows_read(plan, "files") == 50
        assert all(
            "Index" in scan["Node Type"] or "Bitmap" in scan["Node Type"] for scan in scans(plan, "files")
        )
        assert len(connection.execute(query, values).all()) == 50
        connection.rollback()
