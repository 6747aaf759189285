"""Which rules the service has already."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Features:
    """`laws`: rows are applied one by one, and deletes leave tombstones."""

    laws: bool


FEATURES: Final = Features(laws=os.environ.get("LAWS_FEATURES", "") == "laws")
