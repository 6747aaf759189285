"""Sources on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater_client import Dataset
from tests.support.command_line import command_line, use_service
from tests.support.service import Service


def test_commands_register_pause_reset_and_delete_sources(
    service: Service,
    api_key: str,
    orders: Dataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_service(monkeypatch, service.url, api_key)
    run = command_line(capsys)

    def headwater(*words: str, fails: int = 0) -> str:
        """What a command prints for people, or its error."""
        found = run("sources", *words, fails=fails)
        return found.err if fails else found.out

    def file_of(file: str, /, **members: object) -> str:
        path = tmp_path / file
        path.write_text(json.dumps(members))
        return str(path)

    table = ("-o", "table")
    folder = service.settings.data_dir / "incoming" / "of-the-commands"
    folder.mkdir(parents=True)
    config = {"path": folder.as_uri(), "format": "ndjson"}
    body = {"name": "in", "dataset": orders.name, "kind": "files", "config": config}
    assert "Source in has the id" in headwater("create", file_of("source.json", **body), *table)
    assert "'intervall_seconds'" in headwater(
        "create", file_of("bad.json", **body, intervall_seconds=5), fails=2
    )
    assert "cannot be read" in headwater("create", str(tmp_path / "absent.json"), fails=2)
    assert "is not the JSON of a source" in headwater("create", file_of("none.json", name="in"), fails=2)
    [row] = [line.split() for line in headwater("list", *table).splitlines() if line.startswith("in ")]
    assert row == ["in", "files", orders.name, "active", "0", "-"]
    assert headwater("pause", "in", *table) == "Source in is paused.\n"
    assert headwater("resume", "in", *table) == "Source in is active.\n"
    assert "read again" in headwater("reset", "in", "--position", '{"files": 3, "last": "c"}', fails=1)
    pages = {"url": "http://127.0.0.1:1/pages", "cursor_parameter": "after"}
    read = file_of("pages.json", **body | {"name": "pages", "kind": "http", "config": pages})
    assert "Source pages has the id" in headwater("create", read, *table)
    moved = headwater("reset", "pages", "--position", '{"cursor": "c", "read": 3}', *table)
    assert moved == 'Source pages is at {"cursor":"c","read":3}.\n'
    assert json.loads(headwater("show", "pages"))["position"] == {"cursor": "c", "read": 3}
    assert headwater("reset", "in", *table) == "Source in is at {}.\n"
    assert "is not a JSON object" in headwater("reset", "in", "--position", "3", fails=2)
    assert headwater("delete", "in") == "Source in is deleted.\n"
    assert "there is no source" in headwater("show", "in", fails=3)
