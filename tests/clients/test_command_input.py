"""Files of rows as `headwater write` sends them."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from headwater_client.cli.arguments import input_file
from headwater_client.cli.arguments.input_file import InputFormat, rows_file
from headwater_client.cli.failure import CommandError, ExitCode

LINES = b'{"id":1,"price":1.10}\n{"id":2,"price":0.5}\n'
PRETTY = b'{\n  "id": 1,\n  "price": 1.10\n}\n{\n  "id": 2, "price": 0.5}\n'


def sent(file: Path, chosen: InputFormat | None = None) -> bytes:
    """The lines of JSON that are sent."""
    with rows_file(file, chosen) as found:
        assert found.format == "ndjson"
        content = found.path.read_bytes()
        return gzip.decompress(content) if found.gzip else content


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(LINES, id="lines"),
        pytest.param(b'[{"id": 1, "price": 1.10}, {"id": 2, "price": 0.5}]', id="array on a line"),
        pytest.param(b'[\n  {"id": 1,\n "price": 1.10},\n  {"id": 2, "price": 0.5}\n]\n', id="array"),
        pytest.param(PRETTY, id="objects over several lines"),
        pytest.param(b'\n{"id":1,"price":1.10} {"id":2,"price":0.5}', id="objects on a line"),
    ],
)
@pytest.mark.parametrize("name", ["rows.json", "rows.json.gz", "rows"])
def test_json_of_every_layout_is_sent_as_lines(content: bytes, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    # The digits of numbers stay as they are.
    assert b"".join(sent(file).split()) == b"".join(LINES.split())


def test_a_single_object_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "one.json"
    file.write_bytes(b'{\n    "id": 1,\n    "place": {\n        "city": "Ulm"\n    }\n}\n')
    assert sent(file) == b'{"id":1,"place":{"city":"Ulm"}}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert sent(Path("-")) == b'{"id":1,"place":{"city":"Ulm"}}\n'


def test_a_byte_order_mark_is_no_part_of_json(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_bytes(b"\xef\xbb\xbf" + PRETTY)
    assert sent(file) == LINES


def test_a_long_array_on_one_line_is_an_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_file, "_LINE_BYTES_MAX", 8)
    file = tmp_path / "rows.json"
    file.write_bytes(b'[{"id": 1}, {"id": 2}]')
    assert sent(file) == b'{"id":1}\n{"id":2}\n'
    # The service refuses a row that is too long.
    file.write_bytes(b'{"id": 1, "note": "long"}\n')
    assert sent(file) == file.read_bytes()


@pytest.mark.parametrize(
    "content", [b'{"id": 1,}', b'[{"id": 1}', b'{\n "id": 1\n', b"id,note\n1,a\n", b"\xff\xfe{"]
)
def test_what_is_no_json_is_refused_with_what_to_do(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_bytes(content)
    with pytest.raises(
        CommandError, match="expected JSON objects, in an array, one after another"
    ) as refused:
        sent(file)
    assert refused.value.code is ExitCode.USAGE


def test_a_bad_first_line_is_the_services_to_refuse_or_to_quarantine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b'{"id": 1,}\n{"id": 2}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert sent(Path("-")) == content
    file = tmp_path / "rows.ndjson"
    file.write_bytes(PRETTY)
    assert sent(file) == PRETTY


def test_bounds_of_json_are_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_file, "_JSON_BYTES_MAX", 10)
    file = tmp_path / "rows.json"
    file.write_bytes(PRETTY)
    with pytest.raises(CommandError, match="up to 10 bytes: make lines of it"):
        sent(file)
    # Lines have no bound.
    file.write_bytes(LINES)
    assert sent(file) == LINES


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.json.gz"
    file.write_bytes(gzip.compress(PRETTY * 50)[:30])
    with pytest.raises(CommandError, match="cannot be decompressed"):
        sent(file)
