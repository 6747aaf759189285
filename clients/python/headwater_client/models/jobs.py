"""Values of jobs. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

import msgspec

from headwater_client.models.writes import Job


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, the newest first."""

    items: tuple[Job, ...]
    """The jobs of this page; fewer than `page_size` where many others had to be passed over."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
