"""The API process: connects settings, store, files and services to the application, and serves it.

python -m app.main
"""

from __future__ import annotations

import asyncio
import math
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from types import FrameType
from typing import Any, Final

import uvicorn
from litestar import Litestar
from litestar.types import ASGIApp

import app.kernel.arrow  # noqa: F401  (before all that makes arrays)
from app.access.audit.repository import AuditStore
from app.access.audit.service import FLUSH_SECONDS, AccessCounts, Audit
from app.access.oidc.issuers import issuers_of
from app.access.oidc.verifier import TokenVerifier
from app.access.tenants.repository.administration import AdministrationStore
from app.access.tenants.repository.credential_changes import CREDENTIALS_CHANNEL
from app.access.tenants.repository.credentials import USED_SECONDS, CredentialStore
from app.access.tenants.repository.usage import UsageStore
from app.access.tenants.service import (
    FOLLOW_SECONDS,
    USAGE_SECONDS,
    FollowCredentials,
    RecordUsage,
    RecordUses,
)
from app.core.feature.api import ApiProcess
from app.core.feature.feature import merged
from app.core.jobs.repository.outbox import OutboxStore
from app.core.jobs.repository.workers import WorkerStore
from app.core.jobs.service.relay import APART_SECONDS, Relay
from app.core.messaging.announcements import LISTEN_SECONDS, Announcements, listen
from app.core.messaging.outbox_sender import OutboxSender
from app.core.messaging.redis_limits import RENEW_SECONDS, RedisLimits
from app.core.messaging.work_queue import WorkQueue
from app.core.platform import Platform
from app.http.audited import AuditedRequests
from app.http.auth import RequireGrant
from app.http.bearer import BearerAuthentication
from app.http.credentials import Credentials
from app.http.limits.threads import PageThreads, Threads
from app.http.limits.unread_bytes import UnreadBytes
from app.http.limits.usage_counter import UsageCounter
from app.http.server.connection_limits import ConnectionLimits
from app.http.server.connections import Connections
from app.http.server.protocol import BoundedHttp
from app.http.waiting.subscriptions import Subscriptions
from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from app.infra.logs import configure_logs
from app.infra.runtime.loops import Loop, Loops, Pulse
from app.infra.runtime.memory import keep_freed_memory
from app.infra.settings import Settings, SettingsError
from app.process.api import dependencies, key_search, quota_use, resources
from app.process.application import application
from app.process.doctor import Examined, log_faults
from app.process.features import stores_on
from app.process.readiness import readiness

_STOP_SECONDS_MAX: Final = 10
_ADMINISTRATION_CONNECTIONS_MAX: Final = 2
# A tick of the server is a tenth of a second.
_TICKS_PER_CHECK: Final = 10
_CLOSE: Final = (b"connection", b"close")
# Open files beside connections: of storage, of the database, of libraries.
_OTHER_FILES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Api:
    """The settings, the application, the requests that a stop must wake, the dependencies of handlers, the counts of
    requests. `draining`: set while the process still serves and reports that it is not ready.
    """

    settings: Settings
    app: ASGIApp
    subscriptions: Subscriptions
    draining: threading.Event
    dependencies: Mapping[str, object]
    counts: AccessCounts


