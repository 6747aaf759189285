"""The columns of the beginning of an input, and whether they are those of all of it."""

from __future__ import annotations

import gzip
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.infra.files import column_sample
from app.infra.files.column_sample import SampleTooLarge, sample_columns
from app.kernel.format.definition.schema_merge import inferred_types
from app.kernel.format.errors import MalformedBody
from app.kernel.format.rows.formats import Format

TABLE = pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([0], pa.timestamp("ms", "UTC"))})


def written(form: Format) -> bytes:
    sink = BytesIO()
    if form is Format.PARQUET:
        pq.write_table(TABLE, sink)
    else:
        with pa.ipc.new_stream(sink, TABLE.schema) as writer:
            writer.write_table(TABLE)
    return sink.getvalue()


def sample(form: Format, content: bytes, *, packed: bool = False):
    content = gzip.compress(content) if packed else content
    return sample_columns(form, BytesIO(content), len(content), gzip=packed)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
def test_columnar_input_has_its_own_types(form, packed):
    found = sample(form, written(form), packed=packed)
    assert found.whole
    assert inferred_types(found.shapes) == {"id": "int32", "at": "timestamp(ms)"}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Format.NDJSON, b'{"id": 1}\n{"note": "a"}\n'),
        (Format.CSV, b"id,note\n1,a\n"),
        (Format.JSON_ROWS, b'[{"id": 1}, {"note": "a"}]'),
    ],
)
def test_texts_have_the_columns_of_all_rows(form, text, packed):
    found = sample(form, text, packed=packed)
    assert found.whole
    assert inferred_types(found.shapes) == {"id": "int64", "note": "string"}


@pytest.mark.parametrize("packed", [False, True])
def test_only_the_beginning_of_large_ndjson_is_read(monkeypatch, packed):
    monkeypatch.setattr(column_sample, "_SPLIT_BYTES", 1_000)
    monkeypatch.setattr(column_sample, "SAMPLE_BYTES_MAX", 4_000)
    text = b'{"id": 1}\n' * 1_000 + b'{"late": true}\n'
    found = sample(Format.NDJSON, text, packed=packed)
    assert not found.whole
    assert list(found.shapes) == ["id"]


@pytest.mark.parametrize("packed", [False, True])
def test_large_texts_of_other_formats_are_refused(monkeypatch, packed):
    monkeypatch.setattr(column_sample, "SAMPLE_BYTES_MAX", 100)
    with pytest.raises(SampleTooLarge):
        sample(Format.CSV, b"id\n" + b"1\n" * 100, packed=packed)


@pytest.mark.parametrize("form", [Format.PARQUET, Format.ARROW])
def test_description_of_columns_is_bounded(monkeypatch, form):
    monkeypatch.setattr(column_sample, "SAMPLE_BYTES_MAX", 100)
    contents = [written(form), arrow_file()] if form is Format.ARROW else [written(form)]
    # Streams of releases before 0.15 have the length in front.
    contents += [contents[0][4:]] if form is Format.ARROW else []
    for content in contents:
        with pytest.raises(MalformedBody, match="description of the columns has more than 100 bytes"):
            sample(form, content)


def arrow_file() -> bytes:
    sink = BytesIO()
    with pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


def test_columns_of_an_arrow_file():
    assert inferred_types(sample(Format.ARROW, arrow_file()).shapes) == {"id": "int32", "at": "timestamp(ms)"}


PARQUET, STREAM, FILE = written(Format.PARQUET), written(Format.ARROW), arrow_file()
NDJSON = b'{"id": 1, "note": "a"}\n' * 4


@pytest.mark.parametrize(
    ("form", "content", "words"),
    [
        (Format.PARQUET, b"hello", "it does not start with PAR1"),
        (Format.PARQUET, NDJSON, "it does not start with PAR1"),
        (Format.PARQUET, STREAM, "it does not start with PAR1"),
        (Format.PARQUET, FILE, "it does not start with PAR1"),
        (Format.PARQUET, PARQUET[:-20], "magic bytes not found in footer"),
        (Format.ARROW, b"hello", "1819043176 bytes by its header, but 1 follow"),
        (Format.ARROW, b"\xff\xff\xff\xff\xff\xff\xff\x7f", "2147483647 bytes by its header, but 0 follow"),
        (Format.ARROW, NDJSON, "it is truncated, or in another format"),
        (Format.ARROW, PARQUET, "it is truncated, or in another format"),
        (Format.ARROW, STREAM[:20], "it is truncated, or in another format"),
        (Format.ARROW, FILE[:-20], "the Arrow file is truncated: its end is missing"),
    ],
)
def test_other_formats_and_parts_of_files_are_refused_as_such(form, content, words):
    with pytest.raises(MalformedBody, match=words):
        sample(form, content)
