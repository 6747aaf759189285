"""`headwater up` with real servers and small stand-ins for the processes that this folder does not test."""

import json
import os
import pty
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from app.infra.runtime.data_directory import DataDirectory, DataDirectoryError
from app.infra.runtime.loopback import free_port
from app.infra.runtime.stack import StackError, run

ROOT = Path(__file__).parents[3]

INIT = """
import os, sys
from pathlib import Path
from app.infra.runtime.private_file import write_private
import psycopg
with psycopg.connect(os.environ["HEADWATER_MIGRATION_DATABASE_URL"]) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS started (n int)")
    if connection.execute("SELECT FROM pg_roles WHERE rolname = 'headwater_relay'").fetchone() is None:
        connection.execute("CREATE ROLE headwater_relay")
        connection.execute("GRANT headwater_relay TO headwater_app")
        connection.execute("CREATE TABLE workers (kind text, started_at timestamptz DEFAULT clock_timestamp())")
        connection.execute("GRANT SELECT, INSERT ON workers TO headwater_relay")
    first = connection.execute("SELECT count(*) FROM started").fetchone() == (0,)
    connection.execute("INSERT INTO started VALUES (1)")
if first:
    write_private(Path(sys.argv[sys.argv.index("--key-file") + 1]), "hw_first")
"""
API = """
import json, os, sys
from pathlib import Path
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/health/ready":
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        names = [name for name in os.environ if name.startswith("HEADWATER_")]
        given = {name: os.environ[name] for name in names}
        self.wfile.write(json.dumps({"pid": os.getpid(), "has_key": has_key, **given}).encode())
    def do_POST(self):
        key = self.headers["Authorization"].removeprefix("Bearer ")
        self.send_response(201)
        self.end_headers()
        self.wfile.write(json.dumps({"url": f"http://{self.headers['Host']}{self.path}?as={key}"}).encode())
assert sys.stdin.readline() == "\\n"
has_key = (Path(os.environ["HEADWATER_DATA_DIR"]) / "operator.key").exists()
HTTPServer((os.environ["HEADWATER_HOST"], int(os.environ["HEADWATER_PORT"])), Handler).serve_forever()
"""
WORKER = """
import json, os, time
from pathlib import Path
import psycopg
given = {name: os.environ[name] for name in os.environ if name.startswith("HEADWATER_") or name == "JAVA_HOME"}
with psycopg.connect(os.environ["HEADWATER_DATABASE_URL"], options="-c role=headwater_relay") as connection:
    connection.execute("INSERT INTO workers (kind) VALUES ('worker')")
(Path(os.environ["HEADWATER_DATA_DIR"]) / "worker.json").write_text(json.dumps(given))
time.sleep(1000)
"""


JVM = """
import sys
sys.stdin.read()
"""


