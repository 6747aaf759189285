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

_ROOT = Path(__file__).parents[2]
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
        (folder / part).symlink_to(_ROOT / part)
    note = folder / ".headwater" / "headwater.json"
    note.parent.mkdir()
    note.write_text(json.dumps({"url": url, "api_key": api_key, "pid": os.getpid()}))
    found = examples(document)
    script = ["set -eu"]
    for number, example in enumerate(found):
        # Braces start no other shell: what one block sets, the next one has.
        script.append(f"{{\n{example.command}}} > answer-{number}")
    told = subprocess.run(
        ["sh", "-c", "\n".join(script)],
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*", "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    done = len(list(folder.glob("answer-*")))
    assert told.returncode == 0, f"{document.name}:{found[done - 1].line} failed: {told.stderr}"
    for number, example in enumerate(found):
        yield example, (folder / f"answer-{number}").read_text(encoding="utf-8")


def check_answer(answer: Block, given: str) -> None:
    """Raises AssertionError where what came back is not what the document shows."""
    match answer.language:
        case "json":
            check(json.loads(answer.text), json.loads(given), "")
        case "ndjson":
            shown, lines = answer.text.splitlines(), given.splitlines()
            assert len(lines) == len(shown), given
            for number, (line, other) in enumerate(zip(shown, lines, strict=True)):
                check(json.loads(line), json.loads(other), f"/{number}")
        case "http":
            _check_http(answer.text, given)


def _check_http(shown: str, given: str) -> None:
    head, _, body = shown.partition("\n\n")
    given_head, _, given_body = given.replace("\r\n", "\n").partition("\n\n")
    status, *headers = head.splitlines()
    given_status, *given_headers = given_head.splitlines()
    assert given_status == status, given
    for header in headers:
        assert _text(header) in {_text(other) for other in given_headers}, (
            f"{header!r} is not in {given_head}"
        )
    if body.strip():
        check(json.loads(body), json.loads(given_body), "")


def _text(header: str) -> str:
    name, _, value = header.partition(":")
    return f"{name.lower()}:{_ANY_UUID.sub('id', value)}"


def check(shown: Any, given: Any, place: str) -> None:
    """Compares a value that a document shows with the one that came back."""
    match shown:
        case dict():
            assert isinstance(given, dict), f"{place}: {given!r}"
            assert set(shown) <= set(given), f"{place}: not there: {set(shown) - set(given)}"
            for name, value in shown.items():
                if name in _OWN_TIMES and value is not None:
                    assert _TIME.fullmatch(str(value)), f"{place}/{name}: {value!r} is no time"
                    assert _TIME.fullmatch(str(given[name])), f"{place}/{name}: {given[name]!r} is no time"
                else:
                    check(value, given[name], f"{place}/{name}")
        case list():
            assert isinstance(given, list), f"{place}: {given!r}"
            assert len(given) == len(shown), f"{place}: {given!r}"
            for number, value in enumerate(shown):
                check(value, given[number], f"{place}/{number}")
        case str():
            pattern = ".*".join(re.escape(part) for part in _ANY_UUID.sub("id", shown).split("…"))
            assert isinstance(given, str), f"{place}: {given!r}"
            assert re.fullmatch(pattern, _ANY_UUID.sub("id", given), re.DOTALL), f"{place}: {given!r}"
        case _:
            assert given == shown, f"{place}: {given!r} is not {shown!r}"
            assert type(given) is type(shown), f"{place}: {given!r} is not {shown!r}"
