"""Files of exports: ended at their size, checked by their sums, and gone where they are not wanted."""

import hashlib

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
import xxhash

from app.infra.files.export_file import ExportSink, TextForm
from app.infra.files.storage import LocalStorage
from app.kernel.codecs.csv.encode_csv import csv_header, encode_csv
from app.kernel.format.file_format import FileFormat

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])
COLUMNAR = [FileFormat.PARQUET, FileFormat.ARROW]


def rows(first, count):
    numbers = range(first, first + count)
    texts = [hashlib.sha256(b"%d" % number).hexdigest() for number in numbers]
    return pa.table({"n": list(numbers), "text": texts}, schema=SCHEMA)


def sink(storage, format_, target_bytes):
    return ExportSink(
        storage,
        "exports/part-00007",
        format_,
        SCHEMA,
        target_bytes=target_bytes,
        texts=TextForm(encode=encode_csv, header=csv_header(SCHEMA)) if format_ is FileFormat.CSV else None,
    )


def read(format_, content):
    source = pa.BufferReader(content)
    match format_:
        case FileFormat.PARQUET:
            return pq.read_table(source)
        case FileFormat.ARROW:
            return ipc.open_file(source).read_all()
        case _:
            convert = pacsv.ConvertOptions(column_types=SCHEMA)
            return pacsv.read_csv(source, convert_options=convert)


@pytest.mark.parametrize("format_", [*COLUMNAR, FileFormat.CSV])
@pytest.mark.parametrize("target_bytes", [1, 10_000, 2**30])
def test_export_files_join_to_the_rows_and_end_at_their_size(tmp_path, format_, target_bytes):
    with sink(LocalStorage(tmp_path), format_, target_bytes) as files:
        for first in range(0, 1_000, 50):
            files.write(rows(first, 50), first + 50)
        files.write(rows(0, 0), 1_001)
        written = files.finish()
    found = []
    for number, file in enumerate(written):
        assert file.path == f"exports/part-00007-{number:05d}.{format_.value}"
        content = (tmp_path / file.path).read_bytes()
        assert file.size_bytes == len(content)
        assert file.checksum == xxhash.xxh3_128(content).hexdigest()
        assert file.sha256 == hashlib.sha256(content).hexdigest()
        found.append(read(format_, content))
        assert found[-1].num_rows == file.row_count
        assert file.end == found[-1].column("n")[-1].as_py() + 1
    assert pa.concat_tables(found).cast(SCHEMA) == rows(0, 1_000)
    assert (len(written) == 20) == (target_bytes == 1)
    assert (len(written) == 1) == (target_bytes == 2**30)


def test_export_without_rows_has_no_file(tmp_path):
    with sink(LocalStorage(tmp_path), FileFormat.CSV, 1) as files:
        files.write(rows(0, 0), 5)
        assert files.finish() == ()
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize("format_", [*COLUMNAR, FileFormat.CSV])
def test_aborted_export_leaves_no_file(tmp_path, format_):
    def break_off():
        with sink(LocalStorage(tmp_path), format_, 6_000) as files:
            for first in range(0, 1_000, 50):
                files.write(rows(first, 50), first + 50)
            assert list(tmp_path.rglob("*.*"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert not list(tmp_path.rglob("*.*"))
