"""The API process: connects settings, store, files and services to the application, and serves it.

python -m app.main
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from litestar import Litestar
from litestar.types import ASGIApp

import app.arrow  # noqa: F401  (before all that makes arrays)
from app.administration.compose import dependencies as administering
from app.application import application
from app.composition import stores_on
from app.db.session import ADMINISTRATOR_ROLE, Database
from app.http.auth import require_grant
from app.http.credentials import Credentials
from app.http.dependencies import merged
from app.http.threads import Threads
from app.http.usage_counter import UsageCounter
from app.http.waiting.subscriptions import Subscriptions
from app.jobs.repository.outbox import OutboxStore
from app.jobs.repository.workers import WorkerStore
from app.jobs.service.relay import Relay
from app.messaging.announcements import Announcements, listen
from app.messaging.limits import RedisLimits
from app.messaging.outbox_sender import OutboxSender
from app.messaging.work_queue import WorkQueue
from app.platform import Platform
from app.readiness import readiness
from app.runtime.memory import keep_freed_memory
from app.services import datasets_of, dependencies, quota_use
from app.settings import Settings, SettingsError
from app.tenants.repository.administration import CREDENTIALS_CHANNEL
from app.tenants.repository.credentials import CredentialStore
from app.tenants.repository.usage import UsageStore
from app.tenants.service import FollowCredentials, RecordUsage, RecordUses

_STOP_SECONDS_MAX: Final = 10
_ADMINISTRATION_CONNECTIONS_MAX: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Api:
    """The application, the requests that a stop must wake, and the dependencies of the handlers."""

    app: ASGIApp
    subscriptions: Subscriptions
    dependencies: Mapping[str, object]


def compose(settings: Settings) -> Api:
    """Composes the application. Connects to no server yet: connections are opened when first needed."""
    database = Database(settings.database_url, application_name="headwater api")
    queue = WorkQueue(settings.redis_url)
    announcements = Announcements(settings.redis_url)
    relay = Relay(
        OutboxStore(database),
        OutboxSender(queue=queue, announcements=announcements),
        poll_seconds=settings.poll_seconds,
    )
    platform = Platform.on(settings, stores_on(database), relay.wake)
    threads, subscriptions = Threads(), Subscriptions()
    checks = readiness(settings, WorkerStore(database), announcements)
    keys, administration = CredentialStore(database), _administration(settings)
    provided = merged(
        dependencies(platform, threads, subscriptions),
        administering(keys, administration, platform, quota_use(platform)),
        {"readiness": checks},
    )
    credentials = Credentials(keys.authenticate, threads)
    limits, used = RedisLimits(settings.redis_url), UsageCounter()
    follow = FollowCredentials(cache=credentials, listening=lambda: database.listening(CREDENTIALS_CHANNEL))
    uses = RecordUses(cache=credentials, store=keys)
    usage = RecordUsage(counted=used, store=UsageStore(database))

    @asynccontextmanager
    async def beside(_: Litestar) -> AsyncIterator[None]:
        async with (
            _thread("relay", relay.run, relay.wake),
            _thread("credentials", follow.run),
            _thread("uses of keys", uses.run),
            _thread("usage of keys", usage.run),
            _task("announcements", listen(settings.redis_url, subscriptions.notify)),
            _task("waiting requests", limits.renew()),
        ):
            yield
        await limits.close()
        queue.close()
        announcements.close()
        database.close()
        if administration is not None:
            administration.close()

    grants = require_grant(datasets_of(platform), threads)
    served = application(provided, credentials, grants, limits, used.note, [beside])
    return Api(app=served, subscriptions=subscriptions, dependencies=provided)


def _administration(settings: Settings) -> Database | None:
    """Postgres with the login that administers tenants and keys; None if the deployment has none."""
    if not settings.admin_database_url:
        return None
    return Database(
        settings.admin_database_url,
        role=ADMINISTRATOR_ROLE,
        application_name="headwater administration",
        connections_max=_ADMINISTRATION_CONNECTIONS_MAX,
    )


@asynccontextmanager
async def _thread(
    name: str, run: Callable[[threading.Event], None], wake: Callable[[], None] = lambda: None
) -> AsyncIterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        wake()
        await asyncio.to_thread(thread.join, _STOP_SECONDS_MAX)


@asynccontextmanager
async def _task(name: str, run: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    running = asyncio.create_task(run, name=name)
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


class Server(uvicorn.Server):
    """Makes waiting requests return before it waits for them to end."""

    def __init__(self, config: uvicorn.Config, subscriptions: Subscriptions) -> None:
        super().__init__(config)
        self._wakeups = subscriptions

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._wakeups.close()
        await super().shutdown(sockets)


def server(api: Api, host: str, port: int) -> Server:
    """The server that serves the API; `run()` blocks until a signal."""
    config = uvicorn.Config(
        api.app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        # The application writes its own line for each request.
        access_log=False,
        server_header=False,
        # Longer than most clients keep a connection, so that the client closes it.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_STOP_SECONDS_MAX,
    )
    return Server(config, api.subscriptions)


def configure_logging() -> None:
    """Logs to standard error, one line per event, with its time."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        force=True,
    )


def main() -> None:
    """Serves until SIGINT or SIGTERM."""
    configure_logging()
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"headwater: {error}")
    # Threads decode and write while the event loop answers: it must not wait 5 ms, the default, for the lock each time.
    sys.setswitchinterval(0.001)
    keep_freed_memory()
    server(compose(settings), settings.host, settings.port).run()


if __name__ == "__main__":
    main()
