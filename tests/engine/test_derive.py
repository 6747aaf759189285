"""Views on a real Spark session: what their SQL reads, what is staged of its result, and what it cannot do."""

# ruff: noqa: DTZ001 (of types without zone)

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from app.core.jobs.errors import EngineStopped
from app.features.views.refresh_plan import changes_sql, fitted_plan, rows_sql
from app.features.views.values import ViewDefinition, ViewMode
from app.infra.files.errors import CorruptFile
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import BucketMode, ChangelogProducer, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.definition.schema_change import WidenField
from app.kernel.format.errors import DerivationFailed
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.sql.queries.parse import COMMON_MAX
from tests.support.lake_table import LakeTable, Row, Write, merged
from tests.support.shares import share
from tests.support.view_runs import (
    all_of,
    by_id,
    changes_of,
    derived,
    planned,
    rows_of,
    run,
    staged_rows,
    view_of,
)
from tests.support.waiting import until
from workers.engine.spark_engine import SparkEngine
from workers.engine.task_files import TaskResources

pytestmark = [
    pytest.mark.spark,
]

SHOPS = {"id": "int64", "shop": "string", "n": "int32", "price": "decimal(9, 2)"}


@pytest.fixture(scope="module")
def new_table(storage: LocalStorage) -> Callable[..., LakeTable]:
    """Registers a table with these columns; its writes run in the process of the tests."""
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=2**26))

    def new(fields: Mapping[str, str], **parts: Any) -> LakeTable:
        schema = CreateSchema(fields=[CreateField(name=name, type=type_) for name, type_ in fields.items()])
        dataset = define_dataset(CreateDataset(name="t", schema=schema, **parts))
        return LakeTable(storage=storage, dataset=dataset, run=partial(merged, resources))

    return new


@pytest.fixture(scope="module")
def shops(new_table: Callable[..., LakeTable]) -> LakeTable:
    """Rows in several file groups and versions, some of them corrected or taken back."""
    table = new_table(SHOPS, record_key=["id"], bucket=CreateBucket(count=3))
    table.write(Write(operation=Operation.UPSERT, rows=[shop(number, number) for number in range(30)]))
    table.write(Write(operation=Operation.UPSERT, rows=[shop(number, -number) for number in range(10)]))
    table.write(Write(operation=Operation.DELETE, rows=[shop(number, 0) for number in (4, 29)]))
    return table


def shop(number: int, n: int) -> Row:
    return {"id": number, "shop": "ab"[number % 2], "n": n, "price": Decimal(number) / 4}


TYPES = {
    "flag": "boolean", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "f32": "float", "f64": "double",
    "text": "string", "raw": "binary", "day": "date", "price": "decimal(9, 2)", "fine": "decimal(38, 10)",
    "at": "timestamp", "at_ms": "timestamp(ms)", "local": "timestamp_ntz", "local_ms": "timestamp_ntz(ms)",
    "bytes": "list<uint8>", "times": "list<timestamp(ms)>", "counts": "map<string, uint32>",
    "days": "map<date, list<decimal(5, 1)>>",
    "place": "struct<city: string, at: struct<lat: double, seen: timestamp_ntz(ms)>, tags: list<struct<a: uint16>>>",
    "a.b `ü": "string",
}  # fmt: skip
LEAST: Row = {
    "flag": False, "i8": -(2**7), "i16": -(2**15), "i32": -(2**31), "i64": -(2**63),
    "u8": 0, "u16": 0, "u32": 0, "f32": -1.5, "f64": 5e-324,
    "text": "", "raw": b"", "day": date(1, 1, 1), "price": Decimal("-9999999.99"), "fine": Decimal("-1E-10"),
    "at": datetime(1, 1, 1, tzinfo=UTC), "at_ms": datetime(1, 1, 1, tzinfo=UTC),
    "local": datetime(1, 1, 1), "local_ms": datetime(1, 1, 1),
    "bytes": [], "times": [None], "counts": [], "days": [(date(1, 1, 1), None)],
    "place": {"city": None, "at": None, "tags": []}, "a.b `ü": "${env:HOME}",
}  # fmt: skip
MOST: Row = {
    "flag": True, "i8": 2**7 - 1, "i16": 2**15 - 1, "i32": 2**31 - 1, "i64": 2**63 - 1,
    "u8": 2**8 - 1, "u16": 2**16 - 1, "u32": 2**32 - 1, "f32": 2.0**-126, "f64": 1.7976931348623157e308,
    "text": "ü\U0001f600\0'\\", "raw": b"\0\xff", "day": date(9999, 12, 31),
    "price": Decimal("9999999.99"), "fine": Decimal("9999999999999999999999999999.9999999999"),
    "at": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    "at_ms": datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    "local": datetime(9999, 12, 31, 23, 59, 59, 999_999), "local_ms": datetime(1969, 12, 31, 23, 59, 59, 999_000),
    "bytes": [0, None, 255], "times": [datetime(1582, 10, 10, tzinfo=UTC)], "counts": [("ü", 2**32 - 1), ("", None)],
    "days": [(date(1582, 10, 10), [Decimal("-999.9"), None])],
    "place": {"city": "Köln", "at": {"lat": -0.0, "seen": datetime(1900, 1, 1)}, "tags": [None, {"a": 65535}]},
    "a.b `ü": "\n",
}  # fmt: skip


