"""The loops that gather the samples of the service, evaluate alerts over them, and send the events of these."""

from __future__ import annotations

from typing import Final

from app.core.platform import Platform
from app.features.alerts.compose import evaluate, send_events
from app.features.monitoring.compose import gather
from app.features.monitoring.service.gather import Gather
from app.infra.runtime.loops import Loop

# How often an API reads which events were not sent: one query of a small table.
_EVENTS_SECONDS: Final = 2.0


def sample_loop(platform: Platform) -> tuple[Gather, Loop]:
    """What gathers in this process while it leads, and its loop. The API and workers have one each."""
    samples = gather(platform, [evaluate(platform)])
    every_seconds = platform.settings.metrics_seconds
    return samples, Loop("metrics", samples.run, every_seconds=every_seconds, waits_first=True)


def event_loops(platform: Platform) -> list[Loop]:
    """The loop that sends the events of alerts, if they have a receiver. Each API has one."""
    events = send_events(platform)
    every_seconds = min(_EVENTS_SECONDS, platform.settings.metrics_seconds)
    return [] if events is None else [Loop("alert events", events.run, every_seconds=every_seconds)]
