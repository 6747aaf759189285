"""Composes the use cases of alerts."""

from __future__ import annotations

import os
import socket
from typing import Final
from urllib.parse import urlsplit

from app.core.feature.feature import Feature
from app.core.jobs.repository.processes import ProcessStore
from app.core.messaging.announcements import Announcements
from app.core.platform import Platform
from app.features.alerts.declared import ALERTS, Subject
from app.features.alerts.repository import AlertStore
from app.features.alerts.service.evaluate import Evaluate
from app.features.alerts.service.events import EVENTS_TASK, Send, SendEvents
from app.features.alerts.service.health import CheckService
from app.features.alerts.service.watch_tenants import HELD_SECONDS, TENANTS_TASK, WatchTenants
from app.features.monitoring.compose import dataset_faults, leads
from app.features.webhooks.compose import alert_feed
from app.features.webhooks.receivers.http_sender import HttpSender
from app.features.webhooks.receivers.signing import message_headers
from app.infra.files.probe import StorageProbe
from app.infra.outbound.addresses import Rules
from app.infra.outbound.signing_secret import key_of
from app.infra.runtime.loops import Loop
from app.infra.settings import Settings

_LEASE_SECONDS: Final = 60.0
# A worker may miss a round before another one evaluates the alerts of tenants.
_LEASE_ROUNDS: Final = 2.5


def evaluate(platform: Platform) -> Evaluate:
    """What evaluates all alerts over samples."""
    settings = platform.settings
    thresholds = {alert.setting: float(getattr(settings, alert.setting)) for alert in ALERTS if alert.setting}
    return Evaluate(
        ALERTS, AlertStore(platform.database), thresholds, worst_datasets=dataset_faults(platform).worst
    )


def check_service(platform: Platform) -> CheckService:
    """The checks of the whole service."""
    settings = platform.settings
    return CheckService(
        processes=ProcessStore(platform.database),
        alerts=AlertStore(platform.database),
        jobs=platform.stores.jobs,
        announcements=Announcements(settings.redis_url),
        probe=StorageProbe(platform.storage),
        poll_seconds=settings.poll_seconds,
        disk_free_bytes_min=settings.disk_free_bytes_min,
    )


def send_events(platform: Platform) -> SendEvents | None:
    """What sends the events of alerts; None if the operator has configured no receiver."""
    settings = platform.settings
    if not settings.alert_url:
        return None
    return SendEvents(
        store=AlertStore(platform.database),
        send=_sender(settings),
        leads=leads(platform, EVENTS_TASK, _owner(), lease_seconds=_LEASE_SECONDS),
    )


def watch_tenants(platform: Platform) -> WatchTenants:
    """What evaluates the alerts about datasets, for tenants that have webhooks for them."""
    feed = alert_feed(platform)
    round_seconds = platform.settings.metrics_seconds
    lease_seconds = _LEASE_ROUNDS * round_seconds
    return WatchTenants(
        alerts=[alert for alert in ALERTS if alert.about is not Subject.SERVICE],
        tenants=feed.tenants,
        states=feed.states,
        faults=dataset_faults(platform).read,
        change=feed.change,
        leads=leads(platform, TENANTS_TASK, _owner(), lease_seconds=lease_seconds),
        round_seconds=round_seconds,
        held_seconds=HELD_SECONDS,
    )


def _loops(platform: Platform) -> tuple[Loop, ...]:
    # Workers deliver the events, so they evaluate the alerts, too.
    every_seconds = platform.settings.metrics_seconds
    return (
        Loop("alerts of tenants", watch_tenants(platform).run, every_seconds=every_seconds, waits_first=True),
    )


def _owner() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"


def _sender(settings: Settings) -> Send:
    # The operator has chosen the host: it may be a private one.
    host = urlsplit(settings.alert_url).hostname or ""
    sender = HttpSender(
        rules=Rules.of([*settings.webhook_allow, host], http=True, setting="HEADWATER_WEBHOOK")
    )
    keys = [key_of(settings.alert_secret)] if settings.alert_secret else []

    def send(message_id: str, body: bytes) -> str | None:
        reply = sender.send(settings.alert_url, message_headers(keys, message_id, body), body)
        return None if reply.delivered else reply.error or str(reply.status)

    return send


FEATURE: Final[Feature[object]] = Feature(name="alerts", loops=_loops)
"""The alerts of tenants. Those of the service are evaluated in the process that gathers, and sent by the API."""