@share(2)
@pytest.mark.parametrize("operation", [Operation.SNAPSHOT, Operation.CHANGELOG])
def test_every_type_keeps_its_values(
    engine: SparkEngine, storage: LocalStorage, new_table: Callable[..., LakeTable], operation: Operation
) -> None:
    table = new_table({"id": "int64", **TYPES}, record_key=["id"])
    rows = [
        {"id": 1, **LEAST},
        {"id": 2, **MOST},
        {"id": 3, **dict.fromkeys(TYPES)},
    ]
    table.write(Write(operation=Operation.INSERT, rows=rows))
    plan = planned("SELECT * FROM t", t=table)
    view = view_of(plan, ["id"])
    if operation is Operation.SNAPSHOT:
        sql, source = rows_sql(plan, {"t": "every"}, ["id"]), all_of(table)
    else:
        sql, source = changes_sql(plan, {"t": "every"}), changes_of(table, 0, 3)
    staged = run(engine, sql, {"every": source}, view, operation)
    assert by_id(rows_of(storage, view, staged)) == by_id(table.rows())
    assert "-0.0" in repr(rows_of(storage, view, staged))


def test_view_may_join_and_aggregate(engine: SparkEngine, storage: LocalStorage, shops: LakeTable) -> None:
    sql = (
        "SELECT a.shop AS shop, count(*) AS pairs, sum(b.price) AS total FROM t AS a JOIN t AS b ON a.id = b.id + 1 "
        "GROUP BY a.shop"
    )
    view, staged = derived(engine, sql, ["shop"], t=shops)
    rows = {row["id"]: row for row in shops.rows()}
    pairs = [(one, rows[one["id"] - 1]) for one in rows.values() if one["id"] - 1 in rows]
    expected = {
        name: (
            sum(one["shop"] == name for one, _ in pairs),
            sum(other["price"] for one, other in pairs if one["shop"] == name),
        )
        for name in "ab"
    }
    found = rows_of(storage, view, staged)
    assert {row["shop"]: (row["pairs"], row["total"]) for row in found} == expected
    assert len(found) == 2


@pytest.mark.parametrize(
    "parts",
    [
        {"table_type": TableType.MERGE_ON_READ},
        {
            "table_type": TableType.MERGE_ON_READ,
            "changelog": CreateChangelog(producer=ChangelogProducer.INPUT),
        },
        {
            "bucket": CreateBucket(mode=BucketMode.KEY_DYNAMIC, count=2, target_rows=4),
            "partition_by": ["shop"],
        },
    ],
    ids=["deletion vectors", "logs", "key_dynamic"],
)
def test_inputs_are_read_with_their_deletes_and_logs(
    engine: SparkEngine, storage: LocalStorage, new_table: Callable[..., LakeTable], parts: dict[str, Any]
) -> None:
    table = new_table(SHOPS, record_key=["id"], **parts)
    table.write(Write(operation=Operation.UPSERT, rows=[shop(number, 1) for number in range(20)]))
    table.write(Write(operation=Operation.UPSERT, rows=[shop(number, 2) for number in range(8)]))
    table.write(Write(operation=Operation.DELETE, rows=[shop(number, 0) for number in range(4)]))
    view, staged = derived(engine, "SELECT id, shop, n, price FROM t", ["id"], t=table)
    assert by_id(rows_of(storage, view, staged)) == by_id(table.rows())


