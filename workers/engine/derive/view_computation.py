"""Computes views: Spark runs their SQL, between Python tasks that read the inputs and stage the result.

The SQL can only access its inputs: temporary views of one session with random names, which are dropped when the request
ends.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from app.kernel.derivation.request import DeriveRequest
from app.kernel.format.errors import DerivationFailed, HeadwaterError
from app.kernel.format.rows.staged import StagedFile
from workers.engine.decode.decode_handle import DecodedRows, decoded_input
from workers.engine.derive.view_tasks import (
    StageTask,
    ViewReadTask,
    plan_reads,
    read_parts,
    relation_schema,
    stage_rows,
)
from workers.engine.task_setup import Refusal, TaskSetup, accepted, refused, resources_of

_ADVICE: Final = re.compile(r"(?<=[.:]) (?:Use|If necessary|To tolerate|Please|Consider)\b.*", re.DOTALL)
_FRAME: Final = re.compile(r"^\[[A-Z0-9_.]+\] |\s*SQLSTATE: \w{5}.*", re.DOTALL)
_DETAIL_CHARACTERS_MAX: Final = 500
_CAUSES_MAX: Final = 20
# Classes of SQL states: 21 to 2D and 42 are errors of values and SQL, P0 is raised by the SQL, 53200 and 54 are limits
# of memory and sizes.
_OF_SQL: Final = re.compile(r"2[1-9A-F]|42|P0|53200|54")
# What functions of SQL throw for values or sizes. Faults of a disk or a server have other classes.
_OF_ROWS: Final = {
    "java.lang.ArithmeticException",
    "java.lang.ArrayIndexOutOfBoundsException",
    "java.lang.IllegalArgumentException",
    "java.lang.NegativeArraySizeException",
    "java.lang.NumberFormatException",
    "java.lang.StackOverflowError",
    "java.lang.UnsupportedOperationException",
    "java.time.DateTimeException",
    "org.apache.arrow.memory.OutOfMemoryException",
    "org.apache.arrow.vector.util.OversizedAllocationException",
    "org.apache.spark.memory.SparkOutOfMemoryError",
}
_READ: Final = msgspec.msgpack.Decoder(ViewReadTask)
_STAGE: Final = msgspec.msgpack.Decoder(StageTask)
_ANSWER: Final = msgspec.msgpack.Decoder(DecodedRows | Refusal)


def derive(
    session: SparkSession, setup: TaskSetup, request: DeriveRequest, *, bytes_per_task: int
) -> tuple[StagedFile, ...]:
    """The staged rows of a view, in order. Raises DerivationFailed, CorruptFile, StorageFull."""
    # A reading task can only report an error to Spark by an exception, whose text Spark passes on. The token proves
    # that a task raised it, and not the SQL.
    token = secrets.token_hex(16)
    with ExitStack() as stack, _explained(token):
        for name, source in request.inputs.items():
            tasks = plan_reads(
                source,
                bytes_max=bytes_per_task,
                tasks_min=session.sparkContext.defaultParallelism,
            )
            schema = relation_schema(source)
            task_messages = [msgspec.msgpack.encode(task) for task in tasks]
            rows = session.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(
                partial(_read, setup, token, task_messages, schema),
                from_arrow_schema(schema, prefer_timestamp_ntz=True),
            )
            rows.createTempView(name)
            stack.callback(session.catalog.dropTempView, name)
        stage = StageTask(
            view=request.view, operation=request.operation, prefix=request.prefix, columns=request.columns
        )
        result = session.sql(request.sql)
        # Spark parses names of columns as expressions, and those of a view may have any character.
        plain = result.toDF(*(f"c{number}" for number in range(len(result.columns))))
        answer_rows = plain.mapInArrow(partial(_stage, setup, msgspec.msgpack.encode(stage)), "answer binary")
        answers = [accepted(_ANSWER.decode(bytes(row.answer))) for row in answer_rows.collect()]
    return decoded_input(answers).files


def _read(
    setup: TaskSetup,
    token: str,
    task_messages: Sequence[bytes],
    schema: pa.Schema,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Reads the tasks of these numbers; runs in Spark's Python processes."""
    # Tasks are the parallelism: one thread each.
    pa.set_cpu_count(1)
    try:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from read_parts(resources_of(setup), _READ.decode(task_messages[number]), schema)
    except (HeadwaterError, OSError) as error:
        text = base64.b64encode(msgspec.msgpack.encode(refused(error))).decode("ascii")
        raise RuntimeError(f"<{token} {text}>") from None


def _stage(
    setup: TaskSetup, task_message: bytes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Stages the rows of one partition; runs in Spark's Python processes."""
    pa.set_cpu_count(1)
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    answer: DecodedRows | Refusal
    try:
        answer = stage_rows(resources_of(setup), _STAGE.decode(task_message), number, batches, setup.limits)
    except (HeadwaterError, OSError) as error:
        answer = refused(error)
    yield pa.RecordBatch.from_pydict({"answer": [msgspec.msgpack.encode(answer)]})


@contextmanager
def _explained(token: str) -> Iterator[None]:
    """Converts Spark's exceptions about values, or about the SQL, and errors of tasks, into HeadwaterErrors."""
    try:
        yield
    except PySparkException as error:
        for cause in _causes(error):
            if isinstance(cause, PythonException):
                _raise_task_error(token, str(cause))
            elif (fault := _fault(cause)) is not None:
                raise fault from error
        if (fault := _fault_of_rows(getattr(error, "_origin", None))) is not None:
            raise fault from error
        raise
    except Py4JJavaError as error:
        if (fault := _fault_of_rows(error.java_exception)) is not None:
            raise fault from error
        raise


def _causes(error: PySparkException) -> Iterator[PySparkException]:
    cause: Any = error
    while isinstance(cause, PySparkException):
        yield cause
        cause = getattr(cause, "_cause", None)


def _raise_task_error(token: str, text: str) -> None:
    match = re.search(rf"<{token} ([A-Za-z0-9+/=]+)>", text)
    if match is not None:
        accepted(_ANSWER.decode(base64.b64decode(match[1])))


def _fault_of_rows(thrown: Any) -> DerivationFailed | None:
    """The error for a Java exception that a function has thrown, or that was caused by one; None for any other.

    Functions that Spark takes from Java's library do not throw Spark's exceptions.
    """
    for _ in range(_CAUSES_MAX):
        if thrown is None:
            return None
        name = str(thrown.getClass().getName())
        if name in _OF_ROWS:
            detail = str(thrown.getMessage() or name).partition("\n")[0]
            return DerivationFailed(detail[:_DETAIL_CHARACTERS_MAX], condition=name.rpartition(".")[2])
        thrown = thrown.getCause()
    return None


def _fault(error: PySparkException) -> DerivationFailed | None:
    """The error of the SQL or of a value; None for any other exception."""
    condition, state = error.getCondition(), error.getSqlState()
    if condition is None or state is None or not _OF_SQL.match(state):
        return None
    parameters = error.getMessageParameters() or {}
    detail = parameters.get("errorMessage") or _FRAME.sub("", _ADVICE.sub("", error.getMessage()))
    return DerivationFailed(detail[:_DETAIL_CHARACTERS_MAX], condition=condition)
