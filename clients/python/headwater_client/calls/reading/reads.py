"""Reads of the feed and of the table."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from headwater_client.models import (
    Change,
    ChangesPage,
    Correction,
    CorrectionsPage,
    Dataset,
    FoundRow,
    Lookup,
    QueryType,
    ReadOrder,
)
from headwater_client.transport import pages
from headwater_client.transport.connection import Connection, dataset_path, decoded, given
from headwater_client.transport.encode import rows_json, value_text
from headwater_client.transport.pages import ARROW_STREAM, JSON, ChangeTable, RowTable
from headwater_client.transport.walk import FeedSince, Since, walk_feed, walk_list


class ReadCalls(Connection):
    """Reads committed data."""

    # The feed

    async def changes(
        self,
        dataset: Dataset | str,
        *,
        since: FeedSince | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        until: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        limit: int = 1_000,
        follow: bool = False,
        poll_seconds: int = 25,
    ) -> AsyncGenerator[Change, None]:
        """Changes one by one, from a position on.

        To resume later, store the offset of the last change plus one, but only after a `+A`, `-R` or `+C`, so that a
        `-C` is never separated from its `+C`. See `change_pages` for the other parameters.
        """
        async for page in self.change_pages(
            dataset,
            since=since,
            since_version=since_version,
            since_time=since_time,
            until=until,
            columns=columns,
            where=where,
            partitions=partitions,
            limit=limit,
            follow=follow,
            poll_seconds=poll_seconds,
        ):
            for item in page.changes:
                yield item

    def change_pages(
        self,
        dataset: Dataset | str,
        *,
        since: FeedSince | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        until: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        limit: int = 1_000,
        follow: bool = False,
        poll_seconds: int = 25,
    ) -> AsyncGenerator[ChangesPage, None]:
        """Pages of the feed from a position on, to its head, or to the position `until`.

        The position is `since`, by default 0, or the first change of `since_version` or `since_time` or later. With
        `snapshot` the rows of the latest version come first, as `+A`; `next_since` is a text as long as rows follow.
        `where` is a filter on rows, `partitions` are globs of partition paths (see `rows`): changes of which neither
        the old nor the new row matches are left out. `columns` selects the columns of the others. Positions count the
        whole feed, so a page may be empty though other pages follow.

        With `follow` the iteration does not end: it waits for changes, and returns an empty page after each
        `poll_seconds` without changes. Store a page's `next_since` together with the results of the page, and resume
        from there. Raises Problem `offset-ahead` if `since` is not a position of this dataset, `offset-expired` if
        changes after it have expired: `earliest` is the first that has not.
        """
        fetch = self._feed_of(dataset, JSON, poll_seconds)
        start = _start(since, since_version, since_time)
        params = _feed_params(start, until, columns, where, partitions, limit)
        # The members of typed changes have the standard names, whatever the dataset calls its columns.
        params["vocabulary"] = "standard"
        return walk_feed(fetch, pages.change_page, params, follow=follow, poll_seconds=poll_seconds)

    def change_tables(
        self,
        dataset: Dataset | str,
        *,
        since: FeedSince | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        until: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        limit: int = 50_000,
        follow: bool = False,
        poll_seconds: int = 25,
    ) -> AsyncGenerator[ChangeTable, None]:
        """As `change_pages`, in the columnar form, which is faster."""
        fetch = self._feed_of(dataset, ARROW_STREAM, poll_seconds)
        start = _start(since, since_version, since_time)
        params = _feed_params(start, until, columns, where, partitions, limit)
        return walk_feed(fetch, pages.change_table, params, follow=follow, poll_seconds=poll_seconds)

    async def corrections(
        self, dataset: Dataset | str, first: int = 0, end: int | None = None
    ) -> AsyncGenerator[Correction, None]:
        """The changes with offsets from `first` to before `end` (default: the head) that were retracted, and their
        corrections.

        Raises Problem `offset-expired` if the change at `first` has expired.
        """
        fetch = partial(self._get, f"{dataset_path(dataset)}/changes/corrected")
        chosen = {} if end is None else {"last_offset": end - 1}
        params = {"since": first, "first_offset": first, "limit": 10_000, **chosen}
        walk = walk_feed(fetch, partial(decoded, CorrectionsPage), params, follow=False, poll_seconds=0)
        async for page in walk:
            for item in page.corrections:
                yield item

    def _feed_of(self, dataset: Dataset | str, accept: str, patience_seconds: int) -> Any:
        path = f"{dataset_path(dataset)}/changes"
        return partial(self._get, path, accept=accept, patience_seconds=patience_seconds)

    # The table

    async def rows(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        as_of: datetime | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        meta: bool = False,
        corrected_since: bool = False,
        query_type: QueryType = "snapshot",
        order_by: Sequence[str | ReadOrder] | None = None,
        limit: int = 1_000,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Rows of the table, all of one version: by default the latest, or that of a version number, a time, or a name.

        `where` is a filter, such as `price > 10 AND day < DATE '2026-01-01'`; `partitions` are globs of partition
        paths, such as `day=2026-11-*`. With `meta` the rows also have the five meta columns. With `corrected_since`
        they have the change that retracted each row since the version: `_hw_corrected_by` (an offset) and
        `_hw_corrected_version`, None if no change has. `query_type` `read_optimized` reads base files only, without
        logs. `order_by` has names of columns, or `OrderBy` values for other orders. `limit` is the number of rows per
        request.
        """
        params = _row_params(
            version,
            as_of,
            tag,
            columns,
            where,
            partitions,
            meta,
            corrected_since,
            query_type,
            order_by,
            limit,
        )
        async for page in walk_list(
            partial(self._get, f"{dataset_path(dataset)}/rows"), pages.row_page, params
        ):
            for item in page.rows:
                yield item

    def row_tables(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        as_of: datetime | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        meta: bool = False,
        corrected_since: bool = False,
        query_type: QueryType = "snapshot",
        order_by: Sequence[str | ReadOrder] | None = None,
        limit: int = 50_000,
    ) -> AsyncGenerator[RowTable, None]:
        """As `rows`, in pages of Arrow tables."""
        fetch = partial(self._get, f"{dataset_path(dataset)}/rows", accept=ARROW_STREAM)
        params = _row_params(
            version,
            as_of,
            tag,
            columns,
            where,
            partitions,
            meta,
            corrected_since,
            query_type,
            order_by,
            limit,
        )
        return walk_list(fetch, pages.row_table, params)

    async def row(
        self,
        dataset: Dataset | str,
        *key: Any,
        version: int | None = None,
        as_of: datetime | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
        history: bool = False,
        since: Since | None = None,
        limit: int | None = None,
    ) -> FoundRow:
        """The row of a key, whose values are given in the order of the key fields.

        With `history` it has the changes of the key, too, from `since` on, at most `limit`, and a key without a row is
        no error. Raises Problem `row-not-found`.
        """
        more = {"history": "true" if history else None, "since": since, "limit": limit}
        answer = await self._get(
            f"{dataset_path(dataset)}/rows/{','.join(quote(value_text(value), safe='') for value in key)}",
            given({**_version_params(version, as_of, tag), "columns": _listed(columns), **more}),
        )
        return decoded(FoundRow, answer)

    async def lookup(
        self,
        dataset: Dataset | str,
        keys: Sequence[Mapping[str, Any]],
        *,
        version: int | None = None,
        as_of: datetime | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Lookup:
        """The rows of up to 1,000 keys, in the order of the keys, all of one version."""
        chosen = {**_version_params(version, as_of, tag), "columns": _listed(columns)}
        body = given({"keys": msgspec.Raw(rows_json(keys)), **chosen})
        answer = await self._send(
            "POST",
            f"{dataset_path(dataset)}/rows/lookup",
            body=msgspec.json.encode(body),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(Lookup, answer)


def _version_params(version: int | None, as_of: datetime | None, tag: str | None) -> dict[str, Any]:
    return {"version": version, "as_of": None if as_of is None else as_of.isoformat(), "tag": tag}


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _ordered(key: str | ReadOrder) -> str:
    """A column of an order as in a query string. An ending keeps a name with a comma or a colon whole."""
    if isinstance(key, str):
        return f"{key}:asc"
    return f"{key.column}:{'desc' if key.descending else 'asc'}"


def _start(since: FeedSince | None, version: int | None, at: datetime | None) -> dict[str, Any]:
    """The parameters of a position in the feed."""
    time = None if at is None else at.isoformat()
    return given({"since": since, "since_version": version, "since_time": time}) or {"since": 0}


def _feed_params(
    start: Mapping[str, Any],
    until: int | None,
    columns: Sequence[str] | None,
    where: str | None,
    partitions: Sequence[str] | None,
    limit: int,
) -> dict[str, Any]:
    chosen = {
        "until": until,
        "columns": _listed(columns),
        "where": where,
        "partitions": None if partitions is None else list(partitions),
    }
    return {**start, "limit": limit, **given(chosen)}


def _row_params(
    version: int | None,
    as_of: datetime | None,
    tag: str | None,
    columns: Sequence[str] | None,
    where: str | None,
    partitions: Sequence[str] | None,
    meta: bool,
    corrected_since: bool,
    query_type: QueryType,
    order_by: Sequence[str | ReadOrder] | None,
    limit: int,
) -> dict[str, Any]:
    chosen = {
        **_version_params(version, as_of, tag),
        "columns": _listed(columns),
        "where": where,
        "partitions": None if partitions is None else list(partitions),
        "meta": "true" if meta else None,
        "corrected_since": "true" if corrected_since else None,
        "query_type": None if query_type == "snapshot" else query_type,
        "order_by": None if order_by is None else [_ordered(each) for each in order_by],
    }
    return {"limit": limit, **given(chosen)}
