"""Commands that pages show for copying: words of a command line, and requests as lines of curl."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any, Final

from app.features.console.visit import JSON, ApiCall

_KEY: Final = '-H "Authorization: Bearer $HEADWATER_API_KEY"'
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def shell(value: Any) -> str:
    """The text as one word of a command line, quoted if it needs to be. A control character is escaped: a terminal
    can read one as a key.
    """
    text = str(value)
    if not _CONTROL.search(text):
        return shlex.quote(text)
    escaped = _CONTROL.sub(_bytes_escaped, text.replace("\\", "\\\\").replace("'", "\\'"))
    return f"$'{escaped}'"


def operands(values: Iterable[Any]) -> str:
    """Values as words at the end of a command line, behind `--` if one would be read as an option."""
    texts = list(map(str, values))
    words = " ".join(map(shell, texts))
    return f"-- {words}" if any(text.startswith("-") for text in texts) else words


def _bytes_escaped(match: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode())


def curl_line(call: ApiCall, url: str) -> str:
    """The command that sends a request. `url`: the address of the service, without a slash at its end.

    `--data` would read a file for a body that begins with `@`, and drop line ends of a file: `--data-raw` sends the
    text as it is, and `--data-binary` a file.
    """
    method = [] if call.method == "GET" else [f"-X {call.method}"]
    headers = [f"-H {shell(f'{name}: {value}')}" for name, value in call.headers]
    return " ".join(["curl", *method, _KEY, *headers, *_body(call), shell(url + call.target)])


def _body(call: ApiCall) -> list[str]:
    if call.body is None or _CONTROL.search(call.body.replace("\n", "")):
        # Not every shell has `$'…'`, with which control characters would be escaped.
        is_json = ("Content-Type", JSON) in call.headers
        return [f"--data-binary @body{'.json' if is_json else ''}"]
    return [f"--data-raw {shlex.quote(call.body)}"] if call.body else []
