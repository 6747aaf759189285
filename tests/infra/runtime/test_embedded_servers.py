"""The embedded PostgreSQL and Valkey: real servers, started, used, killed and started again."""

import os
import signal
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
import pytest
import redis

from app.infra.runtime.account import account_for
from app.infra.runtime.child import ChildSpec, launch, reap
from app.infra.runtime.embedded_server import EmbeddedServer, ServerError
from app.infra.runtime.postgres import EmbeddedPostgres, PostgresError
from app.infra.runtime.valkey import EmbeddedValkey


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def tmp_path():
    """Not pytest's own folder, which each run of pytest closes to the account that Postgres runs as."""
    with TemporaryDirectory(prefix="headwater-tests-") as folder:
        yield Path(folder)


def test_postgres_keeps_rows_over_a_restart_and_restricts_the_application_role(tmp_path):
    with EmbeddedPostgres(tmp_path) as postgres:
        with psycopg.connect(postgres.owner_url) as connection:
            connection.execute("CREATE TABLE kept (n int); ALTER TABLE kept ENABLE ROW LEVEL SECURITY")
            connection.execute(
                "ALTER TABLE kept FORCE ROW LEVEL SECURITY; GRANT ALL ON kept TO headwater_app"
            )
            connection.execute("INSERT INTO kept VALUES (7)")
        with psycopg.connect(postgres.url) as connection:
            assert connection.execute("SELECT n FROM kept").fetchall() == []
            role = "SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = current_user"
            assert connection.execute(role).fetchone() == (False, False, False)
            assert connection.execute("SHOW shared_buffers").fetchone() == ("64MB",)
    with EmbeddedPostgres(tmp_path) as again, psycopg.connect(again.owner_url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(7,)]


def test_postgres_refuses_a_wrong_password_and_keeps_its_own_private(tmp_path):
    with EmbeddedPostgres(tmp_path, durable=False) as postgres:
        address = f"postgresql://headwater_owner:wrong@127.0.0.1:{postgres.port}/postgres"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(address)
    for name in ("postgres-owner.password", "postgres-app.password"):
        assert mode(tmp_path / name) == 0o600
    assert mode(tmp_path / "postgres") == 0o700


def test_postgres_recovers_a_commit_after_a_kill(tmp_path):
    postgres = EmbeddedPostgres(tmp_path)
    postgres.start()
    try:
        with psycopg.connect(postgres.owner_url) as connection:
            connection.execute("CREATE TABLE kept (n int)")
            connection.execute("INSERT INTO kept VALUES (1)")
        pid = int((postgres.cluster / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGQUIT)  # what the kernel sends it when a supervisor is killed
    finally:
        postgres.stop()
    with EmbeddedPostgres(tmp_path) as again, psycopg.connect(again.owner_url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]


def test_failed_initialisation_leaves_no_files(tmp_path, monkeypatch):
    postgres = EmbeddedPostgres(tmp_path, durable=False)
    monkeypatch.setattr(
        "app.infra.runtime.postgres.OWNER", "pg_reserved"
    )  # names that begin so are PostgreSQL's own
    with pytest.raises(PostgresError, match="initdb failed"):
        postgres.start()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "postgres-admin.password",
        "postgres-app.password",
        "postgres-owner.password",
    ]
    monkeypatch.undo()
    with postgres, psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs children as another user")
def test_root_opens_a_private_folder_to_one_group(tmp_path):
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "secret").write_text("s")
    account = account_for(private / "postgres")
    assert account is not None
    assert account.uid != 0
    assert private.stat().st_gid in account.groups
    assert mode(private) == 0o710


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs children as another user")
def test_server_does_not_run_as_root(tmp_path):
    postgres = EmbeddedPostgres(tmp_path, durable=False)
    process = launch(postgres.child(), os.open(os.devnull, os.O_WRONLY))
    try:
        while not postgres.is_ready():
            assert process.poll() is None
        assert 0 not in psutil.Process(process.pid).uids()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        reap(process)


def test_valkey_requires_its_password(tmp_path):
    folder = tmp_path / 'a "folder" with blanks'
    with EmbeddedValkey(folder) as server:
        with redis.Redis.from_url(server.url) as client:
            client.lpush("jobs", "1")
            assert client.rpop("jobs") == b"1"
        with (
            redis.Redis(host="127.0.0.1", port=server.port) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()
    assert mode(folder / "valkey.password") == 0o600
    assert mode(folder / "valkey" / "valkey.conf") == 0o600
    assert not server.is_ready()


class Script(EmbeddedServer):
    """A shell script that never becomes ready."""

    def __init__(self, directory, script, *, ready_seconds_max=30.0):
        super().__init__(directory)
        self.spec = ChildSpec(
            name="script",
            command=("/bin/sh", "-c", script),
            ready=self.is_ready,
            ready_seconds_max=ready_seconds_max,
        )

    @property
    def url(self):
        return f"script://127.0.0.1:{self.port}"

    def child(self):
        return self.spec

    def is_ready(self):
        return False


def test_a_server_that_exits_is_reported_with_the_end_of_its_log(tmp_path):
    server = Script(tmp_path, "echo no such option; exit 3")
    with pytest.raises(ServerError, match="script exited with code 3: no such option"):
        server.start()


def test_a_server_that_is_not_ready_in_time_is_stopped(tmp_path):
    pid_file = tmp_path / "pid"
    server = Script(tmp_path, f"echo $$ > {pid_file}; echo waiting; exec sleep 60", ready_seconds_max=0.5)
    with pytest.raises(ServerError, match=r"script was not ready after 0.5 s: waiting"):
        server.start()
    assert not psutil.pid_exists(int(pid_file.read_text()))
