"""Sources on the command line."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from clients.cli.failure import CommandError
from clients.cli.main import build
from headwater_client import Dataset
from tests.support.service import Service


def test_commands_register_pause_reset_and_delete_sources(
    service: Service,
    api_key: str,
    orders: Dataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADWATER_URL", service.url)
    monkeypatch.setenv("HEADWATER_API_KEY", api_key)
    monkeypatch.setenv("NO_PROXY", "*")

    def headwater(*arguments: str) -> str:
        """What a command prints, or its error."""
        try:
            with suppress(SystemExit):
                build()(["sources", *arguments])
        except CommandError as error:
            return str(error)
        return capsys.readouterr().out

    def file_of(file: str, /, **members: object) -> str:
        path = tmp_path / file
        path.write_text(json.dumps(members))
        return str(path)

    folder = service.settings.data_dir / "incoming" / "of-the-commands"
    folder.mkdir(parents=True)
    config = {"path": folder.as_uri(), "format": "ndjson"}
    body = {"name": "in", "dataset": orders.name, "kind": "files", "config": config}
    assert "Source in has the id" in headwater("create", file_of("source.json", **body))
    assert "'intervall_seconds'" in headwater("create", file_of("bad.json", **body, intervall_seconds=5))
    assert "cannot be read" in headwater("create", str(tmp_path / "absent.json"))
    assert "is not the JSON of a source" in headwater("create", file_of("none.json", name="in"))
    [row] = [line.split() for line in headwater("list").splitlines() if line.startswith("in ")]
    assert row == ["in", "files", orders.name, "active", "0", "-"]
    assert headwater("pause", "in") == "Source in is paused.\n"
    assert headwater("resume", "in") == "Source in is active.\n"
    assert "read again" in headwater("reset", "in", "--position", '{"files": 3, "last": "c"}')
    pages = {"url": "http://127.0.0.1:1/pages", "cursor_parameter": "after"}
    read = file_of("pages.json", **body | {"name": "pages", "kind": "http", "config": pages})
    assert "Source pages has the id" in headwater("create", read)
    moved = headwater("reset", "pages", "--position", '{"cursor": "c", "read": 3}')
    assert moved == 'Source pages is at {"cursor":"c","read":3}.\n'
    assert json.loads(headwater("show", "pages"))["position"] == {"cursor": "c", "read": 3}
    assert headwater("reset", "in") == "Source in is at {}.\n"
    assert "is not a JSON object" in headwater("reset", "in", "--position", "3")
    assert headwater("delete", "in") == "Source in is deleted.\n"
    assert "there is no source" in headwater("show", "in")
