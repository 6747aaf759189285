"""Where an S3 storage is: its bucket, and the service that has it, as the usual variables of AWS name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

S3: Final = "s3"
_REGION: Final = "us-east-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Address:
    """`endpoint`: the URL of the service; empty for AWS. `prefix`: of all keys, without slashes around it."""

    endpoint: str
    bucket: str
    prefix: str
    region: str


def s3_address(storage_uri: str, environment: Mapping[str, str]) -> S3Address | None:
    """The address of `s3://bucket/prefix`; None for a folder."""
    parts = urlsplit(storage_uri)
    if parts.scheme != S3:
        return None
    return S3Address(
        endpoint=environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL", ""),
        bucket=parts.netloc,
        prefix=unquote(parts.path).strip("/"),
        region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or _REGION,
    )