def test_view_may_have_a_chain_of_queries_in_with(
    engine: SparkEngine, storage: LocalStorage, shops: LakeTable
) -> None:
    chain = ", ".join(f"q{n} AS (SELECT * FROM q{n - 1})" for n in range(1, COMMON_MAX))
    sql = f"WITH q0 AS (SELECT * FROM t), {chain} SELECT id FROM q{COMMON_MAX - 1}"
    view, staged = derived(engine, sql, ["id"], t=shops)
    assert {row["id"] for row in rows_of(storage, view, staged)} == {row["id"] for row in shops.rows()}


def test_result_or_input_without_rows_has_no_file(
    engine: SparkEngine, shops: LakeTable, new_table: Callable[..., LakeTable]
) -> None:
    assert derived(engine, "SELECT id FROM t WHERE n > 1000", ["id"], t=shops)[1] == ()
    empty = new_table(SHOPS, record_key=["id"])
    assert derived(engine, "SELECT shop, count(*) AS n FROM t GROUP BY shop", ["shop"], t=empty)[1] == ()


@pytest.mark.parametrize("since", [0, 7, 31])
def test_changes_are_derived_one_by_one(
    engine: SparkEngine, storage: LocalStorage, shops: LakeTable, since: int
) -> None:
    plan = planned("SELECT id, n * 2 AS twice FROM t WHERE n >= 3", t=shops)
    view = view_of(plan, ["id"])
    head = shops.next_offset - 1
    staged = run(
        engine,
        changes_sql(plan, {"t": "feed"}),
        {"feed": changes_of(shops, since, head)},
        view,
        Operation.CHANGELOG,
    )
    expected = [
        {OP_COLUMN: change.op, "id": change.row["id"], "twice": change.row["n"] * 2}
        for change in shops.changes()
        if since <= change.offset < head and change.row["n"] >= 3
    ]
    assert expected
    assert staged_rows(storage, view, staged) == expected


def test_incremental_view_equals_the_recomputed_view(
    engine: SparkEngine, shops: LakeTable, new_table: Callable[..., LakeTable], storage: LocalStorage
) -> None:
    """Whatever part of a feed comes at a time: a correction may bring a row into the view, or take it out."""
    plan = planned("SELECT id, abs(n) AS size FROM t WHERE n >= -5 AND id <> 3", t=shops)
    view = view_of(plan, ["id"])
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=2**26))
    table = LakeTable(storage=storage, dataset=view)
    for since in range(0, shops.next_offset, 9):
        feed = changes_of(shops, since, min(since + 9, shops.next_offset))
        staged = run(engine, changes_sql(plan, {"t": "feed"}), {"feed": feed}, view, Operation.CHANGELOG)
        changes = staged_rows(storage, view, staged)
        if changes:
            table.run = partial(merged, resources)
            assert not table.write(Write(operation=Operation.CHANGELOG, rows=changes)).conflicts
    expected = [
        {"id": row["id"], "size": abs(row["n"])} for row in shops.rows() if row["n"] >= -5 and row["id"] != 3
    ]
    assert by_id(table.rows()) == by_id(expected)


def test_environment_variables_are_not_substituted_in_sql(
    engine: SparkEngine, storage: LocalStorage, shops: LakeTable
) -> None:
    view, staged = derived(engine, "SELECT id, '${env:HOME}' AS home FROM t WHERE id = 1", ["id"], t=shops)
    assert rows_of(storage, view, staged) == [{"id": 1, "home": "${env:HOME}"}]
    assert engine._spark().conf.get("spark.sql.variable.substitute") == "false"


@pytest.mark.parametrize(
    ("sql", "condition", "message"),
    [
        (
            "SELECT id, CAST(concat('x', shop) AS INT) AS x FROM t WHERE shop = 'b'",
            "CAST_INVALID_INPUT",
            "'xb'",
        ),
        (
            "SELECT shop, n FROM t",
            "USER_RAISED_EXCEPTION",
            'several rows of the view have the same key (shop), such as {"shop":',
        ),
        (
            "SELECT id, date_trunc('year', timestamp_micros(abs(n) - 9223372036854775807)) AS x FROM t",
            "ArithmeticException",
            "long overflow",
        ),
    ],
)
def test_value_that_cannot_be_computed_is_named(
    engine: SparkEngine, shops: LakeTable, sql: str, condition: str, message: str
) -> None:
    with pytest.raises(DerivationFailed) as failed:
        derived(engine, sql, ["shop"] if "shop, n" in sql else [], t=shops)
    assert failed.value.facts["condition"] == condition
    assert message in failed.value.detail
    for leak in ("\n", "SQLSTATE", "spark.sql", "org.apache", "/work", "try_"):
        assert leak not in failed.value.detail, failed.value.detail
    assert not engine._spark().catalog.listTables()


