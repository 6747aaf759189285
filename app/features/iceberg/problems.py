"""The HTTP statuses of the errors of the Iceberg catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.iceberg.errors import TableNotCarried, UnsupportedGrant
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {UnsupportedGrant: 400, TableNotCarried: 422}
