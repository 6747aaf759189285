"""All processes of `headwater up`: the embedded servers, the first key, the API and the worker."""

import contextlib
import json
import os
import shutil
import signal
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

import app
from app.infra.runtime.child import ChildSpec
from app.infra.runtime.data_directory import DataDirectory
from app.infra.runtime.java import java_home
from app.infra.runtime.loopback import LOOPBACK, free_port, is_free
from app.infra.runtime.postgres import EmbeddedPostgres
from app.infra.runtime.supervisor import StopRequestedError, Supervisor, to_standard_error
from app.infra.runtime.valkey import EmbeddedValkey
from app.infra.runtime.worker_register import WorkerRegister

READY_SECONDS_MAX = 180.0
# More than the checks of the whole service take.
_PROBE_SECONDS = 10.0
# How far the metrics of the worker are from the port of the API, and the greatest port of theirs that leaves room.
_METRICS_PORTS_ON = 1_000
_METRICS_PORT_MAX = 65_532
# Variables that commands need, too, beside those that only clients read.
_GIVEN = ("HEADWATER_", "AWS_")
# The folder whose note commands read.
_DEFAULT_FOLDER = ".headwater"
_OF_CLIENTS = ("HEADWATER_API_KEY", "HEADWATER_PROFILE", "HEADWATER_URL")
ADMIN_DATABASE_URL = "HEADWATER_ADMIN_DATABASE_URL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Programs:
    """The programs of the Python processes, and of the JVM of the worker, as arguments of a Python interpreter."""

    init: tuple[str, ...] = ("-m", "clients.cli", "init")
    api: tuple[str, ...] = ("-m", "app.main", "--held")
    jvm: tuple[str, ...] = ("-m", "workers.jvm")
    worker: tuple[str, ...] = ("-m", "workers.main")


class StackError(Exception):
    """The service cannot be started with these options. The message has the reason."""


def run(
    port: int,
    data: Path,
    environment: Mapping[str, str] = os.environ,
    programs: Programs = Programs(),
    *,
    new_operator_key: bool = False,
) -> None:
    """Starts all processes, monitors them until SIGINT or SIGTERM, and stops them.

    ``headwater.env`` and ``headwater.json`` in the data folder describe the running service.

    Servers whose URL the environment sets are used instead of embedded ones. Port 0 selects any free port.
    `new_operator_key`: creates another operator key for the data folder, which must not have one.

    Raises:
        StackError, StartError, DataDirectoryError, PostgresError, ValkeyError, JavaError, AccountError: the start
        failed; all started processes are stopped.
    """
    with DataDirectory(data) as directory:
        port = port or free_port()
        if not is_free(port):
            raise StackError(f"port {port} is in use; choose another with --port (make up PORT=…)")
        if new_operator_key:
            programs = _making_a_key(programs, directory)
        try:
            run_until_stopped(
                directory, lambda supervisor: _start(supervisor, directory, port, environment, programs)
            )
        finally:
            # A JVM cannot remove the folder that it runs in.
            shutil.rmtree(directory.jvms, ignore_errors=True)
    to_standard_error("stopped")


def run_until_stopped(directory: DataDirectory, start: Callable[[Supervisor], None]) -> None:
    """Starts processes, monitors them until SIGINT or SIGTERM, and stops them. Raises what `start` raises."""
    supervisor = Supervisor(directory.logs)
    with stopping_on_signals(supervisor):
        try:
            start(supervisor)
            supervisor.monitor()
        except StopRequestedError:
            pass
        finally:
            directory.remove_notes()
            to_standard_error("stopping")
            supervisor.stop()


def metrics_port(port: int) -> int:
    """The port on which the worker beside an API on this port serves its metrics; its processes use the next three."""
    return (
        port + _METRICS_PORTS_ON
        if port + _METRICS_PORTS_ON <= _METRICS_PORT_MAX
        else port - _METRICS_PORTS_ON
    )


