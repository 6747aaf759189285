"""Bad records of inputs that Spark decodes: quarantined in tasks, numbered across splits, sent again."""

from __future__ import annotations

from collections.abc import Iterable

import xxhash

from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.codecs import BadRecord, Format
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import RawInput
from app.kernel.format.rows.staging import ROW_COLUMN
from tests.support.lakehouse import definition
from workers.engine.decode.decode_handle import SPLIT_BYTES
from workers.engine.spark_engine import SparkEngine

DATASET = definition()


def stored(storage: LocalStorage, path: str, lines: Iterable[bytes]) -> RawInput:
    digest, size = xxhash.xxh3_128(), 0
    with storage.create(path) as file:
        for line in lines:
            file.write(line)
            digest.update(line)
            size += len(line)
    return RawInput(path=path, size_bytes=size, checksum=digest.hexdigest(), format=Format.NDJSON)


def test_bad_records_of_a_large_body_are_quarantined_with_their_positions(
    engine: SparkEngine, storage: LocalStorage
) -> None:
    note = b"x" * 4000
    count = 2 * SPLIT_BYTES // len(note) + 100
    bad = {number: b"no json %d" % number for number in [*range(7, count, 1000), count - 1]}
    good = [number for number in range(count) if number not in bad]
    lines = (
        bad[number] + b"\n\n" if number in bad else b'{"id":%d,"note":"%s"}\n' % (number, note)
        for number in range(count)
    )
    decoded = engine.decode(
        [stored(storage, "staged/mixed.body", lines)],
        DATASET,
        Operation.UPSERT,
        prefix="staged/mixed",
        quarantine="quarantine/mixed",
        tag="mixed",
    )
    assert len(decoded.quarantine_files) == len(decoded.files) == 3
    store = QuarantineFileStore(storage)
    found = {
        file.first_row + record.position: record.payload
        for file in decoded.quarantine_files
        for record in store.read(file, 0, file.row_count)
    }
    assert found == bad
    staged = StagedFileStore(storage)
    rows = [
        staged.read(file, range(len(file.batches)), DATASET).select([ROW_COLUMN, "id"])
        for file in decoded.files
    ]
    pairs = sorted((row[ROW_COLUMN], row["id"]) for part in rows for row in part.to_pylist())
    # The rows that were taken are numbered in order of arrival, across splits.
    assert pairs == list(enumerate(good))


def test_redriven_records_are_each_decoded_alone(engine: SparkEngine, storage: LocalStorage) -> None:
    store = QuarantineFileStore(storage)
    payloads = [(b"1,a", b"id,note"), (b'2,"b', b"id,note"), (b'{"id":3}', None), (b"{", None)]
    records = [BadRecord(position=0, errors=(), payload=text, header=header) for text, header in payloads]
    body = store.write(records, "staged/again.body")
    assert body is not None
    decoded = engine.decode(
        [
            RawInput(
                path=body.path,
                size_bytes=body.size_bytes,
                checksum=body.checksum,
                format=Format.PARQUET,
                records=True,
            )
        ],
        DATASET,
        Operation.UPSERT,
        prefix="staged/again",
        quarantine="quarantine/again",
        tag="again",
    )
    assert sum(file.rows for file in decoded.files) == 2
    (file,) = decoded.quarantine_files
    assert [(record.position, record.payload) for record in store.read(file, 0, 9)] == [
        (1, b'2,"b'),
        (3, b"{"),
    ]
