"""The limit of the decompressed size of a stored body."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import xxhash

from app.files.storage import LocalStorage
from app.format.errors import BodyTooLarge
from app.format.operation import Operation
from app.format.rows.formats import Format
from app.format.rows.staged import RawInput
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
