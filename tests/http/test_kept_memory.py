"""What requests leave in the memory of the process that serves them."""

from __future__ import annotations

import gc
from typing import Any

from litestar.handlers import BaseRouteHandler

from tests.support.shares import share

_REQUESTS = 20


@share(2)
def test_requests_leave_no_copies_of_their_handlers(client: Any, orders: str) -> None:
    def handlers() -> int:
        gc.collect()
        return sum(isinstance(each, BaseRouteHandler) for each in gc.get_objects())

    client.get(f"{orders}/changes")
    before = handlers()
    for _ in range(_REQUESTS):
        assert client.get(f"{orders}/changes").status_code == 200
    assert handlers() <= before + 1
