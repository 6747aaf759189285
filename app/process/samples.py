"""The loop that gathers the samples of the service, and what is called with them."""

from __future__ import annotations

from app.core.platform import Platform
from app.features.monitoring.compose import gather
from app.features.monitoring.service.gather import Gather
from app.infra.runtime.loops import Loop


def sample_loop(platform: Platform) -> tuple[Gather, Loop]:
    """What gathers in this process while it leads, and its loop. The API and workers have one each."""
    samples = gather(platform)
    every_seconds = platform.settings.metrics_seconds
    return samples, Loop("metrics", samples.run, every_seconds=every_seconds, waits_first=True)
