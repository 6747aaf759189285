"""Values of verifications. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

import msgspec


class CreateVerification(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to verify."""

    version: int | None = None
    """The version to verify; by default the latest when the job runs."""
