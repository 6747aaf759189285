"""The API process: connects settings, store, files and services to the application, and serves it.

python -m app.main

With the argument `--held` it connects to no server before it gets a line on its standard input: its modules load while
the database is prepared.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Any, Final

import uvicorn
from litestar import Litestar
from litestar.types import ASGIApp

import app.infra.runtime.collector
import app.kernel.arrow  # noqa: F401  (before all that makes arrays)
from app.access.audit.repository import AuditStore
from app.access.audit.service import FLUSH_SECONDS, AccessCounts, Audit
from app.access.oidc.issuers import issuers_of
from app.access.oidc.verifier import TokenVerifier
from app.access.tenants.ports import ActorStore
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
from app.access.tenants.values import ActorKind
from app.core.feature.api import ApiProcess
from app.core.feature.feature import merged
from app.core.jobs.repository.outbox import OutboxStore
from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.service.relay import APART_SECONDS, Relay
from app.core.jobs.service.report_process import ReportProcess
from app.core.jobs.values import ProcessKind
from app.core.messaging.announcements import LISTEN_SECONDS, Announcements, listen
from app.core.messaging.outbox_sender import OutboxSender
from app.core.messaging.redis_limits import RENEW_SECONDS, RedisLimits
from app.core.messaging.work_queue import WorkQueue
from app.core.platform import Platform
from app.features.monitoring.service.exposition import exposition
from app.http.audited import AuditedRequests
from app.http.auth import RequireGrant
from app.http.bearer import BearerAuthentication
from app.http.credential_cache import Credentials
from app.http.limits.threads import PageThreads, Threads
from app.http.limits.unread_bytes import UnreadBytes
from app.http.limits.usage_counter import UsageCounter
from app.http.server.connection_limits import ConnectionLimits
from app.http.server.connections import Connections
from app.http.server.protocol import BoundedHttp
from app.http.server.server import Server
from app.http.server.turns import Turns
from app.http.waiting.subscriptions import Subscriptions
from app.infra.db.answers import BEAT_SECONDS, Answers
from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from app.infra.errors import Unavailable
from app.infra.logs import LogFormat, configure_logs
from app.infra.runtime.collector import start_collector
from app.infra.runtime.loops import Loop, Loops, Pulse
from app.infra.runtime.memory import keep_freed_memory
from app.infra.settings import Settings, SettingsError
from app.process.api import actors, dependencies, key_search, quota_use, resources, schemes
from app.process.application import application
from app.process.doctor import Examined, log_faults
from app.process.features import stores_on
from app.process.readiness import readiness
from app.process.samples import event_loops, sample_loop

_HELD: Final = "--held"
_STOP_SECONDS_MAX: Final = 10
# How often the smallest statement is sent to the database.
_ADMINISTRATION_CONNECTIONS_MAX: Final = 2
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
    servers = _Servers.of(settings)
    database, administration = servers.database, servers.administration
    relay = Relay(
        OutboxStore(database), OutboxSender(queue=servers.queue, announcements=servers.announcements)
    )
    loops = Loops()
    loops.add(_relaying(relay, settings))
    platform = Platform.on(settings, stores_on(database), relay.wake)
    threads, subscriptions = Threads(), Subscriptions()
    unread = UnreadBytes(settings.unread_bytes_max)
    draining = threading.Event()
    processes = ProcessStore(database)
    health = {"readiness": readiness(processes, servers.answers, draining)}
    samples, sample_rounds = sample_loop(platform)
    for loop in (sample_rounds, *event_loops(platform)):
        loops.add(loop)
    keys, audit = CredentialStore(database), AuditStore(database, administration)
    counts, counter = AccessCounts(audit), UsageCounter()
    tokens = _tokens(settings)
    actor_stores = actors(platform)
    credentials = _credentials(platform, actor_stores, keys, tokens, threads)
    process = ApiProcess(
        platform=platform,
        threads=threads,
        page_threads=PageThreads(unread),
        subscriptions=subscriptions,
        key_search=key_search(platform),
        administration=administration,
        credentials=credentials,
        tokens=tokens,
        on_credential_change=credentials.drop,
        quota_use=quota_use(platform),
    )
    services = merged(dependencies(process), health, {"metrics": exposition(samples)})
    background = _Background(
        servers=servers,
        loops=loops,
        report=ReportProcess.of(ProcessKind.API, settings, processes),
        follow=_follow(credentials, database, loops),
        subscriptions=subscriptions,
        uses=RecordUses(cache=credentials, actors=actor_stores),
        usage=RecordUsage(counter=counter, store=UsageStore(database)),
        counts=counts,
    )
    asgi_app = application(
        services,
        credentials,
        RequireGrant(resources=resources(platform), threads=threads),
        schemes(process),
        AuditedRequests(Audit(store=audit, counts=counts), threads),
        servers.limits,
        unread,
        counter.note,
        [background.lifespan(settings)],
        cors_origins=settings.cors_origins,
    )
    return Api(settings, asgi_app, subscriptions, draining, services, counts)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Servers:
    """The servers that an API process uses."""

    answers: Answers
    database: Database
    administration: Database | None
    """With the login that administers tenants and keys; None if the deployment has none."""
    queue: WorkQueue
    announcements: Announcements
    limits: RedisLimits

    @classmethod
    def of(cls, settings: Settings) -> _Servers:
        answers = Answers()
        return cls(
            answers=answers,
            database=Database(settings.database_url, application_name="headwater api", answers=answers),
            administration=_administration(settings, answers),
            queue=WorkQueue(settings.redis_url),
            announcements=Announcements(settings.redis_url),
            limits=RedisLimits(settings.redis_url),
        )

    async def close(self) -> None:
        await self.limits.close()
        self.queue.close()
        self.announcements.close()
        self.database.close()
        if self.administration is not None:
            self.administration.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Background:
    """What an API process does beside requests."""

    servers: _Servers
    loops: Loops
    report: ReportProcess
    follow: FollowCredentials
    subscriptions: Subscriptions
    uses: RecordUses
    usage: RecordUsage
    counts: AccessCounts

    def lifespan(self, settings: Settings) -> Callable[[Litestar], AbstractAsyncContextManager[None]]:
        """Runs all of it from the start of the application to its stop, then records what was counted."""
        loops = self.loops
        loops.add(Loop("database", self.servers.database.beat, every_seconds=BEAT_SECONDS))
        report = partial(_report, self.report, loops)
        loops.add(Loop("register", report, every_seconds=settings.poll_seconds))
        loops.add(Loop("uses of keys", self.uses.record, every_seconds=USED_SECONDS, waits_first=True))
        loops.add(Loop("usage of keys", self.usage.record, every_seconds=USAGE_SECONDS, waits_first=True))
        loops.add(Loop("audit", self.counts.flush, every_seconds=FLUSH_SECONDS, waits_first=True))
        if self.servers.administration is not None:
            store = AdministrationStore(self.servers.administration)
            loops.add(
                Loop("deletions of tenants", store.finish_deletions, every_seconds=settings.poll_seconds)
            )
        listening = loops.pulse("announcements", LISTEN_SECONDS)
        renewing = loops.pulse("waiting requests", RENEW_SECONDS)

        @asynccontextmanager
        async def run(_: Litestar) -> AsyncIterator[None]:
            notify, set_hears = self.subscriptions.notify, self.subscriptions.set_hears
            async with (
                _running(loops, self.follow.stop),
                _task("announcements", listen(settings.redis_url, notify, set_hears, listening.moved)),
                _task("waiting requests", self.servers.limits.renew(renewing.moved)),
            ):
                yield
            await asyncio.to_thread(self.uses.record)
            await asyncio.to_thread(self.usage.record)
            await asyncio.to_thread(self.counts.flush, everything=True)
            with suppress(Unavailable):
                await asyncio.to_thread(self.report.processes.ended, self.report.id)
            await self.servers.close()

        return run


def _report(report: ReportProcess, loops: Loops) -> None:
    report.run(loops.still())


def _credentials(
    platform: Platform,
    stores: Mapping[ActorKind, ActorStore],
    keys: CredentialStore,
    tokens: TokenVerifier | None,
    threads: Threads,
) -> Credentials:
    """What checks API keys and tokens."""
    bearer = BearerAuthentication(stores, keys.admit, tokens, threads)
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


def _tokens(settings: Settings) -> TokenVerifier | None:
    """What verifies tokens; None if no issuers are configured. Raises SettingsError."""
    try:
        issuers = issuers_of(settings.oidc_issuers)
    except ValueError as error:
        raise SettingsError(f"HEADWATER_OIDC_ISSUERS {error}") from None
    return TokenVerifier(issuers) if issuers else None


def _administration(settings: Settings, answers: Answers) -> Database | None:
    """Postgres with the login that administers tenants and keys; None if the deployment has none."""
    if not settings.admin_database_url:
        return None
    return Database(
        settings.admin_database_url,
        role=ADMINISTRATOR_ROLE,
        application_name="headwater administration",
        connections_max=_ADMINISTRATION_CONNECTIONS_MAX,
        answers=answers,
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


def server(api: Api, host: str, port: int) -> Server:
    """The server that serves the API; `run()` blocks until a signal."""
    settings = api.settings
    limits = _limits(settings)
    protocol: Any = partial(BoundedHttp, limits=limits, connections=Connections(limits), turns=Turns())
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
    """Serves until SIGINT or SIGTERM, unless its standard input ends while it is held."""
    try:
        settings = Settings.from_environment()
        configure_logs("api", LogFormat(settings.log_format))
        api = compose(settings)
    except SettingsError as error:
        sys.exit(f"headwater: {error}")
    if _HELD in sys.argv and not sys.stdin.buffer.readline():
        return
    # Threads decode and write while the event loop answers: it must not wait 5 ms, the default, for the lock each time.
    sys.setswitchinterval(0.001)
    keep_freed_memory()
    _allow_open_files(settings.connections_max)
    log_faults(settings, Examined.API)
    start_collector()
    server(api, settings.host, settings.port).run()


if __name__ == "__main__":
    main()
