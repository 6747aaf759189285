"""Links to single objects of an S3 storage, which their holder can download for a short time without a credential.

Signed by AWS's own library (Signature Version 4 in the query), with the credentials that the storage is used with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from app.format.errors import StorageUnavailable

_REGION: Final = "us-east-1"
_SERVICE: Final = "s3"


class StorageLinks:
    """Makes links. `seconds`: the time for which one is valid."""

    def __init__(self, *, endpoint: str, bucket: str, prefix: str, region: str, seconds: int) -> None:
        """`endpoint`: the URL of the service under which its users reach it; empty for AWS."""
        self.seconds = seconds
        self._region = region
        # Buckets of AWS have host names, except those that no certificate could be for.
        by_name = not endpoint and "." not in bucket
        host = (
            f"https://{bucket}.s3.{region}.amazonaws.com" if by_name else f"https://s3.{region}.amazonaws.com"
        )
        self._base = (endpoint.rstrip("/") or host) + ("" if by_name else f"/{bucket}")
        self._prefix = prefix.strip("/")
        self._session = Session()

    def download(self, path: str, *, name: str, media_type: str) -> str:
        """The URL of a file. `name`, `media_type`: those that the response of the storage shall have.

        Raises StorageUnavailable if there are no credentials.
        """
        key = "/".join(part for part in (self._prefix, path) if part)
        shown = {
            "response-content-disposition": f'attachment; filename="{name}"',
            "response-content-type": media_type,
        }
        request = AWSRequest(
            method="GET", url=f"{self._base}/{quote(key)}?{urlencode(shown, quote_via=quote)}"
        )
        S3SigV4QueryAuth(self._credentials(), _SERVICE, self._region, expires=self.seconds).add_auth(request)
        return str(request.url)

    def _credentials(self) -> Credentials:
        """Those of the environment, or of the machine, which are renewed."""
        try:
            found = self._session.get_credentials()
        except BotoCoreError as error:
            raise StorageUnavailable(f"The storage has no credentials to sign links with: {error}") from error
        if found is None:
            raise StorageUnavailable("The storage has no credentials to sign links with")
        return found


def storage_links(
    storage_uri: str, *, endpoint: str, seconds: int, environment: Mapping[str, str]
) -> StorageLinks | None:
    """The links of a storage; None if it has none: a folder, or 0 seconds.

    `endpoint`: where users reach the storage; empty for where the service does.
    """
    parts = urlsplit(storage_uri)
    if parts.scheme != _SERVICE or not seconds:
        return None
    ours = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL", "")
    return StorageLinks(
        endpoint=endpoint or ours,
        bucket=parts.netloc,
        prefix=unquote(parts.path),
        region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or _REGION,
        seconds=seconds,
    )
