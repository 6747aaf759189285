"""The examples in the help of the commands: every command has one, and each runs as it is written."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from clients.cli.commands import COMMANDS as OF_THE_SERVER
from headwater_client import Headwater, NewDataset, NewField, WriteOptions
from headwater_client.cli.main import run
from headwater_client.cli.registry import COMMANDS, LIST, OTHERS, SECTIONS, Command, Commands
from tests.support.command_line import CommandLine, command_line, use_service
from tests.support.service import Service

EXAMPLE: Final = re.compile(r"^    Example: `(.+)`$", re.MULTILINE)
# What does not end by itself. Tests of these commands as processes interrupt them.
ENDLESS: Final = ("tail orders -f", "listen ")
# Their examples end what the others use.
LAST: Final = ("delete", "revoke", "discard", "remove-recipient", "logout", "suspend")
SOME_ID: Final = "01a1fc66-e85f-74fa-b50b-086a80c5ab7c"
OTHER_ID: Final = "01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"


def commands_of(commands: Commands) -> Iterator[tuple[str, Command]]:
    """The commands with the words that call them."""
    for name, entry in commands.items():
        if isinstance(entry, Command):
            yield name, entry
        else:
            yield from ((f"{name} {each}", command) for each, command in entry.commands.items())


OURS: Final = dict(commands_of(COMMANDS))


def function_of(command: Command) -> Any:
    module, _, name = command.target.partition(":")
    return getattr(importlib.import_module(module), name)


def examples_of(command: Command) -> list[str]:
    return EXAMPLE.findall(inspect.getdoc(function_of(command)).replace("\nExample", "\n    Example"))


@pytest.mark.parametrize("name", OURS)
def test_every_command_has_an_example_of_itself_and_the_text_of_its_docstring(name: str) -> None:
    command = OURS[name]
    called = name.removesuffix(f" {LIST}")
    found = examples_of(command)
    assert found
    assert all(re.search(rf"\bheadwater {called}\b", example) for example in found)
    summary = inspect.getdoc(function_of(command)).splitlines()[0]
    assert set(command.text.rstrip(".").split()[:1]) == set(summary.split()[:1]), (command.text, summary)


def test_every_command_of_the_client_is_in_one_section_and_no_name_is_used_twice() -> None:
    listed = [name for _, names in SECTIONS for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    assert OTHERS not in dict(SECTIONS)
    assert not COMMANDS.keys() & OF_THE_SERVER.keys()


def test_help_of_every_command_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for name in OURS:
        first = name.split()[0]
        assert run([*name.split(), "--help"], {first: COMMANDS[first]}) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"Usage: headwater {name}"), shown
        assert "Example: " in shown


@contextmanager
def redirected(example: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The words of the command, with the files that a shell would connect."""
    piped = re.fullmatch(r"cat (\S+) \| (.+)", example)
    source = piped[1] if piped else None
    text = piped[2] if piped else example
    if sent := re.fullmatch(r"(.+) < (\S+)", text):
        text, source = sent[1], sent[2]
    printed = re.fullmatch(r"(.+) > (\S+)", text)
    with monkeypatch.context() as patch:
        if source is not None:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(source).read_bytes())))
        if printed is not None:
            with Path(printed[2]).open("w") as file:
                patch.setattr("sys.stdout", file)
                yield shlex.split(printed[1])
        else:
            yield shlex.split(text)


@pytest.fixture
def command(
    service: Service,
    api_key: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[CommandLine]:
    """Runs commands in a folder with the files of the examples."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    use_service(monkeypatch, service.url, api_key)
    folder = service.settings.data_dir / "incoming" / "invoices"
    folder.mkdir(parents=True, exist_ok=True)
    order = {"id": 1001, "state": "new"}
    schema = {"fields": [{"name": "id", "type": "int64"}]}
    files = {
        "orders.csv": "id,state\n1,new\n2,paid\n",
        "orders.ndjson": '{"id": 7, "state": "new"}\n',
        "gone.ndjson": '{"id": 7}\n',
        "orders.json": json.dumps({"name": "orders_of_a_file", "schema": schema}),
        "view.json": json.dumps({"name": "new_orders", "sql": "SELECT id FROM orders WHERE state = 'new'"}),
        "export.json": json.dumps({"query": "changes", "format": "ndjson"}),
        "source.json": json.dumps(
            {"name": "invoices", "dataset": "invoices", "kind": "files"}
            | {"config": {"path": folder.as_uri(), "format": "ndjson"}, "create": {"record_key": ["id"]}}
        ),
        "key.txt": f"{api_key}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (folder / "1.ndjson").write_text(json.dumps(order))
    service.derivation.queries["states"] = lambda orders: []
    with service.working():
        yield command_line(capsys)


def _rank(name: str) -> int:
    """When the examples of a command run: those that end what others use are later."""
    return 2 if name in ("rename", "delete") else int(name.split()[-1] in LAST)


def test_examples_run(
    command: CommandLine, service: Service, headwater: Headwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = (NewField(name="day", type="date"), NewField(name="id", type="int64"))
    visits = NewDataset(name="visits", fields=fields, partition_by=("day",), services={"partition_done": {}})
    headwater.create_dataset(visits)
    headwater.write_rows("visits", [{"day": "2026-11-21", "id": 1}], operation="insert", wait=30)
    command("create", "orders", "--schema", "id:int64,state:string,at:timestamp", "--key", "id")
    rows = [{"id": 1001, "state": "new"}, {"id": 1, "state": "new"}]
    written = headwater.write_rows("orders", rows, wait=30)
    headwater.write_rows("orders", [{"id": 1001, "state": "paid"}], wait=30)
    bad = [{"id": 5, "state": "new"}, {"id": "five"}]
    quarantined = headwater.write_rows("orders", bad, options=WriteOptions(on_error="quarantine"), wait=30)
    key = headwater.create_key("reader", ["read"])
    webhook = headwater.create_webhook("orders", "http://127.0.0.1:9/orders")
    export = headwater.create_export("orders", query="changes", format="ndjson", every_seconds=3_600)
    headwater.wait_for_export(export)
    ids = {
        "jobs": written.id,
        "quarantine": quarantined.id,
        "keys": key.id,
        "webhooks": webhook.id,
        "exports": export.id,
    }
    replaced = {
        "https://lake.example.com": service.url,
        "https://example.com/orders": "http://127.0.0.1:9/orders",
        "https://example.com/alerts": "http://127.0.0.1:9/alerts",
        "headwater create orders": "headwater create orders_again",
        "headwater delete orders --confirm orders": "headwater delete orders_again --confirm orders_again",
        "headwater diff orders 12 15": "headwater diff orders 1 2",
        "headwater restore orders 12": "headwater restore orders 2",
    }
    # An operation of the service refuses the rest: it is nothing to run again, to redeliver or to redrive.
    refused = {"jobs cancel": 6}
    order = sorted(OURS, key=lambda name: (_rank(name), name == "delete", name == "restore"))
    for name in order:
        for example in examples_of(OURS[name]):
            if any(each in example for each in ENDLESS):
                continue
            text = example
            for old, new in replaced.items():
                text = text.replace(old, new)
            if "If-Match" in text:
                text = text.replace('"3"', f'"{headwater.get_dataset("orders").version}"')
            for each in (SOME_ID, OTHER_ID):
                text = text.replace(each, ids.get(name.split()[0], each))
            with redirected(text, monkeypatch) as words:
                assert words[0] == "headwater"
                command(*words[1:], fails=refused.get(name, 0))
