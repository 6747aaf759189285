"""Composes what monitoring adds to every process."""

from __future__ import annotations

from typing import Final

from app.core.feature.feature import Feature

FEATURE: Final[Feature[object]] = Feature(name="monitoring")
