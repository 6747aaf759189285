"""Links to single objects of an S3 storage: who has one can download or upload the object for a short time.

Signed by AWS's own library (Signature Version 4 in the query), with the credentials that the storage is used with.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from app.infra.errors import StorageUnavailable
from app.infra.files.s3.address import S3, s3_address


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
        response_headers = {
            "response-content-disposition": f'attachment; filename="{name}"',
            "response-content-type": media_type,
        }
        query = urlencode(response_headers, quote_via=quote)
        return self._signed(AWSRequest(method="GET", url=f"{self._base}/{quote(self._key(path))}?{query}"))

    def upload(self, path: str, *, size_bytes: int, sha256: str) -> tuple[str, dict[str, str]]:
        """The URL to PUT a file to, and the headers that the request must have. `sha256`: of its bytes, hexadecimal.

        The storage accepts only a body of this size, and one with this digest if it checks digests. Raises
        StorageUnavailable if there are no credentials.
        """
        headers = {
            "Content-Length": str(size_bytes),
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(sha256)).decode("ascii"),
        }
        request = AWSRequest(method="PUT", url=f"{self._base}/{quote(self._key(path))}", headers=headers)
        return self._signed(request), headers

    def _key(self, path: str) -> str:
        return "/".join(part for part in (self._prefix, path) if part)

    def _signed(self, request: AWSRequest) -> str:
        S3SigV4QueryAuth(self._credentials(), S3, self._region, expires=self.seconds).add_auth(request)
        return str(request.url)

    def _credentials(self) -> Credentials:
        """Those of the environment, or of the machine, which are renewed."""
        try:
            credentials = self._session.get_credentials()
        except BotoCoreError as error:
            raise StorageUnavailable(f"The storage has no credentials to sign links with: {error}") from error
        if credentials is None:
            raise StorageUnavailable("The storage has no credentials to sign links with")
        return credentials


def storage_links(
    storage_uri: str, *, endpoint: str, seconds: int, environment: Mapping[str, str]
) -> StorageLinks | None:
    """The links of a storage; None if it has none: a folder, or 0 seconds.

    `endpoint`: where users reach the storage; empty for where the service does.
    """
    address = s3_address(storage_uri, environment)
    if address is None or not seconds:
        return None
    return StorageLinks(
        endpoint=endpoint or address.endpoint,
        bucket=address.bucket,
        prefix=address.prefix,
        region=address.region,
        seconds=seconds,
    )
