"""`headwater api`: any operation of the service."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

import httpx2
import msgspec
from cyclopts import Parameter

from headwater_client.cli.arguments.documents import content
from headwater_client.cli.arguments.names import Flag, Texts
from headwater_client.cli.failure import CommandError, ExitCode, code_of
from headwater_client.cli.printing.output import on_terminal, put
from headwater_client.cli.printing.text import visible
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.problem import Problem
from headwater_client.transport.driver import Body

_TEXTS: Final = ("application/json", "application/problem+json", "application/x-ndjson", "text/")
_WAIT_SECONDS: Final = 60.0


def api(
    method: str,
    path: str,
    /,
    *,
    data: Annotated[str | None, Parameter(name=("--data", "-d"), allow_leading_hyphen=True)] = None,
    header: Annotated[Texts, Parameter(name=("--header", "-H"))] = None,
    include: Annotated[Flag, Parameter(name=("--include", "-i"))] = False,
    service: ServiceChoice = SERVICE,
) -> None:
    """Send any request with the key, and print the response.

    Example: `headwater api GET /datasets/orders/statistics`

    Example: `headwater api PATCH /datasets/orders -H 'If-Match: "3"' -d '{"description": "Orders of the shop"}'`

    Parameters
    ----------
    method
        GET, POST, PUT, PATCH or DELETE.
    path
        The path of the operation with its query, such as "/jobs?state=failed".
    data
        The body: a text, @FILE, or @- for the standard input. It is JSON unless a header says otherwise.
    header
        A header, such as "Prefer: wait=10". May be repeated.
    include
        Print the status and the headers first.
    """
    if not path.startswith("/"):
        raise CommandError(f"the path starts with a slash: /{path}", ExitCode.USAGE)
    headers = dict(_header(text) for text in header or ())
    body = None if data is None else _body(data)
    if body is not None and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    with service.client() as client:
        try:
            answer = client.request(
                method.upper(),
                quote(path, safe="/?&=%:,;@!$'()*+~[]"),
                headers=headers,
                body=body,
                patience_seconds=_WAIT_SECONDS,
            )
        except Problem as problem:
            if problem.json is None:
                raise
            _put_json(problem.json)
            raise CommandError(f"{problem.status} {problem.title}", code_of(problem)) from None
    if include:
        lines = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        sys.stdout.write("".join(f"{visible(line)}\n" for line in [*lines, ""]))
    _print(answer)


def _print(answer: httpx2.Response) -> None:
    kind = answer.headers.get("content-type", "")
    if not answer.content:
        return
    if not kind.startswith(_TEXTS):
        if on_terminal():
            raise CommandError(
                f"the response is {kind}: send it to a file, for example > response", ExitCode.USAGE
            )
        sys.stdout.flush()
        sys.stdout.buffer.write(answer.content)
    elif kind.startswith("application/json"):
        _put_json(answer.text)
    else:
        put(answer.text)


def _put_json(text: str) -> None:
    put(f"{msgspec.json.format(text, indent=2)}\n")


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator:
        raise CommandError(
            f"--header {text}: expected a name and a value, such as 'Prefer: wait=10'", ExitCode.USAGE
        )
    return name.strip(), value.strip()


def _body(data: str) -> Body:
    """The text itself, or a file, which is streamed."""
    if not data.startswith("@"):
        return data.encode()
    file = Path(data[1:])
    return file if file.is_file() else content(file)
