"""Pages of a feed, whatever happens to the connection."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeVar

import httpx2

from headwater_client.cli.printing.text import visible
from headwater_client.problem import Problem

_PAUSE_SECONDS_MAX: Final = 30.0
_MAY_PASS: Final = frozenset({429, 502, 503, 504})


class NextPage(Protocol):
    """A page with the position of the next one."""

    @property
    def next_since(self) -> int | str: ...


Page = TypeVar("Page", bound=NextPage)


def resumed(
    pages: Callable[[dict[str, Any]], Iterator[Page]], start: dict[str, Any], *, follow: bool
) -> Iterator[Page]:
    """The pages from a position on, each once.

    `pages` gets a position as the options of a feed. With `follow`, a service that cannot be reached or is busy is
    tried again after growing pauses, from the end of the last page on.
    """
    pause = 1.0
    while True:
        try:
            for page in pages(start):
                yield page
                start, pause = {"since": page.next_since}, 1.0
        except (httpx2.TransportError, Problem) as error:
            if not follow or (isinstance(error, Problem) and error.status not in _MAY_PASS):
                raise
            sys.stderr.write(f"headwater: {visible(str(error))}; next try in {pause:.0f} s\n")
        else:
            return
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)
