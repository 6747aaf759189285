"""The engine on a real Spark session: what its tasks make, refuse and stop at."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from app.core.jobs.engine import merge as merge_tasks
from app.core.jobs.errors import EngineStopped
from app.infra.files.errors import CorruptFile
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.commit.clustering_plan import plan_clustering
from app.kernel.commit.commit_message import CommitMessage, changelog_of, failed_writes
from app.kernel.commit.merge.merge import merge
from app.kernel.commit.write_plan import WriteIntent, plan_merge
from app.kernel.format.clustering import cluster_by
from app.kernel.format.dataset import TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.engine_task import Work
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.file_group import DataFile
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, META_FIELDS, META_NAMES
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN, with_ops
from tests.support.process import spark_tasks
from tests.support.waiting import until
from workers.engine.decode.decode_handle import SPLIT_BYTES
from workers.engine.spark_engine import SparkEngine

pytestmark = [
    pytest.mark.spark,
]

DATASET = define_dataset(
    CreateDataset(
        name="t",
        schema=CreateSchema(
            fields=[
                CreateField(name="region", type="string"),
                CreateField(name="id", type="int64"),
                CreateField(name="seen", type="int32"),
                CreateField(name="tags", type="list<string>"),
            ]
        ),
        record_key=["region", "id"],
        partition_by=["region"],
        ordering_field="seen",
        table_type=TableType.COPY_ON_WRITE,
        bucket=CreateBucket(count=3),
    )
)
SCHEMA = DATASET.schema.to_arrow()
RELAXED = pa.schema([field.with_nullable(True) for field in SCHEMA])
Row = dict[str, Any]


def rows(ids: Iterable[int], seen: int) -> pa.Table:
    found = [
        {"region": ["eu", "ü/="][number % 2], "id": number, "seen": seen, "tags": [f"{seen}", None]}
        for number in ids
    ]
    return pa.Table.from_pylist(found, schema=RELAXED)


def keys(ids: Iterable[int]) -> pa.Table:
    bare = rows(ids, 0).select(["region", "id"])
    return bare.append_column("seen", pa.nulls(bare.num_rows, pa.int32())).append_column(
        "tags", pa.nulls(bare.num_rows, RELAXED.field("tags").type)
    )


def stage(
    storage: LocalStorage, table: pa.Table, name: str, operation: Operation = Operation.UPSERT
) -> StagedFile:
    staged = StagedFileStore(storage).write(DATASET, operation, [table], f"staged/{name}.arrow")
    assert staged is not None
    return staged


def run(
    engine: SparkEngine,
    writes: Mapping[int, Sequence[StagedFile]],
    operations: Mapping[int, Operation],
    live: Iterable[DataFile] = (),
    *,
    attempt: str,
) -> list[CommitMessage]:
    tasks = plan_merge(
        DATASET,
        writes,
        {number: WriteIntent(operation=operation) for number, operation in operations.items()},
        live,
        attempt=attempt,
        data_prefix="tenant/dataset",
    )
    return merge_tasks(engine, tasks, attempt)


def read(storage: LocalStorage, paths: Iterable[str]) -> pa.Table:
    """The rows without what each knows of its past, which depends on how buckets share the feed."""
    table = pa.concat_tables([pq.ParquetFile(storage.open(path)).read() for path in paths])
    return plain(table)


def plain(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in (*META_NAMES, CORRECTS_COLUMN) if name in table.column_names])


def as_set(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_spark_merge_equals_the_local_merge(engine: SparkEngine, storage: LocalStorage) -> None:
    first = rows(range(1000), seen=1)
    insert = {0: Operation.INSERT}
    made = run(engine, {0: [stage(storage, first, "base")]}, insert, attempt="00000-0-0")
    live = [file for message in made for file in message.added]
    assert len(live) == 6
    assert as_set(read(storage, [file.path for file in live])) == as_set(first)

    parts = [rows(range(500, 1500), seen=2), keys(range(0, 1400, 7)), rows(range(600), seen=0)]
    operations = {0: Operation.UPSERT, 1: Operation.DELETE, 2: Operation.UPSERT}
    writes = {
        number: [stage(storage, part, f"write-{number}", operations[number])]
        for number, part in enumerate(parts)
    }
    messages = run(engine, writes, operations, live, attempt="00000-0-1")

    incoming = pa.concat_tables(
        [
            with_ops(part, operations[number], DATASET)
            .append_column(JOB_COLUMN, pa.array([number] * len(part), pa.int32()))
            .append_column(ROW_COLUMN, pa.array(range(len(part)), pa.int64()))
            for number, part in enumerate(parts)
        ]
    )
    intents = {number: WriteIntent(operation=operation) for number, operation in operations.items()}
    current = first.cast(SCHEMA)
    for field in META_FIELDS:
        current = current.append_column(field, pa.nulls(len(first), field.type))
    expected = merge(DATASET, current, incoming, intents)
    table = plain(pa.concat_tables([current.filter(pa.array(expected.stays)), expected.rows]))
    assert as_set(read(storage, [file.path for m in messages for file in m.added])) == as_set(table)
    changes = read(storage, [file.path for file in changelog_of(messages)])
    assert as_set(changes) == as_set(plain(expected.changes))
    assert set(changes.column(OP_COLUMN).to_pylist()) == {0, 1, 2, 3}
    counts = [sum((m.counts.get(number, RowCounts()) for m in messages), RowCounts()) for number in range(3)]
    assert counts == [expected.counts[number] for number in range(3)]
    assert sorted(path for m in messages for path in m.removed) == sorted(file.path for file in live)


def test_writes_and_services_have_their_own_scheduling_pools(
    engine: SparkEngine, storage: LocalStorage
) -> None:
    """Between which Spark shares its cores fairly, however many tasks each of them has."""
    writes = {0: [stage(storage, rows(range(9), seen=1), "pools")]}
    messages = run(engine, writes, {0: Operation.INSERT}, attempt="00000-9-0")
    live = [file for message in messages for file in message.added]
    by = cluster_by(DATASET, ["seen"], None)
    tasks = plan_clustering(
        DATASET,
        live,
        by,
        partitions=None,
        file_groups=None,
        attempt="00000-9-1",
        data_prefix="tenant/dataset",
    )
    assert tasks
    merge_tasks(engine, tasks, "00000-9-1")
    context = engine.jvm().org.apache.spark.SparkContext.getOrCreate()
    pools = context.getAllPools()
    assert context.getSchedulingMode().toString() == "FAIR"
    assert {"writes-0", "tasks-0"} <= {pools.apply(number).name() for number in range(pools.size())}


def test_small_writes_and_other_tenants_run_beside_any_number_of_slow_tasks(
    engine: SparkEngine, storage: LocalStorage, tmp_path: Any
) -> None:
    held, released = tmp_path / "held", tmp_path / "released"
    held.mkdir()

    def hold(numbers: Iterable[int]) -> Iterable[int]:
        for number in numbers:
            (held / str(number)).touch()
            while not released.exists():
                time.sleep(0.02)
            yield number

    def slow(number: int) -> list[bytes]:
        with engine._under("slow/1", Work.WRITES, group="slow/1/large"):
            context = engine._spark().sparkContext
            return [b"%d" % each for each in context.parallelize([number], 1).mapPartitions(hold).collect()]

    large = threading.Thread(
        target=engine._large.run,
        args=([partial(slow, number) for number in range(6)],),
        kwargs={"tenant_id": "slow", "kind": "writes", "tag": "slow/1"},
    )
    large.start()
    try:
        until(lambda: len(list(held.iterdir())) == 2, "two slow tasks")
        with ThreadPoolExecutor(2) as pool:
            writes = {0: [stage(storage, rows(range(9), seen=1), "beside")]}
            small = pool.submit(run, engine, writes, {0: Operation.INSERT}, attempt="00000-8-0")
            source = raw(storage, "staged/beside.body", [line(1, "")])
            large_of_another = pool.submit(
                engine.decode, [source], DATASET, Operation.UPSERT, prefix="staged/beside", tag="other/1"
            )
            try:
                assert small.result(30)
                assert large_of_another.result(30).files
            finally:
                released.touch()
        assert len(list(held.iterdir())) == 2
    finally:
        released.touch()
        large.join(30)
    assert engine.progress("slow/1") == (6, 6)


def test_insert_of_a_live_key_writes_nothing(engine: SparkEngine, storage: LocalStorage) -> None:
    insert = {0: Operation.INSERT}
    made = run(engine, {0: [stage(storage, rows([1], 1), "live")]}, insert, attempt="00000-1-0")
    live = [file for message in made for file in message.added]
    before = set(storage.list("tenant"))
    again = run(engine, {0: [stage(storage, rows([1], 2), "again")]}, insert, live, attempt="00000-1-1")
    assert set(failed_writes(again)) == {0}
    assert not again[0].added
    assert set(storage.list("tenant")) == before


def test_damaged_base_file_is_named(engine: SparkEngine, storage: LocalStorage, root: Any) -> None:
    made = run(
        engine,
        {0: [stage(storage, rows([1], 1), "whole")]},
        {0: Operation.INSERT},
        attempt="00000-2-0",
    )
    [base] = made[0].added
    content = bytearray((root / base.path).read_bytes())
    content[len(content) // 2] ^= 1
    (root / base.path).write_bytes(content)
    staged = stage(storage, rows([1], 2), "next")
    with pytest.raises(CorruptFile) as refusal:
        run(engine, {0: [staged]}, {0: Operation.UPSERT}, [base], attempt="00000-2-1")
    assert refusal.value.facts["path"] == base.path


def raw(storage: LocalStorage, path: str, lines: Iterable[bytes]) -> RawInput:
    digest, size = xxhash.xxh3_128(), 0
    with storage.create(path) as file:
        for line in lines:
            file.write(line)
            digest.update(line)
            size += len(line)
    return RawInput(path=path, size_bytes=size, checksum=digest.hexdigest(), format=Format.NDJSON)


def line(number: int, padding: str) -> bytes:
    return f'{{"region":"eu","id":{number},"seen":1,"tags":["{padding}"]}}\n'.encode()


def test_large_body_is_decoded_in_splits(engine: SparkEngine, storage: LocalStorage) -> None:
    padding = "x" * 4000
    count = 2 * SPLIT_BYTES // len(padding) + 100
    source = raw(storage, "staged/large.body", (line(number, padding) for number in range(count)))
    staged = engine.decode([source], DATASET, Operation.UPSERT, prefix="staged/large", tag="large").files
    assert len(staged) == 3
    assert sum(file.rows for file in staged) == count
    store = StagedFileStore(storage)
    pairs = [
        pair
        for file in staged
        for batch in file.batches
        for pair in zip(
            *(
                store.read(file, [batch.index], DATASET).column(name).to_pylist()
                for name in (ROW_COLUMN, "id")
            ),
            strict=True,
        )
    ]
    # Positions number the rows in order of arrival, across splits.
    assert sorted(pairs) == [(number, number) for number in range(count)]


def test_error_in_a_split_names_its_position_in_the_body(engine: SparkEngine, storage: LocalStorage) -> None:
    source = raw(storage, "staged/bad.body", [line(1, ""), b'{"region":"eu","id":"one"}\n'])
    with pytest.raises(SchemaMismatch) as refusal:
        engine.decode([source], DATASET, Operation.UPSERT, prefix="staged/bad", tag="bad")
    assert refusal.value.facts["errors"][0]["pointer"].endswith("/id")


def test_several_inputs_are_decoded_in_their_order(engine: SparkEngine, storage: LocalStorage) -> None:
    first, *others = (
        raw(storage, f"staged/part-{part}.body", [line(number, f"of {part}") for number in range(part + 1)])
        for part in range(12)
    )
    source = msgspec.structs.replace(first, others=tuple(others))
    staged = engine.decode(source.parts, DATASET, Operation.UPSERT, prefix="staged/parts", tag="parts").files
    assert [file.rows for file in staged] == list(range(1, 13))
    assert [file.first_row for file in staged] == [sum(range(1, part + 1)) for part in range(12)]
    damaged = msgspec.structs.replace(others[-1], checksum="0" * 32)
    source = msgspec.structs.replace(first, others=(*others[:-1], damaged))
    with pytest.raises(CorruptFile) as refusal:
        engine.decode(source.parts, DATASET, Operation.UPSERT, prefix="staged/damaged", tag="damaged")
    assert refusal.value.facts["path"] == damaged.path


def test_input_of_one_split_takes_one_task(engine: SparkEngine, storage: LocalStorage) -> None:
    source = raw(storage, "staged/one.body", [line(number, "") for number in range(10)])
    (staged,) = engine.decode([source], DATASET, Operation.UPSERT, prefix="staged/one", tag="one").files
    assert staged.rows == 10
    assert engine.progress("one") == (1, 1)


def test_inputs_of_one_and_several_splits_are_decoded_in_their_order(
    engine: SparkEngine, storage: LocalStorage
) -> None:
    padding = "x" * 4000
    many = SPLIT_BYTES // len(padding) + 100
    sources = [
        raw(storage, "staged/sizes-0.body", [line(0, "first")]),
        raw(storage, "staged/sizes-1.body", (line(number, padding) for number in range(many))),
        raw(storage, "staged/sizes-2.body", [line(0, "last")]),
    ]
    staged = engine.decode(sources, DATASET, Operation.UPSERT, prefix="staged/sizes", tag="sizes").files
    assert len({file.path for file in staged}) == 4
    assert [file.rows for file in (staged[0], staged[-1])] == [1, 1]
    assert [file.first_row for file in staged] == [0, 1, 1 + staged[1].rows, 1 + many]


def test_cancel_stops_only_tasks_of_its_tag(engine: SparkEngine, storage: LocalStorage) -> None:
    source = raw(storage, "staged/small.body", [line(1, "")])
    ended: list[str] = []

    def decode(tag: str) -> None:
        try:
            engine.decode([source], DATASET, Operation.UPSERT, prefix=f"staged/{tag}", tag=tag)
            ended.append(f"{tag} done")
        except EngineStopped:
            ended.append(f"{tag} stopped")

    threads = [threading.Thread(target=decode, args=(tag,)) for tag in ("hung", "other")]
    frozen = spark_tasks(os.getpid())
    for process in frozen:
        process.suspend()
    try:
        threads[0].start()
        until(lambda: engine.progress("hung") == (0, 1), "the task to run")
        engine.cancel("hung")
        threads[0].join(20)
        assert ended == ["hung stopped"]
    finally:
        for process in frozen:
            if process.is_running():
                process.resume()
    threads[1].start()
    threads[1].join(20)
    assert ended == ["hung stopped", "other done"]


def test_cancelled_tag_starts_no_further_tasks(engine: SparkEngine, storage: LocalStorage) -> None:
    source = raw(storage, "staged/late.body", [line(1, "")])
    engine.cancel("late")
    for _ in range(2):
        with pytest.raises(EngineStopped):
            engine.decode([source], DATASET, Operation.UPSERT, prefix="staged/late", tag="late")
    assert not any(path.startswith("staged/late-") for path, _ in storage.list("staged"))


def test_session_refuses_sql_on_files_and_runs_in_utc(engine: SparkEngine, root: Any) -> None:
    session = SparkSession.getActiveSession()
    assert session is not None
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    settings = dict(session.sparkContext.getConf().getAll())
    assert settings["spark.speculation"] == "false"
    assert settings["spark.scheduler.mode"] == "FAIR"
    assert settings["spark.ui.enabled"] == "false"
    with pytest.raises(AnalysisException):
        session.sql(f"SELECT * FROM parquet.`{root}`").collect()
