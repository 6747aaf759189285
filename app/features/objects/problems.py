"""The HTTP statuses of the errors of requests in S3's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.objects.errors import ObjectRequestUnsupported, TableKeyRefused, TablesReadOnly
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    TableKeyRefused: 403,
    TablesReadOnly: 403,
    ObjectRequestUnsupported: 501,
}
