"""The limit of the size of a stored body once it is decompressed, and of its rows once they are decoded."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from app.infra.files.storage import LocalStorage
from app.kernel.format.errors import BodyTooLarge
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput
from tests.support.service import TasksInProcess
from tests.support.versioned_tables import kind_of


def test_gzip_body_is_refused_at_its_decompressed_limit(tmp_path: Path) -> None:
    body = gzip.compress(b" " * 5_000_000 + b"\n")
    (tmp_path / "body").write_bytes(body)
    engine = TasksInProcess(LocalStorage(tmp_path))
    engine.decompressed_bytes_max = 1_000_000
    checksum = xxhash.xxh3_128(body).hexdigest()
    raw = RawInput(path="body", size_bytes=len(body), checksum=checksum, format=Format.NDJSON, gzip=True)
    definition = kind_of("copy_on_write, bloom")
    with pytest.raises(BodyTooLarge) as refusal:
        engine.decode([raw], definition, Operation.UPSERT, prefix="staged/x", tag="x")
    assert refusal.value.facts == {"limit_bytes": 1_000_000}
    assert [path for path, _ in LocalStorage(tmp_path).list("staged")] == []


def test_rows_are_refused_at_the_limit_of_their_decoded_size(tmp_path: Path) -> None:
    count = 20_000
    rows = {
        "id": range(count),
        "day": ["2026-11-23"] * count,
        "n": [1] * count,
        "note": ["x" * 1_000] * count,
    }
    definition = kind_of("copy_on_write, bloom")
    pq.write_table(pa.table(rows, schema=definition.schema.to_arrow()), tmp_path / "body")
    body = (tmp_path / "body").read_bytes()
    assert len(body) < 1_000_000
    engine = TasksInProcess(LocalStorage(tmp_path))
    engine.decompressed_bytes_max = 1_000_000
    checksum = xxhash.xxh3_128(body).hexdigest()
    raw = RawInput(path="body", size_bytes=len(body), checksum=checksum, format=Format.PARQUET)
    with pytest.raises(BodyTooLarge, match="once they are decoded"):
        engine.decode([raw], definition, Operation.UPSERT, prefix="staged/x", tag="x")
    assert [path for path, _ in LocalStorage(tmp_path).list("staged")] == []