@share(2)
def test_null_key_is_named(engine: SparkEngine, shops: LakeTable) -> None:
    with pytest.raises(DerivationFailed, match="column k: expected string, got null"):
        derived(engine, "SELECT nullif(shop, 'a') AS k FROM t WHERE id < 2", ["k"], t=shops)


def test_damaged_input_is_named(
    engine: SparkEngine, storage: LocalStorage, new_table: Callable[..., LakeTable]
) -> None:
    table = new_table(SHOPS, record_key=["id"])
    table.write(Write(operation=Operation.INSERT, rows=[shop(number, 1) for number in range(9)]))
    damaged = next(iter(table.files))
    storage.delete([damaged])
    with storage.create(damaged) as file:
        file.write(b"no Parquet")
    with pytest.raises(CorruptFile) as failed:
        derived(engine, "SELECT shop, count(*) AS n FROM t GROUP BY shop", ["shop"], t=table)
    assert failed.value.facts["path"] == damaged


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM parquet.`{root}`",
        "SELECT id FROM rel_1_0",
        "SELECT id FROM other",
        "SELECT id FROM t",
        "SELECT java_method('java.lang.System', 'getenv') AS id FROM",
    ],
)
def test_sql_beyond_the_inputs_is_refused(engine: SparkEngine, shops: LakeTable, root: Any, sql: str) -> None:
    """Views never write such text. The session has nothing to give to it all the same."""
    view = view_of(planned("SELECT id FROM t", t=shops), ["id"])
    with pytest.raises(DerivationFailed) as failed:
        run(engine, sql.format(root=root), {"mine": all_of(shops)}, view, Operation.SNAPSHOT)
    assert failed.value.facts["condition"] in (
        "TABLE_OR_VIEW_NOT_FOUND",
        "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
        "PARSE_SYNTAX_ERROR",
        "PARSE_EMPTY_STATEMENT",
    )


def test_cancelled_view_stops(engine: SparkEngine, shops: LakeTable) -> None:
    stopped: list[float] = []
    sql = "SELECT sum(a.n) AS x FROM " + ", ".join(f"t AS {name}" for name in "abcdefgh")
    plan = planned(sql, t=shops)
    view = view_of(plan)

    def work() -> None:
        with pytest.raises(EngineStopped):
            run(
                engine,
                rows_sql(plan, {"t": "huge"}, ()),
                {"huge": all_of(shops)},
                view,
                Operation.SNAPSHOT,
                "stop",
            )
        stopped.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: engine.progress("stop")[1] > 0, "tasks to run")
    begun = time.monotonic()
    engine.cancel("stop")
    thread.join(20)
    assert stopped
    assert stopped[0] - begun < 15
    tracker = engine.jvm().org.apache.spark.SparkContext.getOrCreate().statusTracker()
    # Each answer is of one time.
    until(
        lambda: all(each.numRunningTasks() == 0 for each in tracker.getExecutorInfos()),
        "the cores to be free",
    )


def test_view_waits_while_another_one_has_all_slots(engine: SparkEngine, shops: LakeTable) -> None:
    pairs = planned("SELECT sum(a.n) AS x FROM " + ", ".join(f"t AS {name}" for name in "abcdefgh"), t=shops)
    single = planned("SELECT sum(n) AS x FROM t", t=shops)
    ends: list[str] = []

    def work(plan: Any, tag: str) -> None:
        sql = rows_sql(plan, {"t": f"of_{tag}"}, ())
        try:
            run(engine, sql, {f"of_{tag}": all_of(shops)}, view_of(plan), Operation.SNAPSHOT, tag)
        except EngineStopped:
            ends.append(f"{tag} stopped")
        else:
            ends.append(f"{tag} done")

    threads = [threading.Thread(target=work, args=each) for each in ((pairs, "endless"), (single, "brief"))]
    threads[0].start()
    until(lambda: engine.progress("endless")[1] > 8, "tasks to run", seconds_max=60)
    assert not engine.waits("endless")
    threads[1].start()
    until(lambda: engine.waits("brief"), "the other one to wait")
    assert not ends
    engine.cancel("endless")
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == ["brief done", "endless stopped"]
    assert not engine.waits("brief")


