"""Where few rows are best kept: in a Parquet file of their own, or in a row of Postgres until a compaction.

A write of 100 rows leaves a data file and a changelog file. This measures one of them: encoded, stored so that it
survives a crash, and read again. In Postgres it is a value of the COMMIT that the write has anyway, so its cost is the
difference between a transaction with the value and one without. Processor milliseconds and milliseconds, medians.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import psutil
import psycopg
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from app.infra.files.parquet_file import CHANGELOG_ROW_GROUP_ROWS, create_parquet
from app.infra.files.storage import LocalStorage
from app.infra.runtime.postgres import EmbeddedPostgres
from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import publish
from bench.trips import trips

_WARM: Final = 20
_TABLE: Final = """
    CREATE TABLE commits (number bigint PRIMARY KEY);
    CREATE TABLE parts (number bigint PRIMARY KEY, content bytea NOT NULL);
    ALTER TABLE parts ALTER COLUMN content SET STORAGE EXTERNAL
"""
Line = dict[str, Any]


class Measure:
    """Runs steps, and has what they took of this process, of Postgres, and of the clock."""

    def __init__(self, repeat: int) -> None:
        self._repeat = repeat

    def line(self, step: str, work: Callable[[int], Any], **more: Any) -> Line:
        """Runs a step with numbers that no other run has."""
        for number in range(_WARM):
            work(number)
        stored = _postgres_seconds()
        own, clock = [], []
        for number in range(_WARM, _WARM + self._repeat):
            began, began_own = time.perf_counter(), time.process_time()
            work(number)
            own.append(time.process_time() - began_own)
            clock.append(time.perf_counter() - began)
        stored = _postgres_seconds() - stored
        return {
            "step": step,
            "cpu ms": round(1000 * (median(own) + stored / self._repeat), 2),
            "of it Postgres": round(1000 * stored / self._repeat, 2),
            "ms": round(1000 * median(clock), 2),
            **more,
        }


def _postgres_seconds() -> float:
    """Of the server with the processes of its connections."""
    return processor_seconds([each for process in psutil.Process().children() for each in tree(process)])


def _stream(rows: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    return out.getvalue().to_pybytes()


def _parquet(rows: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(rows, out, compression="lz4")
    return out.getvalue().to_pybytes()


def files(folder: Path, rows: pa.Table, measure: Measure) -> Iterator[Line]:
    """A Parquet file as the service writes it, with the sync of the file and of its folder."""
    storage = LocalStorage(folder)

    def write(number: int) -> None:
        with create_parquet(
            storage,
            f"{number}.parquet",
            rows.schema,
            row_group_rows=CHANGELOG_ROW_GROUP_ROWS,
        ) as sink:
            sink.write(rows)
            sink.finish()

    yield measure.line("a Parquet file: encode, write, sync", write)
    size = (folder / f"{_WARM}.parquet").stat().st_size
    yield measure.line(
        "a Parquet file: open and read",
        lambda number: pq.ParquetFile(folder / f"{number}.parquet").read(use_threads=False),
        bytes=size,
    )


@dataclass(frozen=True, kw_only=True)
class Form:
    """A way to keep rows as bytes. `first`: the number of its first part in Postgres."""

    name: str
    first: int
    encode: Callable[[pa.Table], bytes]
    decode: Callable[[bytes], pa.Table]


_FORMS: Final = (
    Form(
        name="an Arrow stream",
        first=10**6,
        encode=_stream,
        decode=lambda part: ipc.open_stream(part).read_all(),
    ),
    Form(
        name="Parquet bytes",
        first=2 * 10**6,
        encode=_parquet,
        decode=lambda part: pq.ParquetFile(pa.BufferReader(part)).read(use_threads=False),
    ),
)


def values(url: str, rows: pa.Table, measure: Measure) -> Iterator[Line]:
    """A transaction with and without the rows, in each form; and reading them."""
    with psycopg.connect(url) as connection:
        connection.execute(_TABLE)
        connection.commit()

        def commit(form: Form | None, number: int) -> None:
            at = number if form is None else form.first + number
            connection.execute("INSERT INTO commits VALUES (%s)", [at])
            if form is not None:
                connection.execute("INSERT INTO parts VALUES (%s, %b)", [at, form.encode(rows)])
            connection.commit()

        def read(form: Form, number: int) -> None:
            found = connection.execute("SELECT content FROM parts WHERE number = %b", [form.first + number])
            form.decode(found.fetchone()[0])  # type: ignore[index]
            connection.rollback()

        yield measure.line("a COMMIT without rows", partial(commit, None))
        for form in _FORMS:
            yield measure.line(
                f"a COMMIT with {form.name}", partial(commit, form), bytes=len(form.encode(rows))
            )
            yield measure.line(f"{form.name}: select and decode", partial(read, form))


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=100, help="rows of a part")
    options.add_argument("--repeat", type=int, default=500, help="runs of each step")
    chosen = options.parse_args()
    pa.set_cpu_count(1)
    chosen.scratch.mkdir(parents=True, exist_ok=True)
    rows = trips(np.random.default_rng(1).permutation(chosen.rows), ts=1)
    with (
        TemporaryDirectory(prefix="headwater-bench-", dir=chosen.scratch) as folder,
        EmbeddedPostgres(Path(folder)) as server,
    ):
        (Path(folder) / "files").mkdir()
        measure = Measure(chosen.repeat)
        figures = [*files(Path(folder) / "files", rows, measure), *values(server.owner_url, rows, measure)]
    publish("small_parts", {"rows": chosen.rows}, figures)


if __name__ == "__main__":
    main()