def _start(
    supervisor: Supervisor,
    directory: DataDirectory,
    port: int,
    environment: Mapping[str, str],
    programs: Programs,
) -> None:
    variables = {
        "HEADWATER_DATA_DIR": str(directory.path),
        "HEADWATER_HOST": LOOPBACK,
        "HEADWATER_PORT": str(port),
        "HEADWATER_METRICS_PORT": environment.get("HEADWATER_METRICS_PORT", str(metrics_port(port))),
        "PYTHONPATH": _python_path(environment),
        "PYTHONUNBUFFERED": "1",
    }
    owner_url, administration = _start_servers(supervisor, directory, environment, variables)
    # The owner's URL is not passed on: the processes that serve requests use the role with row level security.
    serving = {**variables, "HEADWATER_MIGRATION_DATABASE_URL": variables["HEADWATER_DATABASE_URL"]}
    certificate = environment.get("HEADWATER_TLS_CERTIFICATE")
    api = _server("api", programs.api, serving | administration, partial(is_api_ready, port, certificate))
    # It loads its modules while the database is prepared.
    supervisor.start(replace(api, is_held=True), wait=False)
    supervisor.run(_initialisation(programs, directory, variables | administration, owner_url))
    supervisor.release("api")
    api_key = _operator_key(directory)
    java = {"JAVA_HOME": str(java_home(directory.path, environment))}
    # Commands find what the operator has set for the service: its storage, for one.
    given = {
        name: value
        for name, value in environment.items()
        if name.startswith(_GIVEN) and name not in _OF_CLIENTS
    }
    own = given | variables | administration | java | {"HEADWATER_MIGRATION_DATABASE_URL": owner_url}
    directory.write_settings({name: value for name, value in own.items() if not name.startswith("PYTHON")})
    register = WorkerRegister(
        variables["HEADWATER_DATABASE_URL"], environment.get("HEADWATER_DATABASE_PASSWORD")
    )
    # The worker cannot change tenants and keys: it has no login for that.
    without = dict.fromkeys(administration, variables["HEADWATER_DATABASE_URL"])
    _start_worker(
        supervisor,
        directory,
        programs,
        serving | without | java,
        register.has_worker,
    )
    supervisor.wait_ready("api")
    url = f"{'https' if certificate else 'http'}://{LOOPBACK}:{port}"
    directory.announce(url, api_key)
    to_standard_error(f"serving on {url}; the key is in {directory.note_file}; Ctrl-C stops all processes")
    if directory.path.resolve() != Path(_DEFAULT_FOLDER).resolve():
        # Commands find the service of the default folder by themselves.
        to_standard_error(f"`headwater login {url} < {directory.key_file}` lets commands find this service")
    to_standard_error("writes are accepted, and wait until the worker is ready")
    supervisor.wait_ready("worker")
    register.close()
    _report_console(port, api_key, certificate)


def _report_console(port: int, api_key: str, certificate: str | None) -> None:
    """Reports how to open the console: on a terminal a link that signs in, elsewhere the command that prints one.

    Others may read what is written to a file or a pipe, such as the log of a system.
    """
    link = sign_in_link(port, api_key, certificate) if sys.stderr.isatty() else None
    if link is None:
        to_standard_error("`headwater console` prints a link that signs in to the console")
    else:
        to_standard_error(f"console: {link} (signs in once, within 10 minutes)")


def _start_worker(
    supervisor: Supervisor,
    directory: DataDirectory,
    programs: Programs,
    variables: Mapping[str, str],
    ready: Callable[[], bool],
) -> None:
    """Starts the worker, and its JVM as another child, which outlives a worker that is killed."""
    jvms = str(directory.jvms)
    supervisor.start(
        ChildSpec(
            name="jvm",
            command=(sys.executable, "-P", *programs.jvm, jvms),
            environment=variables,
            input_stays_open=True,
        ),
        wait=False,
    )
    supervisor.start(_server("worker", (*programs.worker, jvms), variables, ready), wait=False)


def _start_servers(
    supervisor: Supervisor,
    directory: DataDirectory,
    environment: Mapping[str, str],
    variables: dict[str, str],
) -> tuple[str, dict[str, str]]:
    """Starts the servers that the environment does not specify, and adds their URLs.

    Returns the schema owner's URL, and the variable with the URL of the administration's login, if there is one.
    """
    admin_url = environment.get(ADMIN_DATABASE_URL)
    if database_url := environment.get("HEADWATER_DATABASE_URL"):
        owner_url = environment.get("HEADWATER_MIGRATION_DATABASE_URL", database_url)
    else:
        postgres = EmbeddedPostgres(directory.path)
        supervisor.start(postgres.child())
        postgres.provision()
        database_url, owner_url, admin_url = postgres.url, postgres.owner_url, postgres.admin_url
    redis_url = environment.get("HEADWATER_REDIS_URL")
    if not redis_url:
        valkey = EmbeddedValkey(directory.path)
        supervisor.start(valkey.child())
        redis_url = valkey.url
    variables["HEADWATER_DATABASE_URL"] = database_url
    variables["HEADWATER_REDIS_URL"] = redis_url
    return owner_url, {} if admin_url is None else {ADMIN_DATABASE_URL: admin_url}


