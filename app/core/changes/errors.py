"""Errors of the feed."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class OffsetAhead(HeadwaterError):
    """`since` is beyond the head: the position belongs to another dataset, or to one that was recreated."""

    code = "offset-ahead"
    title = "The position is beyond the end of the feed"


class NoFeed(HeadwaterError):
    """The request needs a feed, and the dataset has no feed (`changelog.producer: none`)."""

    code = "no-feed"
    title = "The dataset has no feed"
