"""Lines of the log: one for each event, with its facts, as text and as JSON."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import threading
from typing import Any

import pytest

from app.infra.logs import LineFormatter, LogFormat, facts, log_context


def record(message: str, *arguments: Any, name: str = "app.core.x", **more: Any) -> logging.LogRecord:
    made = logging.makeLogRecord(facts(**more))
    made.name, made.levelname, made.msg, made.args = name, "INFO", message, arguments
    return made


def text(event: logging.LogRecord) -> str:
    return LineFormatter("worker[7]", LogFormat.TEXT).format(event)


def members(event: logging.LogRecord) -> dict[str, Any]:
    line = LineFormatter("worker[7]", LogFormat.JSON).format(event)
    assert "\n" not in line
    document: dict[str, Any] = json.loads(line)
    return document


def test_line_has_one_time_and_the_facts_of_the_event() -> None:
    event = record("committed version %d", 4, dataset="orders", milliseconds=41.26, rows=2, job=None)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO worker\[7\] committed version 4 "
        r"dataset=orders milliseconds=41\.3 rows=2",
        text(event),
    )
    assert (
        members(event).items()
        >= {
            "level": "INFO",
            "process": "worker[7]",
            "logger": "app.core.x",
            "message": "committed version 4",
            "dataset": "orders",
            "milliseconds": 41.26,
            "rows": 2,
        }.items()
    )
    assert "job" not in members(event)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a b", '"a b"'), ("", '""'), ('a"b', '"a\\"b"'), ("a\nERROR b", '"a\\nERROR b"'), ("a=b", '"a=b"')],
)
def test_value_cannot_pass_for_another_fact_or_line(value: str, shown: str) -> None:
    assert text(record("x", name="app.x", tenant=value)).endswith(f" x tenant={shown}")
    assert members(record("x", tenant=value))["tenant"] == value


def test_lines_of_libraries_name_the_library() -> None:
    assert text(record("slow", name="botocore.retries")).endswith(" botocore.retries: slow")


def test_context_adds_facts_in_its_thread_until_it_ends() -> None:
    event = record("x", dataset="new")
    others: list[str] = []
    with log_context(tenant="acme", dataset="old"):
        thread = threading.Thread(target=lambda: others.append(text(event)))
        thread.start()
        thread.join()
        assert text(event).endswith(" x tenant=acme dataset=new")
    assert text(event).endswith(" x dataset=new")
    assert others[0].endswith(" x dataset=new")


def test_exception_is_a_member_or_lines_behind_the_event() -> None:
    event = record("failed", job="j")
    try:
        raise ValueError("no")
    except ValueError:
        event.exc_info = sys.exc_info()
    first, *trace = text(event).splitlines()
    assert first.endswith(" failed job=j")
    assert trace[-1] == "ValueError: no"
    assert members(event)["exception"].endswith("ValueError: no")


_ENDS = {
    "an exception ends the process": "raise ValueError('the last')",
    "an exception ends a thread": "thread = threading.Thread(target=int, args=['x']); thread.start(); thread.join()",
    "an exception could not be raised": "class Ends:\n    def __del__(self): raise ValueError('late')\nEnds()",
}


@pytest.mark.parametrize("message", _ENDS)
def test_exception_that_no_code_handles_is_one_line(message: str) -> None:
    lines = (
        "import threading",
        "from app.infra.logs import LogFormat, configure_logs",
        "configure_logs('api', LogFormat.JSON)",
        _ENDS[message],
    )
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=30, check=False
    )
    assert (run.returncode != 0) is (message == "an exception ends the process")
    [line] = run.stderr.splitlines()
    event = json.loads(line)
    assert event["message"] == message
    assert "ValueError: " in event["exception"]
