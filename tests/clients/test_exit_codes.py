"""Exit codes are those of docs/command-line.md, for every command that fails for the same reason."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from headwater_client.cli.failure import ExitCode
from tests.support.command_line import command_line, use_service

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_the_page_lists_every_exit_code() -> None:
    _, _, after = PAGE.read_text(encoding="utf-8").partition("| exit code |")
    listed = re.findall(r"^\| (\d+) \|", after, re.MULTILINE)
    assert [int(code) for code in listed] == sorted(ExitCode)


@pytest.mark.parametrize(
    "words",
    [
        ("write", "orders", "{file}"),
        ("create", "orders", "--file", "{file}"),
        ("views", "create", "totals", "--file", "{file}"),
        ("sources", "create", "{file}"),
        ("exports", "create", "orders", "{file}"),
        ("api", "POST", "/datasets", "-d", "@{file}"),
        ("doctor", "--data", "{file}"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_file_that_cannot_be_read_is_a_wrong_command(
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # Nothing is sent: no service is at this address.
    use_service(monkeypatch, "http://127.0.0.1:9", "hw_key")
    absent = tmp_path / "absent.json"
    printed = command_line(capsys)(*(word.format(file=absent) for word in words), fails=ExitCode.USAGE)
    assert str(absent) in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("up", "--port", "70000"), "--port must be from 0 to 65535"),
        (("demo", "trips", "--rows", "1"), "--rows must be from"),
        (("demo", "flights", "--days", "0"), "--days must be from"),
        (("rows", "orders", "--limit", "many"), "--limit"),
        (("nothing",), "nothing"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_wrong_argument_is_a_wrong_command(
    words: tuple[str, ...],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_service(monkeypatch, "http://127.0.0.1:9", "hw_key")
    printed = command_line(capsys)(*words, fails=ExitCode.USAGE)
    assert sentence in printed.err + printed.out


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "lake.example.com", "ftp://lake", "http://", "http://[::1", "http://a:99999"]
)
def test_what_is_no_url_is_a_wrong_setting(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_service(monkeypatch, url, "hw_key")
    for words in (("rows", "orders"), ("status",), ("ls",)):
        printed = command_line(capsys)(*words, fails=ExitCode.USAGE)
        assert "HEADWATER_URL: expected a URL such as https://lake.example.com" in printed.err
    monkeypatch.setattr("sys.stdin", io.StringIO("hw_key\n"))
    assert "expected a URL" in command_line(capsys)("login", url, fails=ExitCode.USAGE).err


@pytest.mark.parametrize(
    "words",
    [
        ("rows", "orders"),
        ("log", "orders"),
        ("jobs",),
        ("audit",),
        ("quarantine", "orders"),
        ("exports", "runs", "an-id"),
        ("webhooks", "deliveries", "an-id"),
    ],
    ids=" ".join,
)
def test_a_negative_limit_is_a_wrong_argument(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_service(monkeypatch, "http://127.0.0.1:9", "hw_key")
    printed = command_line(capsys)(*words, "--limit", "-1", fails=ExitCode.USAGE)
    assert "--limit" in printed.err + printed.out


def test_what_cannot_be_written_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file))
    printed = command_line(capsys)("profiles", fails=ExitCode.USAGE)
    assert printed.err.startswith("headwater: ")
    assert str(file) in printed.err
