"""Errors of requests that are not understood, whatever their resource."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError


class MethodNotAllowed(HeadwaterError):
    """The resource has no such method; the header Allow lists those it has."""

    code = "method-not-allowed"
    title = "This method is not allowed here"


class NotAcceptable(HeadwaterError):
    """None of the media types in Accept can be served; `available` lists those that can."""

    code = "not-acceptable"
    title = "None of the accepted media types is available"


class RangeNotSatisfiable(HeadwaterError):
    """The requested part of a file lies beyond its end; `size_bytes` is its size."""

    code = "range-not-satisfiable"
    title = "The file has no such part"


class MalformedRequest(HeadwaterError):
    """The request is not HTTP/1.1: its first line, its headers or the framing of its body."""

    code = "malformed-request"
    title = "The request is not valid HTTP"


class RequestTimeout(HeadwaterError):
    """The client stopped sending in the middle of a request. `seconds`: how long the service waited."""

    code = "request-timeout"
    title = "The request was not sent in time"


class UrlTooLong(HeadwaterError):
    """The URL exceeds the limit; `limit_bytes`."""

    code = "url-too-long"
    title = "The URL is too long"


class HeadersTooLarge(HeadwaterError):
    """The headers exceed a limit: `limit_bytes`, or `limit_headers`."""

    code = "headers-too-large"
    title = "The headers are too large"
