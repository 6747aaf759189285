"""The command line in this process: its exit code, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from clients.cli.commands import COMMANDS as OF_THE_SERVER
from headwater_client.cli.main import run
from headwater_client.cli.registry import COMMANDS, merged

ALL = merged([COMMANDS, OF_THE_SERVER])


class Printed(NamedTuple):
    """What a command has printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The JSON that it has printed."""
        return json.loads(self.out)

    @property
    def items(self) -> list[Any]:
        """The lines of JSON that it has printed."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def cells(self) -> list[list[str]]:
        """The words of the lines that it has printed."""
        return [line.split() for line in self.out.splitlines()]


CommandLine = Callable[..., Printed]


def command_line(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Runs commands. The service and the key are those of the environment."""

    def headwater(*words: object, fails: int = 0) -> Printed:
        capsys.readouterr()
        code = run([str(word) for word in words], ALL)
        printed = Printed(code, *capsys.readouterr())
        assert code == fails, printed
        return printed

    return headwater


def use_service(monkeypatch: pytest.MonkeyPatch, url: str, api_key: str) -> None:
    """Has commands use a service."""
    monkeypatch.setenv("HEADWATER_URL", url)
    monkeypatch.setenv("HEADWATER_API_KEY", api_key)
    monkeypatch.setenv("NO_PROXY", "*")
