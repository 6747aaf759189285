"""Examples in Markdown: shell blocks that are run, and the answers beside them, which must be what comes back.

A block of `sh` after the comment `<!-- run -->` is run; all such blocks of a document run in one shell, in order.
The block that follows it, if it is one of `json`, `ndjson` or `http`, shows the answer, trimmed: members that the
document leaves out may be there. `…` stands for any text; ids and the service's own times are never the same.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN = "<!-- run -->\n"
_ANSWERS = ("json", "ndjson", "http")
_ANY_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_OWN_TIMES = {
    "system_time",
    "created_at",
    "started_at",
    "finished_at",
    "committed_at",
    "requested_at",
    "completed_at",
}


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block. `run`: it stands behind the mark."""

    language: str
    text: str
    line: int
    run: bool


@dataclass(frozen=True, kw_only=True)
class Example:
    """A command, and the answer that the document shows for it, if any."""

    command: str
    line: int
    answer: Block | None


def blocks(document: Path) -> list[Block]:
    """Every fenced block of a document."""
    text = document.read_text(encoding="utf-8")
    return [
        Block(
            language=found[1],
            text=found[2],
            line=text.count("\n", 0, found.start()) + 1,
            run=text[: found.start()].endswith(_RUN),
        )
        for found in _FENCE.finditer(text)
    ]


def examples(document: Path) -> list[Example]:
    """The commands that are run, in order."""
    every = blocks(document)
    after: list[Block | None] = [*every, None][1:]
    return [
        Example(
            command=block.text,
            line=block.line,
            answer=following if following is not None and following.language in _ANSWERS else None,
        )
        for block, following in zip(every, after, strict=True)
        if block.run
    ]


def run(document: Path, folder: Path, url: str, api_key: str) -> Iterator[tuple[Example, str]]:
    """Runs a document's examples in `folder`, which looks like a clone with `make up` running."""
    (folder / ".venv").symlink_to(sys.prefix)
    for part in ("examples", "openapi"):
        (folder / part).symlink_to(ROOT / part)
    note = folder / ".headwater" / "headwater.json"
    note.parent.mkdir()
    note.write_text(json.dumps({"url": url, "api_key": api_key, "pid": os.getpid()}))
    found = examples(document)
    script = ["set -eu"]
    for number, example in enumerate(found):
        # Braces start no other shell: what one block sets, the next one has.
        script.append(f"{{\n{example.command}}} > answer-{number}")
    result = subprocess.run(
        ["sh", "-c", "\n".join(script)],
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*", "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    done = len(list(folder.glob("answer-*")))
    assert result.returncode == 0, f"{document.name}:{found[done - 1].line} failed: {result.stderr}"
    for number, example in enumerate(found):
        yield example, (folder / f"answer-{number}").read_text(encoding="utf-8")


def check_answer(answer: Block, received: str) -> None:
    """Raises AssertionError where what came back is not what the document shows."""
    match answer.language:
        case "json":
            check(json.loads(answer.text), json.loads(received), "")
        case "ndjson":
            shown, lines = answer.text.splitlines(), received.splitlines()
            assert len(lines) == len(shown), received
            for number, (line, other) in enumerate(zip(shown, lines, strict=True)):
                check(json.loads(line), json.loads(other), f"/{number}")
        case "http":
            _check_http(answer.text, received)


def _check_http(shown: str, received: str) -> None:
    head, _, body = shown.partition("\n\n")
    received_head, _, received_body = received.replace("\r\n", "\n").partition("\n\n")
    status, *headers = head.splitlines()
    received_status, *received_headers = received_head.splitlines()
    assert received_status == status, received
    for header in headers:
        assert _text(header) in {_text(other) for other in received_headers}, (
            f"{header!r} is not in {received_head}"
        )
    if body.strip():
        check(json.loads(body), json.loads(received_body), "")


def _text(header: str) -> str:
    name, _, value = header.partition(":")
    return f"{name.lower()}:{_ANY_UUID.sub('id', value)}"


def check(shown: Any, received: Any, place: str) -> None:
    """Compares a value that a document shows with the one that came back."""
    match shown:
        case dict():
            assert isinstance(received, dict), f"{place}: {received!r}"
            assert set(shown) <= set(received), f"{place}: not there: {set(shown) - set(received)}"
            for name, value in shown.items():
                if name in _OWN_TIMES and value is not None:
                    assert _TIME.fullmatch(str(value)), f"{place}/{name}: {value!r} is no time"
                    assert _TIME.fullmatch(str(received[name])), (
                        f"{place}/{name}: {received[name]!r} is no time"
                    )
                else:
                    check(value, received[name], f"{place}/{name}")
        case list():
            assert isinstance(received, list), f"{place}: {received!r}"
            assert len(received) == len(shown), f"{place}: {received!r}"
            for number, value in enumerate(shown):
                check(value, received[number], f"{place}/{number}")
        case str():
            pattern = ".*".join(re.escape(part) for part in _ANY_UUID.sub("id", shown).split("…"))
            assert isinstance(received, str), f"{place}: {received!r}"
            assert re.fullmatch(pattern, _ANY_UUID.sub("id", received), re.DOTALL), f"{place}: {received!r}"
        case _:
            assert received == shown, f"{place}: {received!r} is not {shown!r}"
            assert type(received) is type(shown), f"{place}: {received!r} is not {shown!r}"