def _initialisation(
    programs: Programs, directory: DataDirectory, variables: Mapping[str, str], owner_url: str
) -> ChildSpec:
    """The command that migrates the schema to head and creates the first key.

    It is a separate process, because the database toolkit would otherwise stay in the supervisor's memory.
    """
    return ChildSpec(
        name="init",
        command=(sys.executable, "-P", *programs.init, "--key-file", str(directory.key_file)),
        environment={**variables, "HEADWATER_MIGRATION_DATABASE_URL": owner_url},
        ready_seconds_max=READY_SECONDS_MAX,
    )


def _making_a_key(programs: Programs, directory: DataDirectory) -> Programs:
    if directory.key_file.exists():
        raise StackError(f"{directory.key_file} has a key already: move it away before a new one is made")
    return replace(programs, init=(*programs.init, "--new-operator-key"))


def _operator_key(directory: DataDirectory) -> str:
    try:
        return directory.key_file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise StackError(
            f"{directory.key_file} is missing, but the database already has an operator key, of which it "
            "stores only a digest. Bring the key back to that file (mode 0600), or make another one with "
            "`headwater up --new-operator-key`, and revoke the lost one"
        ) from None


def _server(
    name: str, arguments: tuple[str, ...], variables: Mapping[str, str], ready: Callable[[], bool]
) -> ChildSpec:
    return ChildSpec(
        name=name,
        command=(sys.executable, "-P", *arguments),
        environment=variables,
        ready=ready,
        ready_seconds_max=READY_SECONDS_MAX,
        # A worker ends its running step or releases the job, and the API its open requests.
        stop_seconds_max=20.0,
    )


def is_api_ready(port: int, certificate: str | None = None) -> bool:
    """Whether the API can take requests: it has found its database. Writes may still wait for a worker.

    `certificate`: the file with the certificate of an API that serves HTTPS. Its names are those of clients' URLs, so
    they are not compared with the loopback address.
    """
    status, _ = _answer(port, certificate, "GET", "/health/ready", {})
    return status == 200


def is_worker_ready(port: int, api_key: str, certificate: str | None = None) -> bool:
    """Whether the API knows of a live worker. `api_key`: an operator's. `certificate`: as of `is_api_ready`."""
    status, body = _answer(port, certificate, "GET", "/health/service", _authorized(api_key))
    if status not in (200, 503):
        return False
    try:
        return bool(json.loads(body)["checks"]["workers"]["ok"])
    # A 503 of the database has no checks.
    except (ValueError, KeyError):
        return False


def sign_in_link(port: int, api_key: str, certificate: str | None = None) -> str | None:
    """A link that signs in to the console once, as this key; None if the API does not make one.

    `certificate`: as of `is_api_ready`.
    """
    _, body = _answer(port, certificate, "POST", "/sign-in-links", _authorized(api_key))
    try:
        return str(json.loads(body)["url"])
    except (ValueError, KeyError, TypeError):
        return None


def _authorized(api_key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {api_key}"}


def _answer(
    port: int, certificate: str | None, method: str, path: str, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    """The status and the body; 0 where nothing answers."""
    connection = HTTPConnection(LOOPBACK, port, timeout=_PROBE_SECONDS)
    try:
        if certificate is not None:
            context = _trusting(certificate)
            connection = HTTPSConnection(LOOPBACK, port, timeout=_PROBE_SECONDS, context=context)
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()


def _trusting(certificate: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _python_path(environment: Mapping[str, str]) -> str:
    """A PYTHONPATH with which children import this code in any folder; Spark passes it on to its workers."""
    root = str(Path(app.__file__).parent.parent) if app.__file__ else ""
    return os.pathsep.join(part for part in (root, environment.get("PYTHONPATH")) if part)


@contextlib.contextmanager
def stopping_on_signals(supervisor: Supervisor) -> Iterator[None]:
    """Converts SIGINT and SIGTERM, also a second one, into an orderly stop of the supervisor."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: supervisor.request_stop()) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