def compose(settings: Settings) -> Api:
    """Composes the application. Connects to no server yet: connections are opened when first needed.

    Raises SettingsError.
    """
    database = Database(settings.database_url, application_name="headwater api")
    queue = WorkQueue(settings.redis_url)
    announcements = Announcements(settings.redis_url)
    relay = Relay(OutboxStore(database), OutboxSender(queue=queue, announcements=announcements))
    loops = Loops()
    loops.add(_relaying(relay, settings))
    listening = loops.pulse("announcements", LISTEN_SECONDS)
    platform = Platform.on(settings, stores_on(database), relay.wake)
    threads, subscriptions = Threads(), Subscriptions()
    unread = UnreadBytes(settings.unread_bytes_max)
    draining = threading.Event()
    checks = readiness(platform, WorkerStore(database), announcements, loops, draining)
    keys, administration = CredentialStore(database), _administration(settings)
    audit = AuditStore(database, administration)
    counts = AccessCounts(audit)
    credentials = _credentials(platform, keys, threads)
    process = ApiProcess(
        platform=platform,
        threads=threads,
        page_threads=PageThreads(unread),
        subscriptions=subscriptions,
        key_search=key_search(platform),
        administration=administration,
        on_credential_change=credentials.drop,
        quota_use=quota_use(platform),
    )
    services = merged(dependencies(process), {"readiness": checks})
    follow = _follow(credentials, database, loops)
    uses = RecordUses(cache=credentials, store=keys)
    limits, counter = RedisLimits(settings.redis_url), UsageCounter()
    usage = RecordUsage(counter=counter, store=UsageStore(database))
    _add_recorders(loops, uses, usage, counts)
    _add_deletions(loops, administration, settings.poll_seconds)
    renewing = loops.pulse("waiting requests", RENEW_SECONDS)

    @asynccontextmanager
    async def beside(_: Litestar) -> AsyncIterator[None]:
        async with (
            _running(loops, follow.stop),
            _task(
                "announcements",
                listen(settings.redis_url, subscriptions.notify, subscriptions.set_hears, listening.moved),
            ),
            _task("waiting requests", limits.renew(renewing.moved)),
        ):
            yield
        await asyncio.to_thread(uses.record)
        await asyncio.to_thread(usage.record)
        await asyncio.to_thread(counts.flush, everything=True)
        await limits.close()
        queue.close()
        announcements.close()
        database.close()
        if administration is not None:
            administration.close()

    grants = RequireGrant(resources=resources(platform), threads=threads)
    recorder = AuditedRequests(Audit(store=audit, counts=counts), threads)
    origins = settings.cors_origins
    asgi_app = application(
        services, credentials, grants, recorder, limits, unread, counter.note, [beside], cors_origins=origins
    )
    return Api(settings, asgi_app, subscriptions, draining, services, counts)


def _credentials(platform: Platform, keys: CredentialStore, threads: Threads) -> Credentials:
    """What checks API keys and tokens. Raises SettingsError."""
    tokens = _tokens(platform.settings)
    bearer = BearerAuthentication(keys.authenticate, keys.admit, tokens, threads)
    catalog = platform.stores.catalog

    async def name_of(tenant_id: str, dataset_id: str) -> str | None:
        return next(iter(await threads.run(catalog.names, tenant_id, [dataset_id])), None)

    return Credentials(bearer.authenticate, name_of)


def _relaying(relay: Relay, settings: Settings) -> Loop:
    every, apart = settings.poll_seconds, APART_SECONDS
    return Loop("relay", relay.run, every_seconds=every, apart_seconds=apart, woken=relay.woken)


def _follow(credentials: Credentials, database: Database, loops: Loops) -> FollowCredentials:
    """What drops changed credentials from the cache, as one of the loops."""
    pulse = Pulse("credentials", FOLLOW_SECONDS)
    follow = FollowCredentials(
        cache=credentials,
        listening=lambda: database.listening(CREDENTIALS_CHANNEL),
        stop=threading.Event(),
        on_answer=pulse.moved,
    )
    loops.add(Loop("credentials", follow.run, every_seconds=FOLLOW_SECONDS, pulse=pulse))
    return follow


def _add_recorders(loops: Loops, uses: RecordUses, usage: RecordUsage, counts: AccessCounts) -> None:
    loops.add(Loop("uses of keys", uses.record, every_seconds=USED_SECONDS, waits_first=True))
    loops.add(Loop("usage of keys", usage.record, every_seconds=USAGE_SECONDS, waits_first=True))
    loops.add(Loop("audit", counts.flush, every_seconds=FLUSH_SECONDS, waits_first=True))


