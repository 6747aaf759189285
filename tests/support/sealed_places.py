"""Sealed places without a database."""

from __future__ import annotations

from typing import Final

from app.features.objects.service.secrets import KnownSecrets
from app.features.reads.service.sealed_places import SealedPlaces

SEALED_PLACES: Final = SealedPlaces(secrets=KnownSecrets(lambda: {1: b"s" * 32}))
