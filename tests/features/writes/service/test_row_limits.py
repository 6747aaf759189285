"""The limits of rows apply where the API decodes a body, and where a task decodes it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.format.errors import RowTooLarge, TooManyRows
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.row_limits import RowLimits
from app.kernel.format.rows.staged import RawInput
from tests.support.service import TasksInProcess
from tests.support.versioned_tables import kind_of

DEFINITION = kind_of("copy_on_write, bloom")


def stored(folder: Path, body: bytes, form: Format) -> RawInput:
    (folder / "body").write_bytes(body)
    return RawInput(
        path="body", size_bytes=len(body), checksum=xxhash.xxh3_128(body).hexdigest(), format=form
    )


def test_task_refuses_or_quarantines_a_row_above_its_limit(tmp_path: Path) -> None:
    lines = [b'{"id":%d,"day":"d","n":1,"note":"%s"}' % (n, b"x" * 10 ** (5 * (n == 3))) for n in range(9)]
    engine = TasksInProcess(LocalStorage(tmp_path))
    engine.limits = RowLimits(row_bytes_max=5_000)
    raw = stored(tmp_path, b"\n".join(lines), Format.NDJSON)
    with pytest.raises(RowTooLarge) as refusal:
        engine.decode([raw], DEFINITION, Operation.UPSERT, prefix="staged/x", tag="x")
    assert refusal.value.facts == {"limit_bytes": 5_000, "row": 3, "pointer": "/rows/3", "line": 4}
    decoded = engine.decode(
        [raw],
        DEFINITION,
        Operation.UPSERT,
        prefix="staged/y",
        options=WriteOptions(on_error=OnError.QUARANTINE),
        quarantine="bad/y",
        tag="x",
    )
    assert [file.rows for file in decoded.files] == [8]
    [file] = decoded.quarantine_files
    [record] = QuarantineFileStore(LocalStorage(tmp_path)).read(file, 0, 10)
    assert (record.position, record.payload) == (3, lines[3][: 64 * 1024])


def test_task_refuses_a_write_with_too_many_rows_before_it_reads_them(tmp_path: Path) -> None:
    file = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(1_000)}), file, row_group_size=100)
    engine = TasksInProcess(LocalStorage(tmp_path))
    engine.limits = RowLimits(rows_max=999)
    raw = stored(tmp_path, file.getvalue().to_pybytes(), Format.PARQUET)
    with pytest.raises(TooManyRows) as refusal:
        engine.decode([raw], DEFINITION, Operation.UPSERT, prefix="staged/x", tag="x")
    assert refusal.value.facts == {"limit_rows": 999}
    assert [path for path, _ in LocalStorage(tmp_path).list("staged")] == []