def _add_deletions(loops: Loops, administration: Database | None, every_seconds: float) -> None:
    if administration is not None:
        store = AdministrationStore(administration)
        loops.add(Loop("deletions of tenants", store.finish_deletions, every_seconds=every_seconds))


def _tokens(settings: Settings) -> TokenVerifier | None:
    """What verifies tokens; None if no issuers are configured. Raises SettingsError."""
    try:
        issuers = issuers_of(settings.oidc_issuers)
    except ValueError as error:
        raise SettingsError(f"HEADWATER_OIDC_ISSUERS {error}") from None
    return TokenVerifier(issuers) if issuers else None


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
async def _running(loops: Loops, stop: threading.Event) -> AsyncIterator[None]:
    loops.start()
    try:
        yield
    finally:
        stop.set()
        await asyncio.to_thread(loops.stop, _STOP_SECONDS_MAX)


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
    """Ends connections whose clients make no progress, and makes waiting requests return before it waits for them.

    After SIGTERM it serves on for a time: it is not ready, so that load balancers send requests elsewhere, and closes
    each connection after its next response, so that proxies keep none. Then it accepts no more. A second signal, and
    SIGINT, end that time.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        subscriptions: Subscriptions,
        draining: threading.Event,
        drain_seconds: float,
    ) -> None:
        super().__init__(config)
        self._wakeups = subscriptions
        self._draining = draining
        self._drain_seconds = drain_seconds
        self._drained_at = math.inf

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM and self._drain_seconds and not self._draining.is_set():
            self._drained_at = time.monotonic() + self._drain_seconds
            self._draining.set()
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if time.monotonic() >= self._drained_at:
            self._drained_at = math.inf
            super().handle_exit(signal.SIGTERM, None)
        if counter % _TICKS_PER_CHECK == 0:
            now = asyncio.get_running_loop().time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, BoundedHttp):
                    connection.check(now)
        ends = await super().on_tick(counter)
        headers = self.server_state.default_headers
        # The server makes a new list once per second.
        if self._draining.is_set() and _CLOSE not in headers:
            self.server_state.default_headers = [*headers, _CLOSE]
        return ends

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._wakeups.close()
        await super().shutdown(sockets)


def server(api: Api, host: str, port: int) -> Server:
    """The server that serves the API; `run()` blocks until a signal."""
    settings = api.settings
    limits = _limits(settings)
    protocol: Any = partial(BoundedHttp, limits=limits, connections=Connections(limits))
    config = uvicorn.Config(
        api.app,
        host=host,
        port=port,
        loop="uvloop",
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        # The application writes its own line for each request.
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        # Longer than most clients keep a connection, so that the client closes it.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_STOP_SECONDS_MAX,
    )
    return Server(config, api.subscriptions, api.draining, settings.drain_seconds)


def _limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        header_bytes_max=settings.header_bytes_max,
        header_seconds=settings.header_seconds,
        request_stall_seconds=settings.request_stall_seconds,
        response_stall_seconds=settings.response_stall_seconds,
        connections_max=settings.connections_max,
        address_connections_max=settings.address_connections_max,
        proxies=tuple(ip_network(each) for each in settings.trusted_proxies),
    )


def _allow_open_files(connections: int) -> None:
    """Raises the soft limit of open files, as far as the hard limit permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
        )


def main() -> None:
    """Serves until SIGINT or SIGTERM."""
    configure_logs()
    try:
        settings = Settings.from_environment()
        api = compose(settings)
    except SettingsError as error:
        sys.exit(f"headwater: {error}")
    # Threads decode and write while the event loop answers: it must not wait 5 ms, the default, for the lock each time.
    sys.setswitchinterval(0.001)
    keep_freed_memory()
    _allow_open_files(settings.connections_max)
    log_faults(settings, Examined.API)
    server(api, settings.host, settings.port).run()


if __name__ == "__main__":
    main()