class Service:
    """One `headwater up` as a process of its own."""

    def __init__(self, data, init=INIT, stderr=subprocess.PIPE):
        self.data, self.port = data, free_port()
        program = f"""
from pathlib import Path
from app.infra.runtime.stack import Programs, run
programs = Programs(
    init=("-c", {init!r}), api=("-c", {API!r}), jvm=("-c", {JVM!r}), worker=("-c", {WORKER!r})
)
run({self.port}, Path({str(data)!r}), programs=programs)
"""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        # Of the operator: commands need it, too.
        environment |= {
            "HEADWATER_STORAGE_URI": f"{data.as_uri()}/elsewhere",
            "HEADWATER_API_KEY": "hw_client",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, stderr=stderr, text=True
        )

    def note(self):
        """The service's own note; one that a killed predecessor left may be there for a moment."""

        def own():
            note = json.loads((self.data / "headwater.json").read_text())
            return note if note["pid"] == self.process.pid else None

        return self.eventually(own)

    def request_environment(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/ready", timeout=2) as reply:
            return json.load(reply)

    def eventually(self, check, seconds=30.0):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                if found := check():
                    return found
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError("it did not happen in time")

    def end(self, number=signal.SIGTERM):
        """Stop; the exit code, all output, and the processes that it left behind."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        output = self.process.communicate(timeout=30)[1]
        _, left = psutil.wait_procs(children, timeout=5)
        return self.process.returncode, output, left


@pytest.fixture
def start(tmp_path):
    services = []

    def start(**options):
        services.append(Service(tmp_path / "data", **options))
        return services[-1]

    yield start
    for service in services:
        if service.process.poll() is None:
            service.end()
        if service.process.stderr is not None:
            service.process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stack_announces_itself_and_stops_cleanly(start, number):
    service = start()
    note = service.note()
    settings = DataDirectory(service.data).settings()
    assert settings["HEADWATER_STORAGE_URI"].endswith("/elsewhere")
    assert "HEADWATER_API_KEY" not in settings
    assert note == {
        "url": f"http://127.0.0.1:{service.port}",
        "api_key": "hw_first",
        "pid": service.process.pid,
    }
    assert stat.S_IMODE((service.data / "headwater.json").stat().st_mode) == 0o600
    environment = service.request_environment()
    with psycopg.connect(environment["HEADWATER_DATABASE_URL"]) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("headwater_app",)
    assert environment["HEADWATER_MIGRATION_DATABASE_URL"] == environment["HEADWATER_DATABASE_URL"]
    with psycopg.connect(environment["HEADWATER_ADMIN_DATABASE_URL"]) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("headwater_admin",)
    assert environment["has_key"], "the API served before the database was prepared"
    of_worker = json.loads(service.eventually((service.data / "worker.json").read_text))
    assert of_worker["HEADWATER_ADMIN_DATABASE_URL"] == environment["HEADWATER_DATABASE_URL"]
    with redis.Redis.from_url(environment["HEADWATER_REDIS_URL"]) as client:
        assert client.ping()
    assert (Path(of_worker["JAVA_HOME"]) / "bin" / "java").exists()

    def found_its_worker():
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'headwater up'"
        with psycopg.connect(environment["HEADWATER_ADMIN_DATABASE_URL"]) as connection:
            return connection.execute(query).fetchone() == (0,)

    service.eventually(found_its_worker)
    code, output, left = service.end(number)
    assert (
        output.index("serving on") < output.index("writes are accepted") < output.index("worker is ready (")
    )
    assert (code, left) == (0, [])
    login = f"`headwater login http://127.0.0.1:{service.port} < {service.data / 'operator.key'}`"
    assert output.index("serving on") < output.index(login) < output.index("writes are accepted")
    assert output.splitlines()[-2:] == ["headwater: stopping", "headwater: stopped"]
    assert not (service.data / "headwater.json").exists()


def test_link_that_signs_in_is_shown_on_a_terminal_and_in_no_log(start):
    service = start()
    service.note()
    link = f"http://127.0.0.1:{service.port}/sign-in-links?as=hw_first"
    lines = []
    for line in service.process.stderr:
        lines.append(line)
        if "`headwater console` prints a link" in line:
            break
    _, rest, _ = service.end()
    assert "prints a link" in lines[-1]
    assert link not in "".join([*lines, rest])

    screen, terminal = pty.openpty()
    try:
        service = start(stderr=terminal)
        shown = service.eventually(lambda: _shown(screen, until="10 minutes"))
        service.end()
    finally:
        os.close(screen)
        os.close(terminal)
    assert f"console: http://127.0.0.1:{service.port}/sign-in-links?as=hw_first" in shown


def _shown(screen, until):
    """What a terminal shows until it shows a text."""
    text = ""
    while until not in text:
        text += os.read(screen, 4096).decode()
    return text


def test_killed_children_are_named_and_restarted(start):
    service = start()
    service.note()
    before = service.request_environment()
    names = {"valkey-server": "valkey", "postgres": "postgres"}
    children = psutil.Process(service.process.pid).children()
    for child in children:
        child.kill()

    def all_back():
        back = psutil.Process(service.process.pid).children()
        return (
            len(back) == len(children)
            and not set(back) & set(children)
            and service.request_environment()["pid"] != before["pid"]
        )

    service.eventually(all_back)

    def reachable():
        try:
            psycopg.connect(before["HEADWATER_DATABASE_URL"]).close()
        except psycopg.OperationalError:
            return False
        return True

    service.eventually(reachable)
    code, output, left = service.end()
    assert (code, left) == (0, [])
    for name in ("api", "jvm", "worker", *names.values()):
        assert f"headwater: {name} (pid " in output
    assert output.count("was killed by SIGKILL") >= 5


def test_second_start_reads_the_key_of_the_first(start):
    first = start()
    first.note()
    first.end()
    again = start()
    assert again.note()["api_key"] == "hw_first"
    again.end()
    (again.data / "operator.key").unlink()
    lost = start()
    output = lost.process.communicate(timeout=30)[1]
    assert lost.process.returncode == 1
    assert "operator.key is missing, but the database already has an operator key" in output
    assert "`headwater up --new-operator-key`" in output


def test_start_after_a_kill_of_all_processes_recovers(start):
    killed = start()
    killed.note()
    killed.process.kill()
    killed.process.wait()
    again = start()
    assert again.note()["pid"] == again.process.pid
    assert again.end()[0] == 0


def test_directory_in_use_is_refused(start):
    service = start()
    service.note()
    second = start()
    assert (
        f"another Headwater (pid {service.process.pid}) is running"
        in second.process.communicate(timeout=30)[1]
    )
    assert second.process.returncode == 1
    assert service.request_environment()["pid"]


def test_port_in_use_is_refused_and_the_folder_is_checked_first(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            StackError, match=rf"port {port} is in use; choose another with --port \(make up PORT="
        ):
            run(port, tmp_path)
        with DataDirectory(tmp_path), pytest.raises(DataDirectoryError, match=f"is running on {tmp_path}"):
            run(port, tmp_path)


def test_failed_initialisation_stops_all_processes(start):
    service = start(init="raise SystemExit('no such schema')")
    children = psutil.Process(service.process.pid).children
    output = service.process.communicate(timeout=30)[1]
    assert service.process.returncode == 1
    assert "init exited with code 1" in output
    assert "no such schema" in output
    with pytest.raises(psutil.NoSuchProcess):
        children()