@share(8)
def test_task_that_does_not_check_whether_it_was_stopped_is_reported(
    engine: SparkEngine, new_table: Callable[..., LakeTable]
) -> None:
    """A task checks after each row, and its one row is a long computation. It ends by itself."""
    numbers = new_table({"id": "int64"}, record_key=["id"], bucket=CreateBucket(count=1))
    numbers.write(Write(operation=Operation.UPSERT, rows=[{"id": 1}]))
    plan = planned("SELECT id, id AS x FROM t", t=numbers)
    # Queries of views have no such function.
    inner = "aggregate(sequence(1L, 10000L), id, (sum, i) -> sum + i)"
    sql = f"SELECT id, aggregate(sequence(1L, 60000L), 0L, (sum, i) -> sum + i + {inner}) AS x FROM one"

    def work(tag: str) -> None:
        with pytest.raises(EngineStopped):
            run(engine, sql, {"one": all_of(numbers)}, view_of(plan, ["id"]), Operation.SNAPSHOT, tag)

    # A task that is stopped before it computes ends at once. A busy machine takes its time until then.
    for seconds in (4, 15, 40):
        thread = threading.Thread(target=work, args=(tag := f"after {seconds} s",))
        thread.start()
        until(lambda: engine.progress(tag)[1], "the task", seconds_max=60)
        time.sleep(seconds)
        assert engine.stopping_seconds() == 0.0
        engine.cancel(tag)
        thread.join(20)
        with suppress(AssertionError):
            until(lambda: engine.stopping_seconds() > 0.5, "the task to be reported", seconds_max=10)
            break
    else:
        pytest.fail("no task was reported")
    until(lambda: engine.stopping_seconds() == 0.0, "the task to end", seconds_max=300)


def test_columns_that_became_wider_are_read_whole_or_fail_the_view(
    engine: SparkEngine, storage: LocalStorage, new_table: Callable[..., LakeTable]
) -> None:
    table = new_table(
        {"id": "int64", "n": "int32", "k": "int32", "s": "struct<a: string>"}, record_key=["id"]
    )
    table.write(Write(operation=Operation.INSERT, rows=[{"id": 1, "n": 1, "k": 1, "s": {"a": "x"}}]))
    exact = "SELECT id, CAST(n AS string) AS n, s.a AS a FROM t"
    plans = {sql: planned(sql, t=table) for sql in (exact, "SELECT id, k FROM t")}
    changes = [
        WidenField(name="n", type_="double"),
        WidenField(name="k", type_="int64"),
        WidenField(name="s", type_="struct<a: string, b: string>"),
    ]
    table.dataset = evolve(table.dataset, changes)
    new = {"id": 2, "n": 1.5, "k": 2, "s": {"a": "y", "b": "z"}}
    table.write(Write(operation=Operation.UPSERT, rows=[new]))

    def refreshed(sql: str) -> list[Row]:
        view = ViewDefinition(sql=sql, plan=plans[sql], mode=ViewMode.RECOMPUTE)
        plan = fitted_plan(view, {"t": table.dataset})
        [source] = plan.sources
        inputs = {"wider": all_of(table, list(source.columns))}
        definition = view_of(plans[sql], ["id"])
        staged = run(engine, rows_sql(plan, {"t": "wider"}, ["id"]), inputs, definition, Operation.SNAPSHOT)
        return by_id(rows_of(storage, definition, staged))

    assert refreshed(exact) == [{"id": 1, "n": "1.0", "a": "x"}, {"id": 2, "n": "1.5", "a": "y"}]
    assert refreshed("SELECT id, k FROM t") == [{"id": 1, "k": 1}, {"id": 2, "k": 2}]
    table.write(Write(operation=Operation.UPSERT, rows=[new | {"id": 3, "k": 2**40}]))
    with pytest.raises(DerivationFailed):
        refreshed("SELECT id, k FROM t")
