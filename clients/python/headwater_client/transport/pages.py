"""Pages of the feed and of tables, as JSON values and as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import msgspec

from headwater_client.arrow import ArrowData
from headwater_client.models import ChangesPage, RowsPage

if TYPE_CHECKING:
    import pyarrow as pa

JSON = "application/json"
ARROW_STREAM = "application/vnd.apache.arrow.stream"


class ChangeTable(ArrowData, frozen=True, kw_only=True):
    """Changes in order, as Arrow data: see `to_arrow`, `to_pandas`, `to_polars`, `to_duckdb`.

    Columns: `offset` int64, `op` uint8 (0 +A, 1 -R, 2 -C, 3 +C), `system_time`, `event_time`, `version` int64,
    `corrects_offset` int64, then those of the dataset. A system column whose name the dataset uses is called
    `_hw_<name>`.
    """

    next_since: int | str
    pending: int
    earliest: int
    schema_id: int

    @property
    def table(self) -> pa.Table:
        """The rows as a pyarrow table: `to_arrow`."""
        return self.to_arrow()


_CORRECTED = {"true": True, "false": False}


class RowTable(ArrowData, frozen=True, kw_only=True):
    """Rows of the table at `version`, as Arrow data, with the dataset's columns at that version.

    `corrected`: whether later commits have corrected one of them; None for the latest version, and if it is not known.
    """

    version: int
    schema_id: int
    next_page_token: str | None
    corrected: bool | None = None

    @property
    def table(self) -> pa.Table:
        """The rows as a pyarrow table: `to_arrow`."""
        return self.to_arrow()


def change_page(response: httpx2.Response) -> ChangesPage:
    """The page in a JSON response."""
    return msgspec.json.decode(response.content, type=ChangesPage)


def change_table(response: httpx2.Response) -> ChangeTable:
    """The page in an Arrow response."""
    return ChangeTable(
        parts=(response.content,),
        next_since=_position(response.headers["headwater-next-since"]),
        pending=int(response.headers["headwater-pending"]),
        earliest=int(response.headers["headwater-earliest"]),
        schema_id=int(response.headers["headwater-schema-id"]),
    )


def _position(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def row_page(response: httpx2.Response) -> RowsPage:
    """The page in a JSON response."""
    return msgspec.json.decode(response.content, type=RowsPage)


def row_table(response: httpx2.Response) -> RowTable:
    """The page in an Arrow response."""
    return RowTable(
        parts=(response.content,),
        version=int(response.headers["headwater-version"]),
        schema_id=int(response.headers["headwater-schema-id"]),
        next_page_token=response.headers.get("headwater-next-page-token"),
        corrected=_CORRECTED.get(response.headers.get("headwater-corrected", "")),
    )
