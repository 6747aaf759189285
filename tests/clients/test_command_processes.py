"""The command line as a process: terminals, pipes, signals, lost connections, and changes sent to one's own machine."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.features.alerts import compose
from headwater_client import Dataset, Headwater
from headwater_client.models import MaxLag
from tests.support.command_line import command_line, use_service
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.waiting import until

RED = "\x1b[31mred"


def environment(service: Service, api_key: str, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    return {**kept, "HEADWATER_URL": service.url, "HEADWATER_API_KEY": api_key, "NO_PROXY": "*", **more}


@contextmanager
def running(settings: dict[str, str], *words: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A command as a process, which is ended if it still runs."""
    command = [sys.executable, "-m", "headwater_client.cli", *words]
    with subprocess.Popen(command, env=settings, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def interrupt(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGINT)
    return process.wait(20)


def on_terminal(settings: dict[str, str], *words: str) -> tuple[int, str]:
    """The exit code of a command whose output is a terminal, and what it prints there."""
    outer, inner = pty.openpty()
    with running(settings, *words, stdin=inner, stdout=inner, stderr=inner) as process:
        os.close(inner)
        printed = b""
        while select.select([outer], [], [], 30)[0]:
            try:
                part = os.read(outer, 65_536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            printed += part
        os.close(outer)
        return process.wait(20), printed.decode()


@pytest.fixture
def filled(orders: Dataset, headwater: Headwater, service: Service) -> Dataset:
    with service.working():
        headwater.write_rows(orders, [{"id": 1, "note": RED}, {"id": 2, "note": "b"}], wait=30)
    return orders


def test_terminal_gets_tables_colours_and_no_control_character_of_data(
    filled: Dataset, service: Service, api_key: str
) -> None:
    settings = environment(service, api_key, TERM="xterm", COLUMNS="100")
    code, shown = on_terminal(settings, "rows", "orders")
    assert code == 0
    assert "note" in shown
    assert "\\x1b[31mred" in shown
    assert RED not in shown
    _, shown = on_terminal(settings, "tail", "orders")
    assert "\x1b[32m+A\x1b[0m" in shown
    assert RED not in shown
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        _, shown = on_terminal({**settings, **plain}, "tail", "orders")
        assert "+A  id=2" in shown
        assert "\x1b" not in shown
    _, shown = on_terminal(settings, "rows", "orders", "-o", "ndjson")
    assert "\\u001b[31mred" in shown
    code, shown = on_terminal(settings, "rows", "orders", "-o", "parquet")
    assert code == 2
    assert "is binary" in shown
    assert "PAR1" not in shown


def test_terminal_shows_what_is_sent(filled: Dataset, service: Service, api_key: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text("".join(f'{{"id": {number}, "note": "n"}}\n' for number in range(3, 2_003)))
    settings = environment(service, api_key, TERM="xterm", COLUMNS="100")
    with service.working():
        code, shown = on_terminal(settings, "write", "orders", str(rows))
    assert code == 0
    assert "2,000 rows" in shown
    assert "2,000 inserted, version 2, in " in shown


def test_service_that_does_not_answer_is_named_with_what_makes_another_try_safe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    use_service(monkeypatch, "http://127.0.0.1:9", "hw_key")
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": 1}\n')
    printed = command_line(capsys)("write", "orders", rows, "--operation", "insert", fails=5)
    assert "attempt 2 in " in printed.err
    assert "--idempotency-key" in printed.err


def test_broken_pipe_ends_quietly_and_a_lost_service_has_its_own_code(
    filled: Dataset, headwater: Headwater, service: Service, api_key: str, tmp_path: Path
) -> None:
    rows = [{"id": number, "note": "x" * 100} for number in range(3, 3_000)]
    with service.working():
        headwater.write_rows("orders", rows, wait=60)
    settings = environment(service, api_key)
    with running(settings, "rows", "orders", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0
    gone = {**settings, "HEADWATER_URL": "http://127.0.0.1:9"}
    with running(gone, "status", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"does not answer" in process.stderr.read()
        assert process.wait(20) == 5


def test_tail_follows_until_it_is_interrupted(
    filled: Dataset, headwater: Headwater, service: Service, api_key: str
) -> None:
    words = ("tail", "orders", "-f", "-o", "ndjson", "--since", "0")
    settings = environment(service, api_key)
    with running(settings, *words, stdout=subprocess.PIPE) as process, service.working():
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())["offset"] for _ in range(2)] == [0, 1]
        headwater.write_rows("orders", [{"id": 3, "note": "c"}], wait=30)
        assert json.loads(process.stdout.readline())["row"] == {"id": 3, "note": "c"}
        assert interrupt(process) == 130


@pytest.mark.parametrize("form", ["csv", "ndjson", "table", "json"])
def test_a_reader_of_a_followed_feed_gets_each_change_at_once(
    filled: Dataset, service: Service, api_key: str, form: str
) -> None:
    settings = environment(service, api_key)
    words = ("tail", "orders", "-f", "--since", "0", "-o", form)
    with running(settings, *words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = b""
        while b"31mred" not in printed and select.select([process.stdout], [], [], 20)[0]:
            printed += os.read(process.stdout.fileno(), 65_536)
        assert b"31mred" in printed
        assert interrupt(process) == 130


def test_output_that_cannot_be_written_is_a_sentence(filled: Dataset, service: Service, api_key: str) -> None:
    settings = environment(service, api_key)
    with (
        Path("/dev/full").open("wb") as full,
        running(settings, "rows", "orders", stdout=full, stderr=subprocess.PIPE) as process,
    ):
        assert process.stderr is not None
        sentence = b"headwater: the output cannot be written: No space left on device\n"
        assert process.stderr.read() == sentence
        assert process.wait(20) == 1


def test_changes_are_forwarded_with_the_form_and_signatures_of_webhooks(
    filled: Dataset, headwater: Headwater, service: Service, api_key: str, receiver: Receiver
) -> None:
    webhook = headwater.create_webhook(
        filled, receiver.url, delivery_format="upsert", columns=["id"], where="id < 3", since="earliest"
    )
    with service.working():
        until(lambda: len(receiver.messages) == 1, "the message of the service", seconds_max=20)
    headwater.delete_webhook(webhook)
    other = headwater.create_webhook(
        filled, receiver.url, delivery_format="upsert", columns=["id"], where="id < 3"
    )
    receiver.answer(503)
    words = ("listen", "--webhook", other.id, "--since", "earliest", "--secret", webhook.secret)
    settings = environment(service, api_key)
    with running(settings, *words, "--forward-to", receiver.url, stdout=subprocess.PIPE) as process:
        until(lambda: len(receiver.messages) == 3, "the message and its second attempt", seconds_max=20)
        assert interrupt(process) == 130
    of_service, refused, forwarded = receiver.messages
    assert (refused.id, refused.body) == (forwarded.id, forwarded.body)
    assert forwarded.signatures_of(webhook.secret) == 1
    for name in ("content-type", "user-agent"):
        assert forwarded.headers[name] == of_service.headers[name]
    members = [{**json.loads(each.body), "timestamp": None} for each in (of_service, forwarded)]
    for each in members:
        each["data"].pop("webhook_id")
    assert members[0] == members[1]


def test_bad_targets_of_listen_are_refused(
    service: Service, api_key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_service(monkeypatch, service.url, api_key)
    headwater_command = command_line(capsys)
    listen = ("listen", "--forward-to", "http://127.0.0.1:9")
    assert "or --webhook" in headwater_command(*listen, fails=2).err
    assert "whsec_ and base64" in headwater_command(*listen, "orders", "--secret", "whsec_x", fails=2).err


def test_alerts_are_forwarded_as_the_service_sends_them(
    filled: Dataset,
    headwater: Headwater,
    service: Service,
    api_key: str,
    receiver: Receiver,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_service(monkeypatch, service.url, api_key)
    headwater_command = command_line(capsys)
    listen = ("listen", "--alerts", "--forward-to", receiver.url)
    assert "headwater webhooks create URL --events alerts" in headwater_command(*listen, fails=1).err
    made = headwater_command("webhooks", "create", receiver.url, "--events", "alerts", "-o", "json").out
    webhook = json.loads(made)
    assert "alerts" in headwater_command("webhooks", "-o", "table").out
    assert "expected a number" in headwater_command(*listen, "--since", "10m", fails=2).err
    monkeypatch.setattr(compose, "leads", lambda *_, **__: lambda: True)
    watch = compose.watch_tenants(service.platform)
    headwater.create_consumer(filled, "app", max_lag=MaxLag(changes=1, seconds=None))
    watch.alerts = [
        msgspec.structs.replace(alert, for_seconds=0)
        for alert in watch.alerts
        if alert.name == "consumer-over-max-lag"
    ]
    watch.run()
    with service.working():
        until(lambda: len(receiver.messages) == 1, "the alert of the service", seconds_max=20)
    headwater.change_webhook(webhook["id"], state="paused")
    receiver.answer(503)
    words = (*listen, "--since", "earliest", "--secret", webhook["secret"])
    settings = environment(service, api_key)
    with running(settings, *words, stdout=subprocess.PIPE) as process:
        until(lambda: len(receiver.messages) == 3, "the alert and its second attempt", seconds_max=20)
        assert interrupt(process) == 130
    of_service, refused, forwarded = receiver.messages
    assert (refused.id, refused.body) == (forwarded.id, forwarded.body)
    assert json.loads(forwarded.body)["type"] == "alert.fired"
    assert (forwarded.body, forwarded.signatures_of(webhook["secret"])) == (of_service.body, 1)
    headwater.delete_webhook(webhook["id"])
